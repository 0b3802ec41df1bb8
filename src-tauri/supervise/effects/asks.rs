//! Answers the rules' questions about the world outside, each on a thread of its own where looking
//! may take long. It touches nothing but a program that the person wants to take over from.

use super::ground::Ground;
use super::pool::Pool;
use super::words;
use crate::supervise::children::SweepTimings;
use crate::supervise::driver::inbox::{Failed, Inbox, Message};
use crate::supervise::probes::{self, FolderState, Holders};
use omniscio_core::id::{CliSessionId, SessionId, Uuid};
use omniscio_core::session::{ChildMark, Holder};
use omniscio_core::supervisor::{Answer, AskId, TranscriptFacts};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Questions that are looked at at once: some for every session that a person runs. One more waits: at
/// most some for every session, for the rules ask again only when they gave an answer up.
const LOOKING_MAX: usize = 64;

/// A question to the file system and its processes.
pub(super) enum Look {
    Folder {
        folder: String,
    },
    Transcript {
        folder: String,
        account: String,
        cli_session: Option<CliSessionId>,
        copied_from: Option<CliSessionId>,
        uuids: Vec<Uuid>,
    },
    TakeOver {
        cli_session: CliSessionId,
        copied_from: Option<CliSessionId>,
        holder: Holder,
    },
    Headroom,
    Alive {
        children: Vec<(SessionId, ChildMark)>,
    },
}

/// The threads that look.
pub(super) struct Asks {
    ground: Arc<Ground>,
    inbox: Arc<Inbox>,
    looking: Pool,
}

impl Asks {
    pub(super) fn new(ground: Arc<Ground>, inbox: Arc<Inbox>) -> Asks {
        Asks { ground, inbox, looking: Pool::new(LOOKING_MAX) }
    }

    /// Looks; the answer follows. An answer that is there at once is given back.
    pub(super) fn look(&self, generation: u64, ask: AskId, look: Look) -> Option<Answer> {
        let (ground, inbox) = (Arc::clone(&self.ground), Arc::clone(&self.inbox));
        let work = move || {
            let answer = answer(&ground, look);
            inbox.push(Message::Answer { generation, ask, answer });
        };
        let error = self.looking.run(Box::new(work)).err()?;
        Some(unseen(&error))
    }
}

/// A look that the system refused.
fn unseen(error: &io::Error) -> Answer {
    let Failed { errno, words } = words::no_look(error);
    Answer::Failed { words, errno }
}

/// Something did not answer in time: the machine is too busy, for all that can be told.
fn silent(words: &str) -> Answer {
    Answer::Failed { words: words.to_string(), errno: Some(libc::EAGAIN) }
}

pub(super) fn failed(words: &str) -> Answer {
    Answer::Failed { words: words.to_string(), errno: None }
}

fn answer(ground: &Ground, look: Look) -> Answer {
    match look {
        Look::Folder { folder } => Answer::Folder { present: present(ground, &folder) },
        Look::Transcript { folder, account, cli_session, copied_from, uuids } => {
            let folder_present = present(ground, &folder);
            let found = |id| found(ground, &account, id, &uuids);
            let Some(id) = cli_session else {
                let found = TranscriptFacts::default();
                return Answer::Transcript { folder_present, found, holder: None };
            };
            match or_copied(found, id, copied_from) {
                Ok(found) => {
                    let original = copied_from.filter(|_| found.fell_back);
                    // last of all: what opens it after this look is not seen
                    let own = config_folder(ground, &account).ok();
                    let look = |holders: &Holders<'_>| holders.first();
                    match with_holders(ground, own.as_deref(), id, original, look) {
                        Ok(holder) => Answer::Transcript { folder_present, found, holder },
                        Err(words) => silent(&words),
                    }
                }
                Err(failed) => failed,
            }
        }
        Look::TakeOver { cli_session, copied_from, holder } => {
            let SweepTimings { term_grace, poll, .. } = ground.sweep_timings();
            let gone = with_holders(ground, None, cli_session, copied_from, |holders| {
                holders.end(&holder, term_grace, poll)
            });
            Answer::TakenOver { gone }
        }
        Look::Headroom => Answer::Headroom(probes::headroom()),
        Look::Alive { children } => {
            let gone = children.into_iter().filter(|(_, child)| probes::is_gone(*child));
            Answer::Alive { gone: gone.map(|(session, _)| session).collect() }
        }
    }
}

/// Asks who has the conversation open, or the one it was copied from.
fn with_holders<T>(
    ground: &Ground,
    own: Option<&Path>,
    id: CliSessionId,
    copied_from: Option<CliSessionId>,
    ask: impl FnOnce(&Holders<'_>) -> T,
) -> T {
    let conversations: Vec<CliSessionId> = [id].into_iter().chain(copied_from).collect();
    ask(&Holders {
        config_folders: &ground.config_folders(),
        own,
        limit: Duration::from_millis(ground.limits.folder_probe_ms),
        conversations: &conversations,
        data: &ground.data,
    })
}

/// The conversation, or the one it was copied from where the CLI has only that.
fn or_copied(
    found: impl Fn(CliSessionId) -> Result<TranscriptFacts, Answer>,
    id: CliSessionId,
    copied_from: Option<CliSessionId>,
) -> Result<TranscriptFacts, Answer> {
    let own = found(id)?;
    let Some(original) = copied_from.filter(|_| !own.exists) else { return Ok(own) };
    let before = found(original)?;
    Ok(if before.exists { TranscriptFacts { fell_back: true, ..before } } else { own })
}

fn present(ground: &Ground, folder: &str) -> bool {
    let limit = Duration::from_millis(ground.limits.folder_probe_ms);
    match probes::folder_ok(Path::new(folder), limit) {
        FolderState::Present => true,
        FolderState::Missing(why) => {
            tracing::info!(folder, why, "a project folder is missing");
            false
        }
    }
}

fn config_folder(ground: &Ground, account: &str) -> Result<PathBuf, &'static str> {
    let account = ground.account(account).ok_or("the account is not set up any more")?;
    account.config_folder(ground.home()).ok_or("the home folder is not known")
}

fn found(
    ground: &Ground,
    account: &str,
    id: CliSessionId,
    uuids: &[Uuid],
) -> Result<TranscriptFacts, Answer> {
    let config = config_folder(ground, account).map_err(failed)?;
    let limit = Duration::from_millis(ground.limits.folder_probe_ms);
    if !probes::folder_answers(&config, limit) {
        // every further look would cost a thread until there is none left for the other accounts
        return Err(silent("the account's config folder does not answer"));
    }
    let asked: Vec<String> = uuids.iter().map(Uuid::to_string).collect();
    let facts = probes::transcript(&config, &id.to_string(), &asked).map_err(|e| unseen(&e))?;
    let present = facts.present.iter().filter_map(|text| text.parse().ok()).collect();
    Ok(TranscriptFacts { file: facts.file, exists: facts.exists, present, fell_back: false })
}
