//! Every pace and bound of the stand-in, in one place. It holds no behaviour.

use std::time::Duration;

/// Pause between two streamed words of the rehearsal personality: quick, but a person can follow.
pub(crate) const PERSONA_WORD: Duration = Duration::from_millis(45);
/// Pause between two streamed words of a scripted turn, unless `slow MS` says otherwise.
pub(crate) const SCRIPT_WORD: Duration = Duration::from_millis(2);
/// How often a running tool is looked at.
pub(crate) const TOOL_POLL: Duration = Duration::from_millis(25);
/// A foreground command becomes a task after this, as recorded (capture 36).
pub(crate) const TASK_STARTED_AFTER: Duration = Duration::from_secs(3);
/// Heartbeat of a running foreground command, as recorded (capture 36).
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(30);
/// A silent stand-in looks this often whether its parent is still there.
pub(crate) const PARENT_POLL: Duration = Duration::from_millis(500);
/// Pause between the two halves of a line that `split` cuts inside a character.
pub(crate) const SPLIT_PAUSE: Duration = Duration::from_millis(30);
/// Pause after the first byte of a character of several while every byte is a write of its own.
pub(crate) const DRIP_PAUSE: Duration = Duration::from_millis(1);
/// Words of the answer that are streamed before a scripted cut.
pub(crate) const WORDS_BEFORE_CUT: usize = 9;
/// Longest line `long N` writes; a larger N is cut to it, so that a typing error cannot fill the memory.
pub(crate) const LONGEST_LINE: usize = 64 * 1024 * 1024;
/// Context window reported for models of the large class, in tokens.
pub(crate) const CONTEXT_WINDOW: u64 = 1_000_000;
/// Context tokens of a turn, unless `usage N` says otherwise.
pub(crate) const CONTEXT_TOKENS: u64 = 1200;
/// Context tokens after a compaction, unless `compact N` says otherwise.
pub(crate) const COMPACTED_TOKENS: u64 = 2600;
/// Output tokens reported per API call, as in the recordings.
pub(crate) const OUTPUT_TOKENS: u64 = 20;
/// Cost reported per API call, in dollars, as in the recordings.
pub(crate) const COST_PER_CALL: f64 = 0.0052;
