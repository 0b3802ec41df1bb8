//! Questions to the shell and what goes on when they are answered. The row is read again at the
//! answer: what was decided before the question may no longer hold.

use super::live::Delivery;
use super::replaying::{Refusal, actor_of};
use super::{Act, Answer, AskId, Question, TranscriptFacts};
use super::{Cx, State};
use crate::id::SessionId;
use crate::ipc::{IpcCode, IpcError, Reply};
use crate::prompt;
use crate::recovery::replay_plan::{MessagePlan, message_plan, resume_id};
use crate::session::{ChildMark, Holder};
use crate::time::{Millis, Mono};
use crate::verdict::Source;
use alloc::string::String;
use alloc::vec::Vec;

/// What a launch is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaunchFor {
    /// The first message of the queue.
    Queue,
    /// A replay.
    Replay(Source),
}

/// Why a question was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AskFor {
    /// Folder and transcript before a launch.
    Launch { session: SessionId, purpose: LaunchFor },
    /// The same again before a launch that is planned and has waited.
    Respawn { session: SessionId },
    /// What the machine has left, before the first launch of the line.
    Headroom,
    /// Which children are gone.
    Alive { children: Vec<(SessionId, ChildMark)> },
    /// The hand-over of a conversation that is gone.
    Handover { session: SessionId, purpose: LaunchFor, calls: Vec<String> },
    /// Folder and transcript of one row of a scan.
    ScanRow { session: SessionId },
    /// Folder and transcript before a rung of the re-arm ladder.
    Rung { session: SessionId },
    /// All stamped rows.
    Scan,
    /// Whether the CLI lost the conversation.
    TurnEnd { session: SessionId },
    /// Whether the folder is there, for the banner.
    Folder { session: SessionId },
    /// The end of a foreign holder, wanted by the person.
    TakeOver { session: SessionId, reply: super::ReplyTo },
    /// The hand-over for Switch model.
    SwitchModel { session: SessionId, model: Option<String>, reply: super::ReplyTo },
}

/// Folder, transcript and who else has it open, as one look found them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Looked {
    pub folder_present: bool,
    pub found: TranscriptFacts,
    pub holder: Option<Holder>,
}

/// An open question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub what: AskFor,
    pub deadline: Mono,
}

impl State {
    pub(super) fn queue_is_empty(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_none_or(|session| session.live.queue.is_empty())
    }

    pub(super) fn ask(
        &mut self,
        cx: &mut Cx,
        what: AskFor,
        question: Question,
        wait: Millis,
    ) -> AskId {
        self.last_ask += 1;
        let ask = AskId(self.last_ask);
        self.asks.insert(ask, Asked { what, deadline: cx.now.mono.plus(wait) });
        cx.act(Act::Ask { ask, question });
        ask
    }

    /// The question before a launch. An answer that comes when `asking` names another is ignored.
    pub(super) fn ask_launch(&mut self, cx: &mut Cx, id: SessionId, purpose: LaunchFor) {
        let Some(question) = self.transcript_question(id) else {
            return;
        };
        let wait = self.limits.ask_ms;
        let ask = self.ask(cx, AskFor::Launch { session: id, purpose }, question, wait);
        if let Some(session) = self.session(id) {
            session.live.asking = Some(ask);
            session.live.probing = None;
        }
        cx.touched.insert(id);
    }

    /// The question of the scan or of a rung about one row: holds nobody else up.
    pub(super) fn probe(&mut self, cx: &mut Cx, id: SessionId, what: AskFor) {
        let Some(question) = self.transcript_question(id) else {
            return;
        };
        let wait = self.limits.ask_ms;
        let ask = self.ask(cx, what, question, wait);
        if let Some(session) = self.session(id) {
            session.live.probing = Some(ask);
        }
    }

    pub(super) fn transcript_question(&self, id: SessionId) -> Option<Question> {
        let row = &self.sessions.get(&id)?.row;
        let mut uuids = row.replay.sent_as.clone();
        uuids.extend(row.replay.continued_as.iter().copied());
        Some(Question::Transcript {
            folder: row.folder.clone(),
            account: row.account.clone(),
            cli_session: resume_id(row),
            copied_from: row.cli_session_before,
            uuids,
        })
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

    pub(super) fn answer(&mut self, cx: &mut Cx, ask: AskId, answer: Answer) {
        let Some(asked) = self.asks.remove(&ask) else {
            cx.log(None, alloc::format!("an answer to question {} came too late", ask.0));
            return;
        };
        if let Answer::Failed { words, .. } = &answer {
            cx.log(None, alloc::format!("a question could not be answered: {words}"));
        }
        self.answered(cx, ask, asked.what, answer);
    }

    /// A question whose time is over is answered with "nobody could tell".
    pub(super) fn ask_overdue(&mut self, cx: &mut Cx, ask: AskId) {
        let Some(asked) = self.asks.remove(&ask) else {
            return;
        };
        let words = String::from("no answer in time");
        cx.log(None, alloc::format!("question {}: {words}", ask.0));
        self.answered(cx, ask, asked.what, Answer::Failed { words, errno: None });
    }

    fn answered(&mut self, cx: &mut Cx, ask: AskId, what: AskFor, answer: Answer) {
        self.note_look(cx.now.mono, &what, &answer);
        match what {
            AskFor::Respawn { session } => {
                if self.still_asking(session, ask) {
                    self.respawn_answered(cx, session, &answer);
                }
            }
            AskFor::Headroom => self.headroom_answered(cx, ask, &answer),
            AskFor::Alive { children } => self.alive_answered(cx, &children, &answer),
            AskFor::Launch { session, purpose } => {
                if self.still_asking(session, ask) {
                    self.launch_answered(cx, session, purpose, &answer);
                } else {
                    cx.log(Some(session), "the launch asked about was overtaken");
                }
            }
            AskFor::Handover { session, purpose, calls } => {
                if self.still_asking(session, ask) {
                    self.handover_answered(cx, session, purpose, &calls, answer);
                }
            }
            AskFor::ScanRow { session } => {
                if self.still_probing(session, ask) {
                    self.scan_answered(cx, session, &answer);
                }
                self.valve_if_known(cx);
            }
            AskFor::Rung { session } => {
                if self.still_probing(session, ask) {
                    self.rung_answered(cx, session, &answer);
                }
            }
            AskFor::Scan => self.scan_rows(cx, answer),
            AskFor::TurnEnd { session } => {
                let exists = match answer {
                    Answer::Transcript { found, .. } => {
                        let cut_at = self.cut_at(session);
                        Some(found.exists && cut_at.is_none_or(|at| found.present.contains(&at)))
                    }
                    Answer::Folder { .. }
                    | Answer::Stamped { .. }
                    | Answer::Headroom(_)
                    | Answer::Alive { .. }
                    | Answer::TakenOver { .. }
                    | Answer::Handover { .. }
                    | Answer::Failed { .. } => None,
                };
                self.turn_end_answered(cx, session, Some(ask), exists);
            }
            AskFor::Folder { session } => {
                let present = match answer {
                    Answer::Folder { present } => Some(present),
                    Answer::Transcript { .. }
                    | Answer::Stamped { .. }
                    | Answer::Headroom(_)
                    | Answer::Alive { .. }
                    | Answer::TakenOver { .. }
                    | Answer::Handover { .. }
                    | Answer::Failed { .. } => None,
                };
                // rule: PF-06
                self.folder_seen(cx, session, present.unwrap_or(false));
            }
            AskFor::TakeOver { session, reply } => {
                let gone = matches!(answer, Answer::TakenOver { gone: true });
                self.taken_over(cx, session, reply, gone);
            }
            AskFor::SwitchModel { session, model, reply } => {
                self.switch_answered(cx, session, model, reply, answer);
            }
        }
    }

    /// Folder and conversation were looked at: a spawn may build on it for a while.
    fn note_look(&mut self, now: Mono, what: &AskFor, answer: &Answer) {
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
            | AskFor::Headroom
            | AskFor::Alive { .. } => return,
        };
        if Self::facts_of(answer).is_some()
            && let Some(session) = self.session(looked)
        {
            session.live.looked_at = Some(now);
        }
    }

    /// A launch that is planned has waited: folder and conversation are looked at again.
    pub(super) fn look_before_spawn(&mut self, cx: &mut Cx, id: SessionId) {
        let Some(question) = self.transcript_question(id) else {
            return;
        };
        let wait = self.limits.ask_ms;
        let ask = self.ask(cx, AskFor::Respawn { session: id }, question, wait);
        if let Some(session) = self.session(id) {
            session.live.asking = Some(ask);
        }
    }

    fn respawn_answered(&mut self, cx: &mut Cx, id: SessionId, answer: &Answer) {
        // rule: INV-07, A-12
        let Some(purpose) = self
            .sessions
            .get(&id)
            .and_then(|session| session.live.delivery.as_ref().map(Delivery::launch_for))
        else {
            return;
        };
        let Some(Looked { folder_present, holder, .. }) = Self::facts_of(answer) else {
            self.drop_plan(id);
            self.look_failed(cx, id, purpose, answer);
            return;
        };
        self.folder_seen(cx, id, folder_present);
        self.held_seen(cx, id, holder);
        let refusal = if !folder_present {
            Refusal::FolderMissing
        } else if self.held_back(id) {
            Refusal::Held
        } else {
            // the line goes on with it
            return;
        };
        if let Some(session) = self.session(id) {
            session.live.drop_launch();
        }
        self.launch_refused(cx, id, purpose, refusal);
    }

    /// What was planned is planned anew when the launch goes on.
    fn drop_plan(&mut self, id: SessionId) {
        if let Some(session) = self.session(id) {
            session.live.delivery = None;
            session.live.leave_line();
        }
    }

    fn still_probing(&mut self, id: SessionId, ask: AskId) -> bool {
        let Some(session) = self.session(id) else {
            return false;
        };
        let ours = session.live.probing == Some(ask);
        if ours {
            session.live.probing = None;
        }
        ours
    }

    fn still_asking(&mut self, id: SessionId, ask: AskId) -> bool {
        let Some(session) = self.session(id) else {
            return false;
        };
        let ours = session.live.asking == Some(ask);
        if ours {
            session.live.asking = None;
        }
        ours
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
            | Answer::Handover { .. }
            | Answer::Failed { .. } => None,
        }
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

    fn launch_answered(&mut self, cx: &mut Cx, id: SessionId, purpose: LaunchFor, answer: &Answer) {
        let Some(Looked { folder_present, found, holder }) = Self::facts_of(answer) else {
            self.look_failed(cx, id, purpose, answer);
            return;
        };
        self.folder_seen(cx, id, folder_present);
        self.held_seen(cx, id, holder);
        if !folder_present {
            self.launch_refused(cx, id, purpose, Refusal::FolderMissing);
            return;
        }
        if self.held_back(id) {
            self.launch_refused(cx, id, purpose, Refusal::Held);
            return;
        }
        match purpose {
            LaunchFor::Queue if self.has_task(id) => self.launch_task(cx, id),
            LaunchFor::Queue if self.queue_is_empty(id) => self.nothing_to_send(cx, id),
            LaunchFor::Queue => {
                self.fall_back(cx, id, &found);
                let minted = self.mint();
                let Some(session) = self.sessions.get(&id) else {
                    return;
                };
                match message_plan(&session.row, &found, minted) {
                    MessagePlan::Into(conversation) => {
                        let conversation = self.copied_if_held(id, conversation);
                        self.launch_queue(cx, id, conversation, None);
                    }
                    MessagePlan::HandOver(_) => self.ask_handover(cx, id, purpose, Vec::new()),
                }
            }
            LaunchFor::Replay(source) if self.answers(id) => {
                // rule: RT-20
                // a rung has begun to answer while the question was open
                self.decided(cx, id, actor_of(source), "not mine: the turn answers");
            }
            LaunchFor::Replay(source) => self.replay(cx, id, source, &found),
        }
    }

    /// Switch model: a new session with the hand-over; the old one stays as it is (RT-26).
    fn switch_answered(
        &mut self,
        cx: &mut Cx,
        id: SessionId,
        model: Option<String>,
        reply: super::ReplyTo,
        answer: Answer,
    ) {
        let made = match answer {
            Answer::Handover { text, last_message } => {
                self.create_switched(cx, id, model, text, last_message)
            }
            Answer::Folder { .. }
            | Answer::Transcript { .. }
            | Answer::Stamped { .. }
            | Answer::Headroom(_)
            | Answer::Alive { .. }
            | Answer::TakenOver { .. }
            | Answer::Failed { .. } => Err(IpcError {
                code: IpcCode::Internal,
                message: "The conversation could not be read. Try again.".into(),
            }),
        };
        cx.act(Act::Reply { to: reply, reply: made.map(Reply::Created) });
    }
}
