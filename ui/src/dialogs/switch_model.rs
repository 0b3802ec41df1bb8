//! The dialog of Switch model: which other model to start over in. The old session stays as it is.

use super::{draft, shown_modally};
use crate::bridge;
use crate::model::{Store, use_store};
use crate::session::model_name;
use leptos::ev::{Event, KeyboardEvent, SubmitEvent};
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{Reply, RowView};
use omniscio_core::supervisor::Command;

const FIRST_ID: &str = "switch-model-first";

/// The dialog, while a model is being chosen.
#[component]
pub(crate) fn SwitchModelDialog() -> impl IntoView {
    let store = use_store();
    move || store.switching.get().map(|session| view! { <Dialog session=session /> })
}

/// What was chosen so far.
#[derive(Clone, Copy)]
struct Choice {
    store: Store,
    session: SessionId,
    model: RwSignal<&'static str>,
    /// The model's name, if it is another one.
    text: RwSignal<String>,
    failed: RwSignal<Option<String>>,
    busy: RwSignal<bool>,
}

impl Choice {
    fn close(self) {
        self.store.switching.set(None);
    }

    /// Starts over; the new session is the open one then.
    fn start(self) {
        // rule: RT-26
        let other = self.model.get_untracked() == draft::OTHER_MODEL;
        let name = match other {
            true => self.text.get_untracked().trim().to_owned(),
            false => self.model.get_untracked().to_owned(),
        };
        if other && name.is_empty() {
            self.failed.set(Some("Give the model’s name.".into()));
            return;
        }
        if self.busy.get_untracked() {
            return;
        }
        self.busy.set(true);
        self.failed.set(None);
        let model = Some(name).filter(|name| !name.is_empty());
        let command = Command::SwitchModel { session: self.session, model };
        spawn_local(async move {
            let made = bridge::command(command).await;
            let closed = self.busy.try_set(false).is_some();
            match made {
                Ok(reply) => {
                    if let Reply::Created(session) = reply {
                        self.store.open(session);
                    }
                    if !closed {
                        self.close();
                    }
                }
                Err(error) if closed => self.store.failed(error.message),
                Err(error) => self.failed.set(Some(error.message)),
            }
        });
    }
}

#[component]
fn Dialog(session: SessionId) -> impl IntoView {
    let store = use_store();
    let models = untrack(|| store.view(session)).map(|view| others(&view)).unwrap_or_default();
    let choice = Choice {
        store,
        session,
        model: RwSignal::new(models.first().map_or("", |(value, _)| *value)),
        text: RwSignal::new(String::new()),
        failed: RwSignal::new(None),
        busy: RwSignal::new(false),
    };
    let dialog = shown_modally(FIRST_ID);
    let cancel = move |event: Event| {
        event.prevent_default();
        choice.close();
    };
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        choice.start();
    };
    view! {
        <dialog
            class="dialog small"
            node_ref=dialog
            aria-labelledby="switch-model-title"
            data-testid="switch-model-dialog"
            on:keydown=move |event: KeyboardEvent| event.stop_propagation()
            on:cancel=cancel
        >
            <form class="dialog-form" on:submit=submit novalidate>
                <h2 class="dialog-title" id="switch-model-title">"Switch model"</h2>
                <p class="dialog-about">
                    "Opens a new session in the same folder, with your last message and a short summary. This one stays as it is."
                </p>
                <Models choice=choice models=models />
                <p class="field-error" role="alert" data-testid="switch-model-error">
                    {move || choice.failed.get()}
                </p>
                <div class="dialog-foot">
                    <span class="dialog-gap" />
                    <button type="button" class="button" on:click=move |_| choice.close()>
                        "Close"
                    </button>
                    <button
                        type="submit"
                        class="button primary"
                        data-testid="switch-model-start"
                        aria-disabled=move || choice.busy.get().to_string()
                    >
                        "Start over"
                        <span class="key-hint" aria-hidden="true">"↵"</span>
                    </button>
                </div>
            </form>
        </dialog>
    }
}

/// One model is chosen; the arrow keys move, as in any such group.
#[component]
fn Models(choice: Choice, models: Vec<(&'static str, &'static str)>) -> impl IntoView {
    let one = move |(at, (value, name)): (usize, (&'static str, &'static str))| {
        view! {
            <label class="choice" class:chosen=move || choice.model.get() == value>
                <input
                    type="radio"
                    name="switch-model"
                    id=(at == 0).then_some(FIRST_ID)
                    prop:checked=move || choice.model.get() == value
                    data-testid=format!("switch-model-{}", at + 1)
                    on:change=move |_| {
                        choice.failed.set(None);
                        choice.model.set(value);
                    }
                />
                {name}
            </label>
        }
    };
    view! {
        <div class="choices" role="radiogroup" aria-labelledby="switch-model-title">
            {models.into_iter().enumerate().map(one).collect_view()}
        </div>
        <Show when=move || choice.model.get() == draft::OTHER_MODEL>
            <input
                type="text"
                class="field"
                aria-label="Name of the model"
                placeholder="Name of the model"
                data-testid="switch-model-text"
                prop:value=choice.text
                on:input=move |event| {
                    choice.failed.set(None);
                    choice.text.set(event_target_value(&event));
                }
            />
        </Show>
    }
}

/// The models offered, without the one in use.
fn others(view: &RowView) -> Vec<(&'static str, &'static str)> {
    let used = model_name(view);
    let others = draft::MODELS.into_iter().filter(|(value, name)| match *value {
        "" => view.row.model.is_some(),
        _ => used.as_deref() != Some(*name),
    });
    let (default, named): (Vec<_>, Vec<_>) = others.partition(|(value, _)| value.is_empty());
    named.into_iter().chain(default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::id::Uuid;
    use omniscio_core::ipc::LiveView;
    use omniscio_core::session::SessionRow;
    use omniscio_core::time::Wall;

    #[test]
    fn another_model_is_offered_and_never_the_one_in_use() {
        let row = SessionRow::new(Uuid(1), "/p".into(), "t".into(), "a".into(), Wall(0));
        let mut view = RowView { row, live: LiveView::default() };
        let names = |view: &RowView| others(view).iter().map(|(_, name)| *name).collect::<Vec<_>>();
        assert_eq!(names(&view), ["Opus", "Sonnet", "Haiku", "Other…"]);
        view.live.model = Some("claude-opus-4-5".into());
        assert_eq!(names(&view), ["Sonnet", "Haiku", "Other…"]);
        view.row.model = Some("opus".into());
        assert_eq!(names(&view), ["Sonnet", "Haiku", "Other…", "Default"]);
    }
}
