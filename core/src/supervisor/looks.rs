//! Looks at folder, conversation and holder: before a launch, again before a spawn that has waited, and
//! once the old child is gone. What they find is shown, and refuses what may not be started.

use super::asks::{AskFor, LaunchFor};
use super::live::Delivery;
use super::refused::Refusal;
use super::{Answer, AskId, Cx, Question, State, TranscriptFacts};
use crate::id::SessionId;
use crate::launch::classify::is_transient_spawn_error;
use crate::prompt;
use crate::recovery::fork::found_only_original;
use crate::recovery::replay_plan::resume_id;
use crate::session::Holder;
use crate::time::Mono;

/// Folder, transcript and who else has it open, as one look found them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Looked {
    pub folder_present: bool,
    pub found: TranscriptFacts,
    pub holder: Option<Holder>,
}

impl State {
    /// The question before a launch. An answer that comes when `asking` names another is ignored.
    pub(super) fn ask_launch(&mut self, cx: &mut Cx, id: SessionId, purpose: LaunchFor) {
        let Some(ask) = self.ask_about(cx, id, AskFor::Launch { session: id, purpose }) else {
            return;
        };
        if let Some(session) = self.session(id) {
            session.live.asking = Some(ask);
            session.live.probing = None;
        }
        cx.touched.insert(id);
    }

    /// The question of the scan or of a rung about one row: holds nobody else up.
    pub(super) fn probe(&mut self, cx: &mut Cx, id: SessionId, what: AskFor) {
        let ask = self.ask_about(cx, id, what);
        if let Some(session) = self.session(id) {
            session.live.probing = ask;
        }
    }

    /// Asks about folder, conversation and holder of a session.
    fn ask_about(&mut self, cx: &mut Cx, id: SessionId, what: AskFor) -> Option<AskId> {
        let question = self.transcript_question(id)?;
        let wait = self.limits.ask_ms;
        Some(self.ask(cx, what, question, wait))
    }

    pub(super) fn transcript_question(&self, id: SessionId) -> Option<Question> {
        let row = &self.sessions.get(&id)?.row;
        let mut uuids = row.replay.sent_as.clone();
        uuids.extend(row.replay.continued_as.iter().copied());
        Some(Question::Transcript {
            folder: row.folder.clone(),
            account: row.account.clone(),
            cli_session: resume_id(row),
            copied_from: row.cli_session_before.or(row.fork_of.map(|point| point.from)),
            uuids,
        })
    }

    /// A launch that is planned has waited: folder and conversation are looked at again.
    pub(super) fn look_before_spawn(&mut self, cx: &mut Cx, id: SessionId) {
        let ask = self.ask_about(cx, id, AskFor::Respawn { session: id });
        if let Some(session) = self.session(id) {
            session.live.asking = ask;
        }
    }

    pub(super) fn respawn_answered(&mut self, cx: &mut Cx, id: SessionId, answer: &Answer) {
        // rule: INV-07, A-12
        let Some(purpose) = self
            .sessions
            .get(&id)
            .and_then(|session| session.live.delivery.as_ref().map(Delivery::launch_for))
        else {
            return;
        };
        let Some(looked) = facts_of(answer) else {
            // what is planned stays so if the launch is only put off: a hand-over is made once
            if !self.too_busy_to_look(answer)
                && let Some(session) = self.session(id)
            {
                session.live.delivery = None;
                session.live.leave_line();
            }
            self.look_failed(cx, id, purpose, answer);
            return;
        };
        self.looked(cx, id, &looked);
        // without a refusal the line goes on with it
        if let Some(refusal) = self.refusal(id, &looked) {
            if let Some(session) = self.session(id) {
                session.live.drop_launch();
            }
            self.launch_refused(cx, id, purpose, refusal);
        }
    }

    /// Why nothing may be started on what was found.
    pub(super) fn refusal(&self, id: SessionId, looked: &Looked) -> Option<Refusal> {
        // rule: PF-02, A-12
        if !looked.folder_present {
            Some(Refusal::FolderMissing)
        } else {
            self.held_back(id).then_some(Refusal::Held)
        }
    }

    /// Nobody looked, for the machine was too busy: the launch is put off.
    pub(super) fn too_busy_to_look(&self, answer: &Answer) -> bool {
        // rule: RS-02
        self.nobody_looked(answer) && self.policy.relentless_relaunch()
    }

    /// The machine was too busy to look.
    pub(super) fn nobody_looked(&self, answer: &Answer) -> bool {
        match answer {
            Answer::Failed { errno, .. } => is_transient_spawn_error(self.os, *errno),
            Answer::Folder { .. }
            | Answer::Transcript { .. }
            | Answer::TakenOver { .. }
            | Answer::Stamped { .. }
            | Answer::Headroom(_)
            | Answer::Alive { .. }
            | Answer::Handover(_) => false,
        }
    }

    /// Banner and row say what was found.
    pub(super) fn looked(&mut self, cx: &mut Cx, id: SessionId, looked: &Looked) {
        // rule: A-12
        let row = self.sessions.get(&id).map(|session| &session.row);
        // what is only copied may be open elsewhere
        let copies = row.is_some_and(|row| found_only_original(row, &looked.found));
        self.folder_seen(cx, id, looked.folder_present);
        self.held_seen(cx, id, looked.holder.clone().filter(|_| !copies));
    }

    /// Folder and conversation were looked at: a spawn may build on it for a while.
    pub(super) fn note_look(&mut self, now: Mono, what: &AskFor, answer: &Answer) {
        let looked = match what {
            AskFor::Launch { session, .. }
            | AskFor::Respawn { session }
            | AskFor::ScanRow { session }
            | AskFor::Rung { session } => *session,
            AskFor::Handover { .. }
            | AskFor::Scan
            | AskFor::TurnEnd { .. }
            | AskFor::Folder { .. }
            | AskFor::TakeOver { .. }
            | AskFor::SwitchModel { .. }
            | AskFor::Fork { .. }
            | AskFor::Headroom
            | AskFor::Alive { .. } => return,
        };
        if facts_of(answer).is_some()
            && let Some(session) = self.session(looked)
        {
            session.live.looked_at = Some(now);
        }
    }

    /// The old child is gone: what was looked at while it could still write is looked at again.
    pub(super) fn look_again(&mut self, cx: &mut Cx, id: SessionId) {
        // rule: A-04
        let now = cx.now.mono;
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let asking = session.live.asking.and_then(|ask| self.asks.get(&ask));
        let probed = session.live.probing.take().is_some();
        if probed && session.row.in_shape() {
            self.scan_row(cx, id);
        } else if probed {
            session.live.rung_at = Some(now);
        } else if let Some(AskFor::Launch { purpose, .. }) = asking.map(|asked| &asked.what) {
            let purpose = *purpose;
            self.ask_launch(cx, id, purpose);
        }
    }

    /// Asks for the banner whether the folder is there; one question at a time.
    pub(super) fn ask_folder(&mut self, cx: &mut Cx, id: SessionId) {
        let what = AskFor::Folder { session: id };
        if self.asks.values().any(|asked| asked.what == what) {
            return;
        }
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let question = Question::Folder { folder: session.row.folder.clone() };
        let wait = self.limits.ask_ms;
        self.ask(cx, what, question, wait);
    }

    /// The folder is there, or it is not: banner, and one note per disappearance (PF-04).
    pub(super) fn folder_seen(&mut self, cx: &mut Cx, id: SessionId, present: bool) {
        // rule: PF-03, PF-04
        let Some(session) = self.session(id) else {
            return;
        };
        if session.live.folder_missing != present {
            return;
        }
        session.live.folder_missing = !present;
        cx.touched.insert(id);
        if !present {
            self.note(cx, id, prompt::NOTE_FOLDER_MISSING);
        }
    }
}

/// What a look found; `None` when nobody could tell.
pub(super) fn facts_of(answer: &Answer) -> Option<Looked> {
    match answer {
        Answer::Transcript { folder_present, found, holder } => Some(Looked {
            folder_present: *folder_present,
            found: found.clone(),
            holder: holder.clone(),
        }),
        Answer::Folder { .. }
        | Answer::Stamped { .. }
        | Answer::Headroom(_)
        | Answer::Alive { .. }
        | Answer::TakenOver { .. }
        | Answer::Handover(_)
        | Answer::Failed { .. } => None,
    }
}
