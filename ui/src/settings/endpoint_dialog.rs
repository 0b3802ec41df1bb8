//! The dialog in which an endpoint is set up or changed. Its secret goes one way, to the system's
//! store; where no store answers, only a variable or a command is offered.

use super::endpoint_words::{FAMILIES, SOURCES, STORE, Typed, words_for};
use crate::bridge;
use crate::dialogs::shown_modally;
use crate::model::{Store, use_store};
use leptos::ev::{Event, KeyboardEvent, SubmitEvent};
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::endpoint::{Field, SecretSource, Wrong};
use omniscio_core::ipc::{Reply, SecretState};
use omniscio_core::supervisor::Command;

const FIRST_ID: &str = "endpoint-name";

/// What the dialog's parts share. Copied around freely.
#[derive(Clone, Copy)]
struct Form {
    store: Store,
    typed: RwSignal<Typed>,
    /// The secret, until it is given away.
    secret: RwSignal<String>,
    /// One is stored already.
    kept: RwSignal<bool>,
    /// Whether the system's store answers; `None` until it is known.
    answers: RwSignal<Option<bool>>,
    wrong: RwSignal<Option<Wrong>>,
    failed: RwSignal<Option<String>>,
    busy: RwSignal<bool>,
    editing: RwSignal<Option<Typed>>,
    stored: RwSignal<u32>,
}

impl Form {
    /// Sets it up, then gives its secret to the store.
    fn save(self) {
        // rule: A-32
        if self.busy.get_untracked() {
            return;
        }
        self.failed.set(None);
        self.wrong.set(None);
        let known = self.store.settings.with_untracked(|settings| settings.endpoints.clone());
        let endpoint = match self.typed.with_untracked(|typed| typed.endpoint(&known)) {
            Ok(endpoint) => endpoint,
            Err(wrong) => return self.wrong.set(Some(wrong)),
        };
        let secret = self.secret.get_untracked();
        let before = known.iter().find(|known| known.id == endpoint.id);
        let keeps = before.is_some_and(|before| before.keeps_secret(&endpoint));
        let to_store = endpoint.secret == SecretSource::Store;
        if to_store && secret.trim().is_empty() && !(self.kept.get_untracked() && keeps) {
            let words = "Give the secret: it is kept for one address.";
            return self.wrong.set(Some(Wrong { field: Field::Secret, words }));
        }
        self.busy.set(true);
        spawn_local(async move {
            let made = bridge::command(Command::SetEndpoint { endpoint }).await;
            let outcome = match made {
                Ok(Reply::Endpoint(id)) => {
                    // a second try changes the one that is there now
                    self.typed.try_update(|typed| typed.id.clone_from(&id));
                    let give = to_store && !secret.trim().is_empty();
                    if give { bridge::endpoint_secret_set(&id, &secret).await } else { Ok(()) }
                }
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            if self.busy.try_set(false).is_some() {
                return;
            }
            self.stored.update(|count| *count += 1);
            match outcome {
                Ok(()) => self.editing.set(None),
                Err(error) => self.failed.set(Some(error.message)),
            }
        });
    }

    /// Asks whether a store answers, and whether it holds the secret already.
    fn look(self) {
        let id = self.typed.with_untracked(|typed| typed.id.clone());
        spawn_local(async move {
            let answers = bridge::secret_store().await == Ok(SecretState::Present);
            if self.answers.try_set(Some(answers)).is_some() {
                return;
            }
            if !answers && self.typed.with_untracked(|typed| typed.id.is_empty()) {
                self.typed.update(|typed| {
                    if typed.source == STORE {
                        typed.source = SOURCES[1].0.into();
                    }
                });
            }
            if !id.is_empty() {
                let state = bridge::endpoint_secret_state(&id).await;
                self.kept.try_set(state == Ok(SecretState::Present));
            }
        });
    }
}

/// The dialog.
#[component]
pub(super) fn EndpointDialog(
    /// What it begins with.
    typed: Typed,
    /// Emptied when it closes.
    editing: RwSignal<Option<Typed>>,
    /// Counted up when something was saved.
    stored: RwSignal<u32>,
) -> impl IntoView {
    let title = if typed.id.is_empty() { "New endpoint" } else { "Endpoint" };
    let form = Form {
        store: use_store(),
        typed: RwSignal::new(typed),
        secret: RwSignal::new(String::new()),
        kept: RwSignal::new(false),
        answers: RwSignal::new(None),
        wrong: RwSignal::new(None),
        failed: RwSignal::new(None),
        busy: RwSignal::new(false),
        editing,
        stored,
    };
    form.look();
    let dialog = shown_modally(FIRST_ID);
    let cancel = move |event: Event| {
        event.prevent_default();
        editing.set(None);
    };
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        form.save();
    };
    view! {
        <dialog
            class="dialog"
            node_ref=dialog
            aria-labelledby="endpoint-title"
            data-testid="endpoint-dialog"
            on:keydown=move |event: KeyboardEvent| event.stop_propagation()
            on:cancel=cancel
        >
            <form class="dialog-form" on:submit=submit novalidate autocomplete="off">
                <h2 class="dialog-title" id="endpoint-title">{title}</h2>
                <Text form=form field=Field::Name id=FIRST_ID label="Name" hint="Kimi" />
                <Family form=form />
                <Text
                    form=form
                    field=Field::BaseUrl
                    id="endpoint-base-url"
                    label="Base URL"
                    hint="https://api.example.com/anthropic"
                />
                <div class="dialog-row">
                    <Text form=form field=Field::Model id="endpoint-model" label="Model" hint="" />
                    <Text
                        form=form
                        field=Field::ContextWindow
                        id="endpoint-window"
                        label="True context window, in tokens"
                        hint="262,144"
                    />
                </div>
                <SecretPart form=form />
                <p class="field-error" role="alert" data-testid="endpoint-error">
                    {move || form.failed.get()}
                </p>
                <div class="dialog-foot">
                    <span class="dialog-gap" />
                    <button type="button" class="button" on:click=move |_| editing.set(None)>
                        "Close"
                    </button>
                    <button
                        type="submit"
                        class="button primary"
                        data-testid="endpoint-save"
                        aria-disabled=move || form.busy.get().to_string()
                    >
                        "Save"
                        <span class="key-hint" aria-hidden="true">"↵"</span>
                    </button>
                </div>
            </form>
        </dialog>
    }
}

/// The text that a field holds.
fn text_of(typed: &mut Typed, field: Field) -> &mut String {
    match field {
        Field::Name => &mut typed.name,
        Field::BaseUrl => &mut typed.base_url,
        Field::Model => &mut typed.model,
        Field::ContextWindow => &mut typed.window,
        Field::Secret if typed.source == "command" => &mut typed.command,
        Field::Secret => &mut typed.variable,
    }
}

/// A line of text with its error under it.
#[component]
fn Text(
    form: Form,
    field: Field,
    id: &'static str,
    label: &'static str,
    hint: &'static str,
) -> impl IntoView {
    let error_id = format!("{id}-error");
    let words = move || form.wrong.with(|wrong| words_for(wrong.as_ref(), field));
    view! {
        <div class="dialog-part">
            <label for=id>{label}</label>
            <input
                id=id
                type="text"
                class="field"
                placeholder=hint
                autocomplete="off"
                spellcheck="false"
                aria-invalid=move || words().is_some().to_string()
                aria-describedby=error_id.clone()
                data-testid=id
                prop:value=move || form.typed.with(|typed| text_of(&mut typed.clone(), field).clone())
                on:input=move |event| {
                    form.wrong.set(None);
                    form.typed.update(|typed| *text_of(typed, field) = event_target_value(&event));
                }
            />
            <p class="field-error" id=error_id>{words}</p>
        </div>
    }
}

/// Which engine answers there.
#[component]
fn Family(form: Form) -> impl IntoView {
    view! {
        <label class="dialog-part">
            "Engine"
            <span class="select"><select
                class="field"
                data-testid="endpoint-family"
                aria-describedby="endpoint-family-helper"
                prop:value=move || form.typed.with(|typed| typed.family.clone())
                on:change=move |event| {
                    form.typed.update(|typed| typed.family = event_target_value(&event));
                }
            >
                {FAMILIES
                    .map(|(value, _, name, _)| view! { <option value=value>{name}</option> })
                    .into_iter()
                    .collect_view()}
            </select></span>
            <span class="field-note" id="endpoint-family-helper">
                {move || form.typed.with(Typed::family_helper)}
            </span>
        </label>
    }
}

/// Where its secret is, and the secret itself where the system keeps it.
#[component]
fn SecretPart(form: Form) -> impl IntoView {
    let source = Memo::new(move |_| form.typed.with(|typed| typed.source.clone()));
    let no_store = move || form.answers.get() == Some(false);
    let offered = move || {
        let some = SOURCES.into_iter().filter(|(value, _)| *value != STORE || !no_store());
        some.map(|(value, name)| {
            view! { <option value=value selected=move || source.get() == value>{name}</option> }
        })
        .collect_view()
    };
    view! {
        <label class="dialog-part">
            "Secret"
            <span class="select"><select
                class="field"
                data-testid="endpoint-source"
                on:change=move |event| {
                    form.wrong.set(None);
                    form.typed.update(|typed| typed.source = event_target_value(&event));
                }
            >
                {offered}
            </select></span>
        </label>
        <Show when=no_store>
            <p class="field-note" role="status" data-testid="endpoint-no-store">
                "The system’s secret store does not answer. Omniscio keeps secrets nowhere else."
            </p>
        </Show>
        {move || match source.get().as_str() {
            "variable" => {
                view! {
                    <Text
                        form=form
                        field=Field::Secret
                        id="endpoint-variable"
                        label="Name of the variable"
                        hint="KIMI_API_KEY"
                    />
                }
                    .into_any()
            }
            "command" => {
                view! {
                    <Text
                        form=form
                        field=Field::Secret
                        id="endpoint-command"
                        label="Command that prints the secret (do not write the secret itself into it)"
                        hint="pass show kimi"
                    />
                }
                    .into_any()
            }
            _ => view! { <Password form=form /> }.into_any(),
        }}
    }
}

/// The secret: it can be given, and never read back.
#[component]
fn Password(form: Form) -> impl IntoView {
    let words = move || form.wrong.with(|wrong| words_for(wrong.as_ref(), Field::Secret));
    view! {
        <div class="dialog-part">
            <label for="endpoint-secret-text">"Key or token"</label>
            <input
                id="endpoint-secret-text"
                type="password"
                class="field"
                autocomplete="off"
                placeholder=move || {
                    if form.kept.get() { "Stored. Leave empty to keep it." } else { "Not stored" }
                }
                aria-invalid=move || words().is_some().to_string()
                aria-describedby="endpoint-secret-error"
                data-testid="endpoint-secret-text"
                prop:value=form.secret
                on:input=move |event| {
                    form.wrong.set(None);
                    form.secret.set(event_target_value(&event));
                }
            />
            <p class="field-error" id="endpoint-secret-error">{words}</p>
        </div>
    }
}
