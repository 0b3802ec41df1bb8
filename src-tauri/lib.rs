//! The app as a library: the supervising half, and beside it the half that knows Tauri.

#[cfg(unix)]
pub mod ctl_client;
#[cfg(unix)]
pub mod start;
pub mod supervise;
#[cfg(unix)]
pub mod window;
