//! The page shown while no usable Claude Code CLI is there: what is so, what to do, where it was
//! looked for. It looks again by itself whenever the window gets the focus.

use crate::bridge::{self, Answer};
use crate::icons::{Icon, Symbol};
use crate::model::use_store;
use crate::transcript::CopyButton;
use leptos::ev;
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::ipc::CliState;

const INSTALL: &str = "npm install -g @anthropic-ai/claude-code";

/// The page.
#[component]
pub(crate) fn FirstRun() -> impl IntoView {
    let store = use_store();
    let busy = RwSignal::new(false);
    let failed = RwSignal::new(None::<String>);
    let unfolded = RwSignal::new(false);
    let take = move |answer: Answer<CliState>| {
        if busy.try_set(false).is_some() {
            return;
        }
        match answer {
            Ok(state) => store.cli.set(Some(state)),
            Err(error) => failed.set(Some(error.message)),
        }
    };
    let look = move || {
        if !busy.get_untracked() {
            busy.set(true);
            failed.set(None);
            spawn_local(async move { take(bridge::look_for_cli().await) });
        }
    };
    let choose = move |_| {
        if !busy.get_untracked() {
            busy.set(true);
            failed.set(None);
            spawn_local(async move { take(bridge::choose_cli().await) });
        }
    };
    let focus = window_event_listener(ev::focus, move |_| look());
    on_cleanup(move || focus.remove());
    let looked = move || match store.cli.get() {
        Some(CliState::Missing { looked }) => looked,
        Some(CliState::Broken { path, .. }) => vec![path],
        Some(CliState::Found { .. }) | None => Vec::new(),
    };
    view! {
        <main class="first-run" data-testid="first-run">
            <span class="first-run-mark"><Symbol icon=Icon::Mark /></span>
            {move || words(store.cli.get())}
            <ol class="first-run-steps">
                <li>
                    <span class="step-title">"Install it, in any terminal"</span>
                    <div class="step-command">
                        <code data-testid="install-command">{INSTALL}</code>
                        <CopyButton text=|| INSTALL.to_owned() label="Copy the command" />
                    </div>
                </li>
                <li>
                    <span class="step-title">"Come back here"</span>
                    <span class="step-text">"Omniscio looks again whenever this window gets focus."</span>
                </li>
            </ol>
            <p class="field-error" role="alert">{move || failed.get()}</p>
            <div class="first-run-foot">
                // a rehearsal stays on its stand-in
                <Show when=move || !store.facts.with(|facts| facts.fake)>
                    <button
                        class="button primary"
                        data-testid="look-again"
                        aria-disabled=move || busy.get().to_string()
                        on:click=move |_| look()
                    >
                        "Look again"
                    </button>
                    <button class="button" data-testid="choose-cli" on:click=choose>
                        "Choose the file…"
                    </button>
                </Show>
                <button
                    class="link-button where"
                    aria-expanded=move || unfolded.get().to_string()
                    on:click=move |_| unfolded.update(|unfolded| *unfolded = !*unfolded)
                >
                    "Where it looked"
                    <span class="chevron down"><Symbol icon=Icon::Chevron /></span>
                </button>
            </div>
            <Show when=move || unfolded.get()>
                <ul class="first-run-looked" data-testid="looked">
                    {move || looked().into_iter().map(|path| view! { <li>{path}</li> }).collect_view()}
                </ul>
            </Show>
        </main>
    }
}

fn words(cli: Option<CliState>) -> AnyView {
    match cli {
        Some(CliState::Broken { path, error }) => view! {
            <h1>"The Claude Code CLI does not run"</h1>
            <p>"Omniscio found " <code>{path}</code> ", but it does not answer:"</p>
            <pre class="first-run-error" tabindex="0">{error}</pre>
        }
        .into_any(),
        Some(CliState::Missing { .. } | CliState::Found { .. }) | None => view! {
            <h1>"The Claude Code CLI was not found"</h1>
            <p>
                "Omniscio starts and watches sessions of the " <code>"claude"</code>
                " command. It looked in your PATH and in the usual places."
            </p>
        }
        .into_any(),
    }
}
