//! What happens where the system gives no more: descriptors, processes, and programs that are none.
//!
//! The limits are the system's own and hold for a whole process, so each of these tests runs in one of
//! its own.

mod alone;
mod headroom;
mod line;
mod own;
mod red;
mod rig;
mod sessions;
mod spawn;
