//! The panel of the open session: header, conversation, status, composer. Lays out, decides nothing.

mod header;
mod status;

use crate::model::use_store;
use header::Header;
use leptos::prelude::*;
use omniscio_core::id::SessionId;
use status::Status;

/// The panel of one session.
#[component]
pub fn Panel(session: SessionId) -> impl IntoView {
    let store = use_store();
    let title = move || store.view(session).map(|view| view.row.title);
    view! {
        <section class="panel" data-testid="panel" data-session=session.to_string() aria-label=title>
            <Header session=session />
            <div class="panel-foot">
                <Status session=session />
            </div>
        </section>
    }
}
