//! Fork: a copy of a session that was given up at a full context, from the click to its first answer.

use super::rig::Rig;
use super::*;
use crate::id::{CliSessionId, SessionId, Uuid};
use crate::ipc::IpcCode;
use crate::session::{ForkPoint, Holder, PermissionMode, SessionRow};
use crate::stream::{Init, TurnResult};
use alloc::boxed::Box;

const FULL: Option<(u64, u64)> = Some((185_000, 200_000));
const ROOM: Option<(u64, u64)> = Some((30_000, 200_000));
const YOURS: (Status, Option<PendingAction>) = (Status::NeedsYou, None);

/// A session with one good turn, given up at its second message.
fn given_up() -> Rig {
    let mut rig = Rig::new();
    rig.create("one");
    rig.spawn_and_shake();
    rig.answer_turn("first answer");
    rig.send("too much");
    rig.fill_up();
    rig.said_last = Some("too much".into());
    rig
}

impl Rig {
    /// The turn and its nudges end without a word at a full context.
    fn fill_up(&mut self) {
        self.context = FULL;
        for _ in 0..4 {
            self.finish_empty();
        }
        assert!(self.row().context_gave_up && self.row().status == Status::NeedsYou);
    }

    fn fork(&mut self) -> Result<Reply, crate::ipc::IpcError> {
        let session = self.id();
        self.command(Command::Fork { session })
    }

    /// Opens the copy; gives the row of the old session as it stood before.
    fn forked(&mut self) -> SessionRow {
        let old = self.row();
        let Ok(Reply::Forked { session, draft }) = self.fork() else { panic!("no copy") };
        assert_eq!(draft.as_deref(), Some("too much"));
        self.open = Some(session);
        (self.only, self.context) = (point(&old).map(|(from, _)| from), ROOM);
        old
    }

    /// What the last launch was to copy, and where it was to cut it.
    fn cut(&self) -> Option<(CliSessionId, Option<Uuid>)> {
        match self.plan().conversation {
            Conversation::Fork { from, at, .. } => Some((from, at)),
            Conversation::New { .. } | Conversation::Resume { .. } => None,
        }
    }

    /// The CLI names the copy.
    fn begin_copy(&mut self) {
        let session_id = Some(self.plan().conversation.id());
        let (model, version) = ("m".into(), "2".into());
        let (permission_mode, api_key_source) = ("default".into(), "none".into());
        let init = Init { session_id, model, permission_mode, api_key_source, version };
        self.stream(StreamEvent::from(init));
    }

    /// The CLI refuses its start with these words.
    fn refuse_start(&mut self, words: &str) {
        self.spawn();
        self.stream(StreamEvent::Result(Box::new(TurnResult {
            subtype: "error_during_execution".into(),
            is_error: true,
            errors: alloc::vec![words.into()],
            ..TurnResult::default()
        })));
    }
}

/// What every launch of the copy begins with until it has a conversation of its own.
fn point(old: &SessionRow) -> Option<(CliSessionId, Option<Uuid>)> {
    let of = (old.cli_session_id.expect("a conversation"), old.last_good_assistant);
    Some(old.fork_of.map_or(of, |point| (point.from, point.at)))
}

// proves: CS-15, A-15
#[test]
fn a_copy_waits_and_its_first_message_begins_it_at_the_last_good_turn() {
    let mut rig = given_up();
    rig.tamper(|row| {
        (row.model, row.permission_mode) = (Some("opus".into()), Some(PermissionMode::Plan));
        (row.user_settings_only, row.prints_markers) = (true, true);
    });
    let (spawned, stops, lines, notified) = (rig.spawned, rig.stops, rig.lines.len(), rig.notified);
    let old = rig.forked();
    assert_eq!((rig.spawned, rig.stops, rig.lines.len()), (spawned, stops, lines));
    assert_eq!(rig.notified, notified, "the person has just asked for it");
    let new = rig.row();
    assert_eq!((state_of(&rig), new.unread, new.context_gave_up), (YOURS, false, false));
    assert_eq!(
        (new.title.as_str(), &new.folder, &new.account),
        ("one (fork)", &old.folder, &old.account)
    );
    assert_eq!((&new.model, new.permission_mode), (&old.model, old.permission_mode));
    assert!(new.user_settings_only && new.prints_markers && !new.intent_running);
    assert_eq!(rig.notes(&prompt::note_copy("one")), 1);
    assert_eq!(rig.seen().reason.words().as_deref(), Some(prompt::COPY_WAITS));
    rig.pass(600_000);
    assert_eq!((rig.spawned, rig.row()), (spawned, new), "it does nothing by itself");

    rig.send("shorter");
    assert_eq!((rig.spawned, rig.cut()), (spawned + 1, point(&old)));
    assert_eq!((&rig.plan().model, rig.plan().permission_mode), (&old.model, old.permission_mode));
    assert_ne!(Some(rig.plan().conversation.id()), old.cli_session_id);
    rig.spawn_and_shake();
    assert_eq!((rig.last_text().as_str(), rig.lines.len()), ("shorter", lines + 1));
    assert_eq!(rig.row().cli_session_id, Some(rig.plan().conversation.id()));
    rig.only = None;
    rig.answer_turn("<!-- omniscio:final-message -->\nshort answer");
    let new = rig.row();
    assert!(new.delivered && new.last_good_assistant.is_some());
    assert_eq!((new.fork_of, new.cli_session_before), (None, None), "it stands by itself");
    assert_eq!(rig.stored(old.id), old, "the old session is as it was");
    assert_eq!(rig.stops, stops);
}

// proves: A-15
#[test]
fn a_crash_before_the_cli_names_the_copy_keeps_where_it_begins() {
    let mut rig = given_up();
    let old = rig.forked();
    rig.crash();
    assert_eq!(state_of(&rig), YOURS);
    rig.send("shorter");
    let sent = rig.spawned;
    // asked for, running, and with its message written: each time it is the same copy again
    for reached in 0..3 {
        assert_eq!(rig.cut(), point(&old), "{reached}");
        match reached {
            0 => {}
            1 => rig.spawn(),
            _ => {
                rig.shake();
                assert_eq!(rig.last_text(), "shorter");
                assert_eq!(rig.forget_last_line(), rig.lines.last().map(|line| line.uuid));
            }
        }
        rig.crash();
        rig.pass(155_000);
    }
    assert_eq!((rig.spawned, rig.cut()), (sent + 3, point(&old)));
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "shorter");
    let uuids: Vec<Uuid> = rig.lines.iter().rev().take(2).map(|line| line.uuid).collect();
    assert_eq!(uuids[0], uuids[1], "it never arrived: its own uuid");
    assert_eq!(rig.stored(old.id), SessionRow { child: None, ..old }, "and its child is gone");
}

// proves
#[test]
fn a_first_message_that_is_cut_off_is_replayed_by_what_the_copy_holds() {
    for (named, arrived, tool) in
        [(false, false, false), (true, false, false), (true, true, false), (true, true, true)]
    {
        let mut rig = given_up();
        let old = rig.forked();
        rig.send("shorter");
        let copy = rig.plan().conversation.id();
        rig.shake();
        if named {
            rig.begin_copy();
        }
        if tool {
            rig.tool("call", "make");
        }
        if arrived {
            rig.only = None;
        } else {
            rig.forget_last_line();
        }
        let first = rig.lines.last().expect("a line").uuid;
        rig.die();
        rig.pass(155_000);
        let cut = if !arrived {
            point(&old)
        } else if tool {
            Some((copy, None))
        } else {
            Some((copy, old.last_good_assistant))
        };
        assert_eq!(rig.cut(), cut, "{named} {arrived} {tool}");
        rig.spawn_and_shake();
        let line = rig.lines.last().expect("a line");
        assert_eq!(line.uuid == first, !arrived, "{named} {arrived} {tool}");
        let words = if tool { prompt::CONTINUE_CUT_OFF } else { "shorter" };
        assert_eq!(rig.last_text(), words);
        assert_eq!(rig.stored(old.id), old);
    }
}

// proves: A-15
#[test]
fn a_copy_that_lost_its_file_begins_again_and_never_goes_on_in_the_original() {
    let mut rig = given_up();
    let old = rig.forked();
    rig.send("shorter");
    rig.spawn_and_shake();
    assert!(rig.row().cli_session_id.is_some());
    // stopped before anything of the copy was on the disk
    rig.forget_last_line();
    let session = rig.id();
    assert!(rig.command(Command::Stop { session }).is_ok());
    rig.die();
    rig.send("shorter still");
    assert_eq!(rig.cut(), point(&old));
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "shorter still");
}

// proves: A-15
#[test]
fn a_copy_whose_own_copy_is_lost_goes_on_in_itself_and_without_that_begins_again() {
    let mut rig = given_up();
    let old = rig.forked();
    rig.send("shorter");
    rig.spawn_and_shake();
    let own = rig.row().cli_session_id;
    rig.only = None;
    rig.tool("call", "make");
    rig.die();
    rig.pass(155_000);
    assert_eq!(rig.cut(), own.map(|own| (own, None)), "the work is kept in a copy of its own");
    rig.shake();
    rig.begin_copy();
    assert_ne!(rig.row().cli_session_id, own);
    let session = rig.id();
    assert!(rig.command(Command::Stop { session }).is_ok());
    rig.die();
    // that one left no file behind
    rig.only = own;
    rig.send("go on");
    assert!(matches!(rig.plan().conversation, Conversation::Resume { id } if Some(id) == own));
    rig.shake();
    assert!(rig.command(Command::Stop { session }).is_ok());
    rig.die();
    // nor is the first one there any more: the original is left
    rig.only = old.cli_session_id;
    rig.send("shorter still");
    assert_eq!(rig.looked_at, [own, old.cli_session_id]);
    assert_eq!(rig.cut(), point(&old));
}

// proves: A-12
#[test]
fn what_is_only_copied_may_be_open_in_another_program() {
    let mut rig = given_up();
    let old = rig.forked();
    rig.holder = Some(Holder { pid: 300, start: 7, folder: "/elsewhere".into() });
    rig.send("shorter");
    assert_eq!((rig.cut(), rig.view().live.held), (point(&old), None));
    // its own conversation may not
    rig.spawn_and_shake();
    rig.only = None;
    rig.die();
    let spawned = rig.spawned;
    rig.pass(155_000);
    assert_eq!(rig.spawned, spawned);
    assert!(rig.view().live.held.is_some());
}

// proves: CS-15
#[test]
fn only_a_session_that_was_given_up_after_a_good_turn_is_forked() {
    let code = |answer: Result<Reply, crate::ipc::IpcError>| answer.unwrap_err().code;
    let mut rig = Rig::new();
    rig.create("too much");
    rig.spawn_and_shake();
    assert_eq!(code(rig.fork()), IpcCode::NotEligible, "it runs");
    rig.fill_up();
    let refused = rig.fork().unwrap_err();
    assert_eq!(refused.code, IpcCode::NotEligible);
    assert!(refused.message.ends_with("Start a fresh session."), "{}", refused.message);

    let mut rig = given_up();
    rig.send("go on");
    assert_eq!(code(rig.fork()), IpcCode::NotEligible, "a message took over");
    rig.context = ROOM;
    rig.answer_turn("it fits");
    assert_eq!(code(rig.fork()), IpcCode::NotEligible, "it is answered");
    let session: SessionId = Uuid(99);
    assert_eq!(code(rig.command(Command::Fork { session })), IpcCode::NotFound);
    rig.send("too much");
    rig.fill_up();
    rig.blind = true;
    assert_eq!(code(rig.fork()), IpcCode::Internal, "nobody could read what was said");
    assert_eq!(rig.held_sessions(), 1, "and nothing was made");
}

// proves
#[test]
fn a_copy_of_a_copy_is_cut_at_the_last_good_turn_of_either() {
    for answered in [false, true] {
        let mut rig = given_up();
        let old = rig.forked();
        rig.send("shorter");
        rig.spawn_and_shake();
        rig.only = None;
        if answered {
            rig.answer_turn("short answer");
            rig.send("too much");
        }
        rig.fill_up();
        let copy = rig.row();
        rig.open = Some(copy.id);
        rig.forked();
        assert_eq!(rig.row().title, "one (fork 2)");
        rig.send("shortest");
        let from = if answered { copy.cli_session_id } else { old.cli_session_id };
        assert_eq!(rig.cut(), point(&copy), "{answered}");
        assert_eq!(rig.cut().map(|(from, _)| from), from, "{answered}");
        assert_eq!(rig.stored(copy.id), copy);
    }
}

// proves
#[test]
fn a_refused_copy_asks_about_its_original() {
    // the original is as it was: an error with the CLI's words, and Retry begins the same copy
    let mut rig = given_up();
    let old = rig.forked();
    rig.send("shorter");
    rig.keep_line(old.last_good_assistant);
    rig.refuse_start("The settings cannot be read");
    assert_eq!(state_of(&rig), (Status::Error, None));
    assert!(rig.row().words.is_some_and(|words| words.contains("settings cannot")));
    assert_eq!(rig.looked_at, [old.cli_session_id, None], "the copy has no file to look at");
    let session = rig.id();
    assert!(rig.command(Command::Retry { session }).is_ok());
    assert_eq!(rig.cut(), point(&old));
    rig.spawn_and_shake();
    assert_eq!(rig.last_text(), "shorter");

    // it is gone: a new conversation with what is known, said aloud
    let mut rig = given_up();
    rig.forked();
    rig.send("shorter");
    rig.lose_conversation();
    rig.refuse_start("No conversation found");
    assert!(matches!(rig.plan().conversation, Conversation::New { .. }));
    assert_eq!(rig.notes(prompt::NOTE_CONVERSATION_GONE), 1);
    rig.spawn_and_shake();
    assert_eq!((rig.last_text().as_str(), rig.row().fork_of), ("shorter", None));
}

// proves
#[test]
fn a_copy_that_cannot_be_cut_any_more_holds_all_and_says_so() {
    let mut rig = given_up();
    let old = rig.forked();
    rig.send("shorter");
    rig.keep_line(old.last_good_assistant);
    let at = old.last_good_assistant.expect("a line");
    rig.refuse_start(&alloc::format!("No message found with message.uuid of: {at}"));
    let uncut = Some((old.cli_session_id.expect("a conversation"), None));
    assert_eq!((rig.cut(), state_of(&rig)), (uncut, (Status::Starting, None)));
    assert_eq!(rig.notes(prompt::NOTE_COPY_UNCUT), 1);
    // whatever cuts its first message off, it is not cut where the CLI refuses it
    rig.shake();
    assert_eq!(rig.last_text(), "shorter");
    rig.begin_copy();
    rig.only = None;
    rig.die();
    rig.pass(155_000);
    assert_eq!(rig.cut(), uncut, "begun again without the torn turn");
    rig.spawn_and_shake();
    rig.answer_turn("short answer");
    let row = rig.row();
    assert!(row.delivered && row.fork_of.is_none() && row.last_good_assistant.is_some());
    assert_eq!((rig.notes(prompt::NOTE_COPY_UNCUT), rig.stored(old.id)), (1, old));
}

// proves: A-04
#[test]
fn a_replay_that_cannot_be_cut_any_more_goes_on_with_what_is_there() {
    for copy in [false, true] {
        let mut rig = given_up();
        if copy {
            rig.forked();
            rig.send("shorter");
            rig.spawn_and_shake();
            rig.only = None;
        } else {
            rig.send("go on");
        }
        let (from, at) = (rig.row().cli_session_id.expect("an id"), rig.row().last_good_assistant);
        rig.tamper(|row| row.replay.carries_unanswered = false);
        rig.die();
        rig.pass(155_000);
        assert_eq!(rig.cut(), Some((from, at)), "{copy}");
        rig.keep_line(at);
        let at = at.expect("a line");
        rig.refuse_start(&alloc::format!("No message found with message.uuid of: {at}"));
        assert_eq!(rig.row().retry_attempts, 1, "the refused cut costs none");
        for _ in 0..2 {
            let (row, cut) = (rig.row(), rig.cut());
            assert_eq!((row.status, cut), (Status::Starting, Some((from, None))), "{copy}");
            rig.shake();
            assert_eq!(rig.last_text(), prompt::CONTINUE_CUT_OFF);
            // cut off again, before the copy has a name: the message is not sent again either
            rig.forget_last_line();
            rig.die();
            rig.pass(155_000);
        }
        assert_eq!(rig.notes(prompt::NOTE_COPY_UNCUT), 0);
    }
}

// proves: A-15
#[test]
fn a_cleared_copy_forgets_what_it_is_a_copy_of() {
    let mut rig = given_up();
    let old = rig.forked();
    let point = ForkPoint { from: point(&old).expect("a point").0, at: old.last_good_assistant };
    assert_eq!(rig.row().fork_of, Some(point));
    rig.send("/clear");
    rig.spawn_and_shake();
    rig.stream(StreamEvent::ConversationReset { new_id: Some(Uuid(77)) });
    rig.local_result("clear", "");
    let row = rig.row();
    assert_eq!((row.fork_of, row.cli_session_before), (None, None));
    assert_eq!((row.cli_session_id, row.last_good_assistant), (Some(Uuid(77)), None));
}
