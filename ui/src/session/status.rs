//! The status region over the composer: the missing folder, another program on the conversation, and
//! the strip with its one pill. What a session is, it asks the core.

use super::fresh::FreshStart;
use super::held::HeldStrip;
use crate::actions;
use crate::dialogs::{tilde, tilde_words};
use crate::icons::{Icon, StateShape, Symbol};
use crate::model::use_store;
use crate::now::clock_time;
use leptos::prelude::*;
use omniscio_core::attention::{Pill, RowState, Tone};
use omniscio_core::id::SessionId;

const PILL_TIP_ID: &str = "pill-tip";

/// Folder banner, held conversation, status strip.
#[component]
pub fn Status(session: SessionId) -> impl IntoView {
    view! {
        <div class="status" role="region" aria-label="Status" data-testid="status">
            <FolderBanner session=session />
            <HeldStrip session=session />
            <StatusStrip session=session />
        </div>
    }
}

/// Goes by itself when the folder is back, so it has no button.
#[component]
fn FolderBanner(session: SessionId) -> impl IntoView {
    // rule: PF-03, UI-18
    let store = use_store();
    let folder = Memo::new(move |_| {
        let folder = store.view(session).filter(|view| view.live.folder_missing)?.row.folder;
        let shown = store.facts.with(|facts| tilde(&folder, facts.home.as_deref()));
        Some((folder, shown))
    });
    move || {
        folder.get().map(|(folder, shown)| {
            let (head, tail) = cut(&shown);
            view! {
                <div class="strip red" data-testid="folder-banner" role="alert">
                    <span class="strip-icon red-text"><Symbol icon=Icon::Folder /></span>
                    <span class="strip-label">"Project folder is missing"</span>
                    <span class="strip-text path" title=folder>
                        <span class="path-head">{head.to_owned()}</span>
                        <span class="path-tail">{tail.to_owned()}</span>
                    </span>
                </div>
            }
        })
    }
}

#[component]
fn StatusStrip(session: SessionId) -> impl IntoView {
    // rule: RT-22, UI-19
    let store = use_store();
    let seen = Memo::new(move |_| store.attention(session).filter(|seen| seen.strip.is_some()));
    let red = move || seen.get().is_some_and(|seen| seen.tone == Tone::Red);
    let held = Memo::new(move |_| store.view(session).is_some_and(|view| view.live.held.is_some()));
    let pill = move || seen.get().is_some_and(|seen| seen.pill.is_some());
    let fresh = move || seen.get().is_some_and(|seen| seen.state == RowState::ContextGivenUp);
    let text = move || {
        // the strip above says it, and where
        let seen = seen.get().filter(|_| !held.get())?;
        let sentence = seen.strip?.text;
        Some(match seen.until {
            Some(until) => format!("{sentence} It resets at {}.", clock_time(until)),
            None => sentence,
        })
    };
    let shown = move || {
        store.facts.with(|facts| text().map(|text| tilde_words(&text, facts.home.as_deref())))
    };
    view! {
        <Show when=move || seen.with(Option::is_some)>
            <div class="strip" class:red=red data-testid="strip">
                <StateShape of=seen />
                <span class="strip-label">{move || seen.get().map(|seen| seen.label)}</span>
                <span class="strip-text" title=text>{shown}</span>
                <Show when=pill><PillButton session=session /></Show>
                <Show when=fresh><FreshStart session=session /></Show>
            </div>
        </Show>
    }
}

/// The one pill of the strip. Its text and name are exactly its label; the key is drawn by the
/// style sheet.
#[component]
fn PillButton(session: SessionId) -> impl IntoView {
    // rule: RA-06, RT-04, RT-11, RT-14, UI-13
    let store = use_store();
    let seen = Memo::new(move |_| store.attention(session));
    let pill = Memo::new(move |_| seen.get().and_then(|seen| seen.pill));
    let tip = move || seen.get().and_then(|seen| seen.pill_tooltip);
    let busy = move || {
        store.pressed.get() == Some(session)
            || store.view(session).as_ref().is_some_and(actions::is_under_way)
    };
    view! {
        <span class="pill-place">
            <button
                class="pill"
                class:red=move || pill.get() == Some(Pill::Retry)
                data-testid="pill"
                data-key="C"
                aria-keyshortcuts="C"
                aria-describedby=PILL_TIP_ID
                aria-disabled=move || busy().to_string()
                on:click=move |_| actions::press_pill(store, session)
            >
                <Show when=busy><span class="turning"><Symbol icon=Icon::Again /></span></Show>
                {move || pill.get().map(Pill::label)}
            </button>
            <span class="tip" role="tooltip" id=PILL_TIP_ID data-testid="pill-tooltip">{tip}</span>
        </span>
    }
}

/// Where a long path is shortened: before its last part, which stays.
fn cut(path: &str) -> (&str, &str) {
    path.split_at(path.trim_end_matches('/').rfind('/').unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shortened_before_its_last_part() {
        for (path, parts) in [
            ("/Volumes/Work/ingest", ("/Volumes/Work", "/ingest")),
            ("/src/", ("", "/src/")),
            ("/", ("", "/")),
            ("x", ("", "x")),
        ] {
            assert_eq!(cut(path), parts);
        }
    }
}
