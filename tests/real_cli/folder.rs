//! The project folder goes away while a cut-off reply waits to be brought back, and comes back.

use crate::bench::Bench;
use crate::looks::Written;
use crate::support::mock_api::{Gate, Reply};
use crate::support::namespace::in_namespace;
use crate::support::real_cli::wait_until;
use omniscio_core::prompt;
use std::fs;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

// proves: PF-01, PF-02, PF-04, PF-05
#[test]
fn moved_away_nothing_is_tried_or_charged_and_back_it_is_replayed() {
    in_namespace("folder::moved_away_nothing_is_tried_or_charged_and_back_it_is_replayed", || {
        let bench = Bench::new();
        let (folder, away) = (bench.home.project(), bench.home.home().join("elsewhere"));
        let note_count = |session| {
            let notes = bench.notes(session).into_iter();
            notes.filter(|note| note == prompt::NOTE_FOLDER_MISSING).count()
        };
        let gate = Gate::new();
        bench.api.push(Reply::new().text("half an answer").hold_after(1, &gate));
        let session = bench.create("please answer this");
        gate.wait_reached(LIMIT);
        bench.wait_on_disk(Written::Message("please answer this"));
        fs::rename(&folder, &away).expect("moved away");
        bench.kill_cli(session);
        wait_until(LIMIT, "the note", || note_count(session) == 1);
        // ticks go by: another session, elsewhere, is brought back twice
        bench.let_the_scan_pass();
        let view = bench.view(session);
        assert!(view.live.folder_missing && view.row.in_shape(), "{view:#?}");
        assert_eq!((view.row.child, view.live.child), (None, false), "no process");
        assert_eq!((view.row.retry_attempts, bench.replays(session)), (0, 0));
        assert_eq!(bench.restarts(session, "response-aborted"), 0);
        assert_eq!(bench.requests_with("please answer this"), 1);
        assert_eq!(note_count(session), 1, "{:?}", bench.notes(session));
        assert!(!folder.exists(), "nobody made it anew");

        bench.api.push(Reply::new().text("the whole answer"));
        fs::rename(&away, &folder).expect("back again");
        bench.wait_answer(session, "the whole answer");
        let view = bench.view(session);
        assert!(!view.live.folder_missing);
        assert_eq!((view.row.retry_attempts, bench.replays(session)), (1, 1));
        assert_eq!((note_count(session), bench.bubbles(session)), (1, 1));
        bench.assert_never_twice("please answer this");
    });
}
