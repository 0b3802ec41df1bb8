//! The whole supervisor without a window, on the bundled stand-in: start, answer, cut-off, recovery,
//! Retry, quit, crash, panic, a full context, trouble with the disk.
//!
//! The waits have a bound only to make a hanging test fail.

mod cases;
mod context;
mod held;
mod life;
pub(crate) mod rig;
mod trouble;
