//! The one toast: an act of the person that can be undone, or one that failed. Recovery, retries
//! and finished sessions never come here.

use crate::actions;
use crate::icons::{Icon, Symbol};
use crate::model::use_store;
use leptos::leptos_dom::helpers::{TimeoutHandle, set_timeout_with_handle};
use leptos::prelude::*;
use std::time::Duration;

/// A toast stays this long, unless it is hovered or focused.
const STAYS: Duration = Duration::from_secs(8);

/// The toast, bottom left over the list.
#[component]
pub fn Toasts() -> impl IntoView {
    let store = use_store();
    let timer = StoredValue::new(None::<TimeoutHandle>);
    let stop = move || {
        timer.update_value(|timer| {
            if let Some(timer) = timer.take() {
                timer.clear();
            }
        });
    };
    let start = move || {
        stop();
        let leave = move || store.toast.set(None);
        timer.set_value(set_timeout_with_handle(leave, STAYS).ok());
    };
    Effect::new(move |_| match store.toast.with(Option::is_some) {
        true => start(),
        false => stop(),
    });
    move || {
        store.toast.get().map(|toast| {
            view! {
                <div
                    class="toast"
                    role=if toast.undo.is_some() { "status" } else { "alert" }
                    data-testid="toast"
                    on:pointerenter=move |_| stop()
                    on:pointerleave=move |_| start()
                    on:focusin=move |_| stop()
                    on:focusout=move |_| start()
                >
                    <span class="toast-text">{toast.text}</span>
                    {toast
                        .undo
                        .map(|_| {
                            view! {
                                <button class="link-button" on:click=move |_| actions::undo(store)>
                                    "Undo"
                                </button>
                            }
                        })}
                    <button
                        class="icon-button"
                        aria-label="Close"
                        on:click=move |_| store.toast.set(None)
                    >
                        <Symbol icon=Icon::Close />
                    </button>
                </div>
            }
        })
    }
}
