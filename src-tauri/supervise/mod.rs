//! The supervising half of the shell: child processes, clock, probes, store, and the loop that
//! feeds the rules with them. It never imports `tauri` and holds no rule of its own.

#[cfg(unix)]
pub mod accounts;
#[cfg(unix)]
mod board;
#[cfg(unix)]
pub mod children;
#[cfg(unix)]
pub mod clock;
#[cfg(unix)]
pub mod ctl;
#[cfg(unix)]
mod driver;
#[cfg(unix)]
mod effects;
#[cfg(unix)]
pub mod handle;
#[cfg(unix)]
pub mod listener;
#[cfg(unix)]
pub mod load;
#[cfg(unix)]
pub mod login_env;
#[cfg(unix)]
pub mod logs;
#[cfg(unix)]
pub mod probes;
#[cfg(unix)]
pub mod pty;
#[cfg(unix)]
pub mod secrets;
#[cfg(unix)]
pub mod store;
#[cfg(unix)]
pub mod supervisor;
#[cfg(unix)]
mod surroundings;
