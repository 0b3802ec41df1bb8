//! Answers the rules' questions about the world outside: is the folder there, what does a
//! transcript hold, who else has it open, where is the CLI, which commands does a folder bring.
//!
//! Every answer is a fact with its bound in time or size. Nothing here decides, writes, or keeps a
//! state (but for probes that still hang, so that they do not pile up).

mod cli;
mod folder;
mod headroom;
mod holders;
mod transcript;
mod trust;

pub use cli::{claude_version, find_claude};
pub use folder::{FolderState, folder_answers, folder_ok};
pub use headroom::{headroom, is_gone};
pub use holders::Holders;
pub use transcript::{TailKind, TranscriptFacts, transcript};
pub use trust::{TrustItem, folder_commands};
