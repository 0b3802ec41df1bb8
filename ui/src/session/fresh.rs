//! The way on for a session whose context stays full: a new session that begins with what was said so
//! far. The old one stays as it is.

use crate::actions;
use crate::model::use_store;
use leptos::prelude::*;
use omniscio_core::id::SessionId;

/// The button in the strip of such a session.
#[component]
pub(super) fn FreshStart(session: SessionId) -> impl IntoView {
    let store = use_store();
    let busy = RwSignal::new(false);
    view! {
        <span class="strip-ways">
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
