//! Fork on the real CLI (T11): a session whose context stays full goes on in a copy of its conversation as the
//! last good turn left it, and is itself not touched. What a compaction in between does to the cut is here too.

use crate::bench::{Bench, body};
use crate::context::{CLAUDE, LIMIT, YOURS, empty, said, too_long};
use crate::support::mock_api::{Gate, Reply, Request};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_core::block::BlockKind;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{IpcCode, Reply as Made};
use omniscio_core::prompt;
use omniscio_core::session::SessionRow;
use omniscio_core::supervisor::Command;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const GOOD: [&str; 2] = ["message number one", "message number two"];
/// What does not fit.
const THREE: &str = "message number three";
const SHORT: &str = "a short message";

/// A session that must not change any more: its row, and its conversation on the disk.
struct Old {
    row: SessionRow,
    transcript: Vec<u8>,
}

impl Bench {
    /// A session with two good turns.
    fn twice_good(&self) -> SessionId {
        self.api.push(said("first answer", 60_000));
        let session = self.create_on(CLAUDE, GOOD[0]);
        self.wait_answer(session, "first answer");
        self.api.push(said("second answer", 80_000));
        self.send(session, GOOD[1]);
        self.wait_answer(session, "second answer");
        session
    }

    /// The third message and every compaction are refused as too long, and the session is given up.
    fn full(&self, session: SessionId) -> Old {
        self.api.script(|_, _| too_long());
        self.api.script_side(|_, _| too_long());
        self.given_up(session)
    }

    /// The third message is nudged three times in vain.
    fn given_up(&self, session: SessionId) -> Old {
        self.send(session, THREE);
        wait_until(LIMIT, "the nudge", || self.row(session).context_recover_count == 1);
        self.gave_up(session, THREE, 3);
        self.old(session)
    }

    fn old(&self, session: SessionId) -> Old {
        let row = self.row(session);
        let id = row.cli_session_id.expect("a conversation").to_string();
        let file = self.home.transcript(&id).expect("its file");
        Old { transcript: fs::read(file).expect("its bytes"), row }
    }

    /// Forks a session that was given up at the third message; it is what will have to be sent again.
    fn forked(&self, session: SessionId) -> SessionId {
        let made = self.command(Command::Fork { session });
        let Ok(Made::Forked { session: copy, draft }) = made else { panic!("{made:?}") };
        assert_eq!(draft.as_deref(), Some(THREE));
        copy
    }

    fn assert_untouched(&self, old: &Old) {
        let now = self.old(old.row.id);
        assert_eq!(now.row, old.row, "its row is as it was");
        assert!(now.transcript == old.transcript, "its conversation is as it was");
    }

    /// The requests that came for this message, which is their last.
    fn for_short(&self) -> Vec<Request> {
        let mut requests = self.api.main_requests();
        requests.retain(|request| request.count_text_in_history(SHORT) > 0);
        requests
    }
}

fn times(request: &Request, texts: &[&str]) -> Vec<usize> {
    texts.iter().map(|text| request.count_text_in_history(text)).collect()
}

// proves: CS-15, A-04, A-15
#[test]
fn t11_a_copy_goes_on_from_the_last_good_turn_and_leaves_the_original_as_it_is() {
    in_namespace(
        "fork::t11_a_copy_goes_on_from_the_last_good_turn_and_leaves_the_original_as_it_is",
        || {
            let bench = Bench::new();
            let session = bench.twice_good();
            let refused = bench.command(Command::Fork { session }).unwrap_err();
            assert_eq!(refused.code, IpcCode::NotEligible, "it is not given up");
            bench.full(session);
            // the person tries as well
            bench.send(session, "/compact");
            let failed = |note: &String| note.contains("ompact");
            wait_until(LIMIT, "its error", || bench.notes(session).iter().any(failed));
            bench.wait_state(session, "the end of the command", YOURS);
            let old = bench.old(session);
            assert!(old.row.context_gave_up);
            let (asked, told) = (bench.api.requests().len(), bench.notified(session));

            let copy = bench.forked(session);
            let row = bench.row(copy);
            assert_eq!((row.status, row.pending), YOURS);
            assert_eq!((&row.model, &row.folder), (&old.row.model, &old.row.folder));
            assert_eq!((row.title.as_str(), row.unread), ("message number one (fork)", false));
            assert_eq!(bench.notes(copy), [prompt::note_copy("message number one")]);
            bench.let_the_scan_pass();
            assert_eq!((bench.row(copy), bench.notified(copy)), (row, 0), "it only waits");
            let files = bench.home.transcripts().len();

            bench.api.script(|_, _| said("short answer", 81_000));
            bench.send(copy, SHORT);
            bench.wait_answer(copy, "short answer");
            let requests = bench.for_short();
            assert_eq!(requests.len(), 1);
            assert_eq!(times(&requests[0], &GOOD), [1, 1], "what was said before is there");
            assert_eq!(times(&requests[0], &[THREE, prompt::PLEASE_CONTINUE, SHORT]), [0, 0, 1]);
            assert!(body(&requests[0]).contains("second answer"));
            assert_eq!(requests[0].pairing_fault(), None);
            let others = bench.api.requests().len() - asked - 1;
            assert!(others >= 1, "only the clock of the test has asked besides: {others}");

            let row = bench.row(copy);
            assert!(row.delivered && row.fork_of.is_none() && row.last_good_assistant.is_some());
            assert_ne!(row.cli_session_id, old.row.cli_session_id);
            assert!(bench.home.transcripts().len() > files, "it has a file of its own");
            bench.assert_untouched(&old);
            assert_eq!(bench.notified(session), told, "nobody is called to it again");

            // the copy is a session like any other
            bench.api.script(|_, _| said("fourth answer", 82_000));
            bench.send(copy, "message number four");
            bench.wait_answer(copy, "fourth answer");
            bench.assert_sound(&[GOOD[0], GOOD[1], THREE, SHORT, "message number four"]);
            bench.assert_untouched(&old);
        },
    );
}

// proves
#[test]
fn a_first_message_that_is_cut_off_is_copied_again_and_stands_once() {
    in_namespace("fork::a_first_message_that_is_cut_off_is_copied_again_and_stands_once", || {
        let bench = Bench::new();
        let session = bench.twice_good();
        let old = bench.full(session);
        let copy = bench.forked(session);
        let gate = Gate::new();
        let half = said("half an answer", 81_000).hold_after(2, &gate);
        let cut = Arc::new(AtomicUsize::new(0));
        let first = Arc::clone(&cut);
        bench.api.script(move |request, _| {
            let ours = request.count_text_in_history(SHORT) > 0;
            let again = ours && first.fetch_add(1, Ordering::SeqCst) > 0;
            if ours && !again { half.clone() } else { said("short answer", 81_000) }
        });
        bench.send(copy, SHORT);
        gate.wait_reached(LIMIT);
        bench.kill_cli(copy);
        bench.wait_answer(copy, "short answer");
        assert_eq!((bench.replays(copy), bench.bubbles(copy)), (1, 1));
        let requests = bench.for_short();
        assert!(requests.len() >= 2);
        for request in &requests {
            assert_eq!(times(request, &[GOOD[0], GOOD[1], SHORT, THREE]), [1, 1, 1, 0]);
        }
        bench.assert_untouched(&old);
    });
}

// proves
#[test]
fn a_copy_is_compacted_before_the_message_is_tried_again() {
    in_namespace("fork::a_copy_is_compacted_before_the_message_is_tried_again", || {
        let bench = Bench::new();
        let session = bench.twice_good();
        let old = bench.full(session);
        let copy = bench.forked(session);
        bench
            .api
            .script_side(|_, _| Reply::new().text("<summary>A summary by the mock.</summary>"));
        bench.send(copy, "/compact");
        wait_until(LIMIT, "the compaction", || bench.compactions(copy) == 1);
        let row = bench.wait_state(copy, "the end of the command", YOURS);
        assert!(row.cli_session_id.is_some() && row.cli_session_id != old.row.cli_session_id);
        // the compacted copy is what goes on, even in another process
        bench.kill_cli(copy);
        wait_until(LIMIT, "its end", || !bench.view(copy).live.child);
        bench.api.script(|_, _| said("third answer", 9_000));
        bench.send(copy, THREE);
        bench.wait_answer(copy, "third answer");
        assert_eq!(bench.row(copy).cli_session_id, row.cli_session_id);
        let mut requests = bench.api.main_requests();
        let last = requests.pop().expect("a request");
        assert_eq!(times(&last, &["A summary by the mock.", THREE]), [1, 1]);
        bench.assert_untouched(&old);
    });
}

// proves: CS-38, A-15
#[test]
fn a_conversation_that_was_compacted_once_since_is_still_cut_at_its_last_answer() {
    in_namespace(
        "fork::a_conversation_that_was_compacted_once_since_is_still_cut_at_its_last_answer",
        || {
            let bench = Bench::new();
            let session = bench.twice_good();
            let old = bench.compacted(session, 1);
            let copy = bench.forked(session);
            bench.api.script(|_, _| said("short answer", 9_000));
            bench.send(copy, SHORT);
            bench.wait_answer(copy, "short answer");
            let requests = bench.for_short();
            assert_eq!(requests.len(), 1);
            let texts = ["A summary by the mock.", THREE, prompt::PLEASE_CONTINUE, SHORT];
            assert_eq!(times(&requests[0], &texts), [1, 0, 0, 1]);
            assert!(body(&requests[0]).contains("second answer"), "kept through the compaction");
            assert_eq!(bench.notes(copy), [prompt::note_copy("message number one")]);
            bench.assert_untouched(&old);
        },
    );
}

// proves: CS-38, A-04, A-15
#[test]
fn a_conversation_that_was_compacted_twice_since_is_copied_whole_and_the_copy_says_so() {
    in_namespace(
        "fork::a_conversation_that_was_compacted_twice_since_is_copied_whole_and_the_copy_says_so",
        || {
            let bench = Bench::new();
            let session = bench.twice_good();
            let old = bench.compacted(session, 2);
            let copy = bench.forked(session);
            bench.api.script(|_, _| said("short answer", 9_000));
            bench.send(copy, SHORT);
            bench.wait_answer(copy, "short answer");
            let notes = [prompt::note_copy("message number one"), prompt::NOTE_COPY_UNCUT.into()];
            assert_eq!(bench.notes(copy), notes);
            let shown = |kind: &BlockKind| matches!(kind, BlockKind::Operator { text, .. } if text == SHORT);
            let blocks = bench.blocks(copy);
            assert_eq!(blocks.iter().filter(|block| shown(&block.kind)).count(), 1);
            let requests = bench.for_short();
            assert_eq!(requests.len(), 1, "sent once");
            assert_eq!(times(&requests[0], &["A summary by the mock.", SHORT]), [1, 1]);
            assert!(bench.row(copy).delivered && bench.row(copy).fork_of.is_none());
            bench.assert_untouched(&old);
        },
    );
}

impl Bench {
    /// The third message compacts so often, answers nothing, and the session is given up.
    fn compacted(&self, session: SessionId, boundaries: usize) -> Old {
        let room = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&room);
        self.api.script(move |_, _| {
            let taken = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
            if taken.is_ok() { empty(2_400) } else { too_long() }
        });
        let made = Arc::new(AtomicUsize::new(0));
        self.api.script_side(move |_, _| {
            if made.fetch_add(1, Ordering::SeqCst) >= boundaries {
                return too_long();
            }
            // room for the empty answer and for the CLI's own second try
            room.store(2, Ordering::SeqCst);
            Reply::new().text("<summary>A summary by the mock.</summary>")
        });
        let old = self.given_up(session);
        assert_eq!(self.compactions(session), boundaries);
        old
    }
}
