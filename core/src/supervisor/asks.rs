//! Questions to the shell and what goes on when they are answered. The row is read again at the
//! answer: what was decided before the question may no longer hold.

use super::live::Live;
use super::looks::{Looked, facts_of};
use super::replaying::actor_of;
use super::{Act, Answer, AskId, Question};
use super::{Cx, State};
use crate::id::SessionId;
use crate::ipc::{IpcCode, IpcError, Reply};
use crate::recovery::replay_plan::{MessagePlan, message_plan};
use crate::session::ChildMark;
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
    /// What the person said since the last good turn, for Fork.
    Fork { session: SessionId, reply: super::ReplyTo },
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
        // a machine that takes so long is too busy, as when it says so itself
        let errno = Some(self.os.busy());
        self.answered(cx, ask, asked.what, Answer::Failed { words, errno });
    }

    fn answered(&mut self, cx: &mut Cx, ask: AskId, what: AskFor, answer: Answer) {
        self.note_look(cx.now.mono, &what, &answer);
        match what {
            AskFor::Respawn { session } => {
                if self.waited_for(session, ask, |live| &mut live.asking) {
                    self.respawn_answered(cx, session, &answer);
                }
            }
            AskFor::Headroom => self.headroom_answered(cx, ask, &answer),
            AskFor::Alive { children } => self.alive_answered(cx, &children, &answer),
            AskFor::Launch { session, purpose } => {
                if self.waited_for(session, ask, |live| &mut live.asking) {
                    self.launch_answered(cx, session, purpose, &answer);
                } else {
                    cx.log(Some(session), "the launch asked about was overtaken");
                }
            }
            AskFor::Handover { session, purpose, calls } => {
                if self.waited_for(session, ask, |live| &mut live.asking) {
                    self.handover_answered(cx, session, purpose, &calls, answer);
                }
            }
            AskFor::ScanRow { session } => {
                if self.waited_for(session, ask, |live| &mut live.probing) {
                    self.scan_answered(cx, session, &answer);
                }
                self.valve_if_known(cx);
            }
            AskFor::Rung { session } => {
                if self.waited_for(session, ask, |live| &mut live.probing) {
                    self.rung_answered(cx, session, &answer);
                }
            }
            AskFor::Scan => self.scan_rows(cx, answer),
            AskFor::TurnEnd { session } => {
                let exists = facts_of(&answer).map(|Looked { found, .. }| {
                    let cut_at = self.cut_at(session);
                    found.exists && cut_at.is_none_or(|at| found.present.contains(&at))
                });
                self.turn_end_answered(cx, session, ask, exists);
            }
            AskFor::Folder { session } => {
                let busy = self.nobody_looked(&answer);
                let present = match answer {
                    Answer::Folder { present } => Some(present),
                    Answer::Transcript { .. }
                    | Answer::Stamped { .. }
                    | Answer::Headroom(_)
                    | Answer::Alive { .. }
                    | Answer::TakenOver { .. }
                    | Answer::Handover(_)
                    | Answer::Failed { .. } => None,
                };
                // rule: PF-06
                if present.is_some() || !busy {
                    self.folder_seen(cx, session, present.unwrap_or(false));
                }
            }
            AskFor::TakeOver { session, reply } => {
                let gone = matches!(answer, Answer::TakenOver { gone: true });
                self.taken_over(cx, session, reply, gone);
            }
            AskFor::SwitchModel { session, model, reply } => {
                self.switch_answered(cx, session, model, reply, answer);
            }
            AskFor::Fork { session, reply } => self.fork_answered(cx, session, reply, answer),
        }
    }

    /// Whether the session still waits for this very answer; it does no longer.
    fn waited_for(
        &mut self,
        id: SessionId,
        ask: AskId,
        slot: fn(&mut Live) -> &mut Option<AskId>,
    ) -> bool {
        self.session(id)
            .is_some_and(|session| slot(&mut session.live).take_if(|open| *open == ask).is_some())
    }

    fn launch_answered(&mut self, cx: &mut Cx, id: SessionId, purpose: LaunchFor, answer: &Answer) {
        let Some(looked) = facts_of(answer) else {
            self.look_failed(cx, id, purpose, answer);
            return;
        };
        self.looked(cx, id, &looked);
        if let Some(refusal) = self.refusal(id, &looked) {
            self.launch_refused(cx, id, purpose, refusal);
            return;
        }
        let found = looked.found;
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
                if let Some(session) = self.session(id) {
                    session.live.drop_launch();
                }
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
        let made = answer
            .handover()
            .map_err(unreadable)
            .and_then(|said| self.create_switched(cx, id, model, said.text, said.last_message));
        cx.act(Act::Reply { to: reply, reply: made.map(Reply::Created) });
    }
}

/// Nobody could read what was said.
pub(super) fn unreadable(_: Answer) -> IpcError {
    let message = "The conversation could not be read. Try again.".into();
    IpcError { code: IpcCode::Internal, message }
}
