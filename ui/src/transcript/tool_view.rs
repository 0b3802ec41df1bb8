//! Tool calls as lines of one bordered list; each unfolds to its change, its output, or its input
//! and result. Shows text only, never a picture or a link of a tool's making.

use super::Transcript;
use super::text_view::CopyButton;
use super::tool_words::{
    self, EditLine, Verb, counts, edit_lines, newest_lines, outcome, target, verb,
};
use crate::icons::{Icon, Symbol};
use crate::model::use_store;
use crate::now::duration;
use leptos::prelude::*;
use omniscio_core::block::{Block, BlockKind};
use omniscio_core::time::Wall;

/// Input shown when a line is unfolded, in bytes.
const INPUT_MAX: usize = 64 * 1024;

/// Consecutive calls.
#[component]
pub(super) fn ToolList(calls: Memo<Vec<u64>>) -> impl IntoView {
    view! {
        <div class="block tools" role="list" data-testid="tools">
            <For each=move || calls.get() key=|seq| *seq let:seq>
                <ToolLine seq=seq />
            </For>
        </div>
    }
}

/// What a line shows.
#[derive(Clone, PartialEq)]
struct Line {
    verb: Verb,
    word: String,
    target: String,
    call: String,
    outcome: String,
    counts: (usize, usize),
    state: State,
    at: Wall,
    millis: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Done,
    Failed,
    Denied,
    /// The turn is over and no result came.
    Unknown,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Running | State::Done => "",
            State::Failed => "failed",
            State::Denied => "denied",
            State::Unknown => "no result",
        }
    }
}

fn line(block: &Block, folder: &str, turn_open: bool) -> Option<Line> {
    let BlockKind::Tool { call, name, input, result, failed, denied, millis, .. } = &block.kind
    else {
        return None;
    };
    let state = match (denied, failed, result) {
        (true, _, _) => State::Denied,
        (false, true, _) => State::Failed,
        (false, false, Some(_)) => State::Done,
        (false, false, None) if turn_open => State::Running,
        (false, false, None) => State::Unknown,
    };
    Some(Line {
        verb: verb(name),
        word: verb(name).word(name),
        target: target(input, folder),
        call: call.clone(),
        outcome: outcome(name, result.as_deref().filter(|_| state == State::Done)),
        counts: counts(&edit_lines(name, input)),
        state,
        at: block.at,
        millis: *millis,
    })
}

#[component]
fn ToolLine(seq: u64) -> impl IntoView {
    let store = use_store();
    let transcript = expect_context::<Transcript>();
    let open = RwSignal::new(false);
    let line = Memo::new(move |_| {
        let folder = store
            .entry(transcript.session)
            .map(|entry| entry.view.with_untracked(|view| view.row.folder.clone()));
        let open_turn = store.attention(transcript.session).is_some_and(|seen| seen.turn_open);
        let last = transcript.in_order(|blocks| blocks.last_turn());
        let folder = folder.unwrap_or_default();
        transcript
            .block(seq, |block| line(block, &folder, open_turn && block.turn == last))
            .flatten()
    });
    let children = Memo::new(move |_| {
        let call = line.with(|line| line.as_ref().map(|line| line.call.clone()));
        call.map(|call| transcript.in_order(|blocks| blocks.children(&call))).unwrap_or_default()
    });
    let nested = move || !children.with(Vec::is_empty);
    view! {
        <div class="tool" role="listitem" data-testid="tool" data-seq=seq>
            <button
                class="tool-line"
                aria-expanded=move || open.get().to_string()
                on:click=move |_| open.update(|open| *open = !*open)
            >
                <span class="chevron" class:open=open><Symbol icon=Icon::Chevron /></span>
                {move || line.get().map(|line| view! { <Head line=line /> })}
            </button>
            <Show when=move || open.get()>
                <Unfolded seq=seq />
                <Show when=nested>
                    <div class="tool-nested"><ToolList calls=children /></div>
                </Show>
            </Show>
        </div>
    }
    .into_any()
}

#[component]
fn Head(line: Line) -> impl IntoView {
    let store = use_store();
    let icon = match line.verb {
        Verb::Read => Icon::File,
        Verb::Search => Icon::Search,
        Verb::Edit | Verb::Write => Icon::Pencil,
        Verb::Run => Icon::Terminal,
        Verb::Fetch => Icon::Globe,
        Verb::Task => Icon::Plus,
        Verb::Other => Icon::Gear,
    };
    let (added, removed) = line.counts;
    let changes = line.state == State::Done && (added, removed) != (0, 0);
    let (at, running) = (line.at, line.state == State::Running);
    let plain_time = line.outcome.is_empty() && !changes && !running && line.millis > 0;
    let running_for = move || {
        let so_far = store.clock.get().wall.since(at).max(0).unsigned_abs();
        (so_far >= 1_000).then(|| duration(whole_minutes(so_far)))
    };
    view! {
        <span class="tool-icon"><Symbol icon=icon /></span>
        <span class="tool-verb">{line.word}</span>
        <span class="tool-target" title=line.target.clone()>{line.target.clone()}</span>
        <span class="tool-end">
            {changes
                .then(|| {
                    view! {
                        <span class="added">{format!("+{added}")}</span>
                        " "
                        <span class="removed">{format!("−{removed}")}</span>
                    }
                })}
            <span class="tool-state" class:red-text=line.state == State::Failed>
                {line.state.word()}
            </span>
            <span>{line.outcome}</span>
            {plain_time.then(|| tool_time(line.millis))}
            {running
                .then(|| {
                    view! {
                        <span class="spinner" role="img" aria-label="running" />
                        <span>{running_for}</span>
                    }
                })}
        </span>
    }
}

/// From a minute on, a running time is told in whole minutes: it changes once a minute.
fn whole_minutes(millis: u64) -> u64 {
    match millis {
        0..60_000 => millis,
        millis => millis / 60_000 * 60_000,
    }
}

/// 0.3 s under ten seconds, else as everywhere.
fn tool_time(millis: u64) -> String {
    match millis {
        0..10_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        millis => duration(millis),
    }
}

/// What an unfolded line shows below itself.
struct Inside {
    edit: Vec<EditLine>,
    input: String,
    result: Option<String>,
    older: usize,
    whole: String,
}

fn inside(block: &Block) -> Option<Inside> {
    let BlockKind::Tool { name, input, result, .. } = &block.kind else {
        return None;
    };
    let edit = edit_lines(name, input);
    let kind = verb(name);
    let command = input.get("command").and_then(serde_json::Value::as_str);
    let shown_input = match (kind, command) {
        (Verb::Run, Some(command)) if command.lines().count() > 1 => command.to_owned(),
        (Verb::Run, Some(_)) | (Verb::Read, _) => String::new(),
        _ if !edit.is_empty() => String::new(),
        _ => tool_words::pretty(input, INPUT_MAX),
    };
    // an edit's result only repeats the edit, unless it failed
    let repeats = !edit.is_empty() && !matches!(&block.kind, BlockKind::Tool { failed: true, .. });
    let result = result.as_deref().filter(|result| !repeats && !result.is_empty());
    let (kept, older) = result.map(newest_lines).unwrap_or_default();
    Some(Inside {
        edit: edit.into_iter().take(tool_words::LINES_MAX).collect(),
        input: shown_input,
        whole: result.unwrap_or_default().to_owned(),
        result: result.map(|_| kept),
        older,
    })
}

#[component]
fn Unfolded(seq: u64) -> impl IntoView {
    let transcript = expect_context::<Transcript>();
    let older_words = |count: usize| format!("{count} earlier lines are not shown. Copy has all.");
    move || {
        transcript.block(seq, inside).flatten().map(|inside| {
            let whole = StoredValue::new(inside.whole);
            view! {
                <div class="tool-body" data-testid="tool-body">
                    {(!inside.input.is_empty()).then(|| view! { <pre tabindex="0">{inside.input}</pre> })}
                    {(!inside.edit.is_empty()).then(|| view! { <Diff lines=inside.edit /> })}
                    {inside
                        .result
                        .map(|result| {
                            view! {
                                {(inside.older > 0)
                                    .then(|| view! { <p class="quiet">{older_words(inside.older)}</p> })}
                                <div class="tool-result">
                                    <pre tabindex="0">{result}</pre>
                                    <CopyButton text=move || whole.get_value() label="Copy the output" />
                                </div>
                            }
                        })}
                </div>
            }
        })
    }
}

#[component]
fn Diff(lines: Vec<EditLine>) -> impl IntoView {
    let line = |line: EditLine| {
        let class = match line.sign {
            '+' => "diff-line added",
            '-' => "diff-line removed",
            _ => "diff-line",
        };
        let sign = if line.sign == '-' { '−' } else { line.sign };
        view! { <span class=class><span class="diff-sign">{sign}</span>{line.text}{"\n"}</span> }
    };
    view! { <pre class="diff" tabindex="0">{lines.into_iter().map(line).collect_view()}</pre> }
}
