//! The oracle's books: what it knows of one session, from what went in, what was committed and what was
//! done. Facts only.

use super::ladder::Episode;
use super::nudges::Nudges;
use super::relaunch::Relaunch;
use omniscio_core::id::{MessageId, Uuid};
use omniscio_core::session::SessionRow;
use omniscio_core::stream::TurnResult;
use omniscio_core::time::Day;
use omniscio_core::verdict::Actor;
use std::collections::{BTreeMap, BTreeSet};

/// Somebody took a session up to restart it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) actor: Actor,
    pub(super) at: u64,
    /// The person brings back what the app's own restart had suspended.
    pub(super) by_person: bool,
}

/// What the oracle knows of one session.
#[derive(Default)]
pub(super) struct Book {
    pub(super) claim: Option<Claim>,
    /// One more start belongs to the same restart: the last one hung, or its conversation was gone.
    pub(super) again: bool,
    /// When an actor other than a message last restarted it.
    pub(super) restarted: Option<u64>,
    /// The same before its last restart, of which perhaps no child came.
    pub(super) restarted_before: Option<u64>,
    /// A restart still has its own line to write.
    pub(super) replay_due: bool,
    pub(super) click: Option<u64>,
    pub(super) clicked_at: Option<u64>,
    pub(super) charged: Option<(Day, u8)>,
    pub(super) concluded: u64,
    pub(super) stop_asked: bool,
    /// The person had asked for a stop when the app died.
    pub(super) died_stopping: bool,
    pub(super) local: bool,
    /// The last turn delivered its answer and nothing was sent since.
    pub(super) delivered: bool,
    pub(super) message: Option<MessageId>,
    /// The line of it that the CLI has not taken up yet: what runs before that is another turn.
    pub(super) ahead: Option<Uuid>,
    /// Tool calls of the message's tries, and whether each counts as started.
    pub(super) calls: BTreeMap<String, (String, bool)>,
    pub(super) shape_since: Option<u64>,
    /// Since when the row is in the shape without a break.
    pub(super) in_shape_at: Option<u64>,
    pub(super) left_shape_at: Option<u64>,
    /// Since when every tick may have found it in the shape.
    pub(super) deferred_from: Option<u64>,
    pub(super) unseen_since: Option<u64>,
    pub(super) surfaced: bool,
    /// An outside hand changed the row and the app has not noticed.
    pub(super) foreign: bool,
    /// The turn that runs began by itself: its answer is no answer to a message.
    pub(super) by_itself: bool,
    /// The turn that runs is a replay.
    pub(super) replayed: bool,
    /// What waited while the row was cut off.
    pub(super) held: BTreeSet<MessageId>,
    /// The person chose a copy of a conversation that is open elsewhere.
    pub(super) copy_wanted: bool,
    pub(super) copied: bool,
    /// The person wanted a restart that another program may keep waiting: it may come later.
    pub(super) takes_over: bool,
    /// How often the row entered another state, and at which entry the person was told last.
    pub(super) entries: u64,
    pub(super) notified: u64,
    pub(super) ladder: Episode,
    /// Its child has shown content of its own.
    pub(super) spoke: bool,
    /// Launches that failed, and how its next one is waited for.
    pub(super) relaunch: Relaunch,
    /// The row before it was made to wait, when no launch was begun until then.
    pub(super) rest: Option<Box<SessionRow>>,
    /// The app died while it waited for one.
    pub(super) died_waiting: bool,
    /// Folder and conversation were looked at for the launch under way.
    pub(super) looked: bool,
    /// The person stopped it or put it away, and has not begun anew.
    pub(super) put_down: bool,
    /// The person wants its launch now, before all others.
    pub(super) urgent: bool,
    /// Since when it is being started.
    pub(super) starting_at: u64,
    /// It waited for its launch until then.
    pub(super) cancelled: bool,
    /// The person brings it back, whoever is named for it.
    pub(super) resumes: bool,
    /// The wake-up that its child fires, until the app has heard of it.
    pub(super) firing: Option<String>,
    /// Calls that set or began something it waits for, and whether each is a task.
    pub(super) waits_begun: BTreeMap<String, bool>,
    /// When the app read one of them in the turn that runs.
    pub(super) waits_heard: Option<u64>,
    /// Commands run in its child behind the turns, as far as the app was told; else when the last one
    /// ended.
    pub(super) commands: bool,
    pub(super) commands_ended: u64,
    /// Its last launch failed for good.
    pub(super) refused: bool,
    /// The result that was read, until its turn is concluded.
    pub(super) result: Option<Box<TurnResult>>,
    /// The result of the turn that was concluded last.
    pub(super) ended_by: Option<Box<TurnResult>>,
    /// A line in the conversation says that its last turn said nothing.
    pub(super) told_nothing: bool,
    pub(super) nudges: Nudges,
}
