//! The app as a library: the supervising half and, beside it, the window's half.

pub mod supervise;
