//! Settings: pages of switches that apply at once, a search over all of them, and Diagnostics.
//! Nothing here recovers anything, and no cadence or cap can be set.

mod diagnostics;
mod endpoint_dialog;
mod endpoint_words;
mod endpoints;
mod rows;
mod switch;

use crate::bridge::{self, Answer};
use crate::icons::{Icon, Symbol};
use crate::model::{Page, use_store};
use diagnostics::Diagnostics;
use endpoints::Endpoints;
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::ipc::CliState;
use rows::{PageName, ROWS, Row, found, search};
use switch::SwitchRow;

/// The page over list and panel.
#[component]
pub(crate) fn SettingsPage() -> impl IntoView {
    let store = use_store();
    let page = RwSignal::new(PageName::Sessions);
    let query = RwSignal::new(String::new());
    let searching = move || query.with(|query| !query.trim().is_empty());
    let nav = move |name: PageName| {
        let current = move || (page.get() == name && !searching()).then_some("page");
        view! {
            <button
                class="settings-nav-item"
                aria-current=current
                data-testid=format!("settings-page-{}", name.title().to_lowercase())
                on:click=move |_| {
                    query.set(String::new());
                    page.set(name);
                }
            >
                {name.title()}
            </button>
        }
    };
    view! {
        <div class="settings" data-testid="settings">
            <nav class="settings-nav" aria-label="Settings">
                <button
                    class="settings-back"
                    data-testid="settings-close"
                    on:click=move |_| store.page.set(Page::Sessions)
                >
                    <Symbol icon=Icon::Back />
                    "Back"
                    <kbd>"Esc"</kbd>
                </button>
                <div class="settings-search">
                    <Symbol icon=Icon::Search />
                    <input
                        type="search"
                        aria-label="Search settings"
                        placeholder="Search settings"
                        data-testid="settings-search"
                        prop:value=query
                        on:input=move |event| query.set(event_target_value(&event))
                    />
                </div>
                {PageName::ALL.into_iter().map(nav).collect_view()}
            </nav>
            <main class="settings-main">
                <div class="settings-column">
                    {move || match (searching(), page.get()) {
                        (true, _) => view! { <Found query=query page=page /> }.into_any(),
                        (false, PageName::General) => view! { <General /> }.into_any(),
                        (false, name @ PageName::Accounts) => {
                            view! {
                                <PageHead name=name />
                                <Endpoints named_by_page=false />
                            }
                                .into_any()
                        }
                        (false, PageName::Diagnostics) => view! { <Diagnostics /> }.into_any(),
                        (false, name @ (PageName::Sessions | PageName::Workflow)) => {
                            view! { <Switches name=name /> }.into_any()
                        }
                    }}
                </div>
            </main>
        </div>
    }
}

#[component]
pub(crate) fn PageHead(name: PageName) -> impl IntoView {
    view! {
        <h1 class="settings-title">{name.title()}</h1>
        <p class="settings-about">{name.about()}</p>
    }
}

/// A page of switches, in their groups.
#[component]
fn Switches(name: PageName) -> impl IntoView {
    let rows: Vec<&'static Row> = ROWS.iter().filter(|row| row.page == name).collect();
    view! {
        <PageHead name=name />
        <Groups rows=rows named_by_page=false query="" />
    }
}

#[component]
fn Groups(
    rows: Vec<&'static Row>,
    named_by_page: bool,
    /// What was searched for: marked in the labels.
    #[prop(into)]
    query: String,
) -> impl IntoView {
    let place = |row: &Row| (row.page, row.group);
    rows.chunk_by(|a, b| place(a) == place(b))
        .map(|group| {
            let (page, name) = place(group[0]);
            let title = match (named_by_page, name) {
                (true, "") => page.title().to_owned(),
                (true, name) => format!("{} · {name}", page.title()),
                (false, name) => name.to_owned(),
            };
            let rows = group.to_vec();
            view! {
                <section class="settings-group">
                    {(!title.is_empty()).then(|| view! { <h2>{title.clone()}</h2> })}
                    <div class="settings-rows">
                        {rows
                            .into_iter()
                            .map(|row| view! { <SwitchRow row=row query=query.clone() /> })
                            .collect_view()}
                    </div>
                </section>
            }
        })
        .collect_view()
}

/// What the search finds, with its switches live. Enter opens the page of the first.
#[component]
fn Found(query: RwSignal<String>, page: RwSignal<PageName>) -> impl IntoView {
    let rows = Memo::new(move |_| {
        query.with(|query| search(query).iter().map(|row| row.key).collect::<Vec<_>>())
    });
    let enter = window_event_listener(leptos::ev::keydown, move |event| {
        let first = query.with_untracked(|query| {
            let row = search(query).first().map(|row| row.page);
            row.or_else(|| endpoint_words::searched(query).then_some(PageName::Accounts))
        });
        if event.key() == "Enter"
            && crate::dom::types_text()
            && let Some(first) = first
        {
            event.prevent_default();
            query.set(String::new());
            page.set(first);
        }
    });
    on_cleanup(move || enter.remove());
    move || {
        let keys = rows.get();
        let rows: Vec<&'static Row> = ROWS.iter().filter(|row| keys.contains(&row.key)).collect();
        let query = query.get();
        let endpoints = endpoint_words::searched(&query);
        let title = found(rows.len() + usize::from(endpoints), &query);
        view! {
            <h1 class="settings-title" data-testid="settings-found">{title}</h1>
            <p class="settings-about">"From every page. Enter opens the page a setting is on."</p>
            <Groups rows=rows named_by_page=true query=query />
            {endpoints.then(|| view! { <Endpoints named_by_page=true /> })}
        }
    }
}

/// Which CLI is used, and the way to another; and the way out. A rehearsal stays on its stand-in.
#[component]
fn General() -> impl IntoView {
    let store = use_store();
    let failed = RwSignal::new(None::<String>);
    let take = move |answer: Answer<CliState>| match answer {
        Ok(state) => store.cli.set(Some(state)),
        Err(error) => drop(failed.try_set(Some(error.message))),
    };
    let found = move || match store.cli.get() {
        Some(CliState::Found { path, version }) => (version, path),
        Some(CliState::Broken { path, error }) => (error, path),
        Some(CliState::Missing { .. }) | None => ("Not found".into(), String::new()),
    };
    view! {
        <PageHead name=PageName::General />
        <section class="settings-group">
            <div class="settings-rows">
                <div class="setting" data-testid="setting-cli">
                    <div class="setting-text">
                        <span class="setting-label">"Claude Code CLI"</span>
                        <span class="setting-helper">{move || found().0}</span>
                        <span class="setting-variable">{move || found().1}</span>
                        <p class="field-error" role="alert">{move || failed.get()}</p>
                    </div>
                    <Show when=move || !store.facts.with(|facts| facts.fake)>
                        <div class="setting-end">
                            <button
                                class="button"
                                on:click=move |_| spawn_local(async move { take(bridge::look_for_cli().await) })
                            >
                                "Look again"
                            </button>
                            <button
                                class="button"
                                on:click=move |_| spawn_local(async move { take(bridge::choose_cli().await) })
                            >
                                "Choose the file…"
                            </button>
                        </div>
                    </Show>
                </div>
            </div>
        </section>
        <section class="settings-group">
            <div class="settings-rows">
                <div class="setting">
                    <div class="setting-text">
                        <span class="setting-label">"Quit"</span>
                        <span class="setting-helper">
                            "Closing the window only minimises it. Quitting stops all sessions; the next start brings back those that ran."
                        </span>
                    </div>
                    <div class="setting-end">
                        <button
                            class="button"
                            data-testid="quit"
                            on:click=move |_| bridge::run(bridge::quit())
                        >
                            "Quit Omniscio"
                        </button>
                    </div>
                </div>
            </div>
        </section>
    }
}
