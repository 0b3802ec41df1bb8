//! The daily counter of automatic replays: 2 a day, then `recovery_failed` (CT).
//!
//! A row is written whole, by one statement that is refused unless the stored counter is the one that was
//! read (`store/commit.rs`). So the contract's counter queries are the functions here, followed by that
//! write: no count is lost, whoever else counts at the same time.

use crate::session::SessionRow;
use crate::time::Day;

/// What one more attempt on this day would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The count after it; saturates at cap + 1.
    pub count: u8,
    /// The day it is charged to.
    pub day: Day,
    /// It exceeds the cap: promote instead of replaying (SC-13).
    pub exceeds_cap: bool,
}

/// The next attempt of the row. Changes nothing: the caller writes count and day in the same guarded
/// write as the restart (SC-11).
pub fn next_attempt(row: &SessionRow, today: Day, cap: u8) -> Attempt {
    // rule: CT-02, CT-03, CT-04, SC-13
    let fresh = match row.retry_day {
        None => true,
        // a new day only when today's key is later; a key more than a day ahead is corrupt
        Some(stored) => today > stored || stored.0 > today.0.saturating_add(1),
    };
    let (count, day) = match row.retry_day {
        Some(stored) if !fresh => (row.retry_attempts.saturating_add(1).min(cap + 1), stored),
        Some(_) | None => (1, today),
    };
    Attempt { count, day, exceeds_cap: count > cap }
}

/// `incrementResponseAbortedAttempts`: charges the attempt to the row, to be written in the same step as
/// the restart or the promotion that it pays for.
pub fn increment_response_aborted_attempts(row: &mut SessionRow, attempt: Attempt) {
    // rule: DB-06
    row.retry_attempts = attempt.count;
    row.retry_day = Some(attempt.day);
}

/// `resetResponseAbortedAttempts`: the day's attempts are free again.
pub fn reset_response_aborted_attempts(row: &mut SessionRow) {
    // rule: DB-06
    row.retry_attempts = 0;
    row.retry_day = None;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Uuid;
    use crate::time::Wall;
    use alloc::string::String;

    fn row(attempts: u8, day: Option<i32>) -> SessionRow {
        let mut row =
            SessionRow::new(Uuid(1), String::new(), String::new(), String::new(), Wall(0));
        row.retry_attempts = attempts;
        row.retry_day = day.map(Day);
        row
    }

    fn next(attempts: u8, day: Option<i32>, today: i32) -> (u8, i32, bool) {
        let attempt = next_attempt(&row(attempts, day), Day(today), 2);
        (attempt.count, attempt.day.0, attempt.exceeds_cap)
    }

    // proves: CT-02, CT-03, CT-04, INV-12
    #[test]
    fn two_a_day_then_promotion_and_a_new_day_starts_over() {
        assert_eq!(next(0, None, 100), (1, 100, false));
        assert_eq!(next(1, Some(100), 100), (2, 100, false));
        assert_eq!(next(2, Some(100), 100), (3, 100, true));
        assert_eq!(next(3, Some(100), 100), (3, 100, true), "the count saturates at cap + 1");
        assert_eq!(next(2, Some(100), 101), (1, 101, false), "a later day starts over");
        // travelling west, or a clock stepped back, gives no extra attempts
        assert_eq!(next(2, Some(100), 99), (3, 100, true));
        // a day further ahead than that is corrupt
        assert_eq!(next(2, Some(102), 100), (1, 100, false));
    }
}
