//! Every limit of the product, once, with its unit in the name.
//!
//! Tests and the rehearsal mode pass their own; [`Limits::broken_relation`] holds the relations
//! that must be true of any set.

use crate::time::Millis;
use crate::turn_end::auto_continue::AUTO_CONTINUE_MAX;
use crate::turn_end::context_stall::CONTEXT_STALL_RECOVER_MAX;
use serde::{Deserialize, Serialize};

/// All limits. The defaults are the contract's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The aborted-response scan runs this often (SC-01).
    pub scan_interval_ms: Millis,
    /// The first scan is this long after the start (SC-02).
    pub scan_boot_delay_ms: Millis,
    /// Automatic replays a session gets per local day (SC-13).
    pub daily_attempt_cap: u8,
    /// Rungs of the re-arm ladder (RA-03).
    pub ladder_rungs: u8,
    /// The gap before the first rung; each next gap is twice as long (RA-02).
    pub ladder_first_ms: Millis,
    /// The longest gap between two rungs (RA-02).
    pub ladder_max_ms: Millis,
    /// No automatic restart of a session within this time of its last one (SC-15, RP-07).
    pub replay_debounce_ms: Millis,
    /// A recovering row stays invisible for at most this long (HD-09).
    pub hide_max_ms: Millis,
    /// A timestamp further in the future than this counts as expired (HD-22).
    pub hide_future_tolerance_ms: Millis,
    /// Badge and counts are looked at again this often (NT-06).
    pub pulse_ms: Millis,

    /// The machine is saturated from this many busy thousandths of all cores (LD-02).
    pub heavy_load_permille: u16,
    /// Load is the mean of this much time (LD-01).
    pub load_window_ms: Millis,
    /// Load is sampled this often (LD-01).
    pub load_sample_ms: Millis,
    /// Fewer samples than this say nothing: the machine counts as calm (LD-01).
    pub load_samples_min: usize,
    /// Scans that load may defer in a row before the escape valve opens for a session (LD-07).
    pub escape_valve_ticks: u32,

    /// Silence before the first output of a turn (SW-01).
    pub first_output_ms: Millis,
    /// The same on a saturated machine (SW-02).
    pub first_output_load_ceiling_ms: Millis,
    /// Silence while a text or tool-input block is open.
    pub silence_open_block_ms: Millis,
    /// Silence while thinking, between blocks, after abandoned blocks, or for the next message.
    pub silence_between_ms: Millis,
    /// An announced retry may take its own delay and this much more.
    pub api_retry_grace_ms: Millis,
    /// Start-up without real output is given up after this long, chatter or not (SW-04).
    pub startup_ceiling_ms: Millis,
    /// The CLI's own byte-idle timer, set at its launch.
    pub cli_byte_idle_ms: Millis,
    /// Our text limit is at least the CLI's idle timer and this much.
    pub cli_heals_first_margin_ms: Millis,

    /// The launch handshake must be answered within this on a calm machine.
    pub handshake_ms: Millis,
    /// The same on a saturated machine.
    pub handshake_busy_ms: Millis,
    /// Starts that hang before a launch counts as failed.
    pub handshake_tries: u8,
    /// The gap after the first launch that failed transiently; each next gap is twice as long (RS-03).
    pub relaunch_first_ms: Millis,
    /// The longest gap between two launches: `RELENTLESS_RETRY_MAX_DELAY_MS` (RS-04).
    pub relaunch_max_ms: Millis,
    /// Up to so many thousandths are taken off a gap, so that sessions do not march in step (OD-46).
    pub relaunch_jitter_permille: u16,
    /// Launches whose spawn call is under way: `MAX_CONCURRENT_SPAWN_RETRIES` (RS-09).
    pub spawn_slots: usize,
    /// Every launch that fails so many times more is told in the transcript (RS-17).
    pub relaunch_note_every: u32,
    /// Retries of a launch while relentless relaunch is off: `MAX_SPAWN_RETRIES` (RS-13).
    pub bounded_retries: u32,
    /// The gap between them (OD-47).
    pub bounded_retry_ms: Millis,
    /// After so long without a launch a person is told.
    pub cannot_launch_ms: Millis,
    /// Two spawns start at least this far apart (OD-61).
    pub spawn_gap_ms: Millis,
    /// Children that start at once: spawned and not yet answering (mass start).
    pub starting_max: usize,
    /// A look at folder and conversation that is older than this is taken again before a spawn.
    pub look_fresh_ms: Millis,
    /// File descriptors that must be free for a launch.
    pub headroom_descriptors: u64,
    /// Processes that must be free for a launch.
    pub headroom_processes: u64,
    /// Memory that must be available for a launch, in mebibytes.
    pub headroom_memory_mib: u64,
    /// A machine that is short of something is looked at again after this.
    pub headroom_again_ms: Millis,
    /// After so long of being short the next launch is tried all the same: the system decides.
    pub headroom_patience_ms: Millis,
    /// Children are looked at this often (LV-01).
    pub liveness_ms: Millis,
    /// One that is gone is looked at again after this; gone twice in a row it is lost.
    pub liveness_again_ms: Millis,
    /// SIGTERM is given this long before SIGKILL.
    pub term_grace_ms: Millis,
    /// After an operator's interrupt a result must come within this, else the stop recipe.
    pub interrupt_grace_ms: Millis,
    /// A stop that reports nothing is taken as done after this long.
    pub stop_report_ms: Millis,
    /// Output is drained for this long after the child's exit while something holds its terminal.
    pub drain_ms: Millis,

    /// A question to the shell is answered within this, else the rule goes on without (principle 2).
    pub ask_ms: Millis,
    /// The ordered gate list of a finished turn waits for a fact at most this long.
    pub turn_end_ask_ms: Millis,
    /// The folder probe takes at most this long (PF-06).
    pub folder_probe_ms: Millis,
    /// A folder of an open session is looked at again this often (PF-05).
    pub folder_recheck_ms: Millis,

    /// Nudges in a row for a full context (CS-14).
    pub context_stall_recover_max: u8,
    /// Nudges for mid-task stops after one message of the person (OD-44).
    pub auto_continue_max: u8,
    /// The system's secret store answers within this, or there is none.
    pub secret_store_ms: Millis,
    /// The command that prints a secret may take this long.
    pub secret_command_ms: Millis,

    /// A transcript block that is still open is saved at most this often.
    pub block_save_ms: Millis,
    /// The blocks of all sessions that are due are saved together, this often.
    pub block_save_step_ms: Millis,
    /// The final text kept in memory, in bytes.
    pub final_text_max_bytes: usize,
    /// One protocol line may be this long, in bytes.
    pub line_max_bytes: usize,
    /// stderr lines kept for each session.
    pub chatter_lines_max: usize,
    /// Tool calls of one message that are remembered for its replay.
    pub calls_max: usize,
    /// Messages that may wait in a session's queue.
    pub queue_max: usize,
    /// One message may be this long, in bytes.
    pub message_max_bytes: usize,

    /// Workers of one family that are not done: of a session, of its workers, and so on.
    pub workers_max: usize,
    /// A worker's task may be this long, in bytes.
    pub task_max_bytes: usize,
    /// Gates that one session may hold open.
    pub gates_max: usize,

    /// A background command alone holds a waiting row this long after its turn's end, and an automatic
    /// restart this long after the stamp.
    pub wait_command_ms: Millis,
    /// After the last background task the CLI begins a turn of its own within this.
    pub wait_end_grace_ms: Millis,
    /// A child may fire its own wake-up this long before its time.
    pub wake_early_ms: Millis,
    /// A child fires its own wake-up within this after its time.
    pub wake_late_ms: Millis,
    /// A wake-up further away than this is no wait.
    pub wake_max_ms: Millis,
    /// What a wake-up says may be this long, in bytes.
    pub wake_prompt_max_bytes: usize,
    /// Wake-ups that one session may have set.
    pub wakes_max: usize,
    /// Background tasks of one session that are remembered by name.
    pub wait_tasks_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            // rule: SC-19, SC-26
            scan_interval_ms: 60_000,
            scan_boot_delay_ms: 30_000,
            daily_attempt_cap: 2,
            ladder_rungs: 12,
            ladder_first_ms: 30_000,
            ladder_max_ms: 1_800_000,
            replay_debounce_ms: 90_000,
            hide_max_ms: 300_000,
            hide_future_tolerance_ms: 60_000,
            pulse_ms: 60_000,
            heavy_load_permille: 850,
            load_window_ms: 60_000,
            load_sample_ms: 5_000,
            load_samples_min: 3,
            escape_valve_ticks: 10,
            first_output_ms: 120_000,
            first_output_load_ceiling_ms: 360_000,
            silence_open_block_ms: 180_000,
            silence_between_ms: 600_000,
            api_retry_grace_ms: 30_000,
            startup_ceiling_ms: 1_800_000,
            cli_byte_idle_ms: 90_000,
            cli_heals_first_margin_ms: 60_000,
            handshake_ms: 15_000,
            handshake_busy_ms: 60_000,
            handshake_tries: 2,
            relaunch_first_ms: 250,
            relaunch_max_ms: 30_000,
            relaunch_jitter_permille: 200,
            spawn_slots: 4,
            relaunch_note_every: 10,
            bounded_retries: 3,
            bounded_retry_ms: 250,
            cannot_launch_ms: 600_000,
            spawn_gap_ms: 250,
            starting_max: 8,
            look_fresh_ms: 5_000,
            headroom_descriptors: 32,
            headroom_processes: 64,
            headroom_memory_mib: 300,
            headroom_again_ms: 2_000,
            headroom_patience_ms: 30_000,
            liveness_ms: 60_000,
            liveness_again_ms: 20_000,
            term_grace_ms: 5_000,
            interrupt_grace_ms: 5_000,
            stop_report_ms: 20_000,
            drain_ms: 2_000,
            ask_ms: 5_000,
            turn_end_ask_ms: 2_000,
            folder_probe_ms: 2_000,
            folder_recheck_ms: 60_000,
            context_stall_recover_max: CONTEXT_STALL_RECOVER_MAX,
            auto_continue_max: AUTO_CONTINUE_MAX,
            // rule: A-32
            secret_store_ms: 2_000,
            secret_command_ms: 10_000,
            block_save_ms: 1_000,
            block_save_step_ms: 250,
            final_text_max_bytes: 64 * 1024,
            line_max_bytes: 16 * 1024 * 1024,
            chatter_lines_max: 50,
            calls_max: 64,
            queue_max: 100,
            message_max_bytes: 8 * 1024 * 1024,
            workers_max: 32,
            task_max_bytes: 256 * 1024,
            gates_max: 16,
            wait_command_ms: 1_800_000,
            wait_end_grace_ms: 20_000,
            wake_early_ms: 120_000,
            wake_late_ms: 300_000,
            wake_max_ms: 31_622_400_000,
            wake_prompt_max_bytes: 16 * 1024,
            wakes_max: 32,
            wait_tasks_max: 32,
        }
    }
}

impl Limits {
    /// The short limits of the rehearsal mode: a newcomer sees a recovery within seconds.
    pub fn rehearsal() -> Self {
        Limits {
            scan_interval_ms: 4_000,
            scan_boot_delay_ms: 2_000,
            replay_debounce_ms: 5_000,
            ladder_first_ms: 6_000,
            ladder_max_ms: 60_000,
            hide_max_ms: 20_000,
            pulse_ms: 1_000,
            first_output_ms: 20_000,
            folder_recheck_ms: 5_000,
            ..Limits::default()
        }
    }

    /// The first relation between limits that does not hold, or `None` for a sound set.
    pub fn broken_relation(&self) -> Option<&'static str> {
        let relations = [
            // rule: SC-15
            (self.replay_debounce_ms > self.scan_interval_ms, "debounce > scan interval"),
            // rule: A-05
            (
                self.cli_byte_idle_ms + self.cli_heals_first_margin_ms < self.silence_open_block_ms,
                "the CLI's idle timer + margin < the open-block limit",
            ),
            (
                self.silence_open_block_ms <= self.silence_between_ms,
                "the open-block limit <= the between-blocks limit",
            ),
            (
                self.first_output_ms <= self.first_output_load_ceiling_ms,
                "first output <= the same under load",
            ),
            (
                self.first_output_load_ceiling_ms < self.startup_ceiling_ms,
                "first output under load < start-up ceiling",
            ),
            (self.handshake_ms <= self.handshake_busy_ms, "handshake <= the same under load"),
            (
                self.secret_store_ms.max(self.secret_command_ms) < self.handshake_ms * 2,
                "a secret is read before a spawn call counts as hung",
            ),
            (self.ladder_first_ms <= self.ladder_max_ms, "first gap <= longest gap"),
            (self.load_samples_min >= 1, "load is told from at least one sample"),
            (self.heavy_load_permille <= 1_000, "heavy load <= all cores"),
            (self.term_grace_ms < self.stop_report_ms, "SIGTERM grace < stop report"),
            (self.turn_end_ask_ms <= self.ask_ms, "turn-end wait <= ask wait"),
            (self.folder_probe_ms < self.ask_ms, "folder probe < ask wait"),
            (self.hide_max_ms > self.scan_interval_ms, "hide cap > scan interval"),
            (self.daily_attempt_cap >= 1, "at least one attempt a day"),
            (self.handshake_tries >= 1, "at least one start"),
            (
                self.relaunch_first_ms <= self.relaunch_max_ms,
                "first gap <= longest gap to relaunch",
            ),
            (self.relaunch_jitter_permille <= 1_000, "the jitter is no more than the gap"),
            (self.relaunch_max_ms < self.cannot_launch_ms, "longest gap to relaunch < the telling"),
            (self.spawn_slots >= 1 && self.starting_max >= self.spawn_slots, "slots to start in"),
            (self.relaunch_note_every >= 1, "a note now and then"),
            (self.ask_ms <= self.look_fresh_ms, "a look is fresh when its answer comes"),
            (
                self.drain_ms + 2 * self.term_grace_ms < self.liveness_again_ms,
                "an exit is drained, swept and told before a child counts as lost",
            ),
            (self.liveness_again_ms < self.liveness_ms, "the second look comes before the next"),
            (self.calls_max >= 1, "at least one remembered call"),
            (self.block_save_step_ms >= 1, "blocks are saved some time"),
            (self.block_save_step_ms <= self.block_save_ms, "the step of saves <= their gap"),
            (self.wait_end_grace_ms < self.wait_command_ms, "a task's end < a command's hold"),
            (self.wake_late_ms > self.replay_debounce_ms, "a late wake-up > debounce"),
            (self.wakes_max >= 1 && self.wait_tasks_max >= 1, "at least one thing to wait for"),
        ];
        relations.iter().find(|(holds, _)| !holds).map(|(_, name)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: SC-15, SC-19
    #[test]
    fn the_limits_are_the_contracts_and_their_relations_hold() {
        let limits = Limits::default();
        assert_eq!(limits.broken_relation(), None);
        assert_eq!(Limits::rehearsal().broken_relation(), None);
        assert_eq!(
            (limits.scan_interval_ms, limits.daily_attempt_cap, limits.replay_debounce_ms),
            (60_000, 2, 90_000)
        );
        assert_eq!(
            (limits.heavy_load_permille, limits.escape_valve_ticks, limits.ladder_rungs),
            (850, 10, 12)
        );
        assert_eq!(limits.first_output_load_ceiling_ms, 360_000);
        assert_eq!((limits.hide_max_ms, limits.first_output_ms), (300_000, 120_000));
        let broken = Limits { replay_debounce_ms: 60_000, ..limits };
        assert_eq!(broken.broken_relation(), Some("debounce > scan interval"));
    }
}
