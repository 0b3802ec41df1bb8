//! Where the conversation is scrolled: follows its end while it is near it, else keeps its place
//! and counts what comes. Knows no blocks.

use crate::bridge;
use leptos::html;
use leptos::prelude::*;

/// Nearer to the end than this, in CSS pixels, the end is followed.
const NEAR_END: i32 = 48;
/// Nearer to the top than this, earlier blocks are fetched.
const NEAR_TOP: i32 = 400;

/// The scroll position of one conversation. Copied around freely.
#[derive(Clone, Copy)]
pub(super) struct Follow {
    outer: NodeRef<html::Div>,
    at_end: RwSignal<bool>,
    more: RwSignal<u32>,
    /// Where it was scrolled to last.
    last_top: StoredValue<i32>,
    /// Height and position before blocks were put on top.
    before: StoredValue<Option<(i32, i32)>>,
}

impl Follow {
    /// Begins at the end.
    pub(super) fn new() -> Follow {
        Follow {
            outer: NodeRef::new(),
            at_end: RwSignal::new(true),
            more: RwSignal::new(0),
            last_top: StoredValue::new(0),
            before: StoredValue::new(None),
        }
    }

    /// The scrolled part.
    pub(super) fn outer(self) -> NodeRef<html::Div> {
        self.outer
    }

    /// Watches the sizes of the scrolled part and of what is in it.
    pub(super) fn watch(self, inner: NodeRef<html::Div>) {
        Effect::new(move |_| {
            if let (Some(outer), Some(inner)) = (self.outer.get(), inner.get()) {
                bridge::watch_size(&[&outer, &inner], move || self.resized());
            }
        });
    }

    /// Whether the end is followed.
    pub(super) fn is_at_end(self) -> bool {
        self.at_end.get_untracked()
    }

    /// How many rows came below, tracked.
    pub(super) fn more(self) -> u32 {
        self.more.get()
    }

    /// A row came below.
    pub(super) fn one_more(self) {
        self.more.update(|more| *more = more.saturating_add(1));
    }

    /// Rows are about to be put on top.
    pub(super) fn keep_place(self) {
        if let Some(outer) = self.outer.get_untracked() {
            self.before.set_value(Some((outer.scroll_height(), outer.scroll_top())));
        }
    }

    /// Goes to the end and follows it.
    pub(super) fn to_end(self) {
        self.at_end.set(true);
        self.more.set(0);
        if let Some(outer) = self.outer.get_untracked() {
            outer.set_scroll_top(outer.scroll_height());
        }
    }

    /// The person, or this file, scrolled. Returns whether the top is near.
    pub(super) fn scrolled(self) -> bool {
        let Some(outer) = self.outer.get_untracked() else {
            return false;
        };
        let top = outer.scroll_top();
        let below = outer.scroll_height() - top - outer.client_height();
        // content that grows also moves the end away: only moving up lets go of it
        let moved_up = top < self.last_top.get_value();
        self.last_top.set_value(top);
        let followed = self.at_end.get_untracked();
        let at_end = below <= NEAR_END || (followed && !moved_up);
        if at_end != followed {
            self.at_end.set(at_end);
        }
        if at_end && self.more.get_untracked() > 0 {
            self.more.set(0);
        }
        top <= NEAR_TOP && !at_end
    }

    fn resized(self) {
        let (Some(at_end), Some(outer)) =
            (self.at_end.try_get_untracked(), self.outer.get_untracked())
        else {
            return;
        };
        let before = self.before.try_update_value(Option::take).flatten();
        if at_end {
            outer.set_scroll_top(outer.scroll_height());
        } else if let Some((height, top)) = before {
            outer.set_scroll_top(top + outer.scroll_height() - height);
        }
    }
}
