//! Ring 3: the store against real files: migrations, guards, the scan's query, crashes, full disks.
//! No child of the CLI, no window and no network is started here.

mod common;
mod conversation;
mod crash;
mod disk;
mod files;
mod guard;
mod migrations;
mod rows;
mod scan;
