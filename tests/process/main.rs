//! What needs a process: the bundled stand-in, and the supervisor on it. Nothing here starts the real CLI.

mod fake_cli;
