//! The order of the list, and how it stays still under a hand. Values only: no signals, no DOM.

use omniscio_core::attention::Section;
use omniscio_core::id::SessionId;
use omniscio_core::time::Wall;

/// The sections that have rows, from top to bottom, each with its rows in order.
pub type Layout = Vec<(Section, Vec<SessionId>)>;

/// What the order of one row depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The session.
    pub session: SessionId,
    /// Its section.
    pub section: Section,
    /// When it entered its state.
    pub status_changed_at: Wall,
    /// When it was created.
    pub created_at: Wall,
}

/// The list as the rules want it: what waits for a person by the time the wait began, the rest by
/// creation; oldest first, so that a newcomer pushes no row of its section down.
pub fn layout(places: impl Iterator<Item = Place>) -> Layout {
    let mut places: Vec<Place> = places.collect();
    places.sort_by_key(|place| {
        let at =
            if place.section.needs_person() { place.status_changed_at } else { place.created_at };
        (at, place.session)
    });
    let rows = |section| {
        let own = places.iter().filter(move |place| place.section == section);
        own.map(|place| place.session).collect::<Vec<_>>()
    };
    let sections = Section::LISTED.into_iter().map(|section| (section, rows(section)));
    sections.filter(|(_, rows)| !rows.is_empty()).collect()
}

/// The list while a hand is on it: every row stays where it is shown, rows that are gone leave, and
/// new ones are appended to their section.
pub fn held(shown: &Layout, wanted: &Layout) -> Layout {
    let is_in = |layout: &Layout, session: &SessionId| {
        layout.iter().any(|(_, rows)| rows.contains(session))
    };
    let rows = |section| {
        let of = |layout: &Layout| {
            let own = layout.iter().find(|(own, _)| *own == section);
            own.map(|(_, rows)| rows.clone()).unwrap_or_default()
        };
        let mut rows = of(shown);
        rows.retain(|session| is_in(wanted, session));
        rows.extend(of(wanted).into_iter().filter(|session| !is_in(shown, session)));
        rows
    };
    let sections = Section::LISTED.into_iter().map(|section| (section, rows(section)));
    sections.filter(|(_, rows)| !rows.is_empty()).collect()
}

/// All rows of the sections that are not folded, from top to bottom.
pub fn visible(layout: &Layout, folded: &[Section]) -> Vec<SessionId> {
    let open = layout.iter().filter(|(section, _)| !folded.contains(section));
    open.flat_map(|(_, rows)| rows.iter().copied()).collect()
}

/// The row `by` steps from `from`, stopping at the ends; the first or last when `from` is not there.
pub fn step(rows: &[SessionId], from: Option<SessionId>, by: isize) -> Option<SessionId> {
    let last = rows.len().checked_sub(1)?;
    let at = from.and_then(|from| rows.iter().position(|row| *row == from));
    let to = match at {
        Some(at) => at.saturating_add_signed(by).min(last),
        None if by == -1 || by == isize::MAX => last,
        None => 0,
    };
    rows.get(to).copied()
}

/// The next (or previous) row that waits for a person, round the end: the queue that `N` walks.
pub fn next_waiting(layout: &Layout, from: Option<SessionId>, back: bool) -> Option<SessionId> {
    let waiting: Vec<SessionId> = layout
        .iter()
        .filter(|(section, _)| section.needs_person())
        .flat_map(|(_, rows)| rows.iter().copied())
        .collect();
    let count = waiting.len();
    let at = from.and_then(|from| waiting.iter().position(|row| *row == from));
    let to = match (at, back) {
        (Some(at), false) => (at + 1) % count,
        (Some(at), true) => (at + count - 1) % count,
        (None, false) => 0,
        (None, true) => count.checked_sub(1)?,
    };
    waiting.get(to).copied()
}

/// Where to go when a row leaves: the next of its section, else the one before, else the next that
/// waits for a person.
pub fn neighbour(layout: &Layout, session: SessionId) -> Option<SessionId> {
    let (_, rows) = layout.iter().find(|(_, rows)| rows.contains(&session))?;
    let at = rows.iter().position(|row| *row == session)?;
    let before = at.checked_sub(1).and_then(|at| rows.get(at));
    rows.get(at + 1)
        .or(before)
        .copied()
        .or_else(|| next_waiting(layout, Some(session), false))
        .filter(|next| *next != session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::id::Uuid;

    fn ids(numbers: &[u128]) -> Vec<SessionId> {
        numbers.iter().map(|n| Uuid(*n)).collect()
    }

    fn place(n: u128, section: Section, changed: i64, created: i64) -> Place {
        Place {
            session: Uuid(n),
            section,
            status_changed_at: Wall(changed),
            created_at: Wall(created),
        }
    }

    // proves: UI-15
    #[test]
    fn who_waits_stands_by_its_wait_and_the_rest_by_creation() {
        let places = [
            place(1, Section::Running, 9, 1),
            place(2, Section::NeedsYou, 5, 1),
            place(3, Section::NeedsYou, 2, 8),
            place(4, Section::Running, 1, 0),
            place(5, Section::Interrupted, 7, 7),
            place(6, Section::Hidden, 1, 1),
        ];
        let want = vec![
            (Section::Interrupted, ids(&[5])),
            (Section::NeedsYou, ids(&[3, 2])),
            (Section::Running, ids(&[4, 1])),
        ];
        assert_eq!(layout(places.into_iter()), want);
    }

    #[test]
    fn under_a_hand_rows_stay_newcomers_append_and_the_gone_leave() {
        let shown = vec![(Section::NeedsYou, ids(&[1, 2])), (Section::Running, ids(&[3, 4]))];
        let wanted = vec![
            (Section::Interrupted, ids(&[9])),
            (Section::NeedsYou, ids(&[3, 2])),
            (Section::Running, ids(&[1, 5])),
        ];
        let want = vec![
            (Section::Interrupted, ids(&[9])),
            (Section::NeedsYou, ids(&[1, 2])),
            (Section::Running, ids(&[3, 5])),
        ];
        assert_eq!(held(&shown, &wanted), want);
        assert_eq!(held(&wanted, &wanted), wanted);
    }

    #[test]
    fn steps_stop_at_the_ends_and_the_queue_goes_round() {
        let layout = vec![
            (Section::Interrupted, ids(&[1])),
            (Section::NeedsYou, ids(&[2, 3])),
            (Section::Running, ids(&[4])),
        ];
        let rows = visible(&layout, &[Section::NeedsYou]);
        assert_eq!(rows, ids(&[1, 4]));
        assert_eq!(step(&rows, Some(Uuid(4)), 1), Some(Uuid(4)));
        assert_eq!(step(&rows, None, 1), Some(Uuid(1)));
        assert_eq!(step(&rows, Some(Uuid(4)), isize::MIN), Some(Uuid(1)));
        assert_eq!(step(&rows, None, isize::MAX), Some(Uuid(4)));
        assert_eq!(step(&[], None, 1), None);
        let next = |from, back| next_waiting(&layout, from, back);
        assert_eq!(next(Some(Uuid(3)), false), Some(Uuid(1)));
        assert_eq!(next(Some(Uuid(1)), true), Some(Uuid(3)));
        assert_eq!(next(Some(Uuid(4)), false), Some(Uuid(1)));
        assert_eq!(next_waiting(&Vec::new(), None, true), None);
        assert_eq!(neighbour(&layout, Uuid(2)), Some(Uuid(3)));
        assert_eq!(neighbour(&layout, Uuid(3)), Some(Uuid(2)));
        assert_eq!(neighbour(&layout, Uuid(4)), Some(Uuid(1)));
    }
}
