//! The question of A-23: a folder brings commands that run by themselves; may they?

use super::Form;
use crate::cards::read::shown;
use leptos::html;
use leptos::prelude::*;
use omniscio_core::ipc::FolderCommand;

/// Asked once for a folder; the answer is kept by its real path.
#[component]
pub(super) fn TrustQuestion(form: Form) -> impl IntoView {
    let commands = move || form.asking.get().map(|check| check.commands).unwrap_or_default();
    let path = move || form.asking.get().map(|check| check.real_path);
    let first = NodeRef::<html::Button>::new();
    Effect::new(move |_| {
        if let Some(button) = first.get() {
            // a button that cannot take the focus leaves it where it is
            drop(button.focus());
        }
    });
    let one = |command: FolderCommand| {
        view! {
            <li class="trust-command" data-testid="trust-command">
                <span class="trust-file">{shown(&command.file)}</span>
                <pre tabindex="0">{command.text.lines().map(shown).collect::<Vec<_>>().join("\n")}</pre>
            </li>
        }
    };
    view! {
        <div class="dialog-form" data-testid="trust-question">
            <h2 class="dialog-title" id="dialog-title">
                "This folder brings commands that run by themselves:"
            </h2>
            <p class="trust-path">{path}</p>
            <ul class="trust-list">{move || commands().into_iter().map(one).collect_view()}</ul>
            <p class="field-error" role="alert">{move || form.failed.get()}</p>
            <div class="dialog-foot">
                <button type="button" class="button" on:click=move |_| form.asking.set(None)>
                    "Back"
                </button>
                <span class="dialog-gap" />
                <button
                    type="button"
                    class="button"
                    node_ref=first
                    data-testid="trust-without"
                    on:click=move |_| form.decide(false)
                >
                    "Start without them"
                </button>
                <button
                    type="button"
                    class="button primary"
                    data-testid="trust-start"
                    on:click=move |_| form.decide(true)
                >
                    "Trust and start"
                </button>
            </div>
        </div>
    }
}
