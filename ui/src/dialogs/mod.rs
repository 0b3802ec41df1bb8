//! The dialogs. The new-session one is here: what is to be done, where, and, when the folder brings
//! commands that run by themselves, whether they may. Escape keeps what was typed as a draft.

mod draft;
mod folder_field;
mod switch_model;
mod trust;

use crate::bridge::{self, Answer};
use crate::model::{Store, use_store};
use draft::{Draft, MODELS, PERMISSIONS};
pub(crate) use draft::{tilde, tilde_words};
use folder_field::{Checked, FolderField};
use leptos::ev::{KeyboardEvent, SubmitEvent};
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::endpoint::Endpoint;
use omniscio_core::ipc::{FolderCheck, IpcCode, IpcError, Reply};
pub(crate) use switch_model::SwitchModelDialog;
use trust::TrustQuestion;

/// The dialog, while it is open.
#[component]
pub(crate) fn NewSessionDialog() -> impl IntoView {
    let store = use_store();
    view! {
        <Show when=move || store.new_session.get()>
            <Dialog />
        </Show>
    }
}

/// What the dialog's parts share. Copied around freely.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    store: Store,
    draft: RwSignal<Draft>,
    checked: RwSignal<Checked>,
    text_error: RwSignal<Option<&'static str>>,
    /// The folder whose commands the person is asked about.
    asking: RwSignal<Option<FolderCheck>>,
    failed: RwSignal<Option<String>>,
    busy: RwSignal<bool>,
    add_another: RwSignal<bool>,
}

impl Form {
    fn new(store: Store) -> Form {
        let open = store.open.get_untracked();
        let entry = open.and_then(|session| untrack(|| store.entry(session)));
        let folder = entry.map(|entry| entry.view.with_untracked(|view| view.row.folder.clone()));
        let recent = store.facts.with_untracked(|facts| facts.recent_folders.first().cloned());
        let folder = folder.or(recent).unwrap_or_default();
        let home = store.facts.with_untracked(|facts| facts.home.clone());
        Form {
            store,
            draft: RwSignal::new(Draft::kept(&tilde(&folder, home.as_deref()))),
            checked: RwSignal::new(Checked::Unknown),
            text_error: RwSignal::new(None),
            asking: RwSignal::new(None),
            failed: RwSignal::new(None),
            busy: RwSignal::new(false),
            add_another: RwSignal::new(false),
        }
    }

    /// The folder as the backend wants it: absolute. Empty when there is none, or no dialog any more.
    fn folder(self) -> String {
        let home = self.store.facts.with_untracked(|facts| facts.home.clone());
        let absolute = |draft: &Draft| draft::absolute(&draft.folder, home.as_deref());
        self.draft.try_with_untracked(absolute).unwrap_or_default()
    }

    fn close(self) {
        self.draft.with_untracked(Draft::keep);
        self.store.new_session.set(false);
    }

    /// Start: checks the folder once more, asks about what it brings, then creates the session.
    fn start(self, add_another: bool) {
        if self.busy.get_untracked() {
            return;
        }
        self.failed.set(None);
        self.add_another.set(add_another);
        let empty = self.draft.with_untracked(|draft| draft.text.trim().is_empty());
        self.text_error.set(empty.then_some("Say what it should do."));
        let folder = self.folder();
        if folder.is_empty() {
            self.checked.set(Checked::Error("Choose a project folder.".into()));
        }
        if empty || folder.is_empty() {
            return;
        }
        self.busy.set(true);
        spawn_local(async move {
            let check = bridge::folder_check(&folder).await;
            if self.busy.try_set(false).is_some() {
                return;
            }
            self.checked.set(Checked::of(&check));
            match check {
                Ok(check) if !check.exists => {}
                Ok(check) if !check.commands.is_empty() && check.decided.is_none() => {
                    self.asking.set(Some(check));
                }
                Ok(check) => {
                    let without = !check.commands.is_empty() && check.decided == Some(false);
                    self.create(folder, without);
                }
                Err(error) => self.failed.set(Some(error.message)),
            }
        });
    }

    /// The person's decision about the folder's commands: kept, then the session is created.
    fn decide(self, trusted: bool) {
        let Some(check) = self.asking.get_untracked() else {
            return;
        };
        if self.busy.get_untracked() {
            return;
        }
        self.busy.set(true);
        let folder = self.folder();
        spawn_local(async move {
            let kept = bridge::folder_trust(&check.real_path, trusted).await;
            if self.busy.try_set(false).is_some() {
                return;
            }
            match kept {
                Ok(()) => {
                    self.asking.set(None);
                    self.create(folder, !trusted);
                }
                Err(error) => self.failed.set(Some(error.message)),
            }
        });
    }

    fn create(self, folder: String, user_settings_only: bool) {
        self.busy.set(true);
        let command =
            self.draft.with_untracked(|draft| draft.command(folder.clone(), user_settings_only));
        spawn_local(async move {
            let made = bridge::command(command).await;
            if self.busy.try_set(false).is_some() {
                return;
            }
            self.made(made, folder);
        });
    }

    fn made(self, made: Answer<Reply>, folder: String) {
        match made {
            Ok(reply) => {
                self.store.facts.update(|facts| {
                    facts.recent_folders.retain(|recent| *recent != folder);
                    facts.recent_folders.insert(0, folder);
                });
                self.draft.update(|draft| draft.text.clear());
                if let Reply::Created(session) = reply {
                    self.store.open(session);
                }
                if self.add_another.get_untracked() {
                    crate::dom::focus(TEXT_ID);
                } else {
                    self.close();
                }
            }
            Err(IpcError { code: IpcCode::FolderMissing, .. }) => {
                self.checked.set(Checked::missing());
            }
            Err(error) => self.failed.set(Some(error.message)),
        }
    }
}

const TEXT_ID: &str = "new-session-text";

#[component]
fn Dialog() -> impl IntoView {
    let form = Form::new(use_store());
    let dialog = shown_modally(TEXT_ID);
    let on_key = move |event: KeyboardEvent| {
        let command = event.ctrl_key() || event.meta_key();
        if event.key() == "Enter" && command && !event.is_composing() {
            event.prevent_default();
            match form.asking.with_untracked(Option::is_some) {
                true => form.decide(true),
                false => form.start(event.shift_key()),
            }
        }
        event.stop_propagation();
    };
    let cancel = move |event: leptos::ev::Event| {
        event.prevent_default();
        match form.asking.with_untracked(Option::is_some) {
            true => form.asking.set(None),
            false => form.close(),
        }
    };
    view! {
        <dialog
            class="dialog"
            node_ref=dialog
            aria-labelledby="dialog-title"
            data-testid="new-session-dialog"
            on:keydown=on_key
            on:cancel=cancel
        >
            <Show
                when=move || form.asking.with(Option::is_some)
                fallback=move || view! { <Fields form=form /> }
            >
                <TrustQuestion form=form />
            </Show>
        </dialog>
    }
}

/// The node of a dialog that is shown over everything else, with the focus on its element `first`.
pub(crate) fn shown_modally(first: &'static str) -> NodeRef<html::Dialog> {
    let node = NodeRef::<html::Dialog>::new();
    Effect::new(move |_| {
        if let Some(dialog) = node.get() {
            // a page that cannot show it modally still shows it
            if dialog.show_modal().is_err() {
                dialog.set_open(true);
            }
            crate::dom::focus(first);
        }
    });
    node
}

#[component]
fn Fields(form: Form) -> impl IntoView {
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        form.start(false);
    };
    view! {
        <form class="dialog-form" on:submit=submit novalidate>
            <h2 class="dialog-title" id="dialog-title">"New session"</h2>
            <FolderField form=form />
            <div class="dialog-part">
                <label for=TEXT_ID>"What should it do?"</label>
                <textarea
                    id=TEXT_ID
                    class="field dialog-text"
                    data-testid="dialog-text"
                    aria-invalid=move || form.text_error.get().is_some().to_string()
                    aria-describedby="new-session-text-error"
                    prop:value=move || form.draft.with(|draft| draft.text.clone())
                    on:input=move |event| {
                        form.text_error.set(None);
                        form.draft.update(|draft| draft.text = event_target_value(&event));
                    }
                />
                <p class="field-error" id="new-session-text-error">
                    {move || form.text_error.get()}
                </p>
            </div>
            <Choices form=form />
            <p class="field-error" role="alert" data-testid="dialog-error">
                {move || form.failed.get()}
            </p>
            <div class="dialog-foot">
                <button type="button" class="button" on:click=move |_| form.close()>"Close"</button>
                <span class="dialog-gap" />
                <button
                    type="button"
                    class="button"
                    data-testid="dialog-start-another"
                    title="Ctrl Shift Enter"
                    on:click=move |_| form.start(true)
                >
                    "Start and add another"
                </button>
                <button
                    type="submit"
                    class="button primary"
                    data-testid="dialog-start"
                    aria-disabled=move || form.busy.get().to_string()
                >
                    "Start"
                    <span class="key-hint" aria-hidden="true">"Ctrl ↵"</span>
                </button>
            </div>
        </form>
    }
}

/// Who answers, if any endpoint is set up. It brings its model.
#[component]
fn EndpointChoice(form: Form, endpoints: Vec<Endpoint>) -> impl IntoView {
    (!endpoints.is_empty()).then(|| {
        view! {
            <label class="dialog-part">
                "Endpoint"
                <span class="select"><select
                    class="field"
                    data-testid="dialog-endpoint"
                    prop:value=move || form.draft.with(|draft| draft.endpoint.clone())
                    on:change=move |event| {
                        form.draft.update(|draft| draft.endpoint = event_target_value(&event));
                    }
                >
                    <option value="">"Claude"</option>
                    {endpoints
                        .into_iter()
                        .map(|endpoint| {
                            let name = format!("{} ({})", endpoint.name, endpoint.model);
                            view! { <option value=endpoint.id>{name}</option> }
                        })
                        .collect_view()}
                </select></span>
            </label>
        }
    })
}

/// Model, permissions and, with more than one, the account.
#[component]
fn Choices(form: Form) -> impl IntoView {
    let accounts = form.store.facts.with_untracked(|facts| facts.accounts.clone());
    let endpoints = form.store.settings.with_untracked(|settings| settings.endpoints.clone());
    let elsewhere = Memo::new(move |_| form.draft.with(|draft| !draft.endpoint.is_empty()));
    let other_model =
        move || !elsewhere.get() && form.draft.with(|draft| draft.model == draft::OTHER_MODEL);
    view! {
        <EndpointChoice form=form endpoints=endpoints />
        <div class="dialog-row">
            <label class="dialog-part" hidden=move || elsewhere.get()>
                "Model"
                <span class="select"><select
                    class="field"
                    data-testid="dialog-model"
                    prop:value=move || form.draft.with(|draft| draft.model.clone())
                    on:change=move |event| {
                        form.draft.update(|draft| draft.model = event_target_value(&event));
                    }
                >
                    {MODELS
                        .map(|(value, name)| view! { <option value=value>{name}</option> })
                        .into_iter()
                        .collect_view()}
                </select></span>
            </label>
            <label class="dialog-part">
                "Permissions"
                <span class="select"><select
                    class="field"
                    data-testid="dialog-permissions"
                    prop:value=move || form.draft.with(|draft| draft.permissions.to_string())
                    on:change=move |event| {
                        let at = event_target_value(&event).parse().unwrap_or_default();
                        form.draft.update(|draft| draft.permissions = at);
                    }
                >
                    {PERMISSIONS
                        .iter()
                        .enumerate()
                        .map(|(at, (_, name))| {
                            view! { <option value=at.to_string()>{*name}</option> }
                        })
                        .collect_view()}
                </select></span>
            </label>
            {(accounts.len() > 1)
                .then(|| {
                    view! {
                        <label class="dialog-part">
                            "Account"
                            <span class="select"><select
                                class="field"
                                data-testid="dialog-account"
                                prop:value=move || form.draft.with(|draft| draft.account.clone())
                                on:change=move |event| {
                                    let account = event_target_value(&event);
                                    form.draft.update(|draft| draft.account = account);
                                }
                            >
                                <option value="">"Default"</option>
                                {accounts
                                    .into_iter()
                                    .map(|account| {
                                        view! { <option value=account.id>{account.label}</option> }
                                    })
                                    .collect_view()}
                            </select></span>
                        </label>
                    }
                })}
        </div>
        <Show when=other_model>
            <input
                type="text"
                class="field dialog-model-text"
                aria-label="Name of the model"
                placeholder="Name of the model"
                data-testid="dialog-model-text"
                prop:value=move || form.draft.with(|draft| draft.model_text.clone())
                on:input=move |event| {
                    form.draft.update(|draft| draft.model_text = event_target_value(&event));
                }
            />
        </Show>
    }
}
