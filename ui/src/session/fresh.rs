//! The ways on for a session whose context stays full: a copy of it without the last message, or a new
//! session that begins with what was said so far. The old one stays as it is.

use crate::actions;
use crate::model::use_store;
use leptos::prelude::*;
use omniscio_core::id::SessionId;
use omniscio_core::recovery::fork::fork_point;

/// The buttons in the strip of such a session.
#[component]
pub(super) fn FreshStart(session: SessionId) -> impl IntoView {
    // rule: CS-15
    let store = use_store();
    let busy = RwSignal::new(false);
    // where no turn was ever answered there is nothing to copy
    let forks =
        Memo::new(move |_| store.view(session).is_some_and(|view| fork_point(&view.row).is_some()));
    view! {
        <span class="strip-ways">
            <Show when=move || forks.get()>
                <button
                    class="button"
                    title="Opens a copy of this session as it stood before your last message, and puts that message into its message field. This one stays as it is."
                    data-testid="fork-session"
                    aria-disabled=move || busy.get().to_string()
                    on:click=move |_| actions::fork(store, busy, session)
                >
                    "Fork"
                </button>
            </Show>
            <button
                class="button"
                title="Opens a new session with your last message and a short summary. This one stays as it is."
                data-testid="fresh-session"
                aria-disabled=move || busy.get().to_string()
                on:click=move |_| actions::start_fresh(store, busy, session)
            >
                "Start a fresh session"
            </button>
        </span>
    }
}
