//! One run: lives of the app, one after the other, and what must be true after each.

use super::app::App;
use super::fates::{Fate, PLACES, places};
use super::look::{Look, Mail};
use super::marked::{Marked, is_cli, marks};
use super::record::Record;
use super::scenes::Stage;
use crate::rig::await_some;
use crate::supervisor::rig::{Ground, marked};
use omniscio_core::id::{MessageId, SessionId};
use omniscio_core::message::MessageState;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_lib::supervise::children::{ProcessId, alive};
use omniscio_lib::supervise::clock::Deadline;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Every so many lives the whole database is checked.
const WHOLE: usize = 5;
/// A life without a person in it comes to rest within this, unless a text holds it up. The longest gap of
/// the ladder is shorter.
const REST: Duration = Duration::from_millis(1_500);
/// So many texts may wait in one queue, each of which wants a life.
const LAST_LIVES: usize = 60;
/// Of so many lives three are killed while the app starts, and one has no CLI to start.
const LIVES: u64 = 10;
const POLL: Duration = Duration::from_millis(20);
/// Whatever has no steps of its own is answered so.
const OTHERWISE: &str = "say Carried on.\n";

/// What is told at the end.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) kills: usize,
    pub(super) killed_while_starting: usize,
    pub(super) resumed: usize,
    pub(super) replayed: usize,
    pub(super) acknowledged: usize,
    pub(super) cut_off_commands: usize,
    pub(super) lines: usize,
    pub(super) answered: usize,
    /// Answers that the CLI had given and the app had not read when it died.
    pub(super) answers_lost: usize,
    pub(super) leftovers: usize,
}

pub(super) struct Run {
    pub(super) ground: Ground,
    pub(super) stage: Stage,
    pub(super) record: Record,
    pub(super) sessions: usize,
    /// As the last life left it.
    pub(super) was: Look,
    /// Messages that a reply has acknowledged.
    pub(super) acknowledged: Vec<(MessageId, SessionId, Option<String>)>,
    pub(super) created: Vec<SessionId>,
    /// Sessions that the person has stopped or put away, and not touched since.
    pub(super) put_down: BTreeSet<SessionId>,
    /// In which order the messages reached a CLI for the first time.
    pub(super) first_heard: Vec<MessageId>,
    /// What was alive with this data folder's marker after the last kill.
    pub(super) strays: Vec<ProcessId>,
    pub(super) seen: BTreeMap<&'static str, usize>,
    pub(super) figures: Figures,
    pub(super) began: Instant,
}

impl Run {
    pub(super) fn new(seed: u64, sessions: usize) -> Run {
        let ground = Ground::new();
        let home = ground.home.path();
        fs::create_dir(home.join("config-login")).unwrap();
        let cli = env!("CARGO_BIN_EXE_omniscio-fake-claude");
        std::os::unix::fs::symlink(cli, home.join(super::CLI)).unwrap();
        for config in ["config", "config-login"] {
            fs::write(home.join(config).join("fake-script"), OTHERWISE.repeat(5_000)).unwrap();
        }
        Run {
            record: Record::prepare(home),
            ground,
            stage: Stage::new(seed),
            sessions,
            was: Look::default(),
            acknowledged: Vec::new(),
            created: Vec::new(),
            put_down: BTreeSet::new(),
            first_heard: Vec::new(),
            strays: Vec::new(),
            seen: BTreeMap::new(),
            figures: Figures::default(),
            began: Instant::now(),
        }
    }

    pub(super) fn kills(&self) -> usize {
        self.figures.kills
    }

    /// The states that no kill has found yet.
    pub(super) fn unseen(&self) -> Vec<&'static str> {
        PLACES.into_iter().filter(|place| !self.seen.contains_key(place)).collect()
    }

    pub(super) fn home(&self) -> &Path {
        self.ground.home.path()
    }

    /// The app starts, does what the person wants, and is killed.
    pub(super) fn one_life(&mut self) {
        let kind = if self.kills() == 0 { LIVES } else { self.stage.chance.below(LIVES) };
        match kind {
            0..3 => {
                let app = self.start(false);
                self.pass(400);
                self.figures.killed_while_starting += 1;
                self.killed(app);
            }
            3 => self.without_a_cli(),
            _whole => {
                let (app, look) = self.start_and_settle();
                self.busy(app, &look);
            }
        }
    }

    /// The machine gives the app no child for as long as it lives.
    fn without_a_cli(&mut self) {
        let (cli, away) = (self.home().join(super::CLI), self.home().join("away"));
        fs::rename(&cli, &away).unwrap();
        let mut app = self.start(true);
        app.until_ready();
        self.pass(300);
        let look = Look::alive(self.home(), self.was.last_entry);
        self.busy(app, &look);
        fs::rename(&away, &cli).unwrap();
    }

    /// The person does this and that, and the app is killed over it.
    fn busy(&mut self, mut app: App, look: &Look) {
        let acts = self.stage.acts(look);
        let listed = look.rows.values().filter(|row| row.deleted_at.is_none()).count();
        for _ in listed..self.sessions {
            app.tell(self.stage.create(self.ground.home.path()));
        }
        for commands in [acts.first, acts.later] {
            commands.into_iter().for_each(|command| app.tell(command));
            let some = self.stage.chance.below(2 * app.told() as u64 + 1) as usize;
            app.until_replied(some.min(app.told()));
            self.pass(200);
        }
        self.killed(app);
    }

    /// Kills go on until each text that holds its app up has had its share, then everything comes to rest.
    pub(super) fn finish(mut self) {
        let (app, look) = self.come_to_rest();
        for row in look.rows.values().filter(|row| row.deleted_at.is_none()) {
            self.nothing_is_left_open(row, &look);
        }
        let replies = app.quit();
        self.look_back(replies, true);
        assert_eq!(marked(self.home()), Vec::<u32>::new(), "left behind");
        self.assert_order();
        self.figures.answered =
            self.was.mail.iter().filter(|mail| mail.state == MessageState::Answered).count();
        println!("{:#?}\n{:?}", self.figures, self.seen);
        println!("{} sessions, {:.1} s", self.created.len(), self.began.elapsed().as_secs_f32());
    }

    /// A life in which nothing is under way any more: a text that holds its app up dies with the next one.
    fn come_to_rest(&mut self) -> (App, Look) {
        for lives_left in (0..LAST_LIVES).rev() {
            let (app, _) = self.start_and_settle();
            let deadline = Deadline::after(REST);
            loop {
                self.record.read_on();
                let look = Look::alive(self.home(), self.was.last_entry);
                let busy: Vec<&SessionRow> = look.rows.values().filter(|row| moves(row)).collect();
                if busy.is_empty() {
                    return (app, look);
                }
                if deadline.passed() {
                    let stories: Vec<String> = busy.iter().map(|row| look.story(row.id)).collect();
                    assert!(lives_left > 0, "no rest: {}", stories.join("\n"));
                    break;
                }
                thread::sleep(POLL);
            }
            self.killed(app);
        }
        unreachable!("the last life either rests or fails")
    }

    /// Lets a moment pass, of at most so many milliseconds: often a short one.
    fn pass(&mut self, most: u64) {
        let most = 1 + self.stage.chance.below(most);
        thread::sleep(Duration::from_millis(self.stage.chance.below(most)));
    }

    fn start(&mut self, refusing: bool) -> App {
        self.record.turn_the_page();
        App::start(self.home(), refusing)
    }

    /// The app after its start, each session in its place.
    fn start_and_settle(&mut self) -> (App, Look) {
        let mut app = self.start(false);
        app.until_ready();
        let left: Vec<_> = self.strays.iter().filter(|id| alive(**id)).collect();
        assert!(left.is_empty(), "the start has not ended {left:?}");
        let look = self.until(Run::in_place);
        self.assert_children(&look);
        (app, look)
    }

    /// Asks until it is so.
    fn until<T>(&mut self, mut asked: impl FnMut(&mut Run) -> Result<T, Vec<String>>) -> T {
        let deadline = Deadline::after(super::LONG);
        loop {
            match asked(self) {
                Ok(found) => return found,
                Err(why) => {
                    assert!(!deadline.passed(), "kill {}: {}", self.kills(), why.join("\n"))
                }
            }
            thread::sleep(POLL);
        }
    }

    fn in_place(&mut self) -> Result<Look, Vec<String>> {
        self.record.read_on();
        let look = Look::alive(self.ground.home.path(), self.was.last_entry);
        let not_so = self.was.rows.iter().filter_map(|(session, row)| {
            let queued = self.was.queue(*session).next();
            let fate = Fate::of(row, queued.is_some());
            fate.holds(*session, &self.was, &look, &self.record).err()
        });
        let not_so: Vec<String> = not_so.collect();
        if !not_so.is_empty() {
            return Err(not_so);
        }
        for (session, row) in &self.was.rows {
            let queued = self.was.queue(*session).next();
            if Fate::of(row, queued.is_some()) == Fate::Back {
                self.assert_resumed(row, queued, &look);
            }
        }
        Ok(look)
    }

    /// What was cut off comes first, and what waits behind it after it.
    fn assert_resumed(&self, row: &SessionRow, queued: Option<&Mail>, look: &Look) {
        let (uuid, text) = self.record.heard(row.id).next().unwrap();
        let wanted = row.replay.message.filter(|_| row.replay.is_open());
        let wanted = wanted.or(queued.map(|mail| mail.id));
        match self.addressed(look, row.id, uuid, text) {
            Some(message) => assert_eq!(Some(message), wanted, "first to {row:#?}"),
            None => assert!(
                row.replay.tool_started()
                    || row.replay.message.is_none()
                    || row.replay.carries_unanswered,
                "{row:#?}"
            ),
        }
    }

    /// At most one child for each session, as many as there should be, and nobody without a parent.
    fn assert_children(&mut self, look: &Look) {
        self.until(|run| {
            let mut children: BTreeMap<SessionId, usize> = BTreeMap::new();
            for pid in marked(run.home()) {
                let Some(tool_of) = marks(pid) else { continue };
                match tool_of {
                    Marked::Cli(session) => *children.entry(session).or_default() += 1,
                    Marked::Tool { parent } if is_cli(parent) => {}
                    Marked::Tool { parent } => return Err(vec![format!("{pid} of dead {parent}")]),
                }
            }
            // a CLI that is just starting a tool looks like two; the record knows of two that live
            if children.values().any(|many| *many != 1) {
                return Err(vec![format!("two of one session: {children:?}")]);
            }
            for (session, row) in &run.was.rows {
                let silent = Fate::of(row, run.was.queue(*session).next().is_some()).is_silent();
                assert!(!silent || !children.contains_key(session), "a child nobody asked for");
            }
            Ok(())
        });
        for row in look.rows.values().filter(|row| row.status == Status::Running) {
            assert!(row.child.is_some() || row.turn.is_none(), "no child recorded: {row:#?}");
        }
    }

    fn killed(&mut self, app: App) {
        let replies = app.kill();
        self.figures.kills += 1;
        let tools = |run: &Run| {
            let pids = marked(run.home());
            let cli = pids.iter().any(|pid| matches!(marks(*pid), Some(Marked::Cli(_))));
            (!cli).then_some(pids)
        };
        // the terminals are closed: every CLI is on its way out, its tools are not
        let tools = await_some(|| tools(self));
        self.strays = tools.into_iter().filter_map(ProcessId::of).collect();
        self.figures.leftovers += self.strays.len();
        self.look_back(replies, self.kills().is_multiple_of(WHOLE));
        for row in self.was.rows.values() {
            for place in places(row, &self.was) {
                *self.seen.entry(place).or_default() += 1;
            }
        }
    }
}

/// Whether something is under way that ends by itself.
fn moves(row: &SessionRow) -> bool {
    if row.deleted_at.is_some() || row.status == Status::Archived {
        return false;
    }
    match row.pending {
        Some(PendingAction::RecoveryFailed) => row.stop_reason.is_none(),
        Some(PendingAction::ResponseAborted) => true,
        Some(
            PendingAction::Question
            | PendingAction::PlanApproval
            | PendingAction::PermissionRequest
            | PendingAction::AuthRequired
            | PendingAction::ApiError
            | PendingAction::Stopped
            | PendingAction::AppRestartSuspended
            | PendingAction::RateLimited,
        ) => false,
        None => matches!(row.status, Status::Starting | Status::Running),
    }
}
