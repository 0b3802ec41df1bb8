//! Keeps the list still under a hand: moves wait while it is used, and when they happen the row the
//! person looks at keeps its place on the screen. Decides no order.

use super::geometry::Viewport;
use super::order::{self, Layout};
use super::{Inbox, LIST_ID, heights};
use leptos::leptos_dom::helpers::{TimeoutHandle, set_timeout_with_handle};
use leptos::prelude::*;
use omniscio_core::id::SessionId;
use std::time::Duration;
use web_sys::Element;

/// A hand counts as away after this long.
const HAND_AWAY: Duration = Duration::from_millis(1_200);
/// Moves wait at most this long.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Draws what the rules want, at once or when the hand is away.
pub(super) fn keep(inbox: Inbox, wanted: Memo<Layout>) {
    let waiting = StoredValue::new(None::<TimeoutHandle>);
    let flush = move || {
        waiting.update_value(|timer| {
            if let Some(timer) = timer.take() {
                timer.clear();
            }
        });
        show(inbox, wanted.get_untracked());
    };
    Effect::new(move |_| {
        let wanted = wanted.get();
        if !inbox.busy.get() {
            return flush();
        }
        let held = inbox.shown.with_untracked(|shown| order::held(shown, &wanted));
        let moves_wait = held != wanted;
        show(inbox, held);
        waiting.update_value(|timer| {
            if moves_wait && timer.is_none() {
                *timer = set_timeout_with_handle(flush, LONGEST_WAIT).ok();
            }
        });
    });
}

/// The person uses the list.
pub(super) fn touch(inbox: Inbox) {
    thread_local! {
        static AWAY: std::cell::Cell<Option<TimeoutHandle>> = const { std::cell::Cell::new(None) };
    }
    if !inbox.busy.get_untracked() {
        inbox.busy.set(true);
    }
    let away = set_timeout_with_handle(move || inbox.busy.set(false), HAND_AWAY).ok();
    if let Some(old) = AWAY.replace(away) {
        old.clear();
    }
}

/// Follows what of the list is in view.
pub(super) fn look(inbox: Inbox) {
    if let Some(list) = list_element() {
        let top = f64::from(list.scroll_top()) - base(&list);
        let height = f64::from(list.client_height());
        inbox.viewport.set(Viewport { top, height });
    }
}

/// Scrolls a row into view, no further than needed.
pub(super) fn reveal(inbox: Inbox, session: SessionId) {
    let place = inbox.shown.with_untracked(|shown| inbox.place(shown, session));
    if let (Some((top, height)), Some(list)) = (place, list_element()) {
        let view = inbox.viewport.get_untracked();
        // the sticky header covers the top
        let upper = view.top + heights().header;
        if top < upper {
            scroll_by(&list, top - upper);
        } else if top + height > view.top + view.height {
            scroll_by(&list, top + height - view.top - view.height);
        }
    }
}

/// Changes the drawn list; the anchor keeps its place on the screen within the same frame.
fn show(inbox: Inbox, layout: Layout) {
    if inbox.shown.with_untracked(|shown| *shown == layout) {
        return;
    }
    let anchor = anchor(inbox);
    let after = anchor.and_then(|(session, _)| inbox.place(&layout, session));
    inbox.shown.set(layout);
    if let (Some((_, before)), Some((after, _))) = (anchor, after) {
        request_animation_frame(move || {
            if let Some(list) = list_element() {
                scroll_by(&list, after - before);
            }
            look(inbox);
        });
    }
}

/// The row under a resting pointer, else the open row if it is in view, else the top row in view;
/// and its upper edge.
fn anchor(inbox: Inbox) -> Option<(SessionId, f64)> {
    let list = list_element()?;
    let view = inbox.viewport.get_untracked();
    let place = |session: SessionId| {
        let (top, height) = inbox.shown.with_untracked(|shown| inbox.place(shown, session))?;
        (top + height > view.top && top < view.top + view.height).then_some((session, top))
    };
    let hovered = list.query_selector(".row:hover").ok().flatten();
    let hovered = hovered.and_then(|row| row.get_attribute("data-session")?.parse().ok());
    hovered
        .and_then(place)
        .or_else(|| inbox.store.open.get_untracked().and_then(place))
        .or_else(|| inbox.rows().into_iter().find_map(place))
}

fn scroll_by(list: &Element, by: f64) {
    list.set_scroll_top(list.scroll_top() + by.round() as i32);
}

/// What stands over the first section: the notice, if there is one.
fn base(list: &Element) -> f64 {
    let notice = list.query_selector(".notice").ok().flatten();
    notice.map_or(0.0, |notice| f64::from(notice.client_height()))
}

fn list_element() -> Option<Element> {
    document().get_element_by_id(LIST_ID)
}
