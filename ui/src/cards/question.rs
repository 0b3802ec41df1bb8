//! The question card: the agent's options and the person's own words, one question at a time.

use super::Ask;
use super::answer::Chosen;
use super::options::{Manner, Opt, Options};
use super::read::{Question, questions, shown};
use leptos::ev::KeyboardEvent;
use leptos::html;
use leptos::prelude::*;
use omniscio_core::card::CardReply;
use std::sync::Arc;

/// The agent asks.
#[component]
pub(super) fn QuestionCard(ask: Ask) -> impl IntoView {
    let all = ask.card.with_value(|card| questions(&card.input));
    let all = match all.is_empty() {
        true => vec![unreadable()],
        false => all,
    };
    let readable = ask.card.with_value(|card| !questions(&card.input).is_empty());
    let all = StoredValue::new(all);
    let chosen = RwSignal::new(Chosen::default());
    let at = Memo::new(move |_| chosen.with(|chosen| chosen.at));
    let send = move || {
        let answers = all.with_value(|all| chosen.with_untracked(|chosen| chosen.answers(all)));
        let Some(answers) = answers else { return };
        ask.reply(match readable {
            true => CardReply::Answers { answers },
            // nothing can be keyed by a question that was not understood: the words go as they are
            false => CardReply::Deny { message: answers.into_values().next() },
        });
    };
    let go_on = move || {
        let answered =
            all.with_value(|all| chosen.with_untracked(|chosen| chosen.is_answered(all)));
        if !answered {
            return;
        }
        let more = all.with_value(|all| chosen.try_update(|chosen| chosen.next(all)));
        if more == Some(false) {
            send();
        }
    };
    move || {
        let at = at.get();
        let count = all.with_value(Vec::len);
        all.with_value(|all| all.get(at).cloned()).map(|question| {
            view! { <OneQuestion ask=ask question=question at=at count=count chosen=chosen go_on=go_on /> }
        })
    }
}

fn unreadable() -> Question {
    Question {
        text: "The agent asks something that cannot be shown here.".into(),
        options: Vec::new(),
        several: false,
    }
}

#[component]
fn OneQuestion(
    ask: Ask,
    question: Question,
    at: usize,
    count: usize,
    chosen: RwSignal<Chosen>,
    go_on: impl Fn() + Copy + Send + Sync + 'static,
) -> impl IntoView {
    let writing = RwSignal::new(question.options.is_empty());
    let number = question.options.len();
    let mut options: Vec<Opt> = question
        .options
        .iter()
        .enumerate()
        .map(|(option, choice)| Opt {
            label: shown(&choice.label),
            description: shown(&choice.description),
            chosen: Signal::derive(move || {
                chosen.with(|chosen| chosen.at == at && chosen.has(option))
            }),
        })
        .collect();
    options.push(Opt {
        label: "Something else…".into(),
        description: "Write your own answer.".into(),
        chosen: writing.into(),
    });
    let manner = if question.several { Manner::Several } else { Manner::One };
    let several = question.several;
    let at_once = count == 1 && !several;
    let title = shown(&question.text);
    let question = StoredValue::new(question);
    let pick: Arc<dyn Fn(usize) + Send + Sync> = Arc::new(move |option| {
        if option >= number {
            writing.set(true);
            return;
        }
        if !several {
            writing.set(false);
        }
        question.with_value(|question| chosen.update(|chosen| chosen.pick(question, option)));
        if at_once {
            go_on();
        }
    });
    let on_key = move |event: KeyboardEvent| {
        if event.key() == "Enter" && !event.is_composing() {
            event.prevent_default();
            go_on();
        }
    };
    let last = at + 1 == count;
    let answered = move || {
        question.with_value(|question| {
            chosen.with(|chosen| {
                let own = !chosen.own_words().trim().is_empty();
                own || (0..question.options.len()).any(|option| chosen.has(option))
            })
        })
    };
    view! {
        {(count > 1)
            .then(|| view! { <span class="card-step">{format!("{} of {count}", at + 1)}</span> })}
        <h3 class="card-title" id="card-title">{title}</h3>
        <Options ask=ask options=options manner=manner pick=pick />
        <Show when=move || writing.get()>
            <OwnWords question=question chosen=chosen on_key=on_key />
        </Show>
        <footer class="card-foot">
            <span class="card-keys" aria-hidden="true">
                <kbd>"1"</kbd>"–"<kbd>{number + 1}</kbd>" choose"
                <kbd>"Esc"</kbd>" back to list"
            </span>
            <button
                class="button primary"
                data-testid="card-next"
                aria-disabled=move || (!answered()).to_string()
                on:click=move |_| go_on()
            >
                {if last { "Answer" } else { "Next question" }}
            </button>
        </footer>
    }
}

#[component]
fn OwnWords(
    question: StoredValue<Question>,
    chosen: RwSignal<Chosen>,
    on_key: impl Fn(KeyboardEvent) + Copy + Send + Sync + 'static,
) -> impl IntoView {
    let field = NodeRef::<html::Input>::new();
    Effect::new(move |_| {
        if let Some(field) = field.get() {
            // a field that cannot take the focus leaves it where it is
            drop(field.focus());
        }
    });
    let say = move |words: String| {
        question.with_value(|question| chosen.update(|chosen| chosen.say(question, &words)));
    };
    view! {
        <div class="card-words">
            <input
                type="text"
                class="field"
                node_ref=field
                aria-label="Your own answer"
                placeholder="Your own answer"
                data-testid="card-words"
                prop:value=move || chosen.with(Chosen::own_words)
                on:input=move |event| say(event_target_value(&event))
                on:keydown=on_key
            />
        </div>
    }
}
