//! The composer: the draft of each session, the queue over it, Send and Stop. A text stays in the
//! field until the backend has accepted it.

mod drafts;
mod queue;

use crate::actions;
use crate::bridge;
use crate::cards;
use crate::icons::{Icon, Symbol};
use crate::keys::COMPOSER_ID;
use crate::model::use_store;
use leptos::ev::KeyboardEvent;
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::attention::RowState;
use omniscio_core::card::{Card, CardKind};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::Reply;
use omniscio_core::supervisor::Command;
use queue::Queue;

/// How a message is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// In its turn: queued while a turn runs.
    InTurn,
    /// At once: the open turn is interrupted.
    Now,
}

/// What Enter does in the field.
fn way_of(enter: bool, shift: bool, command: bool, composing: bool) -> Option<Way> {
    match (enter && !composing, shift, command) {
        (true, false, false) => Some(Way::InTurn),
        (true, false, true) => Some(Way::Now),
        (true, true, _) | (false, _, _) => None,
    }
}

fn placeholder(card: Option<CardKind>, state: Option<RowState>, turn_open: bool) -> &'static str {
    match (card, state, turn_open) {
        (Some(CardKind::Question), _, _) => "Or answer in your own words",
        (Some(CardKind::Permission | CardKind::Plan), _, _) => {
            "Or tell the agent what to do instead"
        }
        (None, Some(RowState::Ended), _) => "Start with a message",
        (None, _, true) => "Queue a message",
        (None, _, false) => "Message this session",
    }
}

/// Puts a text into the composer of a session that is not open yet.
pub(crate) fn begin_with(session: SessionId, text: &str) {
    drafts::keep(session, text);
}

/// The composer of one session.
#[component]
pub(crate) fn Composer(session: SessionId) -> impl IntoView {
    let store = use_store();
    let text = RwSignal::new(drafts::of(session));
    let failed = RwSignal::new(None::<String>);
    let sending = RwSignal::new(false);
    let field = NodeRef::<html::Textarea>::new();
    let seen = Memo::new(move |_| store.attention(session));
    let turn_open = Memo::new(move |_| seen.get().is_some_and(|seen| seen.turn_open));
    let card = Memo::new(move |_| -> Option<Card> {
        let entry = store.entry(session)?;
        entry.view.with(|view| view.row.card.clone())
    });
    Effect::new(move |_| {
        text.with(|text| drafts::keep(session, text));
        fit(field);
    });

    let submit = move |way: Way| {
        let words = text.get_untracked();
        if words.trim().is_empty() || sending.get_untracked() {
            return;
        }
        sending.set(true);
        failed.set(None);
        let command = match card.get_untracked() {
            Some(card) => Command::ReplyCard {
                session,
                request: card.request.clone(),
                reply: cards::reply_in_words(&card, &words),
            },
            None => Command::Send { session, text: words.clone(), now: way == Way::Now },
        };
        spawn_local(async move {
            let answer = bridge::command(command).await;
            sending.try_set(false);
            match answer {
                Ok(reply) => {
                    if let Reply::Accepted(message) = reply {
                        drafts::remember(message, &words);
                    }
                    // what was typed meanwhile stays
                    drafts::clear(session, &words);
                    text.try_update(|text| {
                        if *text == words {
                            text.clear();
                        }
                    });
                }
                Err(error) => drop(failed.try_set(Some(error.message))),
            }
        });
    };
    let take_back = move |words: String| {
        text.set(words);
        crate::dom::focus(COMPOSER_ID);
    };
    let on_key = move |event: KeyboardEvent| {
        let command = event.ctrl_key() || event.meta_key();
        let composing = event.is_composing();
        if let Some(way) = way_of(event.key() == "Enter", event.shift_key(), command, composing) {
            event.prevent_default();
            submit(way);
        } else if event.key() == "ArrowUp" && !composing && text.with_untracked(String::is_empty) {
            queue::take_last_back(store, session, take_back);
        }
    };
    let hint = move || {
        if turn_open.get() && card.with(Option::is_none) {
            "Enter to queue"
        } else {
            "Enter to send"
        }
    };
    let can_send = move || !sending.get() && text.with(|text| !text.trim().is_empty());
    view! {
        <Queue session=session take_back=take_back />
        <div class="composer">
            <textarea
                id=COMPOSER_ID
                class="composer-text"
                rows="1"
                node_ref=field
                data-testid="composer"
                aria-label="Message"
                placeholder=move || {
                    let state = seen.get().map(|seen| seen.state);
                    placeholder(card.get().map(|card| card.kind), state, turn_open.get())
                }
                prop:value=text
                on:input=move |event| text.set(event_target_value(&event))
                on:keydown=on_key
            />
            {move || {
                failed
                    .get()
                    .map(|words| {
                        view! {
                            <p class="composer-error red-text" role="alert" data-testid="composer-error">
                                {words}
                            </p>
                        }
                    })
            }}
            <div class="composer-foot">
                <span class="composer-hint" aria-hidden="true">{hint}</span>
                <Show when=move || turn_open.get()>
                    <button
                        class="composer-button"
                        aria-label="Stop"
                        title="Stop (S S)"
                        data-testid="stop"
                        on:click=move |_| actions::stop(store, session)
                    >
                        <Symbol icon=Icon::Stop />
                    </button>
                </Show>
                <button
                    class="composer-button"
                    class:ready=can_send
                    aria-label="Send"
                    title="Send"
                    data-testid="send"
                    aria-disabled=move || (!can_send()).to_string()
                    on:click=move |_| submit(Way::InTurn)
                >
                    <Symbol icon=Icon::Send />
                </button>
            </div>
        </div>
    }
}

/// The field is as high as its text; the style sheet bounds it.
fn fit(field: NodeRef<html::Textarea>) {
    if let Some(field) = field.get() {
        let style = web_sys::HtmlElement::style(&field);
        // a page that refuses the height shows a field that scrolls
        drop(style.set_property("height", "auto"));
        drop(style.set_property("height", &format!("{}px", field.scroll_height())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_sends_in_turn_shift_breaks_the_line_and_ctrl_sends_now() {
        assert_eq!(way_of(true, false, false, false), Some(Way::InTurn));
        assert_eq!(way_of(true, false, true, false), Some(Way::Now));
        assert_eq!(way_of(true, true, false, false), None);
        assert_eq!(way_of(true, true, true, false), None);
        assert_eq!(way_of(false, false, true, false), None);
        for command in [false, true] {
            assert_eq!(way_of(true, false, command, true), None, "the input method has the key");
        }
    }

    #[test]
    fn the_field_says_what_a_text_will_do() {
        let says = placeholder;
        assert_eq!(says(None, Some(RowState::YourTurn), false), "Message this session");
        assert_eq!(says(None, Some(RowState::Running), true), "Queue a message");
        assert_eq!(says(None, Some(RowState::Ended), false), "Start with a message");
        let question = says(Some(CardKind::Question), Some(RowState::Question), true);
        assert_eq!(question, "Or answer in your own words");
        let plan = says(Some(CardKind::Plan), Some(RowState::PlanReady), false);
        assert_eq!(plan, "Or tell the agent what to do instead");
    }
}
