//! Markdown on the page: whole or growing text, and the clicks on its links and Copy buttons. A link
//! is opened outside, and only by the person's own click.

use super::markdown::{self, Growing};
use crate::bridge::{self, cast};
use crate::dom;
use crate::icons::{Icon, Symbol};
use crate::model::{Store, use_store};
use leptos::ev::{KeyboardEvent, MouseEvent};
use leptos::prelude::*;
use leptos::task::spawn_local;
use web_sys::{Element, HtmlElement};

/// Markdown that may grow: what is settled is not drawn again.
#[component]
pub(crate) fn Markdown(#[prop(into)] text: Signal<String>) -> impl IntoView {
    let growing = StoredValue::new(Growing::default());
    let round = RwSignal::new(0_u32);
    let pieces = RwSignal::new(Vec::<(u32, usize)>::new());
    let tail = RwSignal::new(String::new());
    let draw = move |text: &str| {
        let anew = growing.try_update_value(|growing| growing.set(text)) == Some(true);
        if anew {
            round.update(|round| *round += 1);
        }
        let round = round.get_untracked();
        let count = growing.with_value(|growing| growing.pieces().len());
        if anew || count != pieces.with_untracked(Vec::len) {
            pieces.set((0..count).map(|at| (round, at)).collect());
        }
        let new_tail = growing.with_value(|growing| growing.tail().to_owned());
        if tail.with_untracked(|tail| *tail != new_tail) {
            tail.set(new_tail);
        }
    };
    text.with_untracked(|text| draw(text));
    Effect::new(move |_| text.with(|text| draw(text)));
    let piece = move |at: usize| {
        growing.with_value(|growing| growing.pieces().get(at).cloned().unwrap_or_default())
    };
    view! {
        <div class="md">
            <For each=move || pieces.get() key=|piece| *piece let:key>
                <div class="md-piece" inner_html=piece(key.1) />
            </For>
            <div class="md-piece" inner_html=move || tail.get() />
        </div>
    }
}

/// A click anywhere in rendered text.
pub(super) fn on_click(store: Store, event: &MouseEvent) {
    if let Some(target) = dom::target(event) {
        act(store, &target);
    }
}

/// Enter on a link is a click.
pub(super) fn on_key(store: Store, event: &KeyboardEvent) {
    if event.key() == "Enter"
        && let Some(target) = dom::target(event)
        && target.has_attribute("data-href")
    {
        event.prevent_default();
        act(store, &target);
    }
}

fn act(store: Store, target: &Element) {
    let inside = |selector: &str| target.closest(selector).ok().flatten();
    if let Some(link) = inside("[data-href]") {
        let address = link.get_attribute("data-href").unwrap_or_default();
        if markdown::may_open(&address) {
            open(store, address);
        }
    } else if let Some(button) = inside(".code-copy") {
        let block = button.closest(".code-block").ok().flatten();
        let code = block.and_then(|block| block.query_selector("pre").ok().flatten());
        let text = code.and_then(|code| code.text_content()).unwrap_or_default();
        copy_and_say(store, text, cast::<HtmlElement>(button));
    }
}

fn open(store: Store, address: String) {
    spawn_local(async move {
        if let Err(error) = bridge::open_external(&address).await {
            store.failed(error.message);
        }
    });
}

/// Copies the text; the button says for a moment whether it worked.
fn copy_and_say(store: Store, text: String, button: Option<HtmlElement>) {
    spawn_local(async move {
        match bridge::copy_text(&text).await {
            Ok(()) => {
                if let Some(button) = button {
                    button.set_text_content(Some("Copied"));
                    let back = move || button.set_text_content(Some("Copy"));
                    set_timeout(back, COPIED_FOR);
                }
            }
            Err(error) => store.failed(error.message),
        }
    });
}

/// A Copy button says "Copied" for this long.
const COPIED_FOR: std::time::Duration = std::time::Duration::from_millis(1_500);

/// A small button that copies a text.
#[component]
pub(crate) fn CopyButton(
    /// What is copied.
    text: impl Fn() -> String + Send + Sync + 'static,
    /// Its name, for speech.
    label: &'static str,
) -> impl IntoView {
    let store = use_store();
    let done = RwSignal::new(false);
    let copy = move |event: MouseEvent| {
        event.stop_propagation();
        let text = text();
        spawn_local(async move {
            match bridge::copy_text(&text).await {
                Ok(()) => {
                    if done.try_set(true).is_none() {
                        let back = move || {
                            done.try_set(false);
                        };
                        set_timeout(back, COPIED_FOR);
                    }
                }
                Err(error) => store.failed(error.message),
            }
        });
    };
    view! {
        <button type="button" class="copy-button icon-button" aria-label=label title=label on:click=copy>
            <Show when=move || done.get() fallback=|| view! { <Symbol icon=Icon::Copy /> }>
                <span class="copied">"Copied"</span>
            </Show>
        </button>
    }
}
