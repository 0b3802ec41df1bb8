//! Bringing a session back: who may, when, and by which way.

pub mod aborted_scan;
pub mod attempts;
pub mod crash;
pub mod fork;
pub mod guards;
pub mod handover;
pub mod orphan;
pub mod rearm_ladder;
pub mod replay_plan;
