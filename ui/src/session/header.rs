//! The panel's header: title, what the session is and where, Archive and More. Acts only by commands.

use super::meter::ContextMeter;
use crate::actions;
use crate::dialogs::tilde;
use crate::icons::{Icon, StateShape, Symbol};
use crate::inbox::use_inbox;
use crate::model::use_store;
use crate::now::duration;
use leptos::ev;
use leptos::prelude::*;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::RowView;
use omniscio_core::supervisor::Command;

/// Title line, meta line, buttons.
#[component]
pub fn Header(session: SessionId) -> impl IntoView {
    let (store, inbox) = (use_store(), use_inbox());
    let renaming = RwSignal::new(false);
    view! {
        <header class="panel-header">
            <div class="column">
                <button
                    class="icon-button back"
                    aria-label="Back to the sessions"
                    on:click=move |_| store.open.set(None)
                >
                    <Symbol icon=Icon::Back />
                </button>
                <div class="header-text">
                    <Title session=session renaming=renaming />
                    <Meta session=session />
                </div>
                <button
                    class="icon-button"
                    aria-label="Archive"
                    title="Archive (E)"
                    aria-keyshortcuts="E"
                    data-testid="archive"
                    on:click=move |_| inbox.archive(session)
                >
                    <Symbol icon=Icon::Archive />
                </button>
                <More session=session renaming=renaming />
            </div>
        </header>
    }
}

/// The title; a field while it is renamed.
#[component]
fn Title(session: SessionId, renaming: RwSignal<bool>) -> impl IntoView {
    let store = use_store();
    let title = move || store.view(session).map(|view| view.row.title).unwrap_or_default();
    let field = NodeRef::<leptos::html::Input>::new();
    Effect::new(move |_| {
        if let (true, Some(field)) = (renaming.get(), field.get()) {
            drop(field.focus());
            field.select();
        }
    });
    let keep = move || {
        let text = field.get_untracked().map(|field| field.value().trim().to_owned());
        renaming.set(false);
        if let Some(title) = text.filter(|text| !text.is_empty()) {
            actions::give(store, Command::Rename { session, title });
        }
    };
    let on_key = move |event: ev::KeyboardEvent| match event.key().as_str() {
        "Enter" if !event.is_composing() => keep(),
        "Escape" => {
            event.stop_propagation();
            renaming.set(false);
        }
        _ => {}
    };
    view! {
        <Show
            when=move || renaming.get()
            fallback=move || {
                view! {
                    <h1
                        class="panel-title"
                        data-testid="title"
                        on:dblclick=move |_| renaming.set(true)
                    >
                        {title}
                    </h1>
                }
            }
        >
            <input
                class="title-field"
                node_ref=field
                aria-label="Title"
                prop:value=title
                on:keydown=on_key
                on:blur=move |_| renaming.set(false)
            />
        </Show>
    }
}

/// Shape and label, folder, model, context, cost, time. What is not known is left out.
#[component]
fn Meta(session: SessionId) -> impl IntoView {
    let store = use_store();
    let view = Memo::new(move |_| store.view(session));
    let seen = Memo::new(move |_| store.attention(session));
    let part = move |of: fn(&RowView) -> Option<String>| move || view.get().as_ref().and_then(of);
    let folder = move || {
        let view = view.get()?;
        Some(store.facts.with(|facts| tilde(&view.row.folder, facts.home.as_deref())))
    };
    let worker_of = move || {
        let parent = view.get()?.row.parent?;
        Some(format!("Worker of {}", store.view(parent)?.row.title))
    };
    let time = move || {
        let open = seen.get().is_some_and(|seen| seen.turn_open);
        // the same for a turn that is being brought back unseen
        let row = view.get().filter(|_| open)?.row;
        let began = row.turn_since.or(row.turn.map(|turn| turn.since))?;
        let so_far = store.clock.pulse().since(began);
        let millis = so_far.max(0).unsigned_abs();
        // whole minutes: it ticks once a minute
        (millis >= 60_000).then(|| duration(millis - millis % 60_000))
    };
    view! {
        <div class="meta">
            <span class="meta-part state">
                <StateShape of=seen />
                <span class="label" data-testid="panel-label">
                    {move || seen.get().map(|seen| seen.label)}
                </span>
            </span>
            <span class="meta-part folder" title=part(|view| Some(view.row.folder.clone()))>
                {folder}
            </span>
            <Part text=Signal::derive(worker_of) class="wide" />
            <Part text=Signal::derive(part(model_name)) class="wide" />
            <ContextMeter view=view />
            <Part text=Signal::derive(part(cost)) class="wide" />
            <Part text=Signal::derive(time) class="wide" />
        </div>
    }
}

#[component]
fn Part(text: Signal<Option<String>>, class: &'static str) -> impl IntoView {
    move || text.get().map(|text| view! { <span class=format!("meta-part {class}")>{text}</span> })
}

/// What is wanted rarely: rename, the session's id, end, delete.
#[component]
fn More(session: SessionId, renaming: RwSignal<bool>) -> impl IntoView {
    let store = use_store();
    let open = RwSignal::new(false);
    let sure = RwSignal::new(false);
    Effect::new(move |_| {
        if !open.get() {
            sure.set(false);
        }
    });
    let give = move |command: Command| {
        open.set(false);
        actions::give(store, command);
    };
    let copy_id = move |_| {
        open.set(false);
        // the promise's outcome is the clipboard's own affair
        drop(window().navigator().clipboard().write_text(&session.to_string()));
    };
    let delete = move |_| {
        if sure.get_untracked() {
            give(Command::Delete { session });
        } else {
            sure.set(true);
        }
    };
    let on_key = move |event: ev::KeyboardEvent| {
        if event.key() == "Escape" && open.get_untracked() {
            event.stop_propagation();
            open.set(false);
        }
    };
    view! {
        <div class="menu-place" on:keydown=on_key>
            <button
                class="icon-button"
                aria-label="More"
                aria-haspopup="menu"
                aria-expanded=move || open.get().to_string()
                data-testid="more"
                on:click=move |_| open.update(|open| *open = !*open)
            >
                <Symbol icon=Icon::More />
            </button>
            <Show when=move || open.get()>
                <div class="menu-away" on:click=move |_| open.set(false) />
                <div class="menu" role="menu">
                    <button
                        role="menuitem"
                        on:click=move |_| {
                            open.set(false);
                            renaming.set(true);
                        }
                    >
                        "Rename"
                    </button>
                    <button role="menuitem" on:click=copy_id>"Copy session id"</button>
                    <button
                        role="menuitem"
                        data-testid="end"
                        on:click=move |_| give(Command::End { session })
                    >
                        "End"
                    </button>
                    <button role="menuitem" class="danger" data-testid="delete" on:click=delete>
                        {move || if sure.get() { "Delete for good" } else { "Delete…" }}
                    </button>
                </div>
            </Show>
        </div>
    }
}

/// A model's family, as people say it; else its own name.
pub(crate) fn model_name(view: &RowView) -> Option<String> {
    let name = view.live.model.as_deref().or(view.row.model.as_deref())?;
    let family = ["Opus", "Sonnet", "Haiku"];
    let known =
        family.into_iter().find(|family| name.to_lowercase().contains(&family.to_lowercase()));
    Some(known.unwrap_or(name).to_owned())
}

/// What the session has cost; left out while that is less than a cent.
fn cost(view: &RowView) -> Option<String> {
    let cents = view.row.cost_microdollars / 10_000;
    (cents > 0).then(|| format!("${}.{:02}", cents / 100, cents % 100))
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::id::Uuid;
    use omniscio_core::ipc::LiveView;
    use omniscio_core::session::SessionRow;
    use omniscio_core::time::Wall;

    #[test]
    fn parts_of_the_header_read_as_the_design_writes_them() {
        let row = SessionRow::new(Uuid(1), "/p".into(), "t".into(), "a".into(), Wall(0));
        let mut view = RowView { row, live: LiveView::default() };
        assert_eq!((model_name(&view), cost(&view)), (None, None));
        view.row.model = Some("opus".into());
        view.row.cost_microdollars = 3_189_999;
        assert_eq!((model_name(&view), cost(&view)), (Some("Opus".into()), Some("$3.18".into())));
        view.live.model = Some("claude-sonnet-4-5".into());
        assert_eq!(model_name(&view).as_deref(), Some("Sonnet"));
        view.live.model = Some("glm-9".into());
        assert_eq!(model_name(&view).as_deref(), Some("glm-9"));
    }
}
