//! The list of sessions: what is shown where, what the person searches, folds and points at. The
//! rules of the order are in [`order`], the drawing in [`sidebar`] and [`row`].

mod geometry;
pub mod order;
mod row;
mod search;
mod sidebar;
mod still;

pub use search::project;
pub use sidebar::{Sidebar, focus_list, focus_search};

use crate::model::Store;
use geometry::{Band, Heights, Viewport};
use leptos::leptos_dom::helpers::{TimeoutHandle, set_timeout_with_handle};
use leptos::prelude::*;
use omniscio_core::attention::Section;
use omniscio_core::id::SessionId;
use order::{Layout, Place};
use std::time::Duration;

/// The list's id in the page.
pub const LIST_ID: &str = "session-list";
/// The search field's id in the page.
pub const SEARCH_ID: &str = "session-search";
/// Moving by keys opens a session after this long.
const OPEN_DELAY: Duration = Duration::from_millis(120);
/// Above this many rows, Other starts folded.
const OTHER_FOLDS_ABOVE: usize = 20;

/// The list's own state. Copied around freely; there is one, in the context.
#[derive(Clone, Copy)]
pub struct Inbox {
    store: Store,
    /// What is searched.
    pub query: RwSignal<String>,
    /// Sections that the person folded or unfolded by hand.
    folds: RwSignal<Vec<(Section, bool)>>,
    /// The list as it is drawn.
    pub shown: RwSignal<Layout>,
    /// The row the keys are at.
    pub cursor: RwSignal<Option<SessionId>>,
    /// A hand is on the list: moves wait.
    busy: RwSignal<bool>,
    /// What of the list is in view.
    viewport: RwSignal<Viewport>,
    opening: StoredValue<Option<TimeoutHandle>>,
}

impl Inbox {
    /// The list of the store, put into the context.
    pub fn provide(store: Store) -> Inbox {
        let inbox = Inbox {
            store,
            query: RwSignal::new(String::new()),
            folds: RwSignal::new(Vec::new()),
            shown: RwSignal::new(Vec::new()),
            cursor: RwSignal::new(None),
            busy: RwSignal::new(false),
            // generous until the page has been measured
            viewport: RwSignal::new(Viewport { top: 0.0, height: 1_200.0 }),
            opening: StoredValue::new(None),
        };
        let wanted = Memo::new(move |_| inbox.wanted());
        still::keep(inbox, wanted);
        // the cursor follows what is opened from elsewhere
        Effect::new(move |_| inbox.cursor.set(store.open.get()));
        provide_context(inbox);
        inbox
    }

    /// The list as the rules want it now, tracked.
    fn wanted(self) -> Layout {
        let query = self.query.get();
        self.store.entries.with(|entries| {
            let places = entries.iter().filter_map(|(session, entry)| {
                let attention = entry.attention.get();
                entry.view.with(|view| {
                    search::matches(&query, view, &attention).then_some(Place {
                        session: *session,
                        section: attention.section,
                        status_changed_at: view.row.status_changed_at,
                        created_at: view.row.created_at,
                    })
                })
            });
            order::layout(places)
        })
    }

    /// Whether a section is folded, tracked. A search unfolds all.
    pub fn is_folded(self, section: Section) -> bool {
        if !self.query.with(String::is_empty) {
            return false;
        }
        let by_hand = self.folds.with(|folds| folds.iter().rfind(|(s, _)| *s == section).copied());
        let rows = || {
            self.shown.with(|shown| {
                shown.iter().find(|(s, _)| *s == section).map_or(0, |(_, rows)| rows.len())
            })
        };
        match by_hand {
            Some((_, folded)) => folded,
            None => section == Section::Other && rows() > OTHER_FOLDS_ABOVE,
        }
    }

    /// Folds or unfolds a section.
    pub fn fold(self, section: Section, folded: bool) {
        self.folds.update(|folds| {
            folds.retain(|(s, _)| *s != section);
            folds.push((section, folded));
        });
    }

    /// Folds or unfolds the section of the row the keys are at.
    pub fn fold_here(self, folded: bool) {
        let here = self.cursor.get_untracked();
        let section = self.shown.with_untracked(|shown| {
            let own = shown.iter().find(|(_, rows)| here.is_some_and(|here| rows.contains(&here)));
            own.map(|(section, _)| *section)
        });
        if let Some(section) = section {
            self.fold(section, folded);
        }
    }

    /// The sections that are folded, tracked.
    fn folded(self) -> Vec<Section> {
        Section::LISTED.into_iter().filter(|section| self.is_folded(*section)).collect()
    }

    /// The rows that are drawn, from top to bottom.
    fn rows(self) -> Vec<SessionId> {
        let folded = untrack(|| self.folded());
        self.shown.with_untracked(|shown| order::visible(shown, &folded))
    }

    /// Where the rows of a section stand, tracked.
    fn band(self, section: Section) -> Option<Band> {
        let folded = self.folded();
        self.shown.with(|shown| geometry::band(shown, &folded, heights(), section))
    }

    /// Where a row stands in a layout: its upper edge and its height.
    fn place(self, layout: &Layout, session: SessionId) -> Option<(f64, f64)> {
        let folded = untrack(|| self.folded());
        geometry::place(layout, &folded, heights(), session)
    }

    /// Moves by so many rows; the session opens a moment later.
    pub fn step(self, by: isize) {
        self.point(order::step(&self.rows(), self.cursor.get_untracked(), by));
    }

    /// Goes to the next or previous session that waits for a person, and opens it.
    pub fn next_waiting(self, back: bool) {
        let from = self.cursor.get_untracked();
        let next = self.shown.with_untracked(|shown| order::next_waiting(shown, from, back));
        if let Some(next) = next {
            self.cursor.set(Some(next));
            still::reveal(self, next);
            self.store.open(next);
        }
    }

    /// Opens the first row, for Enter in the search field.
    pub fn open_first(self) {
        if let Some(first) = self.rows().first() {
            self.store.open(*first);
        }
    }

    /// Archives a session and goes to its neighbour.
    pub fn archive(self, session: SessionId) {
        let next = self.shown.with_untracked(|shown| order::neighbour(shown, session));
        crate::actions::archive(self.store, session, next);
    }

    /// The person uses the list: moves wait a moment.
    pub fn touch(self) {
        still::touch(self);
    }

    fn point(self, to: Option<SessionId>) {
        let Some(to) = to else { return };
        self.touch();
        self.cursor.set(Some(to));
        still::reveal(self, to);
        self.opening.update_value(|opening| {
            if let Some(old) = opening.take() {
                old.clear();
            }
            *opening = set_timeout_with_handle(move || self.store.open(to), OPEN_DELAY).ok();
        });
    }
}

/// The inbox of the window.
pub fn use_inbox() -> Inbox {
    expect_context::<Inbox>()
}

/// The id of a row in the page.
pub fn row_id(session: SessionId) -> String {
    format!("row-{session}")
}

/// Whether the window shows one pane at a time.
pub fn is_narrow() -> bool {
    window().inner_width().ok().and_then(|width| width.as_f64()).is_some_and(|width| width < 720.0)
}

fn heights() -> Heights {
    if is_narrow() { Heights::NARROW } else { Heights::WIDE }
}
