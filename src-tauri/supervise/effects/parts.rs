//! Which session each part of a step belongs to: a session whose row is not as it was read costs its own
//! part and nobody else's.

use omniscio_core::id::{MessageId, SessionId};
use omniscio_core::ipc::{IpcCode, IpcError, Reply};
use omniscio_core::supervisor::{Act, Input, ReplyTo, Step, Write};

/// A command of a person that a step answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::supervise) struct Asked {
    /// Where its reply goes.
    reply: ReplyTo,
    /// The session it is about.
    session: Option<SessionId>,
}

impl Asked {
    /// The command in this input, if it is one.
    pub(in crate::supervise) fn of(input: &Input) -> Option<Asked> {
        match input {
            Input::Command { reply, command } => {
                Some(Asked { reply: *reply, session: command.session() })
            }
            Input::Boot(_)
            | Input::Wake
            | Input::Slept { .. }
            | Input::Spawned { .. }
            | Input::SpawnFailed { .. }
            | Input::Stream { .. }
            | Input::Chatter { .. }
            | Input::OutputEnded { .. }
            | Input::Exited { .. }
            | Input::Stopped { .. }
            | Input::WriteFailed { .. }
            | Input::CommitRefused { .. }
            | Input::Answer { .. }
            | Input::Load { .. }
            | Input::Window { .. }
            | Input::Cli { .. } => None,
        }
    }
}

/// Takes the part of one session out of a step. Its child is stopped all the same: whatever stands in
/// its row, the rules have stopped counting on that child. Questions stay: they change nothing. A good
/// reply to the session's command becomes an error.
pub(super) fn take_out(
    step: &mut Step,
    session: SessionId,
    asked: Option<Asked>,
    of_message: impl Fn(MessageId) -> Option<SessionId>,
) {
    step.writes.retain(|write| match write {
        Write::Row { after, .. } => after.id != session,
        Write::Message(message) => message.session != session,
        Write::MessageState { id, .. } => of_message(*id) != Some(session),
        Write::Block { session: of, .. } => *of != session,
        Write::Settings(_) => true,
    });
    step.acts.retain(|act| match act {
        Act::Spawn { session: of, .. }
        | Act::Write { session: of, .. }
        | Act::Control { session: of, .. }
        | Act::EmitGone(of)
        | Act::EmitBlock { session: of, .. }
        | Act::EmitDelta { session: of, .. }
        | Act::Notify { session: of, .. } => *of != session,
        Act::Emit(view) => view.row.id != session,
        Act::Stop { .. }
        | Act::Ask { .. }
        | Act::EmitSettings(_)
        | Act::Badge(_)
        | Act::ForgetSecret(_)
        | Act::Reply { .. }
        | Act::Exit
        | Act::Log { .. } => true,
    });
    for act in &mut step.acts {
        if let Act::Reply { to, reply } = act
            && belongs(*to, reply, session, asked)
        {
            let message = "Something else changed this session just now. Look again.".to_string();
            *reply = Err(IpcError { code: IpcCode::NotEligible, message });
        }
    }
}

/// Whether this good reply tells of something that was not done.
fn belongs(
    to: ReplyTo,
    reply: &Result<Reply, IpcError>,
    session: SessionId,
    asked: Option<Asked>,
) -> bool {
    match reply {
        Ok(Reply::Created(made) | Reply::Forked { session: made, .. }) => *made == session,
        Ok(
            Reply::Done
            | Reply::Accepted(_)
            | Reply::Explained(_)
            | Reply::Told(_)
            | Reply::Endpoint(_),
        ) => {
            // the reply to a command that came before: nobody can tell what of it was done
            asked.is_none_or(|asked| asked.reply != to || asked.session == Some(session))
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::id::Uuid;
    use omniscio_core::message::MessageState;
    use omniscio_core::session::SessionRow;
    use omniscio_core::supervisor::LaunchId;
    use omniscio_core::time::Wall;
    use omniscio_core::verdict::Actor;

    const A: SessionId = Uuid(1);
    const B: SessionId = Uuid(2);

    fn part(session: SessionId) -> Step {
        let row = SessionRow::new(session, "/p".into(), "t".into(), "default".into(), Wall(0));
        Step {
            writes: vec![
                Write::Row {
                    before: None,
                    after: Box::new(row),
                    actor: Actor::App,
                    reason: "test".into(),
                },
                Write::MessageState { id: Uuid(session.0 + 10), state: MessageState::Sent },
            ],
            acts: vec![
                Act::EmitGone(session),
                Act::Reply { to: ReplyTo(1), reply: Ok(Reply::Created(session)) },
            ],
        }
    }

    fn good(step: &Step) -> Vec<bool> {
        let reply =
            |act: &Act| if let Act::Reply { reply, .. } = act { Some(reply.is_ok()) } else { None };
        step.acts.iter().filter_map(reply).collect()
    }

    #[test]
    fn one_session_is_taken_out_and_the_other_stays_whole() {
        let mut step = part(A);
        step.writes.extend(part(B).writes);
        step.acts.extend(part(B).acts);
        let stop = Act::Stop { session: A, launch: LaunchId(3) };
        step.acts.push(stop.clone());
        take_out(&mut step, A, None, |id| Some(Uuid(id.0 - 10)));
        assert_eq!(step.writes, part(B).writes);
        assert_eq!((good(&step), step.acts.last()), (vec![false, true], Some(&stop)));
        assert_eq!(step.acts[1..3], part(B).acts);
    }

    #[test]
    fn a_reply_is_bad_only_if_its_command_was_about_the_session() {
        let done = || Step {
            writes: Vec::new(),
            acts: vec![Act::Reply { to: ReplyTo(7), reply: Ok(Reply::Done) }],
        };
        let of = |session: Option<SessionId>| Some(Asked { reply: ReplyTo(7), session });
        for (asked, stays) in
            [(of(Some(A)), false), (of(Some(B)), true), (of(None), true), (None, false)]
        {
            let mut step = done();
            take_out(&mut step, A, asked, |_| None);
            assert_eq!(good(&step), [stays], "{asked:?}");
        }
    }
}
