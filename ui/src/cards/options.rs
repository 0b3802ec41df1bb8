//! The options of a card: one button each, with its digit as a keycap. The digit acts only outside
//! text and dialogs, never held down, and not just after the card came.

use super::Ask;
use crate::dom;
use leptos::ev::{self, KeyboardEvent};
use leptos::prelude::*;
use std::sync::Arc;

/// One option as it is drawn.
#[derive(Clone)]
pub(super) struct Opt {
    /// Its words.
    pub label: String,
    /// What it means.
    pub description: String,
    /// Whether it is chosen; for an option that acts at once, never.
    pub chosen: Signal<bool>,
}

/// How the options are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Each acts at once; the description stands behind.
    Act,
    /// One is chosen; the description stands below.
    One,
    /// Several are chosen; the description stands below.
    Several,
}

/// The list of options. `pick` gets the number from 0.
#[component]
pub(super) fn Options(
    ask: Ask,
    options: Vec<Opt>,
    manner: Manner,
    pick: Arc<dyn Fn(usize) + Send + Sync>,
) -> impl IntoView {
    let count = options.len();
    listen_for_digits(ask, count, pick.clone());
    let role = match manner {
        Manner::Act => "button",
        Manner::One => "radio",
        Manner::Several => "checkbox",
    };
    let one = move |(at, option): (usize, Opt)| {
        let pick = pick.clone();
        let chosen = option.chosen;
        let checked = move || (manner != Manner::Act).then(|| chosen.get().to_string());
        view! {
            <button
                type="button"
                class="card-option"
                class:below=manner != Manner::Act
                class:chosen=chosen
                role=role
                aria-checked=checked
                aria-keyshortcuts=(at < 9).then(|| (at + 1).to_string())
                data-testid=format!("card-option-{}", at + 1)
                on:click=move |_| pick(at)
                on:keydown=move_focus
            >
                <span class="keycap" class:square=manner == Manner::Several aria-hidden="true">
                    {at + 1}
                </span>
                <span class="card-option-label">{option.label}</span>
                {(!option.description.is_empty())
                    .then(|| view! { <span class="card-option-text">{option.description}</span> })}
            </button>
        }
    };
    let group = match manner {
        Manner::Act | Manner::Several => "group",
        Manner::One => "radiogroup",
    };
    view! {
        <div class="card-options" role=group aria-labelledby="card-title">
            {options.into_iter().enumerate().map(one).collect_view()}
        </div>
    }
}

/// `↑` and `↓` move between the options, Escape goes back to the list.
fn move_focus(event: KeyboardEvent) {
    let here = dom::target(&event).and_then(|target| target.closest(".card-option").ok().flatten());
    let Some(here) = here else { return };
    let next = match event.key().as_str() {
        "ArrowDown" => here.next_element_sibling(),
        "ArrowUp" => here.previous_element_sibling(),
        _ => return,
    };
    event.prevent_default();
    if let Some(next) = next.and_then(crate::bridge::cast::<web_sys::HtmlElement>) {
        // an option that cannot take the focus leaves it where it is
        drop(next.focus());
    }
}

fn listen_for_digits(ask: Ask, count: usize, pick: Arc<dyn Fn(usize) + Send + Sync>) {
    let handle = window_event_listener(ev::keydown, move |event: KeyboardEvent| {
        let plain = !(event.ctrl_key() || event.alt_key() || event.meta_key() || event.shift_key());
        let digit = event.key().parse::<usize>().ok().filter(|digit| (1..=count).contains(digit));
        let free = !event.repeat() && !event.is_composing() && !event.default_prevented();
        let (Some(digit), true, true) = (digit, plain, free) else {
            return;
        };
        if dom::types_text() || dom::dialog_is_open() || !ask.takes_digits() {
            return;
        }
        event.prevent_default();
        pick(digit - 1);
    });
    on_cleanup(move || handle.remove());
}
