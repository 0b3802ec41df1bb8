//! The open card of a session: what the agent asks, the options with their digits, and the answer.
//! An answer is one command; whether it still fits is the backend's to say.

mod answer;
mod options;
mod permission;
mod question;
pub(crate) mod read;

use crate::bridge;
use crate::icons::StateShape;
use crate::model::{Store, use_store};
use crate::now::read as read_clock;
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::card::{Card, CardKind, CardReply};
use omniscio_core::id::SessionId;
use omniscio_core::supervisor::Command;
use permission::{PermissionCard, PlanCard};
use question::QuestionCard;

/// The open card of the session, if it has one.
#[component]
pub(crate) fn CardView(session: SessionId) -> impl IntoView {
    let store = use_store();
    let card = Memo::new(move |_| {
        let entry = store.entry(session)?;
        entry.view.with(|view| view.row.card.clone())
    });
    move || {
        card.get().map(|card| {
            let ask = Ask::new(store, session, card);
            view! { <CardFrame ask=ask /> }
        })
    }
}

/// One open card and what is being done about it. Copied around freely.
#[derive(Clone, Copy)]
pub(crate) struct Ask {
    store: Store,
    session: SessionId,
    card: StoredValue<Card>,
    sending: RwSignal<bool>,
    failed: RwSignal<Option<String>>,
    /// When the card came into view, in milliseconds.
    since: i64,
}

impl Ask {
    fn new(store: Store, session: SessionId, card: Card) -> Ask {
        Ask {
            store,
            session,
            card: StoredValue::new(card),
            sending: RwSignal::new(false),
            failed: RwSignal::new(None),
            since: read_clock().wall.0,
        }
    }

    /// Whether the card is in view long enough for a digit to be meant for it.
    pub(crate) fn takes_digits(self) -> bool {
        /// A key pressed just before the card came was meant for something else.
        const SETTLES_MILLIS: i64 = 400;
        let age = read_clock().wall.0 - self.since;
        !(0..SETTLES_MILLIS).contains(&age)
    }

    /// Gives the answer. The card goes when the backend has taken it.
    pub(crate) fn reply(self, reply: CardReply) {
        if self.sending.get_untracked() {
            return;
        }
        self.sending.set(true);
        self.failed.set(None);
        let request = self.card.with_value(|card| card.request.clone());
        let command = Command::ReplyCard { session: self.session, request, reply };
        spawn_local(async move {
            if let Err(error) = bridge::command(command).await {
                self.failed.try_set(Some(error.message));
            }
            self.sending.try_set(false);
        });
    }
}

#[component]
fn CardFrame(ask: Ask) -> impl IntoView {
    let store = ask.store;
    let (kind, asked_at, orphaned) =
        ask.card.with_value(|card| (card.kind, card.asked_at, card.orphaned));
    let name = match kind {
        CardKind::Permission => "Permission",
        CardKind::Question => "Question",
        CardKind::Plan => "Plan",
    };
    let seen = Memo::new(move |_| store.attention(ask.session));
    let asked = move || asked(store.clock.get().wall.since(asked_at));
    let body = match kind {
        CardKind::Permission => view! { <PermissionCard ask=ask /> }.into_any(),
        CardKind::Question => view! { <QuestionCard ask=ask /> }.into_any(),
        CardKind::Plan => view! { <PlanCard ask=ask /> }.into_any(),
    };
    view! {
        <section
            class="card"
            role="group"
            aria-labelledby="card-title"
            data-testid="card"
            data-kind=name
            data-request=ask.card.with_value(|card| card.request.clone())
            aria-busy=move || ask.sending.get().to_string()
        >
            <header class="card-head">
                <StateShape of=seen />
                <span class="card-kind">{name}</span>
                <span class="card-asked">{asked}</span>
            </header>
            {body}
            {orphaned
                .then(|| {
                    view! {
                        <p class="card-note">
                            "The agent was restarted since it asked. Your answer is sent as a message."
                        </p>
                    }
                })}
            {move || {
                ask.failed
                    .get()
                    .map(|words| view! { <p class="card-note red-text" role="alert">{words}</p> })
            }}
        </section>
    }
}

/// How long ago it was asked, from milliseconds.
fn asked(millis: i64) -> String {
    match millis.max(0) / 60_000 {
        0 => "asked just now".into(),
        minutes @ 1..60 => format!("asked {minutes} min ago"),
        minutes @ 60..1_440 => format!("asked {} h ago", minutes / 60),
        minutes => format!("asked {} d ago", minutes / 1_440),
    }
}

/// What a text typed into the composer says to the open card.
pub(crate) fn reply_in_words(card: &Card, text: &str) -> CardReply {
    let message = Some(text.to_owned());
    match card.kind {
        CardKind::Permission => CardReply::Deny { message },
        CardKind::Plan => CardReply::KeepPlanning { message },
        CardKind::Question => match &read::questions(&card.input)[..] {
            [only] => CardReply::Answers { answers: [(only.text.clone(), text.to_owned())].into() },
            // one text cannot answer several: the agent is told it as it is
            _ => CardReply::Deny { message },
        },
    }
}
