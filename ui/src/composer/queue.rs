//! Messages that wait, as numbered lines joined to the composer's top. Each can be taken back until
//! it is sent.

use super::drafts;
use crate::bridge;
use crate::icons::{Icon, Symbol};
use crate::model::{Store, use_store};
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::id::{MessageId, SessionId};
use omniscio_core::message::Queued;
use omniscio_core::supervisor::Command;

/// The queue; absent while nothing waits.
#[component]
pub(super) fn Queue(
    session: SessionId,
    take_back: impl Fn(String) + Copy + Send + Sync + 'static,
) -> impl IntoView {
    let store = use_store();
    let waiting = Memo::new(move |_| queue_of(store, session));
    let numbered = move || waiting.get().into_iter().enumerate().collect::<Vec<_>>();
    view! {
        <Show when=move || waiting.with(|waiting| !waiting.is_empty())>
            <ol class="queue" aria-label="Queued messages" data-testid="queue">
                <For
                    each=numbered
                    key=|(at, queued)| (*at, queued.id)
                    let:entry
                >
                    <QueueLine session=session at=entry.0 queued=entry.1 take_back=take_back />
                </For>
            </ol>
        </Show>
    }
}

fn queue_of(store: Store, session: SessionId) -> Vec<Queued> {
    let Some(entry) = store.entry(session) else {
        return Vec::new();
    };
    entry.view.with(|view| {
        view.live.queue.iter().filter(|queued| queued.origin.is_real_user()).cloned().collect()
    })
}

#[component]
fn QueueLine(
    session: SessionId,
    at: usize,
    queued: Queued,
    take_back: impl Fn(String) + Copy + Send + Sync + 'static,
) -> impl IntoView {
    let store = use_store();
    let message = queued.id;
    let can_edit = drafts::recall(message).is_some();
    view! {
        <li class="queue-line" data-testid="queue-line" data-message=message.to_string()>
            <span class="queue-number">{at + 1}</span>
            <span class="queue-text" title=queued.preview.clone()>{queued.preview.clone()}</span>
            <Show when=move || can_edit>
                <button
                    class="icon-button"
                    aria-label="Take back for editing"
                    title="Take back for editing"
                    data-testid="queue-edit"
                    on:click=move |_| unqueue(store, session, message, Some(take_back))
                >
                    <Symbol icon=Icon::Pencil />
                </button>
            </Show>
            <button
                class="icon-button"
                aria-label="Remove from the queue"
                title="Remove from the queue"
                data-testid="queue-remove"
                on:click=move |_| unqueue(store, session, message, None::<fn(String)>)
            >
                <Symbol icon=Icon::Close />
            </button>
        </li>
    }
}

/// Takes the last queued message back into the field, if its whole text is known here.
pub(super) fn take_last_back(
    store: Store,
    session: SessionId,
    take_back: impl Fn(String) + Copy + 'static,
) {
    let last = untrack(|| queue_of(store, session)).pop().map(|queued| queued.id);
    if let Some(last) = last.filter(|last| drafts::recall(*last).is_some()) {
        unqueue(store, session, last, Some(take_back));
    }
}

/// Takes a message out of the queue; its text goes back into the field only once it is out.
fn unqueue(
    store: Store,
    session: SessionId,
    message: MessageId,
    take_back: Option<impl Fn(String) + 'static>,
) {
    let text = drafts::recall(message);
    spawn_local(async move {
        match bridge::command(Command::Unqueue { session, message }).await {
            Ok(_) => {
                if let (Some(take_back), Some(text)) = (take_back, text) {
                    take_back(text);
                }
            }
            Err(error) => store.failed(error.message),
        }
    });
}
