//! Ring 3: the store against real files: migrations, guards, the scan's query, crashes, full disks,
//! and the program that marks lost replies by hand. No child of the CLI, no window and no network is started here.

mod common;
mod conversation;
mod counter;
mod crash;
mod disk;
mod files;
mod guard;
mod migrations;
mod rows;
mod scan;
mod triage;
