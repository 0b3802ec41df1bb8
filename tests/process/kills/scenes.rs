//! What the sessions are made to do between two kills, so that every state is there to be killed in.
//! Each message has a tag of its own in its text and in its answer.

use super::look::Look;
use omniscio_core::card::{CardKind, CardReply};
use omniscio_core::id::{Rng, SessionId};
use omniscio_core::session::{PendingAction, SessionRow, Status};
use omniscio_core::supervisor::Command;
use std::collections::BTreeMap;
use std::iter;
use std::path::Path;

/// Chance that follows from the seed.
pub(super) struct Chance(Rng);

impl Chance {
    pub(super) fn new(seed: u64) -> Chance {
        Chance(Rng::new(seed))
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn percent(&mut self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }
}

/// What a session at rest may be made to do: the steps of its message, and what the person does next.
#[derive(Clone, Copy)]
struct Scene {
    /// The steps before the answer.
    steps: &'static str,
    /// So many messages more, which wait in the queue.
    more: usize,
    then: Then,
}

#[derive(Clone, Copy)]
enum Then {
    Nothing,
    Stop,
    End,
    Archive,
    Delete,
}

const fn scene(steps: &'static str) -> Scene {
    Scene { steps, more: 0, then: Then::Nothing }
}

/// Text that is held in its middle until an app has died over it.
const HALF: &str = "fail-first 1 partial Half a sentence; fail-first 1 hang";

const SCENES: [Scene; 20] = [
    scene("fail-first 2 partial Half a sentence; fail-first 2 hang"),
    scene("slow 15; think 30"),
    scene("slow 2"),
    scene("fail-first 1 partial Let me see.; fail-first 1 bash 600"),
    scene("fail-first 1 daemon 600; fail-first 1 bash 600"),
    scene("bash 0; fail-first 2 hang"),
    scene("ask-question"),
    scene(r#"tool Write {"file_path": "a.txt", "content": "a"} ask"#),
    scene("plan"),
    scene("limit 86400"),
    scene("fail-first 1 kill"),
    scene("fail-first 1 drop"),
    scene("fail-first 7 kill"),
    scene("api-error 400 invalid_request Something is wrong with the request."),
    scene("api-error 401 authentication_failed Please run /login."),
    Scene { then: Then::Stop, ..scene("fail-first 3 hang") },
    Scene { then: Then::Stop, ..scene("fail-first 3 freeze") },
    Scene { then: Then::End, more: 1, ..scene(HALF) },
    Scene { then: Then::Archive, ..scene(HALF) },
    Scene { more: 2, ..scene(HALF) },
];

/// Now and then, in place of another scene.
const DELETED: Scene = Scene { then: Then::Delete, ..scene(HALF) };

/// Hands out scenes and tags.
pub(super) struct Stage {
    pub(super) chance: Chance,
    deck: Vec<Scene>,
    tags: usize,
    batches: Vec<Vec<String>>,
}

/// What the person does in one life of the app: at first, and a moment later.
#[derive(Default)]
pub(super) struct Acts {
    pub(super) first: Vec<Command>,
    pub(super) later: Vec<Command>,
}

impl Stage {
    pub(super) fn new(seed: u64) -> Stage {
        Stage { chance: Chance::new(seed), deck: Vec::new(), tags: 0, batches: Vec::new() }
    }

    /// A message with these steps and an answer that names it.
    fn text(&mut self, steps: &str) -> String {
        self.tags += 1;
        let tag = format!("m{}", self.tags);
        format!("{tag} [[fake: {steps}; say Answer {tag}. These words take a moment to stream.]]")
    }

    fn next_scene(&mut self) -> Scene {
        if self.deck.is_empty() {
            self.deck = SCENES.to_vec();
            if self.chance.percent(50) {
                self.deck.push(DELETED);
            }
            for at in (1..self.deck.len()).rev() {
                let other = self.chance.below(at as u64 + 1) as usize;
                self.deck.swap(at, other);
            }
        }
        self.deck.pop().unwrap()
    }

    /// A new session, of one account and of the other in turn.
    pub(super) fn create(&mut self, home: &Path) -> Command {
        let account = if self.tags.is_multiple_of(2) { "test" } else { super::LOGIN };
        Command::Create {
            folder: home.join("project").display().to_string(),
            text: self.text("slow 2"),
            model: None,
            permission_mode: None,
            account: Some(account.to_string()),
            endpoint: None,
            user_settings_only: false,
        }
    }

    /// What the person does now, looking at the list.
    pub(super) fn acts(&mut self, look: &Look) -> Acts {
        let mut acts = Acts::default();
        for row in look.rows.values().filter(|row| row.deleted_at.is_none()) {
            if self.chance.percent(25) {
                continue;
            }
            match row.status {
                Status::Starting | Status::Running if row.card.is_none() => {
                    self.meddle(row.id, &mut acts);
                }
                Status::Starting
                | Status::Running
                | Status::Waiting
                | Status::NeedsYou
                | Status::Error
                | Status::Stalled
                | Status::Paused
                | Status::Ended
                | Status::Archived => self.at_rest(row, &mut acts),
            }
        }
        acts
    }

    /// Something is under way, and the person does not just wait.
    fn meddle(&mut self, session: SessionId, acts: &mut Acts) {
        match self.chance.below(10) {
            0 => acts.first.push(Command::Stop { session }),
            1 => acts.first.push(Command::End { session }),
            2 => acts.first.push(Command::Archive { session }),
            3 => {
                let text = self.text("slow 2");
                acts.first.push(Command::Send { session, text, now: true });
            }
            4 | 5 => {
                let text = self.text("slow 2");
                acts.first.push(Command::Send { session, text, now: false });
            }
            _patient => {}
        }
    }

    fn at_rest(&mut self, row: &SessionRow, acts: &mut Acts) {
        let session = row.id;
        if let Some(card) = &row.card
            && self.chance.percent(60)
        {
            let (request, reply) = (card.request.clone(), self.reply(card.kind));
            acts.first.push(Command::ReplyCard { session, request, reply });
            return;
        }
        let pill = match row.pending {
            Some(PendingAction::RecoveryFailed | PendingAction::ResponseAborted) => {
                Some(Command::Retry { session })
            }
            Some(PendingAction::AppRestartSuspended | PendingAction::Stopped) => {
                Some(Command::Continue { session })
            }
            Some(
                PendingAction::Question
                | PendingAction::PlanApproval
                | PendingAction::PermissionRequest
                | PendingAction::AuthRequired
                | PendingAction::ApiError
                | PendingAction::RateLimited,
            )
            | None => None,
        };
        if let Some(pill) = pill.filter(|_| self.chance.percent(30)) {
            acts.first.push(pill);
            return;
        }
        if row.status == Status::Archived {
            acts.first.push(Command::Unarchive { session });
        }
        let Scene { steps, more, then } = self.next_scene();
        let all = iter::once(steps).chain(iter::repeat_n("slow 2", more));
        let batch: Vec<String> = all.map(|steps| self.text(steps)).collect();
        let send = |text: &String| Command::Send { session, text: text.clone(), now: false };
        acts.first.extend(batch.iter().map(send));
        self.batches.push(batch);
        acts.later.extend(match then {
            Then::Nothing => None,
            Then::Stop => Some(Command::Stop { session }),
            Then::End => Some(Command::End { session }),
            Then::Archive => Some(Command::Archive { session }),
            Then::Delete => Some(Command::Delete { session }),
        });
    }

    /// Messages that were written one after the other: they go in this order.
    pub(super) fn batches(&self) -> &[Vec<String>] {
        &self.batches
    }

    fn reply(&mut self, kind: CardKind) -> CardReply {
        match kind {
            CardKind::Permission if self.chance.percent(50) => CardReply::Allow,
            CardKind::Permission => CardReply::Deny { message: None },
            CardKind::Question => CardReply::Answers {
                answers: BTreeMap::from([("Which colour?".to_string(), "Green".to_string())]),
            },
            CardKind::Plan if self.chance.percent(50) => {
                CardReply::ApprovePlan { ask_each_edit: true }
            }
            CardKind::Plan => CardReply::KeepPlanning { message: None },
        }
    }
}
