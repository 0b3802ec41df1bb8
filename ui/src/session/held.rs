//! The strip of a conversation that another program has open: where, and the two ways on. It
//! ends nothing by itself.

use crate::actions;
use crate::dialogs::tilde;
use crate::icons::{Icon, Symbol};
use crate::model::use_store;
use leptos::prelude::*;
use omniscio_core::id::SessionId;
use omniscio_core::session::ChildMark;
use omniscio_core::supervisor::Command;

/// A way on, for the program that is shown.
type Way = fn(SessionId, ChildMark) -> Command;

/// The strip, while the conversation is held.
#[component]
pub(super) fn HeldStrip(session: SessionId) -> impl IntoView {
    // rule: A-12
    let store = use_store();
    let place = Memo::new(move |_| {
        // an unseen recovery shows nothing, this neither
        store.attention(session).filter(|seen| seen.pill.is_some())?;
        let held = store.view(session)?.live.held?;
        let folder = store.facts.with(|facts| tilde(&held.folder, facts.home.as_deref()));
        Some(match folder.as_str() {
            "" => format!("Process {}", held.pid),
            folder => format!("Process {}, {folder}", held.pid),
        })
    });
    let busy = RwSignal::new(false);
    let way = move |words: &'static str, about: &'static str, id: &'static str, command: Way| {
        let give = move |_| {
            let held = store.view(session).and_then(|view| view.live.held);
            if let Some(held) = held {
                actions::give_once(store, busy, command(session, held.mark()));
            }
        };
        view! {
            <button
                class="button"
                title=about
                data-testid=id
                aria-disabled=move || busy.get().to_string()
                on:click=give
            >
                {words}
            </button>
        }
    };
    view! {
        <Show when=move || place.with(Option::is_some)>
            <div class="strip" data-testid="held-strip">
                <span class="strip-icon"><Symbol icon=Icon::Terminal /></span>
                <span class="strip-label">"Open in another program"</span>
                <span class="strip-text" title=move || place.get()>{move || place.get()}</span>
                <span class="strip-ways">
                    {way(
                        "Take over",
                        "Ends the other program, then goes on here.",
                        "take-over",
                        |session, shown| Command::TakeOver { session, shown },
                    )}
                    {way(
                        "Work on a copy",
                        "Goes on here in a copy. The other program keeps its own.",
                        "fork-held",
                        |session, _| Command::ForkHeld { session },
                    )}
                </span>
            </div>
        </Show>
    }
}
