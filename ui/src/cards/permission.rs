//! The permission card and the plan card: every option acts at once. The whole command is shown.

use super::options::{Manner, Opt, Options};
use super::{Ask, read};
use crate::dialogs::tilde;
use crate::inbox::project;
use crate::transcript::Markdown;
use leptos::html;
use leptos::prelude::*;
use omniscio_core::card::CardReply;
use std::sync::Arc;

/// A plan folds after this many lines.
const PLAN_FOLD: usize = 12;

fn act(label: impl Into<String>, description: impl Into<String>) -> Opt {
    Opt { label: label.into(), description: description.into(), chosen: Signal::stored(false) }
}

/// A tool wants to run.
#[component]
pub(super) fn PermissionCard(ask: Ask) -> impl IntoView {
    let entry = untrack(|| ask.store.entry(ask.session));
    let folder = entry.map(|entry| entry.view.with_untracked(|view| view.row.folder.clone()));
    let folder = folder.unwrap_or_default();
    let home = ask.store.facts.with_untracked(|facts| facts.home.clone());
    let shown_folder = tilde(&folder, home.as_deref());
    let (subject, allows, reason) = ask.card.with_value(|card| {
        let subject = read::subject(card, project(&folder));
        (subject, read::session_allows(&card.suggestions), card.reason.clone())
    });
    let why = RwSignal::new(false);
    let mut options = vec![act("Allow once", "only this")];
    let mut replies = vec![Some(CardReply::Allow)];
    if let Some(allows) = allows {
        options.push(act("Allow in this session", format!("{allows}, until it ends")));
        replies.push(Some(CardReply::AllowSession));
    }
    options.push(act("Deny", "the agent is told no and goes on"));
    replies.push(Some(CardReply::Deny { message: None }));
    options.push(act("Deny and say why…", ""));
    replies.push(None);
    let count = options.len();
    let pick: Arc<dyn Fn(usize) + Send + Sync> = Arc::new(move |at| match replies.get(at) {
        Some(Some(reply)) => ask.reply(reply.clone()),
        Some(None) => why.set(true),
        None => {}
    });
    // a reason that only repeats the command says nothing
    let reason = reason
        .map(|reason| read::shown(&reason))
        .filter(|reason| !reason.is_empty() && !subject.body.contains(reason.as_str()))
        .map(|reason| format!("The agent says: {}. ", reason.trim_end_matches('.')));
    view! {
        <h3 class="card-title" id="card-title">{subject.title}</h3>
        <pre class="card-subject" tabindex="0" data-testid="card-subject">{subject.body}</pre>
        {(subject.missing > 0)
            .then(|| {
                view! {
                    <p class="card-note red-text">
                        {format!("{} more bytes are not shown.", subject.missing)}
                    </p>
                }
            })}
        <p class="card-note">
            {reason}
            "Runs in "
            <code>{shown_folder}</code>
            "."
        </p>
        <Options ask=ask options=options manner=Manner::Act pick=pick />
        <Show when=move || why.get()>
            <Words
                label="Why not, or what to do instead"
                send="Deny"
                on_send=move |words| ask.reply(CardReply::Deny { message: words })
            />
        </Show>
        <Keys count=count />
    }
}

/// The agent presents a plan.
#[component]
pub(super) fn PlanCard(ask: Ask) -> impl IntoView {
    let plan = ask.card.with_value(read::plan);
    let words = RwSignal::new(false);
    let open = RwSignal::new(false);
    let long = plan.as_ref().is_some_and(|plan| plan.lines().count() > PLAN_FOLD);
    let options = vec![
        act("Approve", "the agent starts, edits go through"),
        act("Approve, ask for each edit", ""),
        act("Keep planning…", ""),
    ];
    let pick: Arc<dyn Fn(usize) + Send + Sync> = Arc::new(move |at| match at {
        0 => ask.reply(CardReply::ApprovePlan { ask_each_edit: false }),
        1 => ask.reply(CardReply::ApprovePlan { ask_each_edit: true }),
        _ => words.set(true),
    });
    view! {
        <h3 class="card-title" id="card-title">"Go ahead with this plan?"</h3>
        {match plan {
            Some(plan) => {
                view! {
                    <div
                        class="card-plan"
                        class:folded=move || long && !open.get()
                        data-testid="card-plan"
                    >
                        <Markdown text=Signal::stored(plan) />
                    </div>
                }
                    .into_any()
            }
            None => {
                view! { <p class="card-note">"The plan is in the reply above."</p> }.into_any()
            }
        }}
        {long
            .then(|| {
                view! {
                    <button
                        class="link-button card-more"
                        on:click=move |_| open.update(|open| *open = !*open)
                    >
                        {move || if open.get() { "Show less" } else { "Show the whole plan" }}
                    </button>
                }
            })}
        <Options ask=ask options=options manner=Manner::Act pick=pick />
        <Show when=move || words.get()>
            <Words
                label="What the plan should change"
                send="Keep planning"
                on_send=move |words| ask.reply(CardReply::KeepPlanning { message: words })
            />
        </Show>
        <Keys count=3 />
    }
}

/// A line for the person's own words.
#[component]
fn Words(
    label: &'static str,
    send: &'static str,
    on_send: impl Fn(Option<String>) + Copy + Send + Sync + 'static,
) -> impl IntoView {
    let text = RwSignal::new(String::new());
    let field = NodeRef::<html::Input>::new();
    Effect::new(move |_| {
        if let Some(field) = field.get() {
            // a field that cannot take the focus leaves it where it is
            drop(field.focus());
        }
    });
    let submit = move || {
        let words = text.with_untracked(|text| text.trim().to_owned());
        on_send((!words.is_empty()).then_some(words));
    };
    view! {
        <div class="card-words">
            <input
                type="text"
                class="field"
                node_ref=field
                aria-label=label
                placeholder=label
                data-testid="card-words"
                prop:value=text
                on:input=move |event| text.set(event_target_value(&event))
                on:keydown=move |event| {
                    if event.key() == "Enter" && !event.is_composing() {
                        event.prevent_default();
                        submit();
                    }
                }
            />
            <button class="button" data-testid="card-words-send" on:click=move |_| submit()>
                {send}
            </button>
        </div>
    }
}

/// What the keys do, under the options.
#[component]
fn Keys(count: usize) -> impl IntoView {
    view! {
        <footer class="card-foot">
            <span class="card-keys" aria-hidden="true">
                <kbd>"1"</kbd>"–"<kbd>{count}</kbd>" answer"
                <kbd>"↑"</kbd><kbd>"↓"</kbd>" move"
                <kbd>"Esc"</kbd>" back to list"
            </span>
        </footer>
    }
}
