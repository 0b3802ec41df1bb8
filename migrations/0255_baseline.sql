-- The baseline: sessions, their messages and conversation, the audit log, settings, trusted folders.
--
-- Times are milliseconds since 1970-01-01 UTC. What is asked for by query is a column; the rest of a
-- session's durable facts is one JSON object in `facts`. The runner wraps this file and the new
-- user_version in one transaction.

-- 'OMNI': tells this file from any other program's database
PRAGMA application_id = 0x4f4d4e49;

CREATE TABLE sessions (
    id TEXT PRIMARY KEY NOT NULL,
    title TEXT NOT NULL,
    folder TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    account TEXT NOT NULL,
    status TEXT NOT NULL,
    pending_action TEXT,
    status_changed_at INTEGER NOT NULL,
    intent_running INTEGER NOT NULL CHECK (intent_running IN (0, 1)),
    cli_session_id TEXT,
    cli_session_wanted TEXT,
    delivered INTEGER NOT NULL CHECK (delivered IN (0, 1)),
    last_restart_at INTEGER,
    stop_reason TEXT,
    deleted_at INTEGER,
    facts TEXT NOT NULL CHECK (json_valid(facts))
) STRICT;

-- the minute's scan reads this and nothing else
-- rule: SC-03, DB-07
CREATE INDEX sessions_pending_action ON sessions (pending_action, status_changed_at)
    WHERE pending_action IS NOT NULL AND deleted_at IS NULL;

-- `place` keeps the order in which messages were written, also after a step of the clock
CREATE TABLE messages (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    -- rule: DB-09
    origin TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    state TEXT NOT NULL
) STRICT;

CREATE INDEX messages_session ON messages (session, place);
CREATE INDEX messages_queued ON messages (session, place) WHERE state = 'queued';

CREATE TABLE blocks (
    session TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    seq INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    hidden INTEGER NOT NULL CHECK (hidden IN (0, 1)),
    interruption INTEGER NOT NULL CHECK (interruption IN (0, 1)),
    open INTEGER NOT NULL CHECK (open IN (0, 1)),
    cut_off INTEGER NOT NULL CHECK (cut_off IN (0, 1)),
    body TEXT NOT NULL CHECK (json_valid(body)),
    PRIMARY KEY (session, seq)
) STRICT;

CREATE INDEX blocks_open ON blocks (session) WHERE open = 1;

-- The audit log. `before` and `after` hold the facts that changed, by their names in the core;
-- the first entry of a session has no `before` and holds them all. Folding `after` over `after`
-- gives the row as it is.
CREATE TABLE transitions (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    session TEXT NOT NULL REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED,
    before TEXT CHECK (before IS NULL OR json_valid(before)),
    after TEXT NOT NULL CHECK (json_valid(after)),
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    verdict TEXT NOT NULL
) STRICT;

CREATE INDEX transitions_session ON transitions (session, id);

CREATE TRIGGER transitions_are_not_changed BEFORE UPDATE ON transitions
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER transitions_are_not_removed BEFORE DELETE ON transitions
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TABLE settings (
    key TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL CHECK (json_valid(value))
) STRICT;

CREATE TABLE trusted_folders (
    real_path TEXT PRIMARY KEY NOT NULL,
    trusted INTEGER NOT NULL CHECK (trusted IN (0, 1)),
    decided_at INTEGER NOT NULL
) STRICT;
