//! The directives: `[[fake: step; step; …]]` in a message, or the same steps as one line of a script file.
//! Parsing only; nothing here acts.
//!
//! | step | what happens |
//! |---|---|
//! | `say TEXT` | a text block; `\n` is a line break |
//! | `partial TEXT` | streams TEXT and leaves the block open |
//! | `slow MS` | pause per streamed word from here on |
//! | `pause MS` | silence |
//! | `think MS` | a thinking block of that length |
//! | `tool NAME {json} [ask]` | a tool call that does nothing; `ask` asks for permission first |
//! | `host-tool NAME {json}` | a call of a tool that the host serves over this stream, `mcp__omniscio__NAME` |
//! | `ask-question {json}` | AskUserQuestion with that input, `{}` for a ready-made question |
//! | `plan [TEXT]` | ExitPlanMode |
//! | `bash SECONDS [ask]` | a real `sleep` in a session of its own, as the CLI's Bash |
//! | `wake-up MS ANSWER` | ScheduleWakeup; the turn that follows, whoever begins it, answers ANSWER |
//! | `background SECONDS ANSWER` | Bash in the background, a real `sleep`; the turn that follows answers ANSWER |
//! | `daemon SECONDS` | a `sleep` that left the group by a double fork and ignores SIGTERM |
//! | `retry N MS` | N times `api_retry`, each followed by that wait |
//! | `usage N [of WINDOW]` | from here on the context holds N tokens, of at most WINDOW |
//! | `compact [N]` | the CLI shortens the history to N tokens by itself, and the turn goes on |
//! | `no-compact [TEXT]` | from here on the message `/compact` fails with TEXT |
//! | `stderr TEXT`, `garbage`, `long N`, `split` | noise: a stderr line; non-JSON output; a line of N bytes; the next non-ASCII line cut inside a character |
//! | `raw BYTES` | these bytes as they are, without a line end of their own; `\n`, `\r` and `\xHH` stand for theirs |
//! | `drip` | from here on every byte is a write of its own |
//! | `ignore-term` | SIGTERM is ignored from here on (takes effect before the turn starts) |
//! | `die CODE`, `kill` | mid-sentence: exit with CODE; SIGKILL to itself |
//! | `lost` | SIGKILL to itself before the message reaches the transcript |
//! | `hang` | silence without end; control requests are answered, `interrupt` ends it |
//! | `freeze` | as `hang`, but nothing is read any more |
//! | `eof` | mid-sentence: stdout is closed, the process stays until stdin closes |
//! | `drop` | mid-sentence: the turn ends as in capture 52 (connection dropped) |
//! | `api-error STATUS CODE [TEXT]` | the turn ends with that API error (`-` = no status) |
//! | `limit SECONDS` | the turn ends at a subscription limit that resets after SECONDS |
//! | `empty` | thinking only, result "" |
//! | `no-result` | the turn ends without a result; the process stays |
//! | `fail-first K [STEP]` | the first K attempts at this message do STEP (default `kill`), later ones go on |
//! | `forget [quiet]` | at a start only: the conversation to resume is deleted first; `quiet` says so on stderr alone |

use crate::{compact, limits};
use serde_json::Value;

/// One step of a scripted turn; see the table above.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Say(String),
    Partial(String),
    Slow(u64),
    Pause(u64),
    Think(u64),
    Tool { name: String, input: Value, ask: bool },
    HostTool { name: String, input: Value },
    Question(Value),
    Plan(String),
    Bash { seconds: u64, ask: bool },
    WakeUp { millis: u64, answer: String },
    Background { seconds: u64, answer: String },
    Daemon(u64),
    Retry { times: u64, wait_ms: u64 },
    Usage { tokens: u64, window: Option<u64> },
    Compact(u64),
    NoCompact(String),
    Stderr(String),
    Garbage,
    Long(usize),
    Split,
    Raw(Vec<u8>),
    Drip,
    IgnoreTerm,
    Die(i32),
    Kill,
    Lost,
    Hang,
    Freeze,
    Eof,
    Drop,
    ApiError { status: Option<u16>, code: String, text: String },
    Limit(u64),
    Empty,
    NoResult,
    FailFirst { times: u32, then: Box<Step> },
    Forget { quiet: bool },
}

/// What opens a directive inside a message.
pub(crate) const OPEN: &str = "[[fake:";

/// The steps of all directives in `text`, and the text without them. `None` when there is no directive.
pub(crate) fn extract(text: &str) -> Option<(Result<Vec<Step>, String>, String)> {
    let (mut bodies, mut rest, mut left) = (Vec::new(), String::new(), text);
    while let Some(start) = left.find(OPEN) {
        let body = &left[start + OPEN.len()..];
        let end = closing(body)?;
        rest.push_str(&left[..start]);
        bodies.push(&body[..end]);
        left = &body[end + 2..];
    }
    if bodies.is_empty() {
        return None;
    }
    rest.push_str(left);
    let steps = bodies.iter().map(|body| parse(body)).collect::<Result<Vec<_>, _>>();
    Some((steps.map(|lists| lists.concat()), rest.trim().to_owned()))
}

/// Where the `]]` that ends a directive stands: brackets inside JSON do not count.
fn closing(body: &str) -> Option<usize> {
    let mut json = JsonDepth::default();
    body.char_indices().find_map(|(at, c)| {
        let outside = json.step(c);
        (outside && body[at..].starts_with("]]")).then_some(at)
    })
}

/// Reads steps separated by semicolons; a semicolon inside JSON separates nothing.
pub(crate) fn parse(body: &str) -> Result<Vec<Step>, String> {
    let mut json = JsonDepth::default();
    body.split(|c| json.step(c) && c == ';')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(step)
        .collect()
}

/// Follows braces and strings; strings count only inside braces, so that `say` may hold a lone quote.
#[derive(Default)]
struct JsonDepth {
    depth: u32,
    string: bool,
    escaped: bool,
}

impl JsonDepth {
    /// Takes one character; tells whether it stands outside of any JSON object.
    fn step(&mut self, c: char) -> bool {
        let outside = self.depth == 0;
        if self.string {
            self.string = self.escaped || c != '"';
            self.escaped = c == '\\' && !self.escaped;
        } else if c == '{' {
            self.depth += 1;
        } else if c == '}' {
            self.depth = self.depth.saturating_sub(1);
        } else if c == '"' && !outside {
            self.string = true;
        }
        outside
    }
}

fn step(text: &str) -> Result<Step, String> {
    let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let bad = |what: &str| format!("omniscio-fake-claude: {what} in directive '{text}'");
    let number = |of: &str| of.parse::<u64>().map_err(|_| bad("a number is missing"));
    let (first, second) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Ok(match verb {
        "say" => Step::Say(rest.replace("\\n", "\n")),
        "partial" => Step::Partial(rest.replace("\\n", "\n")),
        "slow" => Step::Slow(number(rest)?),
        "pause" => Step::Pause(number(rest)?),
        "think" => Step::Think(number(rest)?),
        "tool" => {
            let (input, ask) = json_and_ask(second).map_err(|why| bad(&why))?;
            Step::Tool { name: first.to_owned(), input, ask }
        }
        "host-tool" => {
            let (input, _) = json_and_ask(second).map_err(|why| bad(&why))?;
            Step::HostTool { name: first.to_owned(), input }
        }
        "ask-question" => Step::Question(json_and_ask(rest).map_err(|why| bad(&why))?.0),
        "plan" => Step::Plan(rest.replace("\\n", "\n")),
        "bash" => Step::Bash { seconds: number(first)?, ask: second.trim() == "ask" },
        "wake-up" => Step::WakeUp { millis: number(first)?, answer: second.trim().to_owned() },
        "background" => {
            Step::Background { seconds: number(first)?, answer: second.trim().to_owned() }
        }
        "daemon" => Step::Daemon(number(rest)?),
        "retry" => Step::Retry { times: number(first)?, wait_ms: number(second.trim())? },
        "usage" => usage(rest).ok_or_else(|| bad("N or N of WINDOW is missing"))?,
        "compact" if rest.is_empty() => Step::Compact(limits::COMPACTED_TOKENS),
        "compact" => Step::Compact(number(rest)?),
        "no-compact" if rest.is_empty() => Step::NoCompact(compact::FAILED.to_owned()),
        "no-compact" => Step::NoCompact(rest.to_owned()),
        "stderr" => Step::Stderr(rest.to_owned()),
        "garbage" => Step::Garbage,
        "long" => {
            Step::Long(usize::try_from(number(rest)?).map_err(|_| bad("too large a number"))?)
        }
        "split" => Step::Split,
        "raw" => Step::Raw(bytes(rest).ok_or_else(|| bad("two hex digits are missing"))?),
        "drip" => Step::Drip,
        "ignore-term" => Step::IgnoreTerm,
        "die" => Step::Die(rest.parse().map_err(|_| bad("an exit code is missing"))?),
        "kill" => Step::Kill,
        "lost" => Step::Lost,
        "hang" => Step::Hang,
        "freeze" => Step::Freeze,
        "eof" => Step::Eof,
        "drop" => Step::Drop,
        "api-error" => api_error(first, second).ok_or_else(|| bad("STATUS CODE are missing"))?,
        "limit" => Step::Limit(number(rest)?),
        "empty" => Step::Empty,
        "no-result" => Step::NoResult,
        "forget" => Step::Forget { quiet: rest == "quiet" },
        "fail-first" => {
            let times = u32::try_from(number(first)?).map_err(|_| bad("too large a number"))?;
            let then = if second.trim().is_empty() { Step::Kill } else { step(second.trim())? };
            Step::FailFirst { times, then: Box::new(then) }
        }
        _ => return Err(bad("unknown step")),
    })
}

/// The bytes that a text stands for: `\n`, `\r`, `\xHH`; a backslash before anything else stands for itself.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((front, back)) = rest.split_once('\\') {
        bytes.extend_from_slice(front.as_bytes());
        let (byte, length) = match back.as_bytes().first() {
            Some(b'n') => (b'\n', 1),
            Some(b'r') => (b'\r', 1),
            Some(b'x') => (u8::from_str_radix(back.get(1..3)?, 16).ok()?, 3),
            Some(_) | None => (b'\\', 0),
        };
        bytes.push(byte);
        rest = &back[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

/// A JSON object (absent = empty) with an optional word `ask` behind it.
fn json_and_ask(text: &str) -> Result<(Value, bool), String> {
    let text = text.trim();
    let (json, ask) = match text.strip_suffix("ask") {
        Some(front) if front.is_empty() || front.ends_with(['}', ' ']) => (front.trim(), true),
        Some(_) | None => (text, false),
    };
    let json = if json.is_empty() { "{}" } else { json };
    let value: Value = serde_json::from_str(json).map_err(|error| format!("bad JSON ({error})"))?;
    value.is_object().then_some((value, ask)).ok_or_else(|| "no JSON object".to_owned())
}

fn usage(text: &str) -> Option<Step> {
    let (tokens, window) = match text.split_once(" of ") {
        Some((tokens, window)) => (tokens, Some(window.trim().parse().ok()?)),
        None => (text, None),
    };
    Some(Step::Usage { tokens: tokens.trim().parse().ok()?, window })
}

fn api_error(status: &str, rest: &str) -> Option<Step> {
    let (code, text) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    let status = if status == "-" { None } else { Some(status.parse().ok()?) };
    (!code.is_empty()).then(|| Step::ApiError {
        status,
        code: code.to_owned(),
        text: text.trim().to_owned(),
    })
}

impl Step {
    /// What this step does at the given attempt (1 = the first); `None` when it does nothing.
    pub(crate) fn at_attempt(&self, attempt: u32) -> Option<&Step> {
        let Step::FailFirst { times, then } = self else {
            return Some(self);
        };
        if attempt <= *times { then.at_attempt(attempt) } else { None }
    }

    /// Whether the step shows the model a tool call.
    pub(crate) fn is_tool(&self) -> bool {
        matches!(
            self,
            Step::Tool { .. }
                | Step::HostTool { .. }
                | Step::Question(_)
                | Step::Plan(_)
                | Step::Bash { .. }
                | Step::WakeUp { .. }
                | Step::Background { .. }
        )
    }

    /// Whether the step gives the turn its visible answer or its end, so that nothing is to be added.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Step::Say(_))
    }
}
