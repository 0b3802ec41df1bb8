//! The sidebar: search, New session, the list with its sections, the footer.

use super::geometry::Band;
use super::row::Row;
use super::still;
use super::{LIST_ID, SEARCH_ID, row_id, use_inbox};
use crate::bridge;
use crate::icons::{Icon, Symbol};
use crate::model::{Page, Store, use_store};
use leptos::ev;
use leptos::prelude::*;
use omniscio_core::attention::Section;
use omniscio_core::id::SessionId;
use pointing::{row_of, target_act};
use std::ops::Range;

/// The list of sessions with its search and footer.
#[component]
pub fn Sidebar() -> impl IntoView {
    view! {
        <aside class="sidebar" aria-label="Sessions">
            <Header />
            <List />
            <Footer />
        </aside>
    }
}

#[component]
fn Header() -> impl IntoView {
    let (store, inbox) = (use_store(), use_inbox());
    let field = NodeRef::<leptos::html::Input>::new();
    let on_key = move |event: ev::KeyboardEvent| {
        if event.is_composing() {
            return;
        }
        match event.key().as_str() {
            "Enter" => inbox.open_first(),
            "ArrowDown" => focus_list(),
            "Escape" if !inbox.query.with_untracked(String::is_empty) => {
                inbox.query.set(String::new());
            }
            "Escape" => focus_list(),
            _ => return,
        }
        event.prevent_default();
        event.stop_propagation();
    };
    view! {
        <div class="side-header">
            <label class="search">
                <Symbol icon=Icon::Search />
                <input
                    node_ref=field
                    id=SEARCH_ID
                    type="text"
                    placeholder="Search"
                    aria-label="Search sessions"
                    autocomplete="off"
                    spellcheck="false"
                    data-testid="search"
                    prop:value=move || inbox.query.get()
                    on:input=move |event| inbox.query.set(event_target_value(&event))
                    on:keydown=on_key
                />
                <kbd aria-hidden="true">"/"</kbd>
            </label>
            <button
                class="icon-button"
                aria-label="New session"
                title="New session (Ctrl+N)"
                aria-keyshortcuts="Control+N"
                data-testid="new-session"
                on:click=move |_| store.new_session.set(true)
            >
                <Symbol icon=Icon::Plus />
            </button>
        </div>
    }
}

#[component]
fn List() -> impl IntoView {
    let (store, inbox) = (use_store(), use_inbox());
    let list = NodeRef::<leptos::html::Div>::new();
    Effect::new(move |_| {
        if let Some(list) = list.get() {
            bridge::watch_size(&[&list], move || still::look(inbox));
        }
    });
    // a click belongs to the row that was under the pointer when it went down
    let pressed = StoredValue::new(None::<SessionId>);
    let on_down = move |event: ev::PointerEvent| {
        inbox.touch();
        pressed.set_value(row_of(&event));
    };
    let on_click = move |event: ev::MouseEvent| {
        let row = pressed.try_update_value(Option::take).flatten().or_else(|| row_of(&event));
        match row {
            Some(session) if target_act(&event).as_deref() == Some("archive") => {
                inbox.archive(session);
            }
            Some(session) => {
                inbox.cursor.set(Some(session));
                store.open(session);
            }
            None => {}
        }
    };
    view! {
        <div
            id=LIST_ID
            class="list"
            role="listbox"
            aria-label="Sessions"
            tabindex="0"
            aria-activedescendant=move || inbox.cursor.get().map(row_id)
            data-testid="list"
            node_ref=list
            on:scroll=move |_| still::look(inbox)
            on:pointermove=move |_| inbox.touch()
            on:pointerdown=on_down
            on:click=on_click
        >
            <Notice />
            <For each=move || inbox.shown.get() key=|(section, _)| *section let((section, _))>
                <SectionRows section=section />
            </For>
        </div>
    }
}

/// The one line that stands over the list when it has something to say.
#[component]
fn Notice() -> impl IntoView {
    let (store, inbox) = (use_store(), use_inbox());
    move || {
        let shown = inbox.shown.get();
        let query = inbox.query.get();
        let none_at_all = store.entries.with(|entries| entries.is_empty());
        let text = if none_at_all {
            "Sessions that need you come first, in the order they began to wait.".to_owned()
        } else if shown.is_empty() && !query.is_empty() {
            format!("No session matches “{query}”.")
        } else if query.is_empty() && !shown.iter().any(|(section, _)| section.needs_person()) {
            "Nothing needs you.".to_owned()
        } else {
            return None;
        };
        Some(view! { <p class="notice" role="presentation">{text}</p> })
    }
}

#[component]
fn SectionRows(section: Section) -> impl IntoView {
    let inbox = use_inbox();
    let rows = Memo::new(move |_| {
        inbox.shown.with(|shown| {
            let own = shown.iter().find(|(s, _)| *s == section);
            own.map(|(_, rows)| rows.clone()).unwrap_or_default()
        })
    });
    let count = Signal::derive(move || rows.with(Vec::len));
    let folded = Memo::new(move |_| inbox.is_folded(section));
    // only the rows in view are in the page; padding stands for the others
    let band = Memo::new(move |_| {
        let band = inbox.band(section)?;
        Some((band, band.mounted(inbox.viewport.get())))
    });
    let in_page = Memo::new(move |_| match band.get() {
        Some((_, mounted)) => rows.with(|rows| rows.get(mounted).unwrap_or_default().to_vec()),
        None => Vec::new(),
    });
    let pad = move |of: fn(Band, Range<usize>) -> f64| {
        band.get().map(|(band, mounted)| format!("{}px", of(band, mounted)))
    };
    view! {
        <div
            class="section"
            role="group"
            aria-label=move || format!("{}, {}", section.title(), count.get())
            data-testid="section"
            data-section=section.title()
            data-folded=move || folded.get().to_string()
        >
            <div
                class="section-header"
                role="presentation"
                on:click=move |_| inbox.fold(section, !folded.get_untracked())
            >
                <span class="section-name">{section.title()}</span>
                <span class="section-count">{count}</span>
            </div>
            <div
                class="rows"
                role="presentation"
                style=("padding-top", move || pad(|band, mounted| band.row * mounted.start as f64))
                style=(
                    "padding-bottom",
                    move || pad(|band, mounted| band.row * (band.rows - mounted.end) as f64),
                )
            >
                <For each=move || in_page.get() key=|session| *session let(session)>
                    <Row
                        session=session
                        section=section
                        position=Signal::derive(move || {
                            let at = rows.with(|rows| rows.iter().position(|s| *s == session));
                            at.map_or(0, |at| at + 1)
                        })
                        size=count
                    />
                </For>
            </div>
        </div>
    }
}

#[component]
fn Footer() -> impl IntoView {
    let store: Store = use_store();
    let sessions = move || match store.entries.with(|entries| entries.len()) {
        1 => "1 session".to_owned(),
        count => format!("{count} sessions"),
    };
    view! {
        <div class="side-footer">
            <span>{sessions}</span>
            {move || store.load.get().map(|busy| view! { <span>{format!("CPU {busy} %")}</span> })}
            <Show when=move || store.facts.with(|facts| facts.fake)>
                <span
                    class="tag"
                    data-testid="fake"
                    title="A scripted stand-in answers here, not Claude. Nothing leaves this computer."
                >
                    "Rehearsal"
                </span>
            </Show>
            <button
                class="icon-button end"
                aria-label="Settings"
                title="Settings (Ctrl+,)"
                aria-keyshortcuts="Control+,"
                data-testid="open-settings"
                on:click=move |_| store.page.set(Page::Settings)
            >
                <Symbol icon=Icon::Gear />
            </button>
        </div>
    }
}

/// Puts the focus on the list.
pub fn focus_list() {
    crate::dom::focus(LIST_ID);
}

/// Puts the focus in the search field.
pub fn focus_search() {
    crate::dom::focus(SEARCH_ID);
}

mod pointing {
    //! What an event of the list points at.

    use omniscio_core::id::SessionId;
    use web_sys::Event;

    pub(super) fn row_of(event: &Event) -> Option<SessionId> {
        let row = crate::dom::target(event)?.closest("[data-session]").ok()??;
        row.get_attribute("data-session")?.parse().ok()
    }

    pub(super) fn target_act(event: &Event) -> Option<String> {
        let act = crate::dom::target(event)?.closest("[data-act]").ok()??;
        act.get_attribute("data-act")
    }
}
