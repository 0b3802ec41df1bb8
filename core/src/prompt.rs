//! Words with a fixed meaning: what the app tells the agent, what it writes into the conversation,
//! and the marker lines by which the agent answers. Nowhere else are these texts spelled.
//!
//! The matchers are line matchers with fence state, no regular expressions (OD-01): a marker counts
//! only alone on its line, from column 0, outside code fences.

use crate::id::SessionId;
use alloc::string::String;

/// The line before the agent's final message (OD-01).
pub const FINAL_MARKER: &str = "<!-- omniscio:final-message -->";
/// The last line of a gate report.
pub const GATE_REPORT_END: &str = "<!-- omniscio:gate-report:end -->";
/// The agent was asked to archive its session and is done.
pub const ARCHIVE_ME: &str = "<!-- omniscio:archive-me -->";
/// How the first line of a gate report begins; the gate's name follows.
pub const GATE_REPORT_BEGIN: &str = "# Dev-pipeline gate: ";

const MARKER_BEGIN: &str = "<!-- omniscio:";
const MARKER_END: &str = " -->";
/// No marker's name is longer, in bytes; what is longer is text.
const MARKER_NAME_MAX: usize = 64;

// rule: A-19
const PROMPT_FINAL: &str = "When your work for the user's message is complete, or you need the user, print the line `<!-- omniscio:final-message -->` alone, then your final message. Do not print it while you wait for a background task.";
const PROMPT_REPORTS: &str = "If your final message is a dev-pipeline gate report, begin it with `# Dev-pipeline gate: NAME` and end it with the line `<!-- omniscio:gate-report:end -->` alone. Only if the user asked you to archive this session when done, print the line `<!-- omniscio:archive-me -->` alone in your final message.";
const PROMPT_PLAIN_SPEAK: &str = "End every final message with a fenced block tagged `summary-card`: in two plain sentences, what was done and what you need.";

/// The text of `--append-system-prompt` (A-19). Its lines keep their meaning for ever: the CLI keeps
/// the text of a conversation's first launch.
pub fn appended_prompt(plain_speak: bool) -> String {
    let lines: &[&str] = if plain_speak {
        &[PROMPT_FINAL, PROMPT_REPORTS, PROMPT_PLAIN_SPEAK]
    } else {
        &[PROMPT_FINAL, PROMPT_REPORTS]
    };
    lines.join("\n")
}

/// Sent after a fork that keeps the work of a cut-off turn (A-04 c).
pub const CONTINUE_CUT_OFF: &str = "Your reply to my last message was cut off. Continue it from where it stopped. Do not repeat steps whose results are above; if a result says its outcome is unknown, check before running it again.";
/// The Continue pill, the context nudge, Auto-Continue.
pub const PLEASE_CONTINUE: &str = "Please continue.";
/// The CLI's own command that shortens the history.
pub const COMPACT_COMMAND: &str = "/compact";

/// Note: one per context nudge (OD-54).
pub const NOTE_AUTO_RECOVERING: &str = "Auto-recovering…";
/// Note: the context recovery gave up (OD-54).
pub const NOTE_FRESH_SESSION: &str =
    "This session couldn't finish on its own — may need a fresh session.";
/// What a row says of a session whose context stays full.
pub const MAY_NEED_FRESH_SESSION: &str = "may need a fresh session";
/// What a row says of a copy in which nothing was said yet.
pub const COPY_WAITS: &str = "a copy; waits for your message";
/// Boundary: the history was replaced (OD-54).
pub const NOTE_COMPACTED: &str = "Conversation compacted";
/// Note: a turn ended in thinking or in nothing, and is resumed (OD-54, TE-06).
pub const NOTE_RESUMING: &str =
    "The model stopped before writing an answer — resuming it automatically.";
/// Note: the folder went away (OD-31).
pub const NOTE_FOLDER_MISSING: &str =
    "Project folder is missing — recovery is paused and resumes by itself when the folder is back.";
/// Hidden row: a settle was classified as cut off (FM-10).
pub const NOTE_INTERRUPTED: &str = "The turn was interrupted before completing — retrying.";
/// Note: the same while recovery is switched off.
pub const NOTE_STOPPED_BEFORE_ANSWER: &str = "The model stopped before writing an answer.";
/// A conversation that the CLI lost goes on in a new one.
pub const NOTE_CONVERSATION_GONE: &str =
    "The CLI no longer has this conversation. It goes on in a new one, with a summary from here.";
/// A turn ended with nothing and no recovery handles it.
pub const NOTE_NO_RESPONSE: &str = "This turn ended without a response";
/// Note: the first transient launch failure of an episode.
pub const NOTE_LAUNCH_HICCUP: &str =
    "Launch hiccup — the machine looks busy. Keeping at it until this session is back…";

/// Note: every tenth relaunch of an episode.
pub fn note_still_relaunching(attempt: u32) -> String {
    alloc::format!("Still relaunching this session… (attempt {attempt})")
}

/// Note: the copy holds more than it was to.
pub const NOTE_COPY_UNCUT: &str = "The original was compacted since its last answer, and the CLI cannot cut it before that any more. This copy holds all that was said, the last message included.";

/// Note at the top of a copy: what the agent knows and the conversation does not show.
pub fn note_copy(title: &str) -> String {
    alloc::format!(
        "This is a copy of “{title}” as it stood before its last message. The agent knows what was said there; to read it, open that session."
    )
}

/// Note in the parent's conversation: its worker never came to life (A-27).
pub fn note_worker_retired(title: &str) -> String {
    alloc::format!("The worker “{title}” never started and was put away.")
}

/// A worker's final message on its way to its parent (A-27).
pub fn worker_report(title: &str, id: SessionId, text: &str) -> String {
    alloc::format!("Report of the worker “{title}” ({id}):\n\n{text}")
}

/// Why a row that waited for a task is stalled (A-16).
pub const TASK_LOST: &str = "background task was lost";
/// The same while a wake-up is still kept.
pub const NOTE_TASK_LOST: &str = "A background task was lost. The wake-up is kept.";

/// A restart ended what still ran in the background (A-16).
pub fn note_commands_ended(names: &str) -> String {
    alloc::format!("The restart ended what ran in the background: {names}.")
}

/// What a wake-up says when the app sends it: its own prompt, as text and never as a command of the CLI.
pub fn wakeup_text(prompt: &str) -> String {
    if prompt.trim().is_empty() {
        return "The time of your wake-up has come.".into();
    }
    if crate::message::is_local_command(prompt) {
        return alloc::format!("Your wake-up: {prompt}");
    }
    prompt.into()
}

/// A launch is refused because another program has the conversation open (A-12).
pub const HELD_ELSEWHERE: &str =
    "Another program has this conversation open. Take it over, or go on in a copy.";
/// Banner over the composer while the project folder is missing (PF-03).
pub const BANNER_FOLDER_MISSING: &str = "Project folder is missing";
/// Tooltip of Retry while the background still tries.
pub const TOOLTIP_RETRY_BACKGROUND: &str =
    "Auto-recovery keeps retrying in the background — Retry tries again immediately.";
/// Tooltip of Retry after the last background try.
pub const TOOLTIP_RETRY_STOPPED: &str =
    "Auto-retry stopped after repeated failures — Retry resets the limit and tries again now.";
/// Tooltip of Retry while recovery is switched off.
pub const TOOLTIP_RETRY_OFF: &str = "Auto-recovery is off — Retry tries again now.";
/// Tooltip of Retry after a failed launch.
pub const TOOLTIP_RETRY_LAUNCH: &str = "Launch failed — Retry tries again now.";

/// Whether the text carries the final-message marker (OD-01).
pub fn contains_final_marker(text: &str) -> bool {
    after_final_marker(text).is_some()
}

/// What follows the last final-message marker of the text; `None` where it has none (OD-29).
pub fn after_final_marker(text: &str) -> Option<&str> {
    let mut fence = Fence::default();
    let mut at = 0;
    let mut after = None;
    for line in text.split_inclusive('\n') {
        at += line.len();
        if !fence.enter(line.trim_end_matches('\n')) && trim_end(line) == FINAL_MARKER {
            after = text.get(at..);
        }
    }
    after
}

/// The text without its marker lines. Everything shown, copied, exported or quoted passes through
/// here (A-19).
pub fn cut_markers(text: &str) -> String {
    let mut cutter = MarkerCutter::default();
    let mut out = cutter.push(text);
    out.push_str(&cutter.finish());
    out
}

/// Cuts marker lines from a text that comes in pieces. What may yet become a marker is held back
/// until that is decided.
#[derive(Clone, Debug, Default)]
pub struct MarkerCutter {
    fence: Fence,
    /// The current line.
    line: String,
    /// How much of the current line has been let through, in bytes.
    shown: usize,
    seen: bool,
}

impl MarkerCutter {
    /// The next piece; returns what may be shown now.
    pub fn push(&mut self, piece: &str) -> String {
        let mut out = String::new();
        for part in piece.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                self.end_line(&mut out);
            } else if self.fence.is_open() || marker(&self.line) == Match::No {
                self.show(&mut out);
            }
        }
        out
    }

    /// The text is complete: returns what was still held back.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        self.end_line(&mut out);
        out
    }

    /// Whether the final-message marker stood in what was pushed, also as a last line without
    /// newline.
    pub fn saw_final_marker(&self) -> bool {
        self.seen || (!self.fence.is_open() && trim_end(&self.line) == FINAL_MARKER)
    }

    fn end_line(&mut self, out: &mut String) {
        let fenced = self.fence.enter(self.line.trim_end_matches('\n'));
        if fenced || marker(&self.line) != Match::Yes {
            self.show(out);
        } else {
            self.seen |= trim_end(&self.line) == FINAL_MARKER;
        }
        self.line.clear();
        self.shown = 0;
    }

    fn show(&mut self, out: &mut String) {
        out.push_str(self.line.get(self.shown..).unwrap_or_default());
        self.shown = self.line.len();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    No,
    /// Not yet, but more characters could make it one.
    Maybe,
    Yes,
}

/// Whether a line, complete or not, is one of the app's marker lines.
fn marker(line: &str) -> Match {
    let Some(rest) = line.strip_prefix(MARKER_BEGIN) else {
        return if MARKER_BEGIN.starts_with(line) { Match::Maybe } else { Match::No };
    };
    let in_name = |c: char| c.is_ascii_lowercase() || matches!(c, '-' | ':');
    let name_len = rest.find(|c| !in_name(c)).unwrap_or(rest.len());
    let end = rest.get(name_len..).unwrap_or_default();
    if name_len > MARKER_NAME_MAX || (name_len == 0 && !end.is_empty()) {
        return Match::No;
    }
    match end.strip_prefix(MARKER_END) {
        Some(after) if trim_end(after).is_empty() => Match::Yes,
        Some(_) => Match::No,
        None if MARKER_END.starts_with(end) => Match::Maybe,
        None => Match::No,
    }
}

fn trim_end(line: &str) -> &str {
    line.trim_end_matches(['\n', '\r', ' ', '\t'])
}

/// Whether a line stands inside a fenced code block, by Markdown's rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fence {
    /// The character and length of the open fence.
    open: Option<(char, usize)>,
}

impl Fence {
    /// Whether a fence is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Takes the next line, without its newline, and says whether it belongs to a fenced block (its
    /// fence lines included).
    pub fn enter(&mut self, line: &str) -> bool {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let mark = text.chars().next().filter(|c| indent <= 3 && matches!(c, '`' | '~'));
        let Some(mark) = mark else {
            return self.is_open();
        };
        let len = text.chars().take_while(|c| *c == mark).count();
        let info = text.get(len..).unwrap_or_default();
        match self.open {
            Some((open, min)) => {
                if mark == open && len >= min && info.trim().is_empty() {
                    self.open = None;
                }
                true
            }
            None => {
                if len >= 3 && !(mark == '`' && info.contains('`')) {
                    self.open = Some((mark, len));
                }
                self.is_open()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    // proves: A-19
    #[test]
    fn the_appended_prompt_is_the_contracts_byte_for_byte() {
        let base = "When your work for the user's message is complete, or you need the user, print \
            the line `<!-- omniscio:final-message -->` alone, then your final message. Do not print \
            it while you wait for a background task.\nIf your final message is a dev-pipeline gate \
            report, begin it with `# Dev-pipeline gate: NAME` and end it with the line \
            `<!-- omniscio:gate-report:end -->` alone. Only if the user asked you to archive this \
            session when done, print the line `<!-- omniscio:archive-me -->` alone in your final \
            message.";
        assert_eq!(appended_prompt(false), base);
        let plain = "\nEnd every final message with a fenced block tagged `summary-card`: in two \
            plain sentences, what was done and what you need.";
        assert_eq!(appended_prompt(true), base.to_string() + plain);
        for marker in [FINAL_MARKER, GATE_REPORT_END, ARCHIVE_ME] {
            assert!(base.contains(marker), "{marker}");
        }
        // the prompt speaks of markers, it is none
        assert!(!contains_final_marker(&appended_prompt(true)));
    }

    const M: &str = FINAL_MARKER;

    #[test]
    fn a_marker_counts_alone_on_its_line_at_column_0_outside_fences() {
        for (text, found) in [
            (M.to_string(), true),
            (alloc::format!("a\n{M}\nb"), true),
            (alloc::format!("a\r\n{M} \t\r\nb"), true),
            (alloc::format!("```\ncode\n```\n{M}\n"), true),
            (alloc::format!("````\n```\n````\n{M}"), true),
            (alloc::format!("``` not`a fence\n{M}"), true),
            (alloc::format!("    ```\n{M}"), true),
            (alloc::format!(" {M}"), false),
            (alloc::format!("x {M}"), false),
            (alloc::format!("{M} x"), false),
            (alloc::format!("`{M}`"), false),
            (alloc::format!("```html\n{M}\n```"), false),
            (alloc::format!("~~~\n```\n{M}\n"), false),
            (alloc::format!("````\n```\n{M}"), false),
            (alloc::format!("```\n``` x\n{M}"), false),
            ("<!-- omniscio:final-messages -->".to_string(), false),
            ("<!--omniscio:final-message-->".to_string(), false),
            (String::new(), false),
        ] {
            assert_eq!(contains_final_marker(&text), found, "{text:?}");
            let mut cutter = MarkerCutter::default();
            cutter.push(&text);
            assert_eq!(cutter.saw_final_marker(), found, "{text:?}");
        }
    }

    // proves: A-19
    #[test]
    fn every_marker_line_is_cut_and_nothing_else() {
        for (text, shown) in [
            ("a\n<!-- omniscio:final-message -->\nb", "a\nb"),
            ("<!-- omniscio:final-message -->\r\nb\r\n", "b\r\n"),
            ("a\n<!-- omniscio:gate-report:end -->  ", "a\n"),
            ("a\n<!-- omniscio:archive-me -->\n", "a\n"),
            ("a\n<!-- omniscio:some-later-one -->\n", "a\n"),
            (
                "```\n<!-- omniscio:archive-me -->\n```\n",
                "```\n<!-- omniscio:archive-me -->\n```\n",
            ),
            ("a <!-- omniscio:archive-me -->\n", "a <!-- omniscio:archive-me -->\n"),
            ("<!-- omniscio: -->\n<!-- omniscio:A -->", "<!-- omniscio: -->\n<!-- omniscio:A -->"),
            ("<!-- omniscio:fin", "<!-- omniscio:fin"),
            ("<!-- a comment -->", "<!-- a comment -->"),
            ("\n\n", "\n\n"),
        ] {
            assert_eq!(cut_markers(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_possible_marker_is_held_back_until_it_is_decided() {
        let mut cutter = MarkerCutter::default();
        assert_eq!(cutter.push("Done.\n<!-- omnis"), "Done.\n");
        assert_eq!(cutter.push("cio:final-mess"), "");
        assert!(!cutter.saw_final_marker());
        assert_eq!(cutter.push("age -->"), "");
        assert!(cutter.saw_final_marker());
        assert_eq!(cutter.push("\nHere"), "Here");
        assert_eq!(cutter.push(" it is\n<!-- omniscio:x --> no"), " it is\n<!-- omniscio:x --> no");
        assert_eq!(cutter.push("\n<!"), "\n");
        assert_eq!(cutter.finish(), "<!");
        let endless = "<!-- omniscio:".to_string() + &"x".repeat(MARKER_NAME_MAX + 1);
        assert_eq!(MarkerCutter::default().push(&endless), endless, "the hold is bounded");
    }

    proptest! {
        #[test]
        fn pieces_show_and_find_the_same_as_the_whole(
            parts in proptest::collection::vec(
                proptest::sample::select(&[
                    "<!-- omniscio:final-message -->", "<!-- omniscio:", "<!", " -->", "\n", "\r\n",
                    "```", "~~~", "    ", "a", "é", "final-message",
                ][..]),
                0..24,
            ),
            size in 1usize..9,
        ) {
            let text = parts.concat();
            let mut cutter = MarkerCutter::default();
            let mut shown = String::new();
            let chars: alloc::vec::Vec<char> = text.chars().collect();
            for piece in chars.chunks(size) {
                shown.push_str(&cutter.push(&piece.iter().collect::<String>()));
            }
            let found = cutter.saw_final_marker();
            shown.push_str(&cutter.finish());
            prop_assert_eq!(&shown, &cut_markers(&text));
            prop_assert_eq!(found, contains_final_marker(&text));
            prop_assert!(!contains_final_marker(&shown));
        }
    }
}
