//! The real CLI with a window of 200,000 tokens that fills up by the figures of the mock: a turn that ran out
//! of room is continued unseen, a few times, and everything else is left alone (CS). What else the tests of a
//! full context share is here too.

use crate::bench::{Bench, body};
use crate::support::mock_api::{Gate, Kind, Reply, Request};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_core::block::BlockKind;
use omniscio_core::card::CardReply;
use omniscio_core::context::ContextUsage;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::Reply as Made;
use omniscio_core::message::Origin;
use omniscio_core::prompt;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::settings::SettingChange;
use omniscio_core::supervisor::Command;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// Its window is 200,000 tokens.
pub(crate) const CLAUDE: &str = "claude-sonnet-4-5";
pub(crate) const YOURS: (Status, Option<PendingAction>) = (Status::NeedsYou, None);
/// What the mock answers when the CLI asks for a summary and the test says nothing else.
const SUMMARY: &str = "A summary by the mock.";

/// An answer that says this and leaves so many tokens in the context, most of them from the cache.
pub(crate) fn said(text: &str, tokens: u64) -> Reply {
    figures(Reply::new().text(text), tokens)
}

/// An answer without content.
pub(crate) fn empty(tokens: u64) -> Reply {
    figures(Reply::new(), tokens)
}

pub(crate) fn figures(reply: Reply, tokens: u64) -> Reply {
    let (input, written) = (tokens / 20, tokens / 10);
    reply.usage(input, tokens - input - written, written)
}

/// The API's refusal of a request that is larger than the window.
pub(crate) fn too_long() -> Reply {
    let words = "prompt is too long: 208380 tokens > 200000 maximum";
    Reply::new().error(400, "invalid_request_error", words)
}

/// Whether the history begins with a summary: it was compacted.
pub(crate) fn is_compacted(request: &Request) -> bool {
    request.count_text_in_history(SUMMARY) > 0
}

fn usage(tokens: u64) -> Option<ContextUsage> {
    Some(ContextUsage { tokens, window: 200_000 })
}

impl Bench {
    /// A session on this model.
    pub(crate) fn create_on(&self, model: &str, text: &str) -> SessionId {
        let made = self.command(Command::Create {
            folder: self.home.project().display().to_string(),
            text: text.into(),
            model: Some(model.into()),
            permission_mode: None,
            account: None,
            endpoint: None,
            user_settings_only: false,
        });
        let Ok(Made::Created(id)) = made else { panic!("{made:?}") };
        id
    }

    pub(crate) fn set(&self, change: SettingChange) {
        self.command(Command::SetSetting { change }).expect("a setting");
    }

    /// A call that reads a file of the project, which nobody is asked about.
    pub(crate) fn reads(&self) -> Reply {
        let file = self.home.project().join("notes.txt");
        fs::write(&file, "some notes\n").expect("written");
        Reply::new().tool_use("Read", json!({"file_path": file}))
    }

    /// The nudges in the conversation, in order. None of them is in the default view.
    pub(crate) fn nudges(&self, session: SessionId) -> Vec<String> {
        let mut nudges = Vec::new();
        for block in self.blocks(session) {
            if let BlockKind::Auto { origin: Origin::AutoNudge | Origin::AutoCommand, text } =
                block.kind
            {
                assert!(block.hidden, "{text:?} is shown");
                nudges.push(text);
            }
        }
        nudges
    }

    /// How often the conversation tells that it was compacted.
    pub(crate) fn compactions(&self, session: SessionId) -> usize {
        let told = |kind: &BlockKind| matches!(kind, BlockKind::Boundary { text } if text == prompt::NOTE_COMPACTED);
        self.blocks(session).iter().filter(|block| told(&block.kind)).count()
    }

    /// Main requests that begin or go on with this message. Behind an empty answer the CLI asks once more by
    /// itself, with a line end behind the message.
    pub(crate) fn asked(&self, text: &str) -> usize {
        let all = self.api.main_requests();
        all.iter().filter(|request| request.last_user_text().as_deref() == Some(text)).count()
    }

    /// Waits until the person was notified so often of the session.
    pub(crate) fn wait_notified(&self, session: SessionId, times: usize) {
        wait_until(LIMIT, "the notifications", || self.notified(session) >= times);
        assert_eq!(self.notified(session), times);
    }

    /// How many requests for a summary came.
    pub(crate) fn summaries(&self) -> usize {
        self.api.requests().iter().filter(|request| request.kind == Kind::Compact).count()
    }

    /// In no request, compactions included, stands one of the messages more than once, nor a call without its
    /// result, nor the command that is not for Claude.
    pub(crate) fn assert_sound_for_claude(&self, messages: &[&str]) {
        self.assert_sound(messages);
        for request in self.api.requests() {
            let commands = request.count_text_in_history(prompt::COMPACT_COMMAND);
            assert_eq!(commands, 0, "{}", body(&request));
        }
    }

    pub(crate) fn assert_sound(&self, messages: &[&str]) {
        for request in self.api.requests() {
            assert_eq!(request.pairing_fault(), None, "{}", body(&request));
            for text in messages {
                let times = request.count_text_in_history(text);
                assert!(times <= 1, "{text:?} {times} times in {}", body(&request));
            }
        }
    }

    /// Nothing more is asked and nothing changes, while the scan serves another session.
    pub(crate) fn stands_still(&self, session: SessionId, message: &str) {
        let (row, asked) = (self.row(session), self.requests_with(message));
        let nudges = self.nudges(session);
        self.let_the_scan_pass();
        assert_eq!(self.row(session), row, "nothing was done about it");
        assert_eq!(self.requests_with(message), asked);
        assert_eq!(self.nudges(session), nudges);
    }

    /// The session is the person's, told once that it may need a fresh one, and nothing more happens.
    pub(crate) fn gave_up(&self, session: SessionId, message: &str, nudges: usize) -> SessionRow {
        let row = self.wait_state(session, "the give-up", YOURS);
        assert!(row.context_gave_up && !row.delivered);
        assert_eq!(usize::from(row.context_recover_count), nudges);
        let notes = self.notes(session);
        let times = |text: &str| notes.iter().filter(|note| *note == text).count();
        assert_eq!(times(prompt::NOTE_AUTO_RECOVERING), nudges, "{notes:?}");
        assert_eq!(times(prompt::NOTE_FRESH_SESSION), 1, "{notes:?}");
        assert_eq!(times(prompt::NOTE_NO_RESPONSE), 0, "{notes:?}");
        self.stands_still(session, message);
        row
    }
}

// proves: CS-01, CS-08, CS-12, CS-13, CS-21, CS-26, CS-27, CS-29, CS-32, CS-37, A-08
#[test]
fn a_turn_that_ends_full_after_a_tool_goes_on_unseen_and_is_answered() {
    in_namespace(
        "context::a_turn_that_ends_full_after_a_tool_goes_on_unseen_and_is_answered",
        || {
            let bench = Bench::new();
            bench.api.push(said("first answer", 60_000));
            let session = bench.create_on(CLAUDE, "message number one");
            bench.wait_answer(session, "first answer");
            bench.api.push(said("second answer", 80_000));
            bench.send(session, "message number two");
            bench.wait_answer(session, "second answer");
            assert_eq!(bench.row(session).context, usage(80_000));
            bench.wait_notified(session, 2);

            // The tool's result is the last there is. The CLI itself counts what it read before: 55 %.
            bench.api.push(figures(bench.reads(), 110_000));
            let gate = Gate::new();
            let answer = said("here it is", 30_000).hold_before_headers(&gate);
            bench.api.script(move |request, _| {
                let nudged = request.last_user_text().as_deref() == Some(prompt::PLEASE_CONTINUE);
                match (is_compacted(request), nudged) {
                    (true, _) => answer.clone(),
                    (false, true) => too_long(),
                    (false, false) => empty(185_000),
                }
            });
            bench.send(session, "message number three");
            gate.wait_reached(LIMIT);
            let row = bench.row(session);
            assert_eq!((row.status, row.pending), (Status::Running, None));
            assert_eq!((row.context_recover_count, row.retry_attempts), (1, 0));
            assert_eq!(row.context, usage(185_000), "what the turn ended with");
            assert_eq!(bench.notified(session), 2, "nobody is told of it");
            gate.open();
            bench.wait_answer(session, "here it is");
            bench.wait_notified(session, 3);

            let row = bench.row(session);
            assert!(row.delivered && row.replay.answered && !row.context_gave_up);
            assert_eq!((row.context_recover_count, row.context), (0, usage(30_000)));
            assert_eq!(bench.notes(session), [prompt::NOTE_AUTO_RECOVERING]);
            assert_eq!(bench.compactions(session), 1);
            assert_eq!((bench.bubbles(session), bench.replays(session)), (3, 0));
            assert_eq!(bench.nudges(session), [prompt::PLEASE_CONTINUE]);
            assert_eq!((bench.asked(prompt::PLEASE_CONTINUE), bench.summaries()), (2, 1));
            let messages = ["message number one", "message number two", "message number three"];
            bench.assert_sound_for_claude(&messages);
            bench.assert_sound(&[prompt::PLEASE_CONTINUE]);
            bench.assert_never_twice_on_disk(prompt::PLEASE_CONTINUE);
        },
    );
}

// proves: CS-03, CS-11, CW-02
#[test]
fn a_compaction_that_answers_nothing_is_continued_though_nobody_knows_how_full_it_is() {
    in_namespace(
        "context::a_compaction_that_answers_nothing_is_continued_though_nobody_knows_how_full_it_is",
        || {
            // A message without figures leaves the reading unknown; one with them says that there is room.
            for after in [0, 2_400] {
                let bench = Bench::new();
                bench.api.push(said("first answer", 60_000));
                let session = bench.create_on(CLAUDE, "message number one");
                bench.wait_answer(session, "first answer");
                bench.api.push(said("second answer", 80_000));
                bench.send(session, "message number two");
                bench.wait_answer(session, "second answer");
                bench.api.script(move |request, _| {
                    let nudged = request.count_text_in_history(prompt::PLEASE_CONTINUE) > 0;
                    match (is_compacted(request), nudged) {
                        (false, _) => too_long(),
                        (true, false) => empty(after),
                        (true, true) => said("here it is", 9_000),
                    }
                });
                bench.send(session, "message number three");
                bench.wait_answer(session, "here it is");
                assert!(bench.row(session).delivered);
                let read = bench.told(session).into_iter().find_map(|(_, view)| {
                    (view.row.context_recover_count == 1).then_some(view.row.context)
                });
                let read = read.expect("a row that was nudged");
                // the CLI counts what stands before the messages as well
                assert_eq!(read.is_some(), after > 0, "{read:?}");
                assert!(read.is_none_or(|read| read.tokens >= after && !read.at_least(50)));
                assert_eq!(bench.notes(session), [prompt::NOTE_AUTO_RECOVERING]);
                assert_eq!((bench.compactions(session), bench.summaries()), (1, 1));
                assert_eq!(bench.nudges(session), [prompt::PLEASE_CONTINUE]);
                assert_eq!((bench.bubbles(session), bench.replays(session)), (3, 0));
                bench.assert_sound_for_claude(&["message number one", "message number three"]);
            }
        },
    );
}

// proves: CS-14, CS-15, CS-16, CS-17, CS-20, CS-36, INV-62
#[test]
fn three_nudges_in_vain_are_told_once_and_a_message_of_the_person_begins_anew() {
    in_namespace(
        "context::three_nudges_in_vain_are_told_once_and_a_message_of_the_person_begins_anew",
        || {
            let bench = Bench::new();
            bench.api.script(|_, _| empty(185_000));
            let session = bench.create_on(CLAUDE, "please answer this");
            let row = bench.gave_up(session, "please answer this", 3);
            assert_eq!(row.words.as_deref(), Some("may need a fresh session"));
            assert_eq!(row.context, usage(185_000));
            assert_eq!(bench.asked(prompt::PLEASE_CONTINUE), 3);
            assert_eq!(bench.nudges(session), [prompt::PLEASE_CONTINUE; 3]);
            assert_eq!((bench.bubbles(session), bench.replays(session)), (1, 0));
            bench.wait_notified(session, 1);

            bench.api.push(empty(185_000));
            bench.api.push(empty(185_000));
            bench.api.script(|_, _| said("an answer after all", 30_000));
            bench.send(session, "go on, then");
            bench.wait_answer(session, "an answer after all");
            let row = bench.row(session);
            assert!(row.delivered && !row.context_gave_up);
            assert_eq!(bench.nudges(session).len(), 4, "the first of the next three");
            bench.assert_sound_for_claude(&["please answer this", "go on, then"]);
        },
    );
}

// proves: CS-07, INV-23
#[test]
fn an_answer_that_fills_the_last_token_is_left_alone() {
    in_namespace("context::an_answer_that_fills_the_last_token_is_left_alone", || {
        let bench = Bench::new();
        bench.api.push(said("the whole answer", 200_000));
        let session = bench.create_on(CLAUDE, "please answer this");
        bench.wait_answer(session, "the whole answer");
        let row = bench.row(session);
        assert!(row.delivered && row.replay.answered);
        assert_eq!(row.context, usage(200_000));
        bench.stands_still(session, "please answer this");
        assert_eq!((bench.row(session).context_recover_count, bench.notes(session).len()), (0, 0));
        assert_eq!(bench.requests_with("please answer this"), 1);
    });
}

#[test]
fn a_question_and_a_permission_near_the_limit_wait_for_the_person() {
    in_namespace("context::a_question_and_a_permission_near_the_limit_wait_for_the_person", || {
        let bench = Bench::new();
        let question = json!({"questions": [{
            "question": "Which colour?", "header": "Colour", "multiSelect": false,
            "options": [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}],
        }]});
        let write = json!({"file_path": bench.home.project().join("blue.txt"), "content": "blue"});
        bench.api.push(figures(Reply::new().tool_use("AskUserQuestion", question), 190_000));
        let session = bench.create_on(CLAUDE, "paint it");
        let asked = (Status::Running, Some(PendingAction::Question));
        let row = bench.wait_state(session, "the question", asked);
        bench.stands_still(session, "paint it");
        bench.api.push(figures(Reply::new().tool_use("Write", write), 191_000));
        let answers = BTreeMap::from([("Which colour?".to_owned(), "Blue".to_owned())]);
        answer(&bench, &row, CardReply::Answers { answers });
        let asked = (Status::Running, Some(PendingAction::PermissionRequest));
        let row = bench.wait_state(session, "the permission", asked);
        bench.stands_still(session, "paint it");
        bench.api.push(said("it is blue", 192_000));
        answer(&bench, &row, CardReply::Allow);
        bench.wait_answer(session, "it is blue");
        assert_eq!(bench.row(session).context, usage(192_000));
        assert_eq!(bench.nudges(session), [""; 0]);
        assert_eq!(bench.requests_with("paint it"), 3);
        bench.assert_sound_for_claude(&["paint it"]);
    });
}

fn answer(bench: &Bench, row: &SessionRow, reply: CardReply) {
    let request = row.card.clone().expect("a card").request;
    bench.command(Command::ReplyCard { session: row.id, request, reply }).expect("answered");
}

// proves: CS-24, UI-25
#[test]
fn switched_off_the_full_turn_lands_in_the_inbox_and_nothing_is_written() {
    in_namespace(
        "context::switched_off_the_full_turn_lands_in_the_inbox_and_nothing_is_written",
        || {
            let bench = Bench::new();
            bench.set(SettingChange::ContextStallAutoRecoverEnabled(false));
            bench.api.script(|_, _| empty(185_000));
            let session = bench.create_on(CLAUDE, "please answer this");
            let row = bench.wait_state(session, "the inbox", YOURS);
            assert_eq!((row.context_recover_count, row.context_gave_up), (0, false));
            assert_eq!(row.context, usage(185_000));
            assert_eq!(row.words.as_deref(), Some("context is full; auto-recovery is off"));
            assert_eq!(bench.notes(session), [prompt::NOTE_NO_RESPONSE]);
            bench.stands_still(session, "please answer this");
            assert_eq!(bench.nudges(session), [""; 0]);
            assert_eq!(bench.asked(prompt::PLEASE_CONTINUE), 0);
        },
    );
}
