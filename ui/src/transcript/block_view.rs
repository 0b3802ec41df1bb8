//! One block of the conversation as it is drawn. What a block is comes with it; whether a cut-off
//! reply shows its mark is asked of `core::attention`.

use super::Transcript;
use super::blocks::Item;
use super::text_view::{CopyButton, Markdown};
use super::tool_view::ToolList;
use crate::icons::{Icon, Symbol};
use crate::model::use_store;
use crate::now::{clock_time, duration};
use leptos::prelude::*;
use omniscio_core::attention::{RowState, Tone};
use omniscio_core::block::{Block, BlockKind};
use omniscio_core::message::Origin;
use omniscio_core::prompt::{NOTE_AUTO_RECOVERING, NOTE_FRESH_SESSION};
use omniscio_core::time::Wall;

/// A bubble folds after this many lines.
const FOLD_AFTER: usize = 12;

/// One item: a block, or a list of tool calls.
#[component]
pub(super) fn ItemView(item: Item, items: Memo<Vec<Item>>) -> impl IntoView {
    match item {
        Item::Single(seq) => view! { <BlockView seq=seq /> }.into_any(),
        Item::Tools(_) => {
            let key = item.key();
            let calls = Memo::new(move |_| {
                items.with(|items| {
                    let found = items.iter().find(|item| item.key() == key);
                    match found {
                        Some(Item::Tools(calls)) => calls.clone(),
                        Some(Item::Single(_)) | None => Vec::new(),
                    }
                })
            });
            view! { <ToolList calls=calls /> }.into_any()
        }
    }
}

/// What decides which view a block gets; changes when the block becomes something else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Operator,
    Assistant,
    Thinking,
    Line,
    GiveUp,
    Boundary,
    Auto,
    Foot,
}

fn form(block: &Block) -> Form {
    match &block.kind {
        BlockKind::Operator { .. } => Form::Operator,
        BlockKind::Assistant { .. } => Form::Assistant,
        BlockKind::Thinking { .. } => Form::Thinking,
        BlockKind::Note { text } if text == NOTE_FRESH_SESSION => Form::GiveUp,
        BlockKind::Note { .. } | BlockKind::Answered { .. } | BlockKind::Tool { .. } => Form::Line,
        BlockKind::Boundary { .. } => Form::Boundary,
        BlockKind::Auto { .. } => Form::Auto,
        BlockKind::Foot { .. } => Form::Foot,
    }
}

fn words(block: &Block) -> String {
    match &block.kind {
        BlockKind::Operator { text, .. }
        | BlockKind::Assistant { text }
        | BlockKind::Thinking { text, .. }
        | BlockKind::Note { text }
        | BlockKind::Boundary { text }
        | BlockKind::Auto { text, .. }
        | BlockKind::Answered { text } => text.clone(),
        BlockKind::Tool { name, .. } => name.clone(),
        BlockKind::Foot { millis, cost_microdollars } => {
            let mut parts = vec![duration(*millis)];
            if *cost_microdollars > 0 {
                parts.push(dollars(*cost_microdollars));
            }
            parts.join(" · ")
        }
    }
}

/// $0.38, from millionths of a dollar.
fn dollars(micro: u64) -> String {
    let cents = micro.saturating_add(5_000) / 10_000;
    format!("${}.{:02}", cents / 100, cents % 100)
}

/// One block that is not a tool call.
#[component]
fn BlockView(seq: u64) -> impl IntoView {
    let transcript = expect_context::<Transcript>();
    let form = Memo::new(move |_| transcript.block(seq, form));
    let text = Memo::new(move |_| transcript.block(seq, words).unwrap_or_default());
    let at = transcript.block_now(seq, |block| block.at).unwrap_or_default();
    let hidden = Memo::new(move |_| transcript.block(seq, |block| block.hidden).unwrap_or(false));
    let inner = move || match form.get() {
        None => ().into_any(),
        Some(Form::Operator) => view! { <Bubble text=text at=at /> }.into_any(),
        Some(Form::Assistant) => view! { <Reply seq=seq text=text at=at /> }.into_any(),
        Some(Form::Thinking) => view! { <Thinking seq=seq text=text /> }.into_any(),
        // rule: UI-24
        Some(Form::Line) => view! { <Note text=text /> }.into_any(),
        // rule: CS-16
        Some(Form::GiveUp) => {
            view! { <p class="give-up" role="note" data-testid="give-up">{move || text.get()}</p> }
                .into_any()
        }
        // rule: CS-11
        Some(Form::Boundary) => view! {
            <p class="boundary" data-testid="boundary">
                <span>{move || text.get()}</span>
            </p>
        }
        .into_any(),
        Some(Form::Auto) => view! { <Auto seq=seq text=text /> }.into_any(),
        Some(Form::Foot) => view! { <p class="foot">{move || text.get()}</p> }.into_any(),
    };
    view! {
        <div
            class="block"
            class:hidden-block=hidden
            class:operator=move || form.get() == Some(Form::Operator)
            data-seq=seq
            data-testid=move || if hidden.get() { "hidden-row" } else { "block" }
        >
            <Show when=move || hidden.get()>
                <span class="hidden-mark">{format!("hidden · {}", clock_time(at))}</span>
            </Show>
            {inner}
        </div>
    }
}

/// A small line of the app's own.
#[component]
fn Note(text: Memo<String>) -> impl IntoView {
    // rule: CS-12
    let recovers = move || text.with(|text| text == NOTE_AUTO_RECOVERING);
    view! {
        <p class="note" data-testid="note">
            <Show when=recovers><span class="note-symbol"><Symbol icon=Icon::Again /></span></Show>
            {move || text.get()}
        </p>
    }
}

#[component]
fn Bubble(text: Memo<String>, at: Wall) -> impl IntoView {
    let open = RwSignal::new(false);
    let long = Memo::new(move |_| text.with(|text| text.lines().count() > FOLD_AFTER));
    let shown = move || {
        text.with(|text| match long.get() && !open.get() {
            true => text.lines().take(FOLD_AFTER).collect::<Vec<_>>().join("\n"),
            false => text.clone(),
        })
    };
    let time = clock_time(at);
    view! {
        <article class="bubble" aria-label=format!("You, {time}") title=time>
            <p class="bubble-text" data-testid="operator">{shown}</p>
            <Show when=move || long.get()>
                <button class="link-button" on:click=move |_| open.update(|open| *open = !*open)>
                    {move || if open.get() { "Show less" } else { "Show all" }}
                </button>
            </Show>
        </article>
    }
}

#[component]
fn Reply(seq: u64, text: Memo<String>, at: Wall) -> impl IntoView {
    let cut = cut_off(seq);
    let time = clock_time(at);
    view! {
        <article
            class="reply"
            class:cut=move || cut.get().is_some()
            class:red=move || cut.get() == Some(Tone::Red)
            aria-label=format!("Reply, {time}")
            data-testid="reply"
        >
            <Markdown text=text />
            <Show when=move || cut.get().is_some()>
                <span class="spoken" data-testid="cut-off">"reply ends here"</span>
            </Show>
            <span class="reply-tools">
                <span class="reply-time">{time.clone()}</span>
                <CopyButton text=move || text.get_untracked() label="Copy the reply as Markdown" />
            </span>
        </article>
    }
}

/// Whether the reply shows that it was cut off, and in which tone. Never while the recovery is
/// hidden: then the row reads as running and nothing stands after the reply.
fn cut_off(seq: u64) -> Memo<Option<Tone>> {
    // rule: HD-01
    let store = use_store();
    let transcript = expect_context::<Transcript>();
    Memo::new(move |_| {
        if transcript.block(seq, |block| block.cut_off) != Some(true) {
            return None;
        }
        if transcript.in_order(|blocks| blocks.is_followed(seq)) {
            return Some(Tone::Grey);
        }
        let seen = store.attention(transcript.session)?;
        match seen.state {
            RowState::Running | RowState::ComingBack => None,
            RowState::YourTurn
            | RowState::ContextGivenUp
            | RowState::Question
            | RowState::PlanReady
            | RowState::Permission
            | RowState::SignIn
            | RowState::Stopped
            | RowState::Stalled
            | RowState::RateLimited
            | RowState::Holding
            | RowState::CutOffRetrying
            | RowState::CutOffRecoveryOff
            | RowState::RecoveryFailed
            | RowState::RecoveryStopped
            | RowState::RecoveryFailedOff
            | RowState::LaunchError
            | RowState::CannotLaunch
            | RowState::ApiError
            | RowState::Suspended
            | RowState::Paused
            | RowState::Ended
            | RowState::Gone => Some(seen.tone),
        }
    })
}

#[component]
fn Thinking(seq: u64, text: Memo<String>) -> impl IntoView {
    let transcript = expect_context::<Transcript>();
    let store = use_store();
    let open = RwSignal::new(false);
    let head = move || {
        let (growing, millis, at) = transcript
            .block(seq, |block| match &block.kind {
                BlockKind::Thinking { millis, .. } => (block.open, *millis, block.at),
                BlockKind::Operator { .. }
                | BlockKind::Assistant { .. }
                | BlockKind::Tool { .. }
                | BlockKind::Note { .. }
                | BlockKind::Boundary { .. }
                | BlockKind::Auto { .. }
                | BlockKind::Answered { .. }
                | BlockKind::Foot { .. } => (false, 0, block.at),
            })
            .unwrap_or_default();
        if growing {
            let so_far = store.clock.get().wall.since(at).max(0).unsigned_abs();
            return match so_far {
                0..1_000 => "Thinking…".to_owned(),
                so_far => format!("Thinking… {}", duration(so_far)),
            };
        }
        match millis {
            0..1_000 => "Thought".to_owned(),
            millis => format!("Thought for {}", duration(millis)),
        }
    };
    view! {
        <div class="thinking" data-testid="thinking">
            <button
                class="fold-line"
                aria-expanded=move || open.get().to_string()
                on:click=move |_| open.update(|open| *open = !*open)
            >
                <span class="chevron" class:open=open><Symbol icon=Icon::Chevron /></span>
                {head}
            </button>
            <Show when=move || open.get()>
                <div class="thinking-text"><Markdown text=text /></div>
            </Show>
        </div>
    }
}

/// A message of the app's own, seen only with Show interruptions.
#[component]
fn Auto(seq: u64, text: Memo<String>) -> impl IntoView {
    let transcript = expect_context::<Transcript>();
    let origin = transcript.block_now(seq, |block| match &block.kind {
        BlockKind::Auto { origin, .. } => Some(*origin),
        BlockKind::Operator { .. }
        | BlockKind::Assistant { .. }
        | BlockKind::Thinking { .. }
        | BlockKind::Tool { .. }
        | BlockKind::Note { .. }
        | BlockKind::Boundary { .. }
        | BlockKind::Answered { .. }
        | BlockKind::Foot { .. } => None,
    });
    view! {
        <p class="note">
            <span class="auto-who">{origin.flatten().map(who)}</span>
            " "
            {move || text.get()}
        </p>
    }
}

fn who(origin: Origin) -> &'static str {
    match origin {
        Origin::Operator | Origin::OperatorPill => "You:",
        Origin::Orchestrator => "Parent session:",
        Origin::Replay => "Sent again:",
        Origin::AutoNudge | Origin::AutoCommand => "Sent by Omniscio:",
        Origin::CardRequest => "Summary asked:",
        Origin::Wakeup => "Wake-up:",
        Origin::CliSynthetic => "From the CLI:",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_in_dollars_and_cents() {
        let cases = [(0, "$0.00"), (4_999, "$0.00"), (384_000, "$0.38"), (12_345_678, "$12.35")];
        for (micro, wanted) in cases {
            assert_eq!(dollars(micro), wanted);
        }
        assert_eq!(dollars(u64::MAX), format!("${}.{:02}", u64::MAX / 1_000_000, 55));
    }
}
