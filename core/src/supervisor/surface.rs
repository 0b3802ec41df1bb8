//! The reducer's surface: what comes in, what goes out. Values only.

use super::command::Command;
use super::question::{Answer, Question};
use crate::block::Block;
use crate::id::{MessageId, SessionId};
use crate::ipc::{AccountView, IpcError, Reply, RowView};
use crate::launch::LaunchPlan;
use crate::launch::classify::Os;
use crate::message::{Message, MessageState, Queued, UserLine};
use crate::session::{ChildMark, SessionRow};
use crate::settings::{KillSwitches, Settings};
use crate::stream::StreamEvent;
use crate::verdict::Actor;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// One launch of one child. Inputs of an older launch are ignored and logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaunchId(pub u64);

/// One question to the shell. Stale ids are ignored and logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AskId(pub u64);

/// Where the reply to a command goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ReplyTo(pub u64);

/// Everything that can happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// The app started, or the state is rebuilt after a caught panic.
    Boot(Box<Boot>),
    /// Nothing happened but time.
    Wake,
    /// The machine slept for about this long, in milliseconds.
    Slept {
        /// How long.
        millis: u64,
    },
    /// A child runs.
    Spawned {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
        /// The process.
        child: ChildMark,
    },
    /// A child could not be started.
    SpawnFailed {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
        /// The system's error number.
        errno: Option<i32>,
        /// The system's words and what to do, without secrets.
        words: String,
    },
    /// A line of output.
    Stream {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
        /// What it says.
        event: StreamEvent,
    },
    /// A line of stderr.
    Chatter {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
        /// The line.
        text: String,
    },
    /// The output ended.
    OutputEnded {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
    },
    /// The child exited (after the end of its output, or its drain limit).
    Exited {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
        /// Exit code.
        code: Option<i32>,
        /// Signal.
        signal: Option<i32>,
    },
    /// The stop recipe is done: the child is dead and swept.
    Stopped {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
        /// Processes the sweep had to end.
        leftovers: u32,
    },
    /// A line could not be written to the child.
    WriteFailed {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
        /// The words.
        words: String,
    },
    /// A guarded write found another row than expected: here is what stands there.
    CommitRefused {
        /// The row as it is, or `None` if it is gone.
        row: Option<Box<SessionRow>>,
        /// Its session.
        session: SessionId,
    },
    /// The answer to a question.
    Answer {
        /// The question.
        ask: AskId,
        /// The answer.
        answer: Answer,
    },
    /// One sample of how busy the machine is, every few seconds (LD-01).
    Load {
        /// Per core, in thousandths; empty when the sampler failed.
        cores: Vec<u16>,
    },
    /// The window's focus and the open panel.
    Window {
        /// Whether the window is focused.
        focused: bool,
        /// The session whose panel is open.
        open: Option<SessionId>,
    },
    /// Whether a CLI was found.
    Cli {
        /// Path, or `None` when there is none.
        found: Option<String>,
    },
    /// A command of the person.
    Command {
        /// Where the reply goes.
        reply: ReplyTo,
        /// What is wanted.
        command: Command,
    },
}

/// What the app knows at its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    /// Seed of ids and jitter.
    pub seed: u64,
    /// Whose error numbers failed launches bring.
    pub os: Os,
    /// Whether this is a start of the app (not a rebuild after a panic): crash recovery runs.
    pub first: bool,
    /// Every row that is not deleted.
    pub rows: Vec<SessionRow>,
    /// Queued messages by session, oldest first.
    pub queues: Vec<(SessionId, Vec<Queued>)>,
    /// The highest block number of each session.
    pub block_counts: Vec<(SessionId, u64)>,
    /// Children that still live (only in a rebuild): they are stopped before anything is launched.
    pub live: Vec<(SessionId, LaunchId)>,
    /// Settings.
    pub settings: Settings,
    /// Switches.
    pub switches: KillSwitches,
    /// Accounts, without secrets.
    pub accounts: Vec<AccountView>,
}

/// A control request of ours to the child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "control", rename_all = "snake_case")]
pub enum Control {
    /// The launch handshake.
    Initialize {
        /// Our id.
        request: String,
    },
    /// The operator's Stop and Send now only.
    Interrupt {
        /// Our id.
        request: String,
    },
    /// How full the context is.
    ContextUsage {
        /// Our id.
        request: String,
    },
    /// The answer to `can_use_tool`, as the CLI expects it.
    Answer {
        /// The CLI's id.
        request: String,
        /// The body of the response.
        response: serde_json::Value,
    },
    /// A request of a kind we do not know is refused, never left open.
    Refuse {
        /// The CLI's id.
        request: String,
        /// Why.
        error: String,
    },
}

/// A durable change. All writes of a step are one transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Write {
    /// A row: inserted (`before` is `None`) or changed, guarded by what was read.
    Row {
        /// The row as the reducer knew it.
        before: Option<Box<SessionRow>>,
        /// The row as it is to be.
        after: Box<SessionRow>,
        /// Who changed it.
        actor: Actor,
        /// Why, in short fixed words.
        reason: String,
    },
    /// A message is stored.
    Message(Message),
    /// A message moved on.
    MessageState {
        /// The message.
        id: MessageId,
        /// How far it is.
        state: MessageState,
    },
    /// A block is stored or replaced.
    Block {
        /// Its session.
        session: SessionId,
        /// The block.
        block: Block,
    },
    /// The settings.
    Settings(Settings),
}

/// Something to do once the writes are committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Act {
    /// Start a child.
    Spawn {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
        /// How.
        plan: Box<LaunchPlan>,
    },
    /// Write a message to the child.
    Write {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
        /// The line.
        line: UserLine,
    },
    /// Write a control line to the child.
    Control {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
        /// The line.
        control: Control,
    },
    /// Stop a child by the recipe and sweep what it left; answered by `Stopped`.
    Stop {
        /// Its session.
        session: SessionId,
        /// Its launch.
        launch: LaunchId,
    },
    /// Ask the shell.
    Ask {
        /// The question's id.
        ask: AskId,
        /// The question.
        question: Question,
    },
    /// The window shows this row (or drops it, when it is gone).
    Emit(Box<RowView>),
    /// The window drops this row.
    EmitGone(SessionId),
    /// The window shows this block.
    EmitBlock {
        /// Its session.
        session: SessionId,
        /// The block.
        block: Block,
    },
    /// Text is appended to an open block.
    EmitDelta {
        /// Its session.
        session: SessionId,
        /// The block.
        seq: u64,
        /// The piece.
        text: String,
    },
    /// The settings changed.
    EmitSettings(Settings),
    /// Tell the person, once.
    Notify {
        /// The session.
        session: SessionId,
        /// Its title.
        title: String,
        /// Label and reason.
        body: String,
    },
    /// Number of sessions that need a person.
    Badge(usize),
    /// What the secret store keeps for this endpoint (its id) is of no use any more.
    ForgetSecret(String),
    /// The reply to a command.
    Reply {
        /// Which command.
        to: ReplyTo,
        /// The reply.
        reply: Result<Reply, IpcError>,
    },
    /// All children are gone: the app may end.
    Exit,
    /// A line for the log (ignored inputs, verdicts).
    Log {
        /// The session, if any.
        session: Option<SessionId>,
        /// What happened.
        text: String,
    },
}

/// What one input leads to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// To be committed in one transaction, first.
    pub writes: Vec<Write>,
    /// To be done after the commit, in order.
    pub acts: Vec<Act>,
}
