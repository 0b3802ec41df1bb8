-- The daily counter of automatic replays, and the stamp for replies that were lost before it existed.

-- rule: CT-01, MG-01
ALTER TABLE sessions ADD COLUMN aborted_response_retry_attempts INTEGER NOT NULL DEFAULT 0;
-- the local day of that count, YYYY-MM-DD
ALTER TABLE sessions ADD COLUMN aborted_response_retry_day TEXT;

-- The fingerprint: stopped, asking nothing, not deleted, and the last turn has no delivered answer on
-- record. A delivered answer is never run again. status_changed_at stays, so that these rows show at
-- once until the first scan takes them.
-- rule: MG-02, MG-05
INSERT INTO transitions (at, session, before, after, actor, reason, verdict)
SELECT
    CAST(unixepoch('subsec') * 1000 AS INTEGER),
    id,
    json_object('pending', NULL),
    json_object('pending', 'response_aborted'),
    'migration',
    'retro-fill: no delivered answer on record',
    status || ' -> ' || status || ' + response_aborted'
FROM sessions
WHERE status IN ('needs_you', 'error') AND pending_action IS NULL AND deleted_at IS NULL AND delivered = 0;

UPDATE sessions SET pending_action = 'response_aborted'
WHERE status IN ('needs_you', 'error') AND pending_action IS NULL AND deleted_at IS NULL AND delivered = 0;
