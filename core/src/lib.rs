//! The rules of Omniscio, as functions of values.
//!
//! Everything that decides lives here: what a finished turn means, when a silent turn is over,
//! when a dead one is replayed, what a row of the window says. What is deliberately absent: clocks,
//! files, processes, threads, databases, randomness. They reach this crate as arguments
//! ([`time::Now`], [`supervisor::Input`]) and leave it as values ([`supervisor::Step`]).
//!
//! Reading order: [`session`] (the durable facts of one row), [`stream`] (what the CLI says),
//! [`turn`] (what one turn has shown), [`turn_end`] (what its end means), [`recovery`] and
//! [`watchdog`] (what is done about a turn that died), [`waiting`] (what a session waits for by itself),
//! [`engine`] and [`endpoint`] (who answers), [`attention`] (what a person sees), and [`supervisor`] (the
//! one reducer that joins them).
#![no_std]

extern crate alloc;

pub mod attention;
pub mod block;
pub mod card;
pub mod context;
pub mod endpoint;
pub mod engine;
pub mod id;
pub mod ipc;
pub mod launch;
pub mod limits;
pub mod load;
pub mod message;
pub mod poll;
pub mod prompt;
pub mod recovery;
pub mod session;
pub mod settings;
pub mod stream;
pub mod supervisor;
pub mod time;
pub mod transcript;
pub mod turn;
pub mod turn_end;
pub mod verdict;
pub mod waiting;
pub mod watchdog;
