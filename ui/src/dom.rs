//! The few questions and orders the window has for the page itself. Knows nothing of sessions.

use crate::bridge::cast;
use leptos::prelude::*;
use web_sys::{Element, Event, HtmlElement};

/// The element an event points at.
pub fn target(event: &Event) -> Option<Element> {
    cast(event.target()?)
}

/// Puts the focus on an element, if it is there.
pub fn focus(id: &str) {
    let element = document().get_element_by_id(id);
    if let Some(element) = element.and_then(cast::<HtmlElement>) {
        // an element that cannot take the focus leaves it where it is
        drop(element.focus());
    }
}

/// Whether the focus is where text is typed.
pub fn types_text() -> bool {
    let active = document().active_element();
    active.is_some_and(|active| {
        active
            .closest("input, textarea, select, [contenteditable]:not([contenteditable='false'])")
            .is_ok_and(|field| field.is_some())
    })
}

/// Whether the focus is inside an element with this id.
pub fn focus_is_in(id: &str) -> bool {
    let active = document().active_element();
    active
        .is_some_and(|active| active.closest(&format!("#{id}")).is_ok_and(|found| found.is_some()))
}

/// Whether a dialog is open.
pub fn dialog_is_open() -> bool {
    document().query_selector("dialog[open], [role='dialog']").is_ok_and(|found| found.is_some())
}

/// Whether the window has the system's focus.
pub fn window_is_focused() -> bool {
    document().has_focus().unwrap_or(false)
}
