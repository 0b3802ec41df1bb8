//! The CLI's output: bytes to bounded lines to [`StreamEvent`]. Never fails.

mod event;

pub use event::*;
