//! Launches that fail: invariants 56, 58, 59 and 60, RS-13 (the bounded mode), RS-23 (what cancels a
//! wait) and A-14 (a person is told after ten minutes). The gaps, the lines and the ends are those of the
//! contract, written down a second time.

use super::{Change, Oracle};
use crate::clock::{Clock, MINUTE, SECOND};
use crate::report::Report;
use crate::store::Store;
use omniscio_core::block::BlockKind;
use omniscio_core::id::SessionId;
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::supervisor::{Answer, Command, Input, State, Write};
use omniscio_core::verdict::Actor;

const HICCUP: &str =
    "Launch hiccup — the machine looks busy. Keeping at it until this session is back…";
const STILL: &str = "Still relaunching this session…";
const LONGEST: u64 = 30 * SECOND;
/// The gap between the retries of the bounded mode, and how many it has.
const BOUNDED: (u64, u32) = (250, 3);
/// A look that failed for a reason of its own is taken again after this.
const LOOK_AGAIN: u64 = 5 * SECOND;
const TELL_AFTER: u64 = 10 * MINUTE;

/// A launch that fails, from its first failure to its success or its cancellation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Relaunch {
    /// Failed launches so far.
    pub(super) failures: u32,
    first_at: u64,
    failed_at: u64,
    /// No launch of it is under way: it waits for its next one.
    pub(super) waiting: bool,
    /// What the last failure was read with: relentless relaunch is on.
    on: bool,
    /// The next launch lines up then.
    pub(super) due: u64,
    /// The person wants it at once.
    hurried: bool,
    /// Lines that were posted.
    lines: u32,
    /// Launches of others since it is due, and how many stood in the line with it.
    pub(super) passed: u64,
    pub(super) beside: u64,
}

/// A launch that is about to be told as failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    session: SessionId,
    passes: bool,
}

/// The gap after so many failures, before jitter (RS-03, RS-04).
fn gap(failures: u32) -> u64 {
    (1..failures).fold(250, |gap, _| LONGEST.min(gap * 2))
}

/// A line about a relaunch that is posted.
fn posted(write: &Write) -> Option<(SessionId, String)> {
    if let Write::Block { session, block } = write
        && let BlockKind::Note { text } = &block.kind
        && (text == HICCUP || text.starts_with(STILL))
    {
        return Some((*session, text.clone()));
    }
    None
}

/// The line that one failure posts (RS-16, RS-17).
fn line(failures: u32) -> Option<String> {
    match failures {
        1 => Some(HICCUP.to_string()),
        n if n % 10 == 0 => Some(format!("{STILL} (attempt {n})")),
        _ => None,
    }
}

impl Oracle {
    /// The system refused a launch that is still wanted; it `passes` by itself, or not.
    pub(crate) fn launch_fails(&mut self, session: SessionId, passes: Option<bool>) {
        self.failure = passes.map(|passes| Failure { session, passes });
    }

    /// The session's part of the step is not done.
    pub(super) fn no_failure(&mut self, session: SessionId) {
        self.failure.take_if(|failure| failure.session == session);
    }

    fn relentless(&self) -> bool {
        let policy = &self.policy;
        policy.settings.relentless_session_relaunch && !policy.switches.relentless_relaunch
    }

    /// A failed launch is committed: what it makes of the row, and what it must post.
    pub(super) fn failed(
        &mut self,
        writes: &[Write],
        (store, at): (&Store, u64),
        report: &mut Report,
    ) {
        self.posted = writes.iter().filter_map(posted).collect();
        let Some(Failure { session, passes }) = self.failure else { return };
        let goes_on = self.counts_failure(session, passes, at);
        self.book(session).again = goes_on;
        self.becomes(session, (passes, goes_on), store, report);
    }

    /// One more failure in the books: whether the launch is tried again.
    fn counts_failure(&mut self, id: SessionId, passes: bool, at: u64) -> bool {
        let on = self.relentless();
        let relaunch = &mut self.book(id).relaunch;
        let goes_on = passes && (on || relaunch.failures < BOUNDED.1);
        if relaunch.failures == 0 {
            relaunch.first_at = at;
        }
        relaunch.failures += u32::from(passes);
        (relaunch.failed_at, relaunch.waiting, relaunch.on) = (at, goes_on, on);
        (relaunch.hurried, relaunch.passed, relaunch.beside) = (false, 0, 0);
        let line = line(relaunch.failures).filter(|_| goes_on && on);
        self.expected.extend(line.map(|line| (id, line)));
        goes_on
    }

    /// A look for a launch that came to nothing counts as a failed launch: a machine that is too busy to
    /// look is too busy to launch. Whether it was one for a launch is seen by what the row shows.
    fn failed_looks(&mut self, state: &State, clock: &Clock, report: &mut Report) {
        for id in std::mem::take(&mut self.line.failed_looks) {
            let failures = self.book(id).relaunch.failures;
            let shown = state.view(id).and_then(|view| view.live.relaunch);
            if shown.is_none_or(|shown| shown.attempts != failures + 1) {
                // its try came to nothing in another way; the next one is its own
                let relaunch = &mut self.book(id).relaunch;
                relaunch.due = relaunch.due.max(clock.at + LOOK_AGAIN);
                (relaunch.passed, relaunch.beside) = (0, 0);
                continue;
            }
            report.hit("relaunch: a look that failed");
            self.counts_failure(id, true, clock.at);
            let book = self.book(id);
            // what was begun goes on; a click that waits for it is answered by its launch
            book.again |= book.claim.is_none() && book.rest.is_none();
            book.takes_over |= book.click.take().is_some();
            self.shows_wait(id, state, clock);
        }
    }

    /// INV-60: what does not pass is an error in the same step. INV-59: what passes is none, but for the
    /// end of the bounded retries (RS-13).
    fn becomes(
        &mut self,
        id: SessionId,
        (passes, goes_on): (bool, bool),
        store: &Store,
        report: &mut Report,
    ) {
        let Some(row) = store.rows.get(&id) else { return };
        let failures = self.book(id).relaunch.failures;
        let sound = if goes_on { row.status == Status::Starting } else { is_red(row) };
        let book = self.book(id);
        book.again = goes_on;
        book.refused = !goes_on;
        if !goes_on {
            book.relaunch = Relaunch::default();
        }
        let reached = match (passes, goes_on) {
            (true, true) if failures == 1 => "relaunch: the first hiccup",
            (true, true) => "relaunch: one more failure",
            (true, false) => "relaunch: bounded give-up",
            (false, _) if failures > 0 => "relaunch: ends with a real error",
            (false, _) => "a launch fails for good",
        };
        report.hit(reached);
        if !sound {
            let name = match (passes, goes_on) {
                (true, true) => "INV-59",
                (true, false) => "RS-13",
                (false, _) => "INV-60",
            };
            self.fail(name, format!("launch {failures} failed, passing {passes}: {row:?}"));
        }
    }

    /// INV-58: the lines of a relaunch are those of its first and of every tenth failure, no other step
    /// posts one, and the bounded mode posts none.
    fn inv_58(&mut self, report: &mut Report) {
        let mut posted = std::mem::take(&mut self.posted);
        let mut expected = std::mem::take(&mut self.expected);
        posted.sort();
        expected.sort();
        if posted != expected {
            let on = self.relentless();
            let text = format!("posted {posted:?}, expected {expected:?}, relentless {on}");
            self.fail("INV-58", text);
        }
        for (id, _) in expected {
            let relaunch = &mut self.book(id).relaunch;
            relaunch.lines += 1;
            let relaunch = *relaunch;
            if relaunch.failures >= 10 {
                report.hit("relaunch: line at a tenth attempt");
            }
            if relaunch.lines > 1 + relaunch.failures / 10 {
                let text = format!("{} lines after {} failures", relaunch.lines, relaunch.failures);
                self.fail("INV-58", text);
            }
        }
    }

    /// After a step: whatever failed in it is shown and told as it must be.
    pub(super) fn shows_failures(&mut self, state: &State, clock: &Clock, report: &mut Report) {
        if let Some(Failure { session, .. }) = self.failure.take() {
            self.shows_wait(session, state, clock);
        }
        self.failed_looks(state, clock, report);
        self.inv_58(report);
    }

    /// INV-56: the gap that is shown after a failure is the contract's, less at most a fifth.
    fn shows_wait(&mut self, session: SessionId, state: &State, clock: &Clock) {
        let relaunch = self.book(session).relaunch;
        if !relaunch.waiting {
            return;
        }
        let shown = state.view(session).and_then(|view| view.live.relaunch);
        let next = shown.as_ref().and_then(|shown| shown.next);
        let attempts = shown.map(|shown| shown.attempts);
        let left = next.and_then(|next| u64::try_from(next.since(clock.now().wall)).ok());
        let (least, most) = relaunch.bounds();
        if attempts != Some(relaunch.failures)
            || left.is_none_or(|left| !(least..=most).contains(&left))
        {
            let text = format!("{session} shows {attempts:?} {left:?} ms for {relaunch:?}");
            self.fail("INV-56", text);
        }
        self.book(session).relaunch.due = clock.at + left.unwrap_or(most);
    }

    /// A launch is about to be made: of whom nobody took back, not before its time.
    pub(super) fn tries(&mut self, id: SessionId, at: u64, report: &mut Report) {
        let book = self.book(id);
        let (put_down, cancelled, refused) = (book.put_down, book.cancelled, book.refused);
        let relaunch = book.relaunch;
        book.relaunch.waiting = false;
        // what a crash brings back is a matter of what was stored
        let crash = book.claim.is_some_and(|claim| claim.actor == Actor::CrashRecovery);
        if put_down && cancelled && !crash {
            self.fail("RS-23", format!("{id} is launched though its relaunch was cancelled"));
        }
        if put_down {
            self.fail("INV-44", format!("{id} is launched though the person stopped it"));
        }
        if refused {
            self.fail("INV-60", format!("{id} is launched again after an error that stays"));
        }
        let early = at < relaunch.failed_at + relaunch.bounds().0;
        if relaunch.waiting && early && !relaunch.hurried {
            let waited = at - relaunch.failed_at;
            self.fail("INV-56", format!("{id} is launched {waited} ms after {relaunch:?}"));
        }
        if relaunch.waiting {
            report.hit("relaunch: one more launch");
        }
    }

    /// A row changes: whether its launch came to an end, and how.
    pub(super) fn relaunches(&mut self, change: &Change<'_>, at: u64, report: &mut Report) {
        let (after, id) = (change.after, change.after.id);
        let boot = matches!(change.input, Input::Boot(_));
        self.inv_59(change, at, report);
        let begun = change.before.is_some_and(|before| before.status == Status::Starting);
        if after.status == Status::Starting && !begun {
            self.book(id).starting_at = at;
        }
        if change.actor == Actor::Relaunch && after.status == Status::Starting && !begun {
            self.book(id).rest = change.before.cloned().map(Box::new);
        }
        self.a_14(change, at, report);
        let book = self.book(id);
        let waited = book.relaunch.waiting;
        let open = matches!(after.status, Status::Starting | Status::Running);
        if open && matches!(change.actor, Actor::User | Actor::RetryButton | Actor::Stream) {
            (book.put_down, book.cancelled) = (false, false);
        }
        if begun && (after.status != Status::Starting || after.is_gone()) {
            // what was begun came to its end: the next restart is another one
            (book.claim, book.rest) = (None, None);
        }
        if after.status == Status::Starting && !after.is_gone() || boot {
            return;
        }
        // a name or a look at what was put down before is no new wish
        let moved = change.before.is_none_or(|before| {
            (before.status, before.pending, before.is_gone())
                != (after.status, after.pending, after.is_gone())
        });
        let by_person = change.actor == Actor::User && moved;
        let away = matches!(after.status, Status::Paused | Status::Ended) || after.is_gone();
        if by_person && (is_stopped(after) || away) {
            book.put_down = true;
            book.again = false;
            // what was cut off before is taken back with it
            book.message = None;
            if waited {
                book.cancelled = true;
                let how = if after.deleted_at.is_some() { "delete" } else { after.status.as_str() };
                report.hit(&format!("relaunch cancelled: {how}"));
            }
            book.relaunch = Relaunch::default();
            return;
        }
        if book.relaunch.failures > 0 && after.status == Status::Running {
            report.hit("relaunch: back");
        }
        book.relaunch = Relaunch::default();
    }

    /// INV-59: what waits to be launched again is never an error; unless its folder is gone by now, or
    /// the bounded mode finds all slots taken (RS-13).
    fn inv_59(&mut self, change: &Change<'_>, at: u64, report: &mut Report) {
        let after = change.after;
        let waiting = self.book(after.id).relaunch.waiting;
        let red = after.status == Status::Error && !after.is_gone();
        let fails = self.failure.is_some_and(|failure| failure.session == after.id);
        if !(waiting && red) || fails {
            return;
        }
        let looks = self.line.failed_looks.contains(&after.id);
        // nothing is tried again for long, looks neither
        let used_up = looks && !self.relentless();
        let missing = self.gone_for(&after.folder, at).is_some();
        // a look that fails for a reason of its own is a real error (RS-08), and so is another program that
        // has the conversation open by now
        let answer =
            if let Input::Answer { answer, .. } = change.input { Some(answer) } else { None };
        let real = answer.is_some_and(|answer| {
            matches!(answer, Answer::Failed { .. } | Answer::Transcript { holder: Some(_), .. })
        });
        // a launch of the same step has its slot already, whether its row changes for it or not
        let calls = self.line.calls + self.line.launches;
        let throttled = !self.relentless() && calls >= 4;
        if throttled {
            report.hit("relaunch: the bounded mode finds all slots taken");
        }
        if missing {
            report.hit("relaunch: the folder is gone meanwhile");
        }
        if !missing && !throttled && !real && !used_up {
            let why = change.reason;
            let text = format!("{} is red, {why}, {calls} calls: {after:?}", after.id);
            self.fail("INV-59", text);
        }
    }

    /// after ten minutes and not before a person is told, and only a launch that succeeds, or the
    /// person, takes that back.
    fn a_14(&mut self, change: &Change<'_>, at: u64, report: &mut Report) {
        let (before, after) = (change.before, change.after);
        let was = before.is_some_and(|before| before.cannot_launch);
        if after.cannot_launch && !was {
            report.hit("relaunch: cannot launch");
            let relaunch = self.book(after.id).relaunch;
            let began = self.book(after.id).starting_at;
            let began = if relaunch.failures == 0 { began } else { relaunch.first_at.min(began) };
            let early = at < began + TELL_AFTER;
            if early || after.status != Status::Starting {
                self.fail("A-14", format!("told too early at {at}: {relaunch:?} {after:?}"));
            }
        }
        if was && !after.cannot_launch && after.status == Status::Running {
            report.hit("relaunch: launched at last");
        }
    }

    /// A-14, once a minute: whoever cannot be launched for long is told of.
    pub(super) fn told_in_time(&mut self, row: &SessionRow, at: u64) {
        let since = self.slept_at;
        let relaunch = self.book(row.id).relaunch;
        let long = at > relaunch.first_at.max(since) + TELL_AFTER + MINUTE;
        if relaunch.failures > 0 && row.status == Status::Starting && long && !row.cannot_launch {
            self.fail("A-14", format!("nobody is told that {} cannot be launched", row.id));
        }
    }

    /// What the person does to a session that waits.
    pub(super) fn in_the_wait(&mut self, command: &Command, state: &State, report: &mut Report) {
        if let Command::Retry { session } = command
            && state.view(*session).is_some_and(|view| view.row.status == Status::Starting)
        {
            // what a person sees as failed has the button, and the button hurries
            let told = state.view(*session).is_some_and(|view| {
                let row = &view.row;
                row.cannot_launch || row.pending == Some(PendingAction::RecoveryFailed)
            });
            let book = self.book(*session);
            book.relaunch.hurried |= told;
            book.urgent |= told;
            report.hit(if told { "retry hurries a launch" } else { "retry during the wait" });
        } else if let Command::Send { session, .. } = command
            && self.is_waiting(*session)
        {
            report.hit("a message during the wait");
        } else if let Command::SetSetting { .. } = command
            && self.books.values().any(|book| book.relaunch.waiting)
        {
            report.hit("a setting is changed during a wait");
        }
    }

    /// Whether it waits for its next launch.
    pub(crate) fn is_waiting(&self, id: SessionId) -> bool {
        self.books.get(&id).is_some_and(|book| book.relaunch.waiting)
    }

    /// How many wait for their next launch.
    pub(crate) fn waiting(&self) -> usize {
        self.books.values().filter(|book| book.relaunch.waiting).count()
    }

    /// Something befalls the machine or the app: whether somebody waited for a launch then.
    pub(crate) fn befalls(&mut self, what: &str, report: &mut Report) {
        if self.books.values().any(|book| book.relaunch.waiting) {
            report.hit(&format!("in the wait: {what}"));
        }
    }
}

impl Relaunch {
    /// The next launch lines up so long after the failure: at least, and at most.
    fn bounds(&self) -> (u64, u64) {
        if self.on {
            let gap = gap(self.failures);
            (gap - gap / 5, gap)
        } else {
            (BOUNDED.0, BOUNDED.0)
        }
    }
}

fn is_stopped(row: &SessionRow) -> bool {
    row.pending == Some(PendingAction::Stopped)
}

fn is_red(row: &SessionRow) -> bool {
    row.status == Status::Error
}
