//! The project folder: typed, picked from the folders used before, or chosen in the system's
//! dialog. Whether it exists is said at once, under the field.

use super::Form;
use super::draft::tilde;
use crate::bridge::{self, Answer};
use crate::icons::{Icon, Symbol};
use leptos::ev::KeyboardEvent;
use leptos::leptos_dom::helpers::{TimeoutHandle, set_timeout_with_handle};
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::ipc::FolderCheck;
use std::time::Duration;

/// Typing pauses for this long before the folder is looked at.
const PAUSE: Duration = Duration::from_millis(150);
/// Folders offered.
const RECENT_MAX: usize = 8;

/// What is known of the folder in the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// Not looked at yet.
    Unknown,
    /// It is there; whether it starts without its own commands, as decided before.
    There {
        /// The person decided against its commands.
        without_commands: bool,
    },
    /// What is wrong with it.
    Error(String),
}

impl Checked {
    /// What the backend's answer means.
    pub(super) fn of(check: &Answer<FolderCheck>) -> Checked {
        match check {
            Ok(check) if check.exists => Checked::There {
                without_commands: check.decided == Some(false) && !check.commands.is_empty(),
            },
            Ok(_) => Checked::missing(),
            Err(error) => Checked::Error(error.message.clone()),
        }
    }

    /// The folder is not there.
    pub(super) fn missing() -> Checked {
        Checked::Error("This folder does not exist.".into())
    }
}

/// The field with its list.
#[component]
pub(super) fn FolderField(form: Form) -> impl IntoView {
    let unfolded = RwSignal::new(false);
    let check = check_of(form);
    let pick = move |folder: String| {
        form.draft.update(|draft| draft.folder = folder);
        unfolded.set(false);
        check(Duration::ZERO);
    };
    let choose = move || {
        unfolded.set(false);
        spawn_local(async move {
            match bridge::choose_folder().await {
                Ok(Some(folder)) => {
                    let home = form.store.facts.with_untracked(|facts| facts.home.clone());
                    pick(tilde(&folder, home.as_deref()));
                }
                Ok(None) => {}
                Err(error) => drop(form.failed.try_set(Some(error.message))),
            }
        });
    };
    let on_key = move |event: KeyboardEvent| match event.key().as_str() {
        "ArrowDown" if !unfolded.get_untracked() => {
            event.prevent_default();
            unfolded.set(true);
        }
        "Escape" if unfolded.get_untracked() => {
            event.prevent_default();
            unfolded.set(false);
        }
        _ => {}
    };
    let error = move || match form.checked.get() {
        Checked::Error(words) => Some(words),
        Checked::Unknown | Checked::There { .. } => None,
    };
    let without = move || form.checked.get() == Checked::There { without_commands: true };
    check(Duration::ZERO);
    view! {
        <div class="dialog-part folder-part" on:keydown=on_key>
            <label for="new-session-folder">"Project folder"</label>
            <div class="field folder-field">
                <Symbol icon=Icon::Folder />
                <input
                    id="new-session-folder"
                    type="text"
                    role="combobox"
                    aria-expanded=move || unfolded.get().to_string()
                    aria-controls="new-session-folders"
                    aria-invalid=move || error().is_some().to_string()
                    aria-describedby="new-session-folder-error"
                    autocomplete="off"
                    spellcheck="false"
                    data-testid="dialog-folder"
                    prop:value=move || form.draft.with(|draft| draft.folder.clone())
                    on:input=move |event| {
                        form.draft.update(|draft| draft.folder = event_target_value(&event));
                        check(PAUSE);
                    }
                />
                <button
                    type="button"
                    class="icon-button"
                    aria-label="Recent folders"
                    data-testid="dialog-folder-list"
                    on:click=move |_| unfolded.update(|unfolded| *unfolded = !*unfolded)
                >
                    <span class="chevron down"><Symbol icon=Icon::Chevron /></span>
                </button>
            </div>
            <Show when=move || unfolded.get()>
                <div class="folder-list" id="new-session-folders" role="listbox" aria-label="Recent folders">
                    {recent(form)
                        .into_iter()
                        .map(|folder| {
                            let value = folder.clone();
                            view! {
                                <button
                                    type="button"
                                    role="option"
                                    aria-selected="false"
                                    class="folder-option"
                                    on:click=move |_| pick(value.clone())
                                >
                                    {folder}
                                </button>
                            }
                        })
                        .collect_view()}
                    <button
                        type="button"
                        role="option"
                        aria-selected="false"
                        class="folder-option choose"
                        data-testid="dialog-choose-folder"
                        on:click=move |_| choose()
                    >
                        "Choose a folder…"
                    </button>
                </div>
            </Show>
            <p class="field-error" id="new-session-folder-error" role="alert" data-testid="folder-error">
                {error}
            </p>
            <Show when=without>
                <p class="field-note">"Starts without the commands this folder brings, as you decided."</p>
            </Show>
        </div>
    }
}

fn recent(form: Form) -> Vec<String> {
    form.store.facts.with_untracked(|facts| {
        let home = facts.home.as_deref();
        facts.recent_folders.iter().take(RECENT_MAX).map(|folder| tilde(folder, home)).collect()
    })
}

/// Looks at the folder after a pause; an answer about another text than the field's is dropped.
fn check_of(form: Form) -> impl Fn(Duration) + Copy + Send + Sync {
    let waiting = StoredValue::new(None::<TimeoutHandle>);
    let look = move || {
        let folder = form.folder();
        if folder.is_empty() {
            form.checked.try_set(Checked::Unknown);
            return;
        }
        spawn_local(async move {
            let check = bridge::folder_check(&folder).await;
            if form.folder() == folder {
                form.checked.set(Checked::of(&check));
            }
        });
    };
    move |pause| {
        waiting.update_value(|waiting| {
            if let Some(old) = waiting.take() {
                old.clear();
            }
            *waiting = set_timeout_with_handle(look, pause).ok();
        });
    }
}
