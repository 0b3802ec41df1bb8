//! Guards that every automatic restart shares: what holds it, whoever wants it (contract section 6,
//! overlays).

use crate::limits::Limits;
use crate::session::SessionRow;
use crate::time::{Millis, Now, Wall};
use crate::verdict::Why;

/// What is known of a row beside its durable facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowFacts {
    /// `Some` once the folder was probed for this decision.
    pub folder_present: Option<bool>,
    /// Another program has the conversation open.
    pub held: bool,
    /// A check of the session runs (RG).
    pub gate: bool,
    /// The machine is saturated (LD-02).
    pub heavy: bool,
    /// There is a message to send again, or a turn that began by itself.
    pub replayable: bool,
    /// A restart of this session is already under way.
    pub restart_under_way: bool,
    /// A turn's end is still being decided.
    pub disposition_pending: bool,
    /// Milliseconds since this run of the app last restarted the session: true even if the wall clock
    /// was set meanwhile.
    pub since_restart: Option<Millis>,
}

/// What holds a restart whose folder was looked at: folder, another program, a running check.
pub fn hold(facts: RowFacts) -> Option<Why> {
    // rule: PF-02, A-12, INV-06, INV-07
    if facts.folder_present == Some(false) {
        Some(Why::FolderMissing)
    } else if facts.held {
        Some(Why::HeldElsewhere)
    } else if facts.gate {
        Some(Why::GateOpen)
    } else {
        None
    }
}

/// Until when an automatic restart of the row is refused by either clock; `None` when it is free.
pub fn debounce_left(row: &SessionRow, facts: RowFacts, limits: &Limits, now: Now) -> Option<Wall> {
    // rule: INV-01
    let left = facts.since_restart.and_then(|age| limits.replay_debounce_ms.checked_sub(age));
    let by_mono = left.filter(|left| *left > 0).map(|left| now.wall.plus(left));
    debounced_until(row, limits, now).or(by_mono)
}

/// Until when an automatic restart of the row is refused; `None` when it is free (RP-07).
pub fn debounced_until(row: &SessionRow, limits: &Limits, now: Now) -> Option<Wall> {
    // rule: RP-07
    let last = row.last_restart_at?;
    let age = now.wall.since(last);
    // a restart "in the future" is a clock that was stepped back: it holds no longer than the
    // debounce itself from now
    let debounce = i64::try_from(limits.replay_debounce_ms).unwrap_or(i64::MAX);
    (age < debounce && age > -debounce).then(|| last.plus(limits.replay_debounce_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Uuid;
    use crate::time::{Day, Mono};
    use alloc::string::String;

    fn now() -> Now {
        Now { wall: Wall(10_000_000), mono: Mono(500_000), day: Day(100) }
    }

    fn restarted(ago: i64) -> SessionRow {
        let mut row =
            SessionRow::new(Uuid(1), String::new(), String::new(), String::new(), Wall(0));
        row.last_restart_at = Some(Wall(10_000_000 - ago));
        row
    }

    // proves: RP-07
    #[test]
    fn the_debounce_ends_to_the_millisecond_and_survives_a_clock_step() {
        let until = |ago| debounced_until(&restarted(ago), &Limits::default(), now());
        assert!(until(89_999).is_some());
        assert_eq!(until(90_000), None);
        assert!(until(-89_999).is_some(), "a small step back");
        assert_eq!(until(-7_200_000), None, "a large one holds nobody");
    }

    // proves: RP-07, INV-01
    #[test]
    fn a_wall_clock_set_forward_does_not_end_the_debounce() {
        let left = |since_restart| {
            let facts = RowFacts { since_restart, ..RowFacts::default() };
            debounce_left(&restarted(7_210_000), facts, &Limits::default(), now())
        };
        assert_eq!(left(Some(10_000)), Some(Wall(10_080_000)));
        assert_eq!(left(Some(90_000)), None);
        assert_eq!(left(None), None);
    }

    #[test]
    fn holds_are_looked_at_in_the_contracts_order() {
        let all =
            RowFacts { folder_present: Some(false), held: true, gate: true, ..RowFacts::default() };
        assert_eq!(hold(all), Some(Why::FolderMissing));
        let there = RowFacts { folder_present: Some(true), ..all };
        assert_eq!(hold(there), Some(Why::HeldElsewhere));
        assert_eq!(hold(RowFacts { held: false, ..there }), Some(Why::GateOpen));
        assert_eq!(hold(RowFacts::default()), None);
    }
}
