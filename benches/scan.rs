//! What one tick of the minute's scan costs among many rows, in processor time: the store's query, and
//! the rules around it.

use crate::figure::Figure;
use crate::meter::{percentile, processor_ms};
use omniscio_core::id::Uuid;
use omniscio_core::launch::classify::Os;
use omniscio_core::limits::Limits;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::settings::{KillSwitches, Settings};
use omniscio_core::supervisor::{Act, Answer, AskId, Boot, Input, Question, State, Write, step};
use omniscio_core::time::{Day, Mono, Now, Wall};
use omniscio_core::verdict::Actor;
use omniscio_lib::supervise::store::{Store, database_path};
use std::hint::black_box;
use tempfile::TempDir;

const FEW: u32 = 1_000;
const MANY: u32 = 100_000;
const STAMPED: u32 = 100;
const QUERIES: usize = 2_000;
const TICKS: usize = 2_000;
const GOAL_MS: f64 = 0.2;
/// Beyond this share of the figure among few rows, it is not flat.
const FLAT: f64 = 1.5;
/// Rows of one transaction while the table is filled.
const CHUNK: usize = 10_000;

/// See the file.
pub(crate) fn measure() -> Vec<Figure> {
    let (few, many) = (Table::of(FEW), Table::of(MANY));
    let query = (few.queries(), many.queries());
    let tick = (few.ticks(), many.ticks());
    let figure = |what: &str, (few, many): (f64, f64)| {
        Figure::new(
            format!("{what}, {MANY} rows, {STAMPED} of them stamped"),
            format!("{many:.3} ms (p99)"),
            format!("{few:.3} ms with {FEW} rows"),
            many / few,
        )
    };
    let met = query.1 <= GOAL_MS && query.1 / query.0 <= FLAT;
    vec![
        figure("the scan's query", query)
            .goal(&format!("<= {GOAL_MS} ms, flat (ratio <= {FLAT})"), met),
        figure("- with the rules around it", tick),
    ]
}

/// A database with so many rows.
struct Table {
    store: Store,
    _folder: TempDir,
}

impl Table {
    fn of(rows: u32) -> Table {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(&database_path(folder.path())).expect("a store");
        let writes: Vec<Write> = (0..rows).map(|number| insert(row(number, rows))).collect();
        for chunk in writes.chunks(CHUNK) {
            store.commit(chunk, Wall(0)).expect("rows in the store");
        }
        let stamped = store.response_aborted_session_ids().expect("the stamped ones").len();
        assert_eq!(u32::try_from(stamped), Ok(STAMPED));
        Table { store, _folder: folder }
    }

    fn queries(&self) -> f64 {
        let mut times = Vec::with_capacity(QUERIES);
        for _ in 0..QUERIES {
            let query = || self.store.response_aborted_session_ids().expect("the stamped ones");
            times.push(processor_ms(query));
        }
        percentile(&mut times, 99)
    }

    fn ticks(&self) -> f64 {
        let limits = Limits::default();
        let interval = limits.scan_interval_ms;
        // no question of the tick before is open any more then
        let between = interval / 2;
        let mut rules = Rules { state: State::new(limits), now_ms: 0 };
        rules.boot(self.store.load().expect("the rows").rows);
        let mut times = Vec::with_capacity(TICKS);
        for _ in 0..TICKS {
            rules.now_ms += between;
            rules.step(Input::Wake);
            rules.now_ms += interval - between;
            times.push(processor_ms(|| {
                let ask = rules.step(Input::Wake).expect("the scan asks");
                let ids = self.store.response_aborted_session_ids().expect("the stamped ones");
                rules.step(Input::Answer { ask, answer: Answer::Stamped { ids } });
            }));
        }
        percentile(&mut times, 99)
    }
}

struct Rules {
    state: State,
    now_ms: u64,
}

impl Rules {
    /// One step; gives the scan's question if it asks one.
    fn step(&mut self, input: Input) -> Option<AskId> {
        let wall = Wall(i64::try_from(self.now_ms).expect("a time"));
        let now = Now { wall, mono: Mono(self.now_ms), day: Day(0) };
        black_box(self.state.next_wakeup(now));
        let step = step(&mut self.state, input, now);
        step.acts.into_iter().find_map(|act| {
            let Act::Ask { ask, question: Question::Stamped } = act else { return None };
            Some(ask)
        })
    }

    fn boot(&mut self, rows: Vec<SessionRow>) {
        let boot = Boot {
            seed: 1,
            os: Os::current(),
            first: true,
            rows,
            queues: Vec::new(),
            block_counts: Vec::new(),
            live: Vec::new(),
            settings: Settings::default(),
            switches: KillSwitches::default(),
            accounts: Vec::new(),
        };
        self.step(Input::Boot(Box::new(boot)));
        // the first tick comes sooner than an interval
        self.now_ms += self.state.limits().scan_boot_delay_ms;
        self.step(Input::Wake);
    }
}

/// The row of this number: one in so many is stamped, the others rest as sessions do that were used.
fn row(number: u32, of: u32) -> SessionRow {
    let title = "A session".to_owned();
    let id = Uuid(u128::from(number) + 1);
    let mut row = SessionRow::new(id, "/".into(), title, "bench".into(), Wall(0));
    row.intent_running = false;
    row.turn_count = 3;
    row.ever_answered = true;
    row.status_changed_at = Wall(i64::from(of - number));
    if number.is_multiple_of(of / STAMPED) {
        (row.status, row.pending) = (Status::NeedsYou, Some(PendingAction::ResponseAborted));
    } else {
        row.delivered = true;
        row.status = [Status::NeedsYou, Status::Archived, Status::Paused][number as usize % 3];
    }
    row
}

fn insert(row: SessionRow) -> Write {
    Write::Row { before: None, after: Box::new(row), actor: Actor::App, reason: "made".into() }
}
