//! The panel of the open session: header, conversation, status, composer. Lays out, decides nothing.

mod banner;
mod fresh;
mod header;
mod held;
mod meter;
mod status;

use crate::cards::CardView;
use crate::composer::Composer;
use crate::model::use_store;
use crate::transcript::TranscriptView;
use banner::SwitchBanner;
use header::Header;
pub(crate) use header::model_name;
use leptos::prelude::*;
pub(crate) use meter::percent;
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
            <SwitchBanner session=session />
            <TranscriptView session=session>
                <CardView session=session />
            </TranscriptView>
            <div class="panel-foot">
                <Status session=session />
                <Composer session=session />
            </div>
        </section>
    }
}
