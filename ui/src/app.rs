//! The frame: the list, the divider, the open session; or Settings, or the first-run page.

use crate::dialogs::{NewSessionDialog, SwitchModelDialog};
use crate::first_run::FirstRun;
use crate::icons::{Icon, Symbol};
use crate::inbox::{Inbox, Sidebar};
use crate::model::{self, Page, Store};
use crate::session::Panel;
use crate::settings::SettingsPage;
use crate::toast::Toasts;
use crate::{bridge, dom, keys, now};
use leptos::ev;
use leptos::leptos_dom::helpers::{TimeoutHandle, set_timeout_with_handle, window_event_listener};
use leptos::prelude::*;
use omniscio_core::attention::badge_count;
use omniscio_core::ipc::CliState;
use omniscio_core::supervisor::Command;
use std::time::Duration;

/// The list's width in CSS pixels: as first drawn, and its limits.
const LIST_WIDTH: (f64, f64, f64) = (280.0, 352.0, 520.0);
/// A session counts as seen when its panel was open in the focused window for this long.
const SEEN_AFTER: Duration = Duration::from_secs(1);

/// The window.
#[component]
pub fn App() -> impl IntoView {
    let store = Store::provide();
    let inbox = Inbox::provide(store);
    let list_shown = RwSignal::new(true);
    let focused = RwSignal::new(dom::window_is_focused());
    keys::listen(store, inbox, list_shown);
    watch_focus(store, focused);
    tell_backend(store, focused);
    mark_read(store, focused);
    title(store);
    model::connect(store);

    view! {
        {move || match (store.cli.get(), store.page.get()) {
            (Some(CliState::Missing { .. } | CliState::Broken { .. }), _) => {
                view! { <FirstRun /> }.into_any()
            }
            (Some(CliState::Found { .. }) | None, Page::Settings) => {
                view! { <SettingsPage /> }.into_any()
            }
            (Some(CliState::Found { .. }) | None, Page::Sessions) => {
                view! { <Sessions list_shown=list_shown /> }.into_any()
            }
        }}
        <NewSessionDialog />
        <SwitchModelDialog />
        <Toasts />
        <Announcer />
    }
}

/// The list and the open session.
#[component]
fn Sessions(list_shown: RwSignal<bool>) -> impl IntoView {
    let store = model::use_store();
    let width = RwSignal::new(LIST_WIDTH.1);
    view! {
        <a class="skip-link" href="#session-list">"To the sessions"</a>
        <div
            class="app"
            class:list-hidden=move || !list_shown.get()
            class:panel-open=move || store.open.get().is_some()
            style=("--list-width", move || format!("{}px", width.get()))
        >
            <Sidebar />
            <Divider width=width />
            <main class="main" id="main">
                <Trouble />
                {move || match store.open.get() {
                    Some(session) => view! { <Panel session=session /> }.into_any(),
                    None => view! { <NothingOpen /> }.into_any(),
                }}
            </main>
        </div>
    }
}

/// The edge between list and panel: drags the list's width, double click puts it back.
#[component]
fn Divider(width: RwSignal<f64>) -> impl IntoView {
    let dragging = RwSignal::new(false);
    let drag = move |event: ev::PointerEvent| {
        if dragging.get_untracked() {
            width.set(f64::from(event.client_x()).clamp(LIST_WIDTH.0, LIST_WIDTH.2));
        }
    };
    let begin = move |event: ev::PointerEvent| {
        if let Some(edge) = dom::target(&event) {
            dragging.set(edge.set_pointer_capture(event.pointer_id()).is_ok());
        }
    };
    view! {
        <div
            class="divider"
            class:dragging=dragging
            aria-hidden="true"
            on:pointerdown=begin
            on:pointermove=drag
            on:pointerup=move |_| dragging.set(false)
            on:pointercancel=move |_| dragging.set(false)
            on:dblclick=move |_| width.set(LIST_WIDTH.1)
        />
    }
}

/// The store cannot write, or there is no backend: said over everything else.
#[component]
fn Trouble() -> impl IntoView {
    let store = model::use_store();
    move || {
        store.trouble.get().map(|words| {
            view! { <p class="trouble" role="alert" data-testid="trouble">{words}</p> }
        })
    }
}

/// The panel's place while no session is open.
#[component]
fn NothingOpen() -> impl IntoView {
    let store = model::use_store();
    let found = move || match store.cli.get() {
        Some(CliState::Found { version, .. }) => Some(format!("Found claude {version}.")),
        Some(CliState::Missing { .. } | CliState::Broken { .. }) | None => None,
    };
    move || {
        let first = store.entries.with(|entries| entries.is_empty());
        if !first {
            return view! { <p class="nothing-open">"Choose a session, or press N."</p> }
                .into_any();
        }
        view! {
            <div class="welcome" data-testid="welcome">
                <span class="welcome-mark"><Symbol icon=Icon::Mark /></span>
                <h1>"Start your first session"</h1>
                <p>
                    "Pick a project folder and say what to do. You can leave as soon as it runs; "
                    "it asks here when it needs you."
                </p>
                <button
                    class="button primary"
                    data-testid="welcome-new"
                    on:click=move |_| store.new_session.set(true)
                >
                    "New session"
                    <span class="key-hint" aria-hidden="true">"Ctrl N"</span>
                </button>
                <p class="quiet">{found}</p>
            </div>
        }
        .into_any()
    }
}

/// One polite line for speech, at most one message in ten seconds: who needs the person.
#[component]
fn Announcer() -> impl IntoView {
    const QUIET: Duration = Duration::from_secs(3);
    const APART_MILLIS: i64 = 10_000;
    let store = model::use_store();
    let words = RwSignal::new(String::new());
    let said = StoredValue::new((0_usize, 0_i64));
    let waiting = StoredValue::new(None::<TimeoutHandle>);
    let count = Memo::new(move |_| {
        let (policy, limits) = (store.policy(), store.limits.get());
        let now = store.clock.get();
        store.entries.with(|entries| {
            let views: Vec<_> = entries.values().map(|entry| entry.view.get()).collect();
            badge_count(views.iter().map(|view| &view.row), &policy, &limits, now)
        })
    });
    Effect::new(move |_| {
        let count = count.get();
        let (last, at) = said.get_value();
        if count <= last {
            said.set_value((count, at));
            return;
        }
        let say = move || {
            let count = count_now(store);
            let text = match count {
                0 => String::new(),
                1 => "1 session needs you.".to_owned(),
                count => format!("{count} sessions need you."),
            };
            said.set_value((count, now::read().wall.0));
            words.set(text);
        };
        let apart = (at + APART_MILLIS - now::read().wall.0).clamp(0, APART_MILLIS).unsigned_abs();
        let wait = QUIET.max(Duration::from_millis(apart));
        waiting.update_value(|old| {
            if old.is_none() {
                let done = move || {
                    waiting.set_value(None);
                    say();
                };
                *old = set_timeout_with_handle(done, wait).ok();
            }
        });
    });
    view! { <p class="spoken" role="status" aria-live="polite">{words}</p> }
}

fn count_now(store: Store) -> usize {
    store.entries.with_untracked(|entries| {
        entries.values().filter(|entry| entry.attention.get_untracked().needs_person).count()
    })
}

/// Looks at the clock again whenever the window is looked at again.
fn watch_focus(store: Store, focused: RwSignal<bool>) {
    let gained = window_event_listener(ev::focus, move |_| {
        focused.set(true);
        store.clock.tick();
    });
    let lost = window_event_listener(ev::blur, move |_| focused.set(false));
    on_cleanup(move || {
        gained.remove();
        lost.remove();
    });
}

/// The backend knows what the person looks at: nothing notifies for an open, focused session.
fn tell_backend(store: Store, focused: RwSignal<bool>) {
    Effect::new(move |_| {
        let (focused, open) = (focused.get(), store.open.get());
        if store.cli.with(Option::is_some) {
            bridge::run(bridge::window_state(focused, open));
        }
    });
}

/// An unread session is read once its panel was open in the focused window for a moment.
fn mark_read(store: Store, focused: RwSignal<bool>) {
    let timer = StoredValue::new(None::<TimeoutHandle>);
    let unread = Memo::new(move |_| {
        let session = store.open.get().filter(|_| focused.get())?;
        store.view(session).filter(|view| view.row.unread).map(|_| session)
    });
    Effect::new(move |_| {
        let unread = unread.get();
        timer.update_value(|timer| {
            if let Some(old) = timer.take() {
                old.clear();
            }
            *timer = unread.and_then(|session| {
                let read = Command::MarkRead { session, read: true };
                set_timeout_with_handle(move || bridge::run(bridge::command(read)), SEEN_AFTER).ok()
            });
        });
    });
}

/// The window's title names the open session.
fn title(store: Store) {
    Effect::new(move |_| {
        let open = store.open.get().and_then(|session| store.view(session));
        document().set_title(&match open {
            Some(view) => format!("{} – Omniscio", view.row.title),
            None => "Omniscio".to_owned(),
        });
    });
}
