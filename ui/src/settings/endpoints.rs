//! The endpoints in Settings: which there are, whether their secrets are there, and the ways to add,
//! change and remove one. No secret is ever shown: the backend tells none.

use super::endpoint_dialog::EndpointDialog;
use super::endpoint_words::{ABOUT, GROUP, Typed, line, secret_line};
use crate::actions;
use crate::bridge;
use crate::model::use_store;
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::endpoint::Endpoint;
use omniscio_core::ipc::SecretState;
use omniscio_core::supervisor::Command;

/// The group.
#[component]
pub(super) fn Endpoints(
    /// The page's name stands before the group's.
    named_by_page: bool,
) -> impl IntoView {
    let store = use_store();
    let editing = RwSignal::new(None::<Typed>);
    // a secret that was stored changes no setting: the lines are asked for again
    let stored = RwSignal::new(0_u32);
    let endpoints = Memo::new(move |_| store.settings.with(|settings| settings.endpoints.clone()));
    let title = if named_by_page { format!("Accounts · {GROUP}") } else { GROUP.to_owned() };
    view! {
        <section class="settings-group" data-testid="endpoints">
            <h2>{title}</h2>
            <p class="settings-about">{ABOUT}</p>
            <div class="settings-rows">
                {move || {
                    stored.track();
                    endpoints
                        .get()
                        .into_iter()
                        .map(|endpoint| view! { <Line endpoint=endpoint editing=editing /> })
                        .collect_view()
                }}
                <div class="setting">
                    <button
                        class="button"
                        data-testid="endpoint-add"
                        on:click=move |_| editing.set(Some(Typed::new()))
                    >
                        "Add an endpoint…"
                    </button>
                </div>
            </div>
        </section>
        {move || {
            editing
                .get()
                .map(|typed| view! { <EndpointDialog typed=typed editing=editing stored=stored /> })
        }}
    }
}

/// One endpoint. Removing it is asked back once.
#[component]
fn Line(endpoint: Endpoint, editing: RwSignal<Option<Typed>>) -> impl IntoView {
    let store = use_store();
    let state = RwSignal::new(None::<SecretState>);
    let sure = RwSignal::new(false);
    let id = endpoint.id.clone();
    spawn_local(async move {
        if let Ok(found) = bridge::endpoint_secret_state(&id).await {
            state.try_set(Some(found));
        }
    });
    let typed = Typed::of(&endpoint);
    let id = endpoint.id.clone();
    let remove = move || match sure.get_untracked() {
        true => actions::give(store, Command::RemoveEndpoint { endpoint: id.clone() }),
        false => sure.set(true),
    };
    let (name, about) = (endpoint.name.clone(), line(&endpoint));
    let label = format!("{name}: ");
    let edit_label = format!("{label}Edit");
    let secret = move || state.get().map(|state| secret_line(&endpoint, state));
    view! {
        <div class="setting" data-testid="endpoint">
            <div class="setting-text">
                <span class="setting-label">{name}</span>
                <span class="setting-helper">{about}</span>
                {move || {
                    secret()
                        .map(|(words, missing)| {
                            view! {
                                <span
                                    class=if missing { "field-error" } else { "setting-later" }
                                    data-testid="endpoint-secret"
                                >
                                    {words}
                                </span>
                            }
                        })
                }}
                <Show when=move || sure.get()>
                    <p class="field-error" role="alert">
                        "Sessions that use it cannot be launched until it is set up again under this name."
                    </p>
                </Show>
            </div>
            <div class="setting-end">
                <button
                    class="button"
                    aria-label=edit_label
                    data-testid="endpoint-edit"
                    on:click=move |_| editing.set(Some(typed.clone()))
                >
                    "Edit…"
                </button>
                <button
                    class="button"
                    aria-label=move || {
                        format!("{label}{}", if sure.get() { "Remove it" } else { "Remove" })
                    }
                    data-testid="endpoint-remove"
                    on:click=move |_| remove()
                >
                    {move || if sure.get() { "Remove it" } else { "Remove" }}
                </button>
            </div>
        </div>
    }
}
