//! A session that begins as a copy of another one's conversation: where the copy is cut, the row it starts
//! with, and how it is launched. The other conversation is only ever copied, never gone on with.

use super::replay_plan::resume_id;
use crate::id::{CliSessionId, SessionId};
use crate::launch::Conversation;
use crate::prompt;
use crate::session::{ForkPoint, SessionRow, Status};
use crate::supervisor::TranscriptFacts;
use crate::time::Wall;
use alloc::format;
use alloc::string::String;

/// A title is cut so far that this many characters have room behind it.
const BASE_MAX_CHARS: usize = 180;

/// Where a copy of this session's conversation begins: at the end of its last good turn. `None` where no
/// turn was ever good.
pub fn fork_point(row: &SessionRow) -> Option<ForkPoint> {
    // a copy without a good turn of its own is cut where it began
    row.fork_of.or_else(|| {
        let at = Some(row.last_good_assistant?);
        Some(ForkPoint { from: resume_id(row)?, at })
    })
}

/// The row of a copy: it runs as `old` did, has said nothing, and waits for the person.
pub fn forked(
    old: &SessionRow,
    point: ForkPoint,
    (id, conversation): (SessionId, CliSessionId),
    now: Wall,
) -> SessionRow {
    // rule: A-15
    SessionRow {
        model: old.model.clone(),
        endpoint: old.endpoint.clone(),
        permission_mode: old.permission_mode,
        user_settings_only: old.user_settings_only,
        status: Status::NeedsYou,
        intent_running: false,
        cli_session_wanted: Some(conversation),
        cli_session_before: Some(point.from),
        fork_of: Some(point),
        last_good_assistant: point.at,
        ever_answered: true,
        prints_markers: old.prints_markers,
        words: Some(prompt::COPY_WAITS.into()),
        ..SessionRow::new(id, old.folder.clone(), title(&old.title), old.account.clone(), now)
    }
}

/// The title of a copy: `Fix it (fork)`, and of its copy `Fix it (fork 2)`.
fn title(old: &str) -> String {
    let inside = old.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (fork"));
    let known = inside.and_then(|(base, number)| match number.strip_prefix(' ') {
        Some(number) => Some((base, number.parse::<u32>().ok()?)),
        None => number.is_empty().then_some((base, 1)),
    });
    let (base, number) = known.unwrap_or((old, 0));
    let base: String = base.chars().take(BASE_MAX_CHARS).collect();
    match number.saturating_add(1) {
        1 => format!("{base} (fork)"),
        number => format!("{base} (fork {number})"),
    }
}

/// Whether a look found no conversation of the session's own, only the one that it is a copy of.
pub fn found_only_original(row: &SessionRow, found: &TranscriptFacts) -> bool {
    let original = row.fork_of.map(|point| point.from);
    found.fell_back
        && match row.cli_session_before {
            Some(before) => original == Some(before),
            None => original.is_some() && row.cli_session_id.is_none(),
        }
}

/// The copy under this id that the session begins with, while it has no conversation of its own.
pub fn first_copy(
    row: &SessionRow,
    found: &TranscriptFacts,
    id: CliSessionId,
) -> Option<Conversation> {
    // rule: A-15
    let point = row.fork_of.filter(|_| found_only_original(row, found))?;
    Some(copy_of(point, id))
}

/// The copy under this id.
pub fn copy_of(point: ForkPoint, id: CliSessionId) -> Conversation {
    Conversation::Fork { from: point.from, id, at: point.at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Uuid;

    #[test]
    fn a_copy_is_told_from_its_original_and_from_its_own_copy() {
        assert_eq!(title("Fix it"), "Fix it (fork)");
        assert_eq!(title("Fix it (fork)"), "Fix it (fork 2)");
        assert_eq!(title("Fix it (fork 2)"), "Fix it (fork 3)");
        for odd in ["Fix it (forked)", "Fix it (fork x)", "Fix (it)", ""] {
            assert_eq!(title(odd), format!("{odd} (fork)"));
        }
        assert_eq!(title(&"x".repeat(300)).chars().count(), BASE_MAX_CHARS + 7);
    }

    #[test]
    fn without_a_good_turn_there_is_nothing_to_copy() {
        let mut row =
            SessionRow::new(Uuid(1), String::new(), String::new(), String::new(), Wall(0));
        row.cli_session_id = Some(Uuid(2));
        assert_eq!(fork_point(&row), None);
        row.last_good_assistant = Some(Uuid(3));
        let point = ForkPoint { from: Uuid(2), at: Some(Uuid(3)) };
        assert_eq!(fork_point(&row), Some(point));
        // nothing good was said in the copy: its own copy is the same one
        let copy = forked(&row, point, (Uuid(4), Uuid(5)), Wall(9));
        assert_eq!(fork_point(&copy), Some(point));
    }
}
