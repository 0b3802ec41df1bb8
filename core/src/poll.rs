//! The plugin poll (OD-41): who needs a person, for programs outside of the window. It asks the one
//! predicate and holds no rule of its own.

use crate::attention::attention;
use crate::id::SessionId;
use crate::ipc::RowView;
use crate::limits::Limits;
use crate::settings::Policy;
use crate::time::{Now, Wall};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// One session that needs a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollRow {
    /// The session.
    pub id: SessionId,
    /// Its title.
    pub title: String,
    /// The section it stands in.
    pub section: String,
    /// Its word.
    pub label: String,
    /// The name of its tone.
    pub tone: String,
    /// Since when, in milliseconds of Unix time.
    pub since: Option<Wall>,
}

/// The sessions that need a person, in the order of `rows`: exactly those that the badge counts.
pub fn plugin_poll(rows: &[RowView], policy: &Policy, limits: &Limits, now: Now) -> Vec<PollRow> {
    // rule: NT-08
    let seen = rows.iter().map(|view| (view, attention(view, policy, limits, now)));
    seen.filter(|(_, seen)| seen.needs_person)
        .map(|(view, seen)| PollRow {
            id: view.row.id,
            title: view.row.title.clone(),
            section: seen.section.title().into(),
            label: seen.label.into(),
            tone: seen.tone.as_str().into(),
            since: seen.since,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::badge_count;
    use crate::id::Uuid;
    use crate::ipc::LiveView;
    use crate::session::{PendingAction, SessionRow, Status, is_legal};
    use crate::time::{Day, Mono};

    // proves: NT-08
    #[test]
    fn the_poll_lists_exactly_those_that_the_badge_counts() {
        let now = Now { wall: Wall(10_000_000), mono: Mono(0), day: Day(1) };
        let (policy, limits) = (Policy::default(), Limits::default());
        let pending = PendingAction::ALL.iter().copied().map(Some).chain([None]);
        let states = pending.flat_map(|pending| Status::ALL.iter().map(move |s| (*s, pending)));
        let legal = states.filter(|(status, pending)| is_legal(*status, *pending));
        let mut rows = Vec::new();
        for (n, (status, pending)) in legal.enumerate() {
            // within the hide clock and beyond it
            for age in [1_000, 400_000] {
                let mut row = SessionRow::new(
                    Uuid(n as u128),
                    "/p".into(),
                    "t".into(),
                    "a".into(),
                    Wall(10_000_000 - age),
                );
                (row.status, row.pending) = (status, pending);
                rows.push(RowView { row, live: LiveView::default() });
            }
        }
        let polled = plugin_poll(&rows, &policy, &limits, now);
        let counted = |view: &&RowView| badge_count([&view.row], &policy, &limits, now) == 1;
        let wanted: Vec<SessionId> = rows.iter().filter(counted).map(|view| view.row.id).collect();
        assert_eq!(polled.iter().map(|row| row.id).collect::<Vec<_>>(), wanted);
        assert!(polled.len() > 5 && polled.len() < rows.len());
        let red = polled.iter().find(|row| row.label == "Recovery failed").expect("a red row");
        assert_eq!((red.section.as_str(), red.tone.as_str()), ("Interrupted", "red-400"));
        assert!(red.since.is_some());
    }
}
