//! A turn that did not finish: whether it is over, or why it is not yet.

pub mod liveness;
pub mod silence;
