//! One running CLI: its start, its state between turns, its end. What a turn does is in `turn.rs`; what a
//! control request does is in `control.rs`.

use crate::args::Args;
use crate::attempts::Attempts;
use crate::clock::{self, Stopwatch};
use crate::protocol::{self, Out};
use crate::record::Record;
use crate::transcript::{self, Transcript};
use crate::waits::Wait;
use crate::{ids, process, script, turn};
use serde_json::{Value, json};
use std::collections::{HashSet, VecDeque};
use std::fs;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};

/// What the reader thread hands over. The channel is unbounded like the real CLI's memory; the host waits
/// for its answers, so it stays short.
pub(crate) enum Input {
    Line(Vec<u8>),
    Eof,
}

/// An operator's message on its way into a turn.
pub(crate) struct Incoming {
    pub(crate) uuid: Option<String>,
    pub(crate) content: Value,
}

/// Sums over the whole process; `total_cost_usd` and `modelUsage` are cumulative.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) calls: u64,
    pub(crate) input: u64,
    pub(crate) results: u64,
}

/// A start that the CLI refuses.
pub(crate) struct Refusal {
    pub(crate) session_id: String,
    pub(crate) stderr: String,
    /// What stdout gets, where the real CLI writes a result.
    pub(crate) result: Option<Value>,
}

/// The state of one process.
pub(crate) struct Session {
    pub(crate) args: Args,
    pub(crate) id: String,
    pub(crate) cwd: String,
    pub(crate) config: PathBuf,
    pub(crate) model: String,
    pub(crate) mode: String,
    pub(crate) out: Out,
    pub(crate) inbox: Receiver<Input>,
    pub(crate) queue: VecDeque<Incoming>,
    /// Uuids that were accepted here, or have a finished answer from an earlier launch.
    pub(crate) seen: HashSet<String>,
    pub(crate) transcript: Transcript,
    pub(crate) attempts: Attempts,
    pub(crate) record: Record,
    pub(crate) totals: Totals,
    /// Tokens in the context, as `usage N` set them.
    pub(crate) context: u64,
    /// How many it holds, as `usage N of WINDOW` set it.
    pub(crate) window: Option<u64>,
    /// Why the message `/compact` fails, if it does.
    pub(crate) compact_error: Option<String>,
    pub(crate) busy: bool,
    /// What its turns left to wait for.
    pub(crate) waits: Vec<Wait>,
    /// The request id of the question that waits for the host.
    pub(crate) pending: Option<String>,
    /// The host serves tools of its own over this stream.
    pub(crate) hosted: bool,
    pub(crate) last_failed: bool,
    pub(crate) eof: bool,
    pub(crate) term_ignored: bool,
    pub(crate) started: Stopwatch,
    state_events: bool,
}

impl Session {
    /// Does what the CLI does between its launch and its first line of input.
    pub(crate) fn open(args: Args) -> Result<Self, Refusal> {
        let config = config_folder();
        let cwd = working_folder();
        let id = match (&args.session_id, &args.resume) {
            (None, Some(resumed)) if !args.fork => resumed.clone(),
            (Some(id), _) => id.clone(),
            (None, _) => ids::uuid(),
        };
        let refuse = |stderr: String, result| Refusal { session_id: id.clone(), stderr, result };
        let mut transcript = Transcript::new(&config, &id, &cwd);
        if args.session_id.is_some() && transcript::find(&config, &id).is_some() {
            return Err(refuse(format!("Error: Session ID {id} is already in use."), None));
        }
        load_history(&mut transcript, &args, &config).map_err(|why| {
            let result = protocol::startup_failure(&why);
            refuse(why, Some(result))
        })?;
        let attempts =
            Attempts::load(&config, &id, args.resume.as_deref(), &transcript::slug(&cwd));
        let mut session = Self {
            model: args.model.clone().unwrap_or_else(|| protocol::DEFAULT_MODEL.to_owned()),
            mode: args.permission_mode.clone().unwrap_or_else(|| "default".to_owned()),
            out: Out::new(&id),
            inbox: read_stdin(),
            queue: VecDeque::new(),
            seen: attempts.answered().iter().cloned().collect(),
            record: Record::open(&config, &id),
            totals: Totals::default(),
            context: crate::limits::CONTEXT_TOKENS,
            window: None,
            compact_error: None,
            busy: false,
            waits: Vec::new(),
            pending: None,
            hosted: false,
            last_failed: false,
            eof: false,
            term_ignored: false,
            started: Stopwatch::start(),
            state_events: std::env::var("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS")
                .is_ok_and(|value| value == "1"),
            args,
            id,
            cwd,
            config,
            transcript,
            attempts,
        };
        session.take_handover();
        session.note_status("idle");
        Ok(session)
    }

    /// Reads lines and runs turns until stdin ends.
    pub(crate) fn run(mut self) -> ExitCode {
        loop {
            while !self.queue.is_empty() {
                // everything that came while the last turn ran makes one turn (capture A3)
                let batch: Vec<Incoming> = self.queue.drain(..).collect();
                turn::run(&mut self, batch);
            }
            if self.eof {
                break;
            }
            if !self.idle() {
                break;
            }
        }
        self.drop_waits();
        self.forget_status();
        if self.last_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    /// Leaves at once with this code.
    pub(crate) fn leave(&self, code: i32) -> ! {
        self.forget_status();
        std::process::exit(code)
    }

    /// `session_state_changed`, if the host asked for these events, and the out-of-band status file.
    pub(crate) fn state(&mut self, state: &str) {
        self.note_status(match state {
            "running" => "busy",
            "requires_action" => "waiting",
            other => other,
        });
        if self.state_events {
            self.out.emit(
                json!({"type": "system", "subtype": "session_state_changed", "state": state}),
            );
        }
    }

    fn status_file(&self) -> PathBuf {
        self.config.join("sessions").join(format!("{}.json", std::process::id()))
    }

    fn note_status(&self, status: &str) {
        let now = clock::epoch_millis();
        let mut facts = json!({
            "pid": std::process::id(), "sessionId": self.id, "cwd": self.cwd, "status": status,
            "startedAt": now.saturating_sub(self.started.millis()), "updatedAt": now,
            "procStart": process::start_ticks(), "version": protocol::VERSION, "kind": "interactive",
        });
        if status == "waiting" {
            facts["waitingFor"] = "permission prompt".into();
        }
        let file = self.status_file();
        let part = file.with_extension("part");
        // as with the transcript: a folder that cannot be written is no reason to stop
        fs::create_dir_all(self.config.join("sessions"))
            .and_then(|()| fs::write(&part, facts.to_string()))
            .and_then(|()| fs::rename(&part, &file))
            .ok();
    }

    fn forget_status(&self) {
        fs::remove_file(self.status_file()).ok();
    }

    /// The steps of the script file for attempt `index`, if there is such a line.
    pub(crate) fn scripted(&self, index: u64) -> Option<Result<Vec<script::Step>, String>> {
        let named = std::env::var_os("OMNISCIO_FAKE_SCRIPT").map(PathBuf::from);
        let text =
            fs::read_to_string(named.unwrap_or_else(|| self.config.join("fake-script"))).ok()?;
        let mut lines =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.nth(usize::try_from(index).ok()?).map(script::parse)
    }

    /// Starts over in the same process with SIGTERM ignored, and goes on with `batch`.
    pub(crate) fn restart_ignoring_term(&mut self, batch: Vec<Incoming>) -> ! {
        let messages = batch.into_iter().chain(self.queue.drain(..));
        let messages: Vec<Value> = messages
            .map(|message| json!({"uuid": message.uuid, "content": message.content}))
            .collect();
        let file = self.config.join("fake-state").join(format!("{}.handover", self.id));
        let text = json!({"results": self.totals.results, "messages": messages}).to_string();
        let written = fs::create_dir_all(self.config.join("fake-state"))
            .and_then(|()| fs::write(&file, text));
        let failed = match written {
            Ok(()) => process::again_ignoring_term(&self.launch_line(), &file),
            Err(error) => error,
        };
        eprintln!("omniscio-fake-claude: ignore-term is not possible here: {failed}");
        self.leave(70)
    }

    /// The command line that brings this session back as it is now.
    fn launch_line(&self) -> Vec<String> {
        let args = &self.args;
        let mut line: Vec<&str> =
            "-p --verbose --input-format stream-json --output-format stream-json"
                .split(' ')
                .collect();
        line.extend(["--model", &self.model, "--permission-mode", &self.mode]);
        line.extend(args.partial.then_some("--include-partial-messages"));
        line.extend(args.replay.then_some("--replay-user-messages"));
        if args.asks_host {
            line.extend(["--permission-prompt-tool", "stdio"]);
        }
        if self.transcript.exists() {
            line.extend(["--resume", &self.id]);
        } else {
            line.extend(["--session-id", &self.id]);
            // a fork has no file of its own before its first message
            line.extend(
                args.resume.iter().flat_map(|resumed| ["--resume", resumed, "--fork-session"]),
            );
            line.extend(args.resume_at.iter().flat_map(|at| ["--resume-session-at", at]));
        }
        line.into_iter().map(str::to_owned).collect()
    }

    fn take_handover(&mut self) {
        let Some(file) = std::env::var_os("OMNISCIO_FAKE_HANDOVER") else {
            return;
        };
        let Ok(text) = fs::read_to_string(Path::new(&file)) else {
            return;
        };
        fs::remove_file(Path::new(&file)).ok();
        let state: Value = serde_json::from_str(&text).unwrap_or_default();
        self.term_ignored = true;
        self.totals.results = state["results"].as_u64().unwrap_or(0);
        for message in state["messages"].as_array().into_iter().flatten() {
            let uuid = message["uuid"].as_str().map(str::to_owned);
            self.seen.extend(uuid.clone());
            self.queue.push_back(Incoming { uuid, content: message["content"].clone() });
        }
    }
}

/// What `--resume` and `--resume-session-at` name, or the CLI's words for its absence.
fn load_history(transcript: &mut Transcript, args: &Args, config: &Path) -> Result<(), String> {
    let Some(resumed) = &args.resume else {
        return Ok(());
    };
    let source = transcript::find(config, resumed)
        .ok_or_else(|| format!("No conversation found with session ID: {resumed}"))?;
    let until = args.resume_at.as_deref();
    transcript.load(&source, until, args.fork).ok_or_else(|| {
        format!("No message found with message.uuid of: {}", until.unwrap_or_default())
    })
}

/// `CLAUDE_CONFIG_DIR`; without it a folder of the stand-in's own, never that of a real CLI.
pub(crate) fn config_folder() -> PathBuf {
    let named =
        std::env::var_os("CLAUDE_CONFIG_DIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home =
        || std::env::home_dir().unwrap_or_else(std::env::temp_dir).join(".omniscio-fake-claude");
    named.unwrap_or_else(home)
}

/// The working folder, symlinks resolved.
fn working_folder() -> String {
    let folder = std::env::current_dir().and_then(fs::canonicalize).unwrap_or_default();
    folder.to_string_lossy().into_owned()
}

/// Reads stdin on a thread of its own, so that a turn can be interrupted.
fn read_stdin() -> Receiver<Input> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            // a last line without a line end counts, as with the real CLI
            let more = matches!(stdin.read_until(b'\n', &mut line), Ok(length) if length > 0);
            let input = if more { Input::Line(line) } else { Input::Eof };
            if send.send(input).is_err() || !more {
                return;
            }
        }
    });
    receive
}
