//! By which way the last operator message is sent again, or the session goes on.
//!
//! Pure: the transcript was asked about before, the answer is part of the facts.

use super::fork::{copy_of, first_copy};
use crate::id::{CliSessionId, MessageId, Uuid};
use crate::launch::Conversation;
use crate::session::{CallState, SessionRow};
use crate::supervisor::TranscriptFacts;
use alloc::vec::Vec;

/// The way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayPlan {
    /// (a) The message never reached the transcript: it is sent under its own uuid.
    SendAgain {
        /// Where.
        conversation: Conversation,
        /// Under which uuid.
        uuid: Uuid,
        /// Which message.
        message: MessageId,
    },
    /// (b) It reached the transcript and no tool was started: a fresh transcript without the torn turn.
    Fresh {
        /// Where.
        conversation: Conversation,
        /// Under which uuid.
        uuid: Uuid,
        /// Which message.
        message: MessageId,
    },
    /// (c) A tool was started, or no message began the turn: a copy that keeps the work, and the
    /// sentence that says how to go on.
    Continue {
        /// Where.
        conversation: Conversation,
        /// Under which uuid the sentence is sent.
        uuid: Uuid,
    },
    /// (d) The conversation is gone: a new one that begins with a hand-over.
    HandOver {
        /// Where.
        conversation: Conversation,
        /// Under which uuid.
        uuid: Uuid,
        /// Which message, if there is one.
        message: Option<MessageId>,
        /// Started calls whose outcome nobody knows.
        unknown_calls: Vec<alloc::string::String>,
    },
    /// There is nothing to send (RP-09).
    Nothing,
}

/// Fresh ids, minted by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minted {
    /// For a new conversation.
    pub conversation: CliSessionId,
    /// For a message.
    pub uuid: Uuid,
}

/// The conversation a resume would take up: the one the CLI has named, else the one we minted.
pub fn resume_id(row: &SessionRow) -> Option<CliSessionId> {
    // rule: A-15
    row.cli_session_id.or(row.cli_session_wanted)
}

/// Plans the replay of the row's last operator message.
pub fn replay_plan(row: &SessionRow, found: &TranscriptFacts, minted: Minted) -> ReplayPlan {
    // rule: A-04, RP-02, RP-03
    let memory = &row.replay;
    // rule: INV-20
    // a message that was answered or taken back is not sent again, whoever asks for it
    if row.delivered || memory.answered || memory.stopped {
        return ReplayPlan::Nothing;
    }
    let started = memory.tool_started();
    let new = Conversation::New { id: minted.conversation };
    let Some(resume) = resume_id(row) else {
        return match memory.message {
            Some(message) => ReplayPlan::SendAgain { conversation: new, uuid: message, message },
            None => ReplayPlan::Nothing,
        };
    };
    let began_by_itself = memory.message.is_none();
    if began_by_itself && row.turn_count == 0 {
        return ReplayPlan::Nothing;
    }
    if !found.exists {
        if let Some(message) = memory.message.filter(|_| !row.ever_answered && !started) {
            let uuid = own_uuid(row, message);
            // a file that holds nothing still takes the id
            let conversation = if found.file { new } else { Conversation::New { id: resume } };
            return ReplayPlan::SendAgain { conversation, uuid, message };
        }
        return ReplayPlan::HandOver {
            conversation: new,
            uuid: minted.uuid,
            message: memory.message,
            unknown_calls: unknown_calls(row),
        };
    }
    if let Some(conversation) = first_copy(row, found, minted.conversation)
        && !started
    {
        // the copy never came about, and so nothing arrived in it
        return match memory.message {
            Some(message) => {
                let uuid = own_uuid(row, message);
                ReplayPlan::SendAgain { conversation, uuid, message }
            }
            None => ReplayPlan::Nothing,
        };
    }
    let fork = |at| Conversation::Fork { from: resume, id: minted.conversation, at };
    let Some(message) = memory.message else {
        return ReplayPlan::Continue { conversation: fork(None), uuid: minted.uuid };
    };
    let in_transcript = found.present.iter().any(|uuid| memory.sent_as.contains(uuid));
    if started && found.fell_back && !in_transcript {
        // the copy held the work and is gone; the one it was copied from knows nothing of it
        return ReplayPlan::HandOver {
            conversation: new,
            uuid: minted.uuid,
            message: Some(message),
            unknown_calls: unknown_calls(row),
        };
    }
    // the started call is of an earlier message that this one took over: it was never sent itself
    let never_sent = memory.carries_unanswered && memory.continued_as.is_empty() && !in_transcript;
    if started && !never_sent {
        return ReplayPlan::Continue { conversation: fork(None), uuid: minted.uuid };
    }
    if !in_transcript {
        return ReplayPlan::SendAgain {
            conversation: Conversation::Resume { id: resume },
            uuid: own_uuid(row, message),
            message,
        };
    }
    if memory.carries_unanswered {
        // cutting at the last good turn would lose the unanswered message before this one
        return ReplayPlan::Continue { conversation: fork(None), uuid: minted.uuid };
    }
    let conversation = match (row.last_good_assistant, row.fork_of) {
        (Some(at), _) => fork(Some(at)),
        // a copy that could not be cut begins again
        (None, Some(point)) => copy_of(point, minted.conversation),
        (None, None) => new,
    };
    ReplayPlan::Fresh { conversation, uuid: minted.uuid, message }
}

/// The uuid a message that never arrived is sent under: the last it was tried with.
fn own_uuid(row: &SessionRow, message: MessageId) -> Uuid {
    row.replay.sent_as.last().copied().unwrap_or(message)
}

/// Started calls whose result never came, in words for the hand-over.
pub fn unknown_calls(row: &SessionRow) -> Vec<alloc::string::String> {
    row.replay
        .calls
        .iter()
        .filter(|call| match call.state {
            CallState::Started | CallState::Finished => true,
            CallState::Asked | CallState::Denied => false,
        })
        .map(|call| alloc::format!("{}: {}", call.name, call.detail))
        .collect()
}

/// Where a new message of the person goes when no child lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePlan {
    /// Into this conversation.
    Into(Conversation),
    /// The conversation is gone though turns were answered: a new one, with a hand-over.
    HandOver(Conversation),
}

/// Plans the launch for a message that is not a replay.
pub fn message_plan(row: &SessionRow, found: &TranscriptFacts, minted: Minted) -> MessagePlan {
    // rule: A-31
    if let Some(copy) = first_copy(row, found, minted.conversation) {
        return MessagePlan::Into(copy);
    }
    let new = Conversation::New { id: minted.conversation };
    match resume_id(row) {
        Some(id) if found.exists => MessagePlan::Into(Conversation::Resume { id }),
        Some(_) if row.ever_answered => MessagePlan::HandOver(new),
        // an id that was minted and never used stays good; one that was used and left nothing
        // behind is not taken again, the CLI might still know it
        Some(id) if row.turn_count == 0 && !found.file => {
            MessagePlan::Into(Conversation::New { id })
        }
        Some(_) | None => MessagePlan::Into(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::ToolCall;
    use crate::time::Wall;
    use alloc::string::String;
    use alloc::vec;

    const OLD: Uuid = Uuid(0xa);
    const GOOD: Uuid = Uuid(0x60);
    const M: Uuid = Uuid(0x11);
    const MINTED: Minted = Minted { conversation: Uuid(0xb), uuid: Uuid(0x22) };

    fn row() -> SessionRow {
        let mut row =
            SessionRow::new(Uuid(1), String::new(), String::new(), String::new(), Wall(0));
        row.cli_session_id = Some(OLD);
        row.ever_answered = true;
        row.turn_count = 2;
        row.last_good_assistant = Some(GOOD);
        row.replay.message = Some(M);
        row.replay.sent_as = vec![M];
        row
    }

    fn call(state: CallState) -> ToolCall {
        ToolCall { id: "t".into(), name: "Bash".into(), detail: "make deploy".into(), state }
    }

    fn there(present: &[Uuid]) -> TranscriptFacts {
        TranscriptFacts { file: true, exists: true, present: present.to_vec(), fell_back: false }
    }

    fn fork(at: Option<Uuid>) -> Conversation {
        Conversation::Fork { from: OLD, id: MINTED.conversation, at }
    }

    // proves: A-04, RP-02, RP-03
    #[test]
    fn a_message_that_never_arrived_is_sent_under_its_own_uuid() {
        let plan = replay_plan(&row(), &there(&[]), MINTED);
        let conversation = Conversation::Resume { id: OLD };
        assert_eq!(plan, ReplayPlan::SendAgain { conversation, uuid: M, message: M });
        // no file at all and nothing was ever answered: the same id again
        let mut first = row();
        (first.ever_answered, first.last_good_assistant) = (false, None);
        let plan = replay_plan(&first, &TranscriptFacts::default(), MINTED);
        let conversation = Conversation::New { id: OLD };
        assert_eq!(plan, ReplayPlan::SendAgain { conversation, uuid: M, message: M });
        // a file that holds nothing of it: the id is taken all the same
        let torn = TranscriptFacts { file: true, ..TranscriptFacts::default() };
        let conversation = Conversation::New { id: MINTED.conversation };
        let plan = replay_plan(&first, &torn, MINTED);
        assert_eq!(plan, ReplayPlan::SendAgain { conversation, uuid: M, message: M });
    }

    // proves: A-04, RP-05
    #[test]
    fn without_a_tool_the_torn_turn_is_left_behind() {
        let plan = replay_plan(&row(), &there(&[M]), MINTED);
        let uuid = MINTED.uuid;
        assert_eq!(plan, ReplayPlan::Fresh { conversation: fork(Some(GOOD)), uuid, message: M });
        let mut first = row();
        (first.ever_answered, first.last_good_assistant) = (false, None);
        let conversation = Conversation::New { id: MINTED.conversation };
        assert_eq!(
            replay_plan(&first, &there(&[M]), MINTED),
            ReplayPlan::Fresh { conversation, uuid, message: M }
        );
        // "our message's uuid" is any it was ever sent under
        let mut again = row();
        again.replay.sent_as = vec![M, Uuid(0x12)];
        assert!(matches!(replay_plan(&again, &there(&[M]), MINTED), ReplayPlan::Fresh { .. }));
    }

    // proves: A-04
    #[test]
    fn once_a_tool_was_started_every_replay_keeps_the_work() {
        for (state, started) in [
            (CallState::Started, true),
            (CallState::Finished, true),
            (CallState::Asked, false),
            (CallState::Denied, false),
        ] {
            let mut row = row();
            row.replay.calls = vec![call(state)];
            let plan = replay_plan(&row, &there(&[M]), MINTED);
            assert_eq!(
                matches!(plan, ReplayPlan::Continue { conversation, .. } if conversation == fork(None)),
                started,
                "{state:?}"
            );
        }
        // the continuation was cut off before any tool: the first try's tool still counts
        let mut row = row();
        row.replay.calls = vec![call(CallState::Finished)];
        row.replay.continued_as = vec![Uuid(0x33)];
        assert!(matches!(replay_plan(&row, &there(&[]), MINTED), ReplayPlan::Continue { .. }));
    }

    // proves: A-04
    #[test]
    fn a_lost_conversation_is_handed_over_and_names_what_was_started() {
        let mut row = row();
        row.replay.calls = vec![call(CallState::Started)];
        let plan = replay_plan(&row, &TranscriptFacts::default(), MINTED);
        assert_eq!(
            plan,
            ReplayPlan::HandOver {
                conversation: Conversation::New { id: MINTED.conversation },
                uuid: MINTED.uuid,
                message: Some(M),
                unknown_calls: vec!["Bash: make deploy".into()],
            }
        );
        // never answered, but a tool was started: the message alone would run it again
        row.ever_answered = false;
        assert!(matches!(
            replay_plan(&row, &TranscriptFacts::default(), MINTED),
            ReplayPlan::HandOver { .. }
        ));
    }

    // proves: A-04, RP-09
    #[test]
    fn a_turn_that_began_by_itself_is_continued_and_an_empty_session_has_nothing() {
        let mut row = row();
        row.replay = crate::session::ReplayMemory::default();
        assert!(matches!(replay_plan(&row, &there(&[]), MINTED), ReplayPlan::Continue { .. }));
        row.turn_count = 0;
        assert_eq!(replay_plan(&row, &there(&[]), MINTED), ReplayPlan::Nothing);
    }

    // proves: A-04
    #[test]
    fn work_that_stood_in_a_lost_copy_is_handed_over_and_not_run_again() {
        let mut row = row();
        row.replay.calls = vec![call(CallState::Finished)];
        row.replay.carries_unanswered = true;
        let found = TranscriptFacts { fell_back: true, ..there(&[]) };
        let plan = replay_plan(&row, &found, MINTED);
        assert!(matches!(
            plan,
            ReplayPlan::HandOver { message: Some(M), unknown_calls, .. } if unknown_calls.len() == 1
        ));
        // the original holds the message: the copy never got its first line
        let found = TranscriptFacts { fell_back: true, ..there(&[M]) };
        assert!(matches!(replay_plan(&row, &found, MINTED), ReplayPlan::Continue { .. }));
    }

    // proves: INV-20
    #[test]
    fn an_answered_message_is_never_sent_again() {
        let mut row = row();
        row.replay.answered = true;
        assert_eq!(replay_plan(&row, &there(&[M]), MINTED), ReplayPlan::Nothing);
        (row.replay.answered, row.replay.stopped) = (false, true);
        assert_eq!(replay_plan(&row, &there(&[M]), MINTED), ReplayPlan::Nothing);
        row.replay = crate::session::ReplayMemory::default();
        row.delivered = true;
        assert_eq!(replay_plan(&row, &there(&[M]), MINTED), ReplayPlan::Nothing);
    }

    #[test]
    fn a_message_that_took_over_an_unanswered_one_keeps_it() {
        let mut row = row();
        row.replay.carries_unanswered = true;
        assert!(matches!(replay_plan(&row, &there(&[M]), MINTED), ReplayPlan::Continue { .. }));
        // it never arrived: the started tool is the earlier message's, this one is still to be sent
        row.replay.calls = vec![call(CallState::Finished)];
        assert!(matches!(replay_plan(&row, &there(&[]), MINTED), ReplayPlan::SendAgain { .. }));
    }

    #[test]
    fn a_new_message_resumes_what_is_there() {
        let id = OLD;
        let into = |conversation| MessagePlan::Into(conversation);
        assert_eq!(message_plan(&row(), &there(&[]), MINTED), into(Conversation::Resume { id }));
        let new = Conversation::New { id: MINTED.conversation };
        let gone = TranscriptFacts::default();
        assert_eq!(message_plan(&row(), &gone, MINTED), MessagePlan::HandOver(new));
        let mut unused = row();
        (unused.ever_answered, unused.turn_count) = (false, 0);
        assert_eq!(message_plan(&unused, &gone, MINTED), into(Conversation::New { id }));
    }
}
