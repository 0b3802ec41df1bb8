//! One run: lives of the app, one after the other, and what must be true after each.

use super::app::{App, Replies};
use super::fates::{Fate, PLACES, places};
use super::look::{Look, Mail};
use super::record::{Fact, Record};
use super::scenes::Stage;
use crate::rig::await_some;
use crate::supervisor::rig::{Ground, marked};
use omniscio_core::id::{MessageId, SessionId, Uuid};
use omniscio_core::ipc::Reply;
use omniscio_core::message::MessageState;
use omniscio_core::prompt;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::supervisor::Command;
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
struct Figures {
    kills: usize,
    killed_while_starting: usize,
    resumed: usize,
    replayed: usize,
    acknowledged: usize,
    cut_off_commands: usize,
    lines: usize,
    answered: usize,
    /// Answers that the CLI had given and the app had not read when it died.
    answers_lost: usize,
    leftovers: usize,
}

pub(super) struct Run {
    ground: Ground,
    stage: Stage,
    record: Record,
    sessions: usize,
    /// As the last life left it.
    was: Look,
    /// Messages that a reply has acknowledged.
    acknowledged: Vec<(MessageId, SessionId, Option<String>)>,
    created: Vec<SessionId>,
    /// Sessions that the person has stopped or put away, and not touched since.
    put_down: BTreeSet<SessionId>,
    /// In which order the messages reached a CLI for the first time.
    first_heard: Vec<MessageId>,
    /// What was alive with this data folder's marker after the last kill.
    strays: Vec<ProcessId>,
    seen: BTreeMap<&'static str, usize>,
    figures: Figures,
    began: Instant,
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

    fn home(&self) -> &Path {
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

    /// The life is over: what it was told, what it stored and what its CLIs were sent fit together.
    fn look_back(&mut self, replies: Replies, whole: bool) {
        self.record.read_on();
        let is = Look::dead(self.home(), self.was.last_entry, whole);
        let touched: BTreeSet<SessionId> =
            replies.iter().filter_map(|(command, _)| session_of(command)).collect();
        for session in is.rows.keys() {
            self.assert_lines(*session, &is);
            if !touched.contains(session) {
                self.assert_silence(*session);
            }
        }
        for fact in &self.record.facts {
            if let Fact::Start { session, pid, second: true } = fact {
                panic!("{pid} is a second living child of {session}");
            }
        }
        replies.into_iter().for_each(|(command, reply)| self.take(command, reply));
        self.assert_kept(&is);
        for entry in is.log.iter().filter(|entry| entry.is_restart()) {
            let resumed = entry.actor == "crash-resume";
            let figures = &mut self.figures;
            *(if resumed { &mut figures.resumed } else { &mut figures.replayed }) += 1;
        }
        self.was = is;
    }

    /// A line for each message that was to be sent and for each restart, none for what was over; each
    /// stored as sent before.
    fn assert_lines(&mut self, session: SessionId, is: &Look) {
        let lines: Vec<(Uuid, String)> =
            self.record.heard(session).map(|(uuid, text)| (uuid, text.to_string())).collect();
        let state = |look: &Look, id| look.mail(id).map(|mail| mail.state);
        let went = |state| matches!(state, Some(MessageState::Sent | MessageState::Answered));
        let ids = is.mail.iter().filter(|mail| mail.session == session).map(|mail| mail.id);
        let new = ids.filter(|id| went(state(is, *id)) && !went(state(&self.was, *id))).count();
        if is.is_deleted(session) {
            // with its messages
            return;
        }
        let restarts = is.restarts_of(session, None);
        assert!(
            lines.len() <= new + restarts,
            "{new} new, {restarts} restarts, but {lines:#?}\nwas {:#?}\nis {}",
            self.was.rows.get(&session),
            is.story(session)
        );
        for (uuid, text) in &lines {
            let Some(id) = self.addressed(is, session, *uuid, text) else { continue };
            assert!(went(state(is, id)), "sent before it was stored as sent: {text}");
            let over = state(&self.was, id) == Some(MessageState::Answered);
            assert!(!over, "answered before, and sent again: {text}");
            if !self.first_heard.contains(&id) {
                self.first_heard.push(id);
            }
        }
        self.figures.lines += lines.len();
        let mut answers: BTreeMap<&str, usize> = BTreeMap::new();
        let known = self.was.mail.iter().filter(|mail| mail.session == session);
        let known = known.filter(|mail| mail.state == MessageState::Answered).count();
        for (answer, history) in self.record.answers(session) {
            assert!(history > known, "{known} were answered, the CLI knows of {history}: {answer}");
            if let Some(tag) = tag_of(answer) {
                *answers.entry(tag).or_default() += 1;
            }
        }
        for (tag, times) in answers {
            assert_eq!(times, 1, "answered so often in one life: {tag}");
            let front = format!("{tag} ");
            let mail = is.mail.iter().find(|mail| mail.text.starts_with(&front)).unwrap();
            self.figures.answers_lost += usize::from(mail.state != MessageState::Answered);
        }
    }

    /// The message that a line carries; `None` for the sentence that says how to go on.
    fn addressed(
        &self,
        is: &Look,
        session: SessionId,
        uuid: Uuid,
        text: &str,
    ) -> Option<MessageId> {
        if text == prompt::CONTINUE_CUT_OFF {
            return None;
        }
        if is.mail(uuid).is_some() {
            return Some(uuid);
        }
        // sent again under another uuid; "Please continue." may stand there more than once
        let open = |mail: &&Mail| {
            self.was.mail(mail.id).is_none_or(|was| was.state != MessageState::Answered)
        };
        let mut mail = is.mail.iter().filter(|mail| mail.session == session);
        let found = mail.find(|mail| text.ends_with(mail.text.as_str()) && open(mail));
        Some(found.unwrap_or_else(|| panic!("a line nobody wrote: {text}")).id)
    }

    /// Nobody touched the session: what is not brought back was sent nothing.
    fn assert_silence(&self, session: SessionId) {
        let Some(row) = self.was.rows.get(&session) else { return };
        let heard = self.record.heard(session).count();
        let fate = Fate::of(row, self.was.queue(session).next().is_some());
        assert!(!fate.is_silent() || heard == 0, "{fate:?} and {heard} lines: {row:#?}");
        let put_down = self.put_down.contains(&session);
        assert!(!put_down || heard == 0, "stopped by the person, and {heard} lines: {row:#?}");
    }

    /// Remembers what was acknowledged, and what the person has put down.
    fn take(&mut self, command: Command, reply: Option<super::app::Outcome>) {
        let Some(session) = session_of(&command) else {
            if let Some(Ok(Reply::Created(session))) = reply {
                self.created.push(session);
            }
            return;
        };
        let puts_down = matches!(
            command,
            Command::Stop { .. }
                | Command::End { .. }
                | Command::Archive { .. }
                | Command::Delete { .. }
        );
        match reply {
            Some(Ok(Reply::Done)) if puts_down => drop(self.put_down.insert(session)),
            Some(_) | None if puts_down => {}
            Some(_) | None => drop(self.put_down.remove(&session)),
        }
        match reply {
            Some(Ok(Reply::Accepted(id))) => {
                let text = if let Command::Send { text, .. } = command { Some(text) } else { None };
                self.acknowledged.push((id, session, text));
                self.figures.acknowledged += 1;
            }
            Some(Ok(_) | Err(_)) => {}
            None => self.figures.cut_off_commands += 1,
        }
    }

    /// What was acknowledged stands in the store, and no message of the person stands there twice.
    fn assert_kept(&self, is: &Look) {
        for session in &self.created {
            assert!(is.rows.contains_key(session), "a session is lost: {session}");
        }
        for (id, session, text) in &self.acknowledged {
            if is.is_deleted(*session) {
                continue;
            }
            let mail = is.mail(*id).unwrap_or_else(|| panic!("lost: {id} {text:?}"));
            assert_eq!(mail.session, *session);
            assert!(text.as_ref().is_none_or(|text| *text == mail.text), "{mail:?}");
        }
        let mut tags = BTreeSet::new();
        for mail in is.mail.iter().filter(|mail| mail.text.contains("[[fake:")) {
            assert!(tags.insert(&mail.text), "stands twice: {mail:?}");
        }
    }

    /// At the end nothing waits that the person does not hold up.
    fn nothing_is_left_open(&self, row: &SessionRow, look: &Look) {
        if (row.status, row.pending) != (Status::NeedsYou, None) {
            return;
        }
        assert!(!row.replay.is_open(), "unanswered: {row:#?}");
        let waits = look.queue(row.id).count();
        assert!(waits == 0 || self.put_down.contains(&row.id), "{waits} wait: {row:#?}");
    }

    /// What waited in line went in line.
    fn assert_order(&self) {
        let place = |id| self.first_heard.iter().position(|heard| *heard == id);
        for batch in self.stage.batches() {
            let ids = batch.iter().filter_map(|text| {
                self.was.mail.iter().find(|mail| mail.text == *text).map(|mail| mail.id)
            });
            let places: Vec<usize> = ids.filter_map(place).collect();
            assert!(places.is_sorted(), "out of line: {batch:?} {places:?}");
        }
    }
}

/// The tag of a whole answer.
fn tag_of(answer: &str) -> Option<&str> {
    let (_, rest) = answer.split_once("Answer ")?;
    rest.split_once('.').map(|(tag, _)| tag)
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

fn session_of(command: &Command) -> Option<SessionId> {
    match command {
        Command::Send { session, .. }
        | Command::Unqueue { session, .. }
        | Command::Stop { session }
        | Command::Retry { session }
        | Command::Continue { session }
        | Command::ReplyCard { session, .. }
        | Command::SwitchModel { session, .. }
        | Command::TakeOver { session, .. }
        | Command::ForkHeld { session }
        | Command::End { session }
        | Command::Archive { session }
        | Command::Unarchive { session }
        | Command::Delete { session }
        | Command::Rename { session, .. }
        | Command::MarkRead { session, .. }
        | Command::Agent { session, .. }
        | Command::Explain { session } => Some(*session),
        Command::Create { .. } | Command::SetSetting { .. } | Command::Quit => None,
    }
}

/// A process with the marker of the data folder.
enum Marked {
    Cli(SessionId),
    Tool { parent: u32 },
}

/// What a marked process is; `None` if it is gone by now.
fn marks(pid: u32) -> Option<Marked> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |name: &str| {
        let pairs = environ.split(|byte| *byte == 0);
        let mut values =
            pairs.filter_map(|pair| std::str::from_utf8(pair).ok()?.strip_prefix(name));
        values.next().map(str::to_string)
    };
    if !alive(ProcessId::of(pid)?) {
        return None;
    }
    match value("CLAUDE_PID=") {
        Some(parent) => Some(Marked::Tool { parent: parent.parse().ok()? }),
        None => Some(Marked::Cli(value("OMNISCIO_SESSION=")?.parse().ok()?)),
    }
}

fn is_cli(pid: u32) -> bool {
    matches!(marks(pid), Some(Marked::Cli(_)))
}
