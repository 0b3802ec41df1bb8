//! What crosses between the window and the backend: one request type per command, replies, events.
//!
//! The window receives facts, never labels: it asks [`crate::attention`] itself.

use crate::block::Block;
use crate::context::ContextUsage;
use crate::id::{MessageId, SessionId};
use crate::message::Queued;
use crate::session::{Holder, SessionRow};
use crate::settings::{KillSwitches, Settings};
use crate::time::{Millis, Wall};
use crate::verdict::Decision;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// An account, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountView {
    /// Its id.
    pub id: String,
    /// What the window calls it.
    pub label: String,
    /// Whether it authenticates with an API key (else with a login).
    pub api_key: bool,
}

/// What the agent is doing right now, as far as the stream tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "what", rename_all = "snake_case")]
pub enum Activity {
    /// Nothing that has a name of its own.
    #[default]
    Working,
    /// It thinks.
    Thinking,
    /// It runs a tool: a command or a verb with its target.
    Tool(String),
    /// So many sub-agents live.
    SubAgents(u32),
    /// It compacts its history.
    Compacting,
    /// The CLI retries the API by itself.
    Retrying {
        /// Which attempt.
        attempt: u32,
        /// Of how many.
        max: u32,
    },
}

/// Facts of a session that live only as long as the app.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveView {
    /// What the agent does.
    pub activity: Activity,
    /// Since when.
    pub activity_since: Wall,
    /// A child lives or is being launched.
    pub child: bool,
    /// Messages that wait.
    pub queue: Vec<Queued>,
    /// The project folder is missing.
    pub folder_missing: bool,
    /// Another program has the conversation open: nothing resumes it meanwhile.
    pub held: Option<Holder>,
    /// A restart is under way: Retry is inert until the next state.
    pub restart_under_way: bool,
    /// A launch that failed transiently and is tried again (RS-20).
    pub relaunch: Option<RelaunchView>,
    /// How many launches go before this one, itself included; `None` when it waits for none.
    pub place: Option<u32>,
    /// How full the model's context is; `None` when unknown (CW-01).
    pub context: Option<ContextUsage>,
    /// The model in use, as the CLI names it.
    pub model: Option<String>,
    /// Background tasks that live.
    pub background: u32,
}

/// A session that fights for its launch (RS-20).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelaunchView {
    /// Launches that failed so far.
    pub attempts: u32,
    /// When the next one is due; `None` while one is under way or waits for its turn.
    pub next: Option<Wall>,
    /// What the system said last.
    pub words: String,
}

/// One row as the window gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowView {
    /// The durable facts.
    pub row: SessionRow,
    /// The live ones.
    pub live: LiveView,
}

/// What the window is told when it opens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// All listed rows.
    pub rows: Vec<RowView>,
    /// The settings.
    pub settings: Settings,
    /// The switches of the environment.
    pub switches: KillSwitches,
    /// The accounts.
    pub accounts: Vec<AccountView>,
    /// How the CLI was found, or why not.
    pub cli: CliState,
    /// The limits the window needs.
    pub hide_max_ms: Millis,
    /// The future tolerance of the hide clock.
    pub hide_future_tolerance_ms: Millis,
    /// Runs on the bundled stand-in, marked in the window.
    pub fake: bool,
    /// Folders used before, newest first.
    pub recent_folders: Vec<String>,
    /// The user's home folder, for `~`.
    pub home: Option<String>,
}

/// Whether a usable CLI is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CliState {
    /// Found.
    Found {
        /// Where.
        path: String,
        /// Its version line.
        version: String,
    },
    /// Not found.
    Missing {
        /// Where it was looked for.
        looked: Vec<String>,
    },
    /// Found, but it does not run.
    Broken {
        /// Where.
        path: String,
        /// The first line of its error.
        error: String,
    },
}

/// One page of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptPage {
    /// Blocks in order.
    pub blocks: Vec<Block>,
    /// Whether earlier blocks exist.
    pub earlier: bool,
}

/// What a folder brings that runs by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FolderCheck {
    /// It exists and is a folder.
    pub exists: bool,
    /// Its real path.
    pub real_path: String,
    /// Already decided: `Some(true)` trusted, `Some(false)` start without.
    pub decided: Option<bool>,
    /// What it brings: file and text.
    pub commands: Vec<FolderCommand>,
}

/// One thing a folder brings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderCommand {
    /// The file: relative to the folder when inside it, else absolute.
    pub file: String,
    /// The command's text.
    pub text: String,
}

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditLine {
    /// When.
    pub at: Wall,
    /// Which session.
    pub session: SessionId,
    /// Its title.
    pub title: String,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// What became of it.
    pub outcome: String,
}

/// Why a row is as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The last decisions, newest last.
    pub decisions: Vec<Decision>,
    /// What happens next by itself, and when (milliseconds from now), if anything.
    pub next: Option<(String, Millis)>,
}

/// Reply to a command of the reducer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", content = "of", rename_all = "snake_case")]
pub enum Reply {
    /// Done.
    Done,
    /// A session was made.
    Created(SessionId),
    /// A session was made as a copy of another.
    Forked {
        /// The new session.
        session: SessionId,
        /// What the person said that the copy does not hold, to be sent again in another form.
        draft: Option<String>,
    },
    /// A message was accepted.
    Accepted(MessageId),
    /// Why a row is as it is.
    Explained(Explanation),
    /// What one of the app's own tools says, as JSON text.
    Told(String),
    /// An endpoint is set up under this id.
    Endpoint(String),
}

/// Whether the secret of an endpoint is where it is to be read. The secret itself never crosses back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretState {
    /// It is there.
    Present,
    /// It is not.
    Missing,
    /// The system's secret store does not answer.
    NoStore,
    /// Known only once the command is run, at the next launch.
    AtLaunch,
}

/// An error for the window. It branches on the code and shows the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpcError {
    /// Which kind.
    pub code: IpcCode,
    /// What is so and what to do, without secrets.
    pub message: String,
}

/// Kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IpcCode {
    /// There is no such session, message or card.
    NotFound,
    /// The session is not in a state that allows it (RT-20).
    NotEligible,
    /// The request itself is wrong.
    Invalid,
    /// Something is full.
    Full,
    /// The project folder does not exist.
    FolderMissing,
    /// The app is quitting.
    Quitting,
    /// The store failed.
    Store,
    /// Anything else.
    Internal,
}

/// Events from the backend to the window, sent in batches in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "of", rename_all = "snake_case")]
pub enum Event {
    /// A row changed.
    Row(alloc::boxed::Box<RowView>),
    /// A row is gone from the lists.
    Gone(SessionId),
    /// A block is new or replaced.
    Block {
        /// Its session.
        session: SessionId,
        /// The block.
        block: Block,
    },
    /// Text for an open block.
    Delta {
        /// Its session.
        session: SessionId,
        /// The block.
        seq: u64,
        /// The piece.
        text: String,
    },
    /// The settings changed.
    Settings(Settings),
    /// The CLI was found or lost.
    Cli(CliState),
    /// The store cannot write; the words say why and what to do. `None` when it can again.
    StoreTrouble(Option<String>),
    /// How busy the machine is, in per cent.
    Load(Option<u8>),
    /// Open this session (a notification was clicked, a second start).
    Open(SessionId),
    /// Acts of the person that the app undid or finished: the accepted message's id.
    Sent(MessageId),
}
