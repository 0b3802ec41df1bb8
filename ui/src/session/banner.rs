//! The quiet banner over the transcript of a failed session: start over in another model. It never
//! retries; Retry stays the one recovery action.

use crate::actions;
use crate::model::use_store;
use leptos::prelude::*;
use omniscio_core::id::SessionId;

/// The banner, while the session failed.
#[component]
pub(super) fn SwitchBanner(session: SessionId) -> impl IntoView {
    // rule: RT-17, UI-20
    let store = use_store();
    let offered = Memo::new(move |_| actions::may_switch(store, session));
    view! {
        <Show when=move || offered.get()>
            <div class="switch-banner" data-testid="switch-banner">
                <div class="column">
                    <span class="switch-text">
                        "Start over in another model, with your last message and a short summary."
                    </span>
                    <button
                        class="button"
                        title="Opens a new session. This one stays as it is."
                        aria-keyshortcuts="M"
                        data-testid="switch-model"
                        on:click=move |_| actions::ask_model(store, session)
                    >
                        "Switch model"
                    </button>
                </div>
            </div>
        </Show>
    }
}
