//! The supervisor is killed five times over real sessions in every state, and started again each time.

use crate::apart::serve_if_asked;
use crate::bench::{Bench, body};
use crate::looks::{Written, lives, marked};
use crate::support::mock_api::{Ending, Gate, Reply, Request};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_core::card::CardReply;
use omniscio_core::id::SessionId;
use omniscio_core::session::{PendingAction, Status};
use omniscio_core::settings::SettingChange;
use omniscio_core::supervisor::Command;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const ASKED: (Status, Option<PendingAction>) =
    (Status::Running, Some(PendingAction::PermissionRequest));
const ASKED_BEFORE: (Status, Option<PendingAction>) =
    (Status::NeedsYou, Some(PendingAction::PermissionRequest));
const ANSWERED: (Status, Option<PendingAction>) = (Status::NeedsYou, None);
const CUT_OFF: (Status, Option<PendingAction>) =
    (Status::Error, Some(PendingAction::ResponseAborted));

/// The first message of each session, by what it is in when the supervisor dies.
const IDLE: &str = "just say hello";
const SPEAKING: &str = "tell me the story";
const IN_TOOL: &str = "run the long tool";
const WITH_CARD: &str = "write the file down";
const WITH_QUEUE: &str = "count up to ten";
const QUEUED: &str = "and now backwards";
const IS_CUT: &str = "what is cut off";
const MESSAGES: [&str; 7] = [IDLE, SPEAKING, IN_TOOL, WITH_CARD, WITH_QUEUE, QUEUED, IS_CUT];

/// When the supervisor dies.
#[derive(Clone, Copy, PartialEq)]
enum When {
    /// Every session is back where it was.
    Settled,
    /// The first CLI has been started again.
    FirstChild,
    /// The first CLI has asked the API again.
    FirstRequest,
}

/// The model: it holds back what it is asked until it is let go.
fn model(
    tools: PathBuf,
    gate: Gate,
    free: Arc<AtomicBool>,
) -> impl FnMut(&Request, usize) -> Reply {
    let mut calls = 0;
    move |request, _| {
        let free = free.load(Ordering::SeqCst);
        let of = |message| request.count_text_in_history(message) > 0;
        let held = |text: &str| Reply::new().text(text).hold_after(2, &gate);
        if of(IDLE) {
            Reply::new().text("hello to you")
        } else if of(IN_TOOL) && free {
            Reply::new().text("the tool has run")
        } else if of(IN_TOOL) {
            calls += 1;
            let file = tools.join(format!("call-{calls:03}"));
            let command = format!("echo ran >> '{}'; exec sleep 600", file.display());
            Reply::new().tool_use("Bash", json!({"command": command, "description": "run"}))
        } else if of(WITH_CARD) && free {
            Reply::new().text("it is written down")
        } else if of(WITH_CARD) {
            let input = json!({"file_path": tools.join("file.txt"), "content": "hello"});
            Reply::new().tool_use("Write", input)
        } else if of(QUEUED) {
            Reply::new().text("ten down to one")
        } else if of(SPEAKING) {
            if free { Reply::new().text("this is the whole story") } else { held("this is a part") }
        } else if of(WITH_QUEUE) {
            if free { Reply::new().text("one up to ten") } else { held("one two three") }
        } else if free {
            Reply::new().text("here it is whole")
        } else {
            Reply::new().text("here it breaks").drop_after(1, Ending::Rst)
        }
    }
}

/// The sessions, one in each state, and what the model lets happen.
struct All {
    bench: Bench,
    tools: PathBuf,
    free: Arc<AtomicBool>,
    /// The calls inside of which the supervisor was killed while all was known of them.
    calls: Vec<String>,
    idle: SessionId,
    speaking: SessionId,
    in_tool: SessionId,
    with_card: SessionId,
    with_queue: SessionId,
    is_cut: SessionId,
}

impl All {
    fn make(test_path: &str) -> All {
        let mut bench = Bench::quiet();
        let allow = json!({"permissions": {"allow": ["Bash"]}});
        fs::write(bench.home.config().join("settings.json"), allow.to_string()).expect("written");
        let tools = bench.home.home().join("tools");
        fs::create_dir(&tools).expect("a folder");
        let free = Arc::new(AtomicBool::new(false));
        bench.api.script(model(tools.clone(), Gate::new(), Arc::clone(&free)));
        bench.start_apart(test_path);
        recovery(&bench, false);
        let [idle, speaking, in_tool] = [IDLE, SPEAKING, IN_TOOL].map(|text| bench.create(text));
        let [with_card, with_queue, is_cut] =
            [WITH_CARD, WITH_QUEUE, IS_CUT].map(|text| bench.create(text));
        bench.send(with_queue, QUEUED);
        let calls = Vec::new();
        All { bench, tools, free, calls, idle, speaking, in_tool, with_card, with_queue, is_cut }
    }

    fn ids(&self) -> [SessionId; 6] {
        let All { idle, speaking, in_tool, with_card, with_queue, is_cut, .. } = self;
        [*idle, *speaking, *in_tool, *with_card, *with_queue, *is_cut]
    }

    /// The processes of all sessions.
    fn processes(&self) -> Vec<u32> {
        self.ids().into_iter().flat_map(marked).collect()
    }

    /// Waits until each session is where it belongs; `asked`: how often the API was asked before, `known`:
    /// how many calls of the tool the app knew of.
    fn settled(&mut self, asked: [usize; 3], known: usize, card: (Status, Option<PendingAction>)) {
        let bench = &self.bench;
        for (session, message, before) in [
            (self.speaking, SPEAKING, asked[0]),
            (self.with_queue, WITH_QUEUE, asked[1]),
            (self.in_tool, IN_TOOL, asked[2]),
        ] {
            wait_until(LIMIT, &format!("{message:?} at work"), || {
                let row = bench.row(session);
                let at_work = row.turn.is_some_and(|turn| turn.real_output);
                at_work && row.status == Status::Running && bench.requests_with(message) > before
            });
        }
        wait_until(LIMIT, "the tool", || {
            marked(self.in_tool).into_iter().any(|pid| name_of(pid) == "sleep")
        });
        wait_until(LIMIT, "the call in the row", || self.calls_known() > known);
        let call = newest_call(&self.tools);
        bench.wait_on_disk(Written::Call(&call));
        bench.wait_state(self.with_card, "the card", card);
        bench.wait_state(self.idle, "the answer", ANSWERED);
        bench.wait_state(self.is_cut, "the cut-off reply", CUT_OFF);
        let queue = bench.view(self.with_queue).live.queue;
        assert_eq!(queue.len(), 1, "the message still waits");
        // once: no second CLI works on any of them
        for session in self.ids() {
            wait_until(LIMIT, "one CLI", || {
                let child = bench.row(session).child.map(|child| child.pid);
                // a tool that is about to be started looks like its CLI for a moment
                marked(session).into_iter().filter(|pid| is_cli(*pid)).eq(child)
            });
        }
        self.calls.push(call);
    }

    fn calls_known(&self) -> usize {
        self.bench.row(self.in_tool).replay.calls.len()
    }

    fn asked(&self) -> [usize; 3] {
        [SPEAKING, WITH_QUEUE, IN_TOOL].map(|message| self.bench.requests_with(message))
    }
}

fn recovery(bench: &Bench, on: bool) {
    let change = SettingChange::AbortedResponseRecoveryEnabled(on);
    bench.command(Command::SetSetting { change }).expect("the setting");
}

fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// Whether the process is the CLI itself, and not one of its tools.
fn is_cli(pid: u32) -> bool {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    arguments.split(|byte| *byte == 0).any(|argument| argument == b"--permission-prompt-tool")
}

/// The file of the call that began last.
fn newest_call(tools: &Path) -> String {
    let files = fs::read_dir(tools).expect("a folder").flatten();
    let named = files.filter_map(|file| file.file_name().into_string().ok());
    let calls = named.filter(|name| name.starts_with("call-"));
    calls.max().expect("a call")
}

fn runs(file: &Path) -> usize {
    fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

// proves: CR-01, CR-02, A-15, RP-12
#[test]
fn t24_killed_five_times_each_session_is_back_where_it_belongs_exactly_once() {
    const PATH: &str =
        "kills::t24_killed_five_times_each_session_is_back_where_it_belongs_exactly_once";
    in_namespace(PATH, || {
        serve_if_asked();
        let mut all = All::make(PATH);
        all.settled([0; 3], 0, ASKED);
        let mut killed = all.processes();
        all.bench.kill_app();
        for when in [When::FirstChild, When::Settled, When::FirstRequest, When::Settled] {
            let asked = all.asked();
            all.bench.start_apart(PATH);
            let known = all.calls_known();
            match when {
                When::Settled => all.settled(asked, known, ASKED_BEFORE),
                When::FirstChild => wait_until(LIMIT, "the first child", || {
                    all.bench.rows().iter().any(|view| view.row.child.is_some())
                }),
                When::FirstRequest => {
                    wait_until(LIMIT, "the first request", || all.asked() != asked);
                }
            }
            killed.extend(all.processes());
            all.bench.kill_app();
        }
        released(all, &killed);
    });
}

/// After the last kill: every answer comes, once, and nothing of what was `killed` is left running.
fn released(mut all: All, killed: &[u32]) {
    all.free.store(true, Ordering::SeqCst);
    all.bench.start();
    let bench = &all.bench;
    bench.wait_answer(all.speaking, "the whole story");
    bench.wait_answer(all.in_tool, "the tool has run");
    bench.wait_answer(all.with_queue, "ten down to one");
    let card = bench.wait_state(all.with_card, "the card", ASKED_BEFORE).card.expect("a card");
    bench
        .command(Command::ReplyCard {
            session: all.with_card,
            request: card.request,
            reply: CardReply::Allow,
        })
        .expect("the question can still be answered");
    bench.wait_answer(all.with_card, "it is written down");
    bench.wait_state(all.is_cut, "the cut-off reply", CUT_OFF);
    recovery(bench, true);
    bench.wait_answer(all.is_cut, "here it is whole");

    assert_eq!(bench.row(all.idle).child, None, "nothing woke it");
    assert_eq!(bench.requests_with(IDLE), 1);
    assert_eq!(bench.answers(all.with_queue), ["one up to ten", "ten down to one"]);
    let bubbles = all.ids().map(|session| bench.bubbles(session));
    // the answer to the card is a message of its own
    assert_eq!(bubbles, [1, 1, 1, 2, 2, 1]);
    for message in MESSAGES {
        bench.assert_never_twice(message);
        bench.assert_never_twice_on_disk(message);
    }
    let work = bench
        .api
        .main_requests()
        .into_iter()
        .rfind(|request| request.count_text_in_history(IN_TOOL) > 0);
    let work = body(&work.expect("a request"));
    for call in &all.calls {
        assert!(work.contains(call), "what was done before is kept: {work}");
    }
    for call in fs::read_dir(&all.tools).expect("a folder").flatten() {
        assert_eq!(runs(&call.path()), 1, "{} ran again", call.path().display());
    }
    // no death is an attempt of the day, but the cut-off reply's own
    let attempts = all.ids().map(|session| bench.replays(session));
    assert_eq!(attempts, [0, 0, 0, 0, 0, 1]);
    let left: Vec<u32> = killed.iter().copied().filter(|pid| lives(*pid)).collect();
    assert_eq!(left, [0; 0], "nothing of the killed apps is left");
    all.bench.quit();
    assert_eq!(all.processes(), [0; 0], "nothing is left after Quit");
}
