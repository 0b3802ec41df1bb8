//! What the test targets share: a Messages API on loopback, network namespaces, and homes for the real CLI.
//! It never asserts anything about Omniscio itself and never talks to a network beyond loopback.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "each test target uses its own part of this"
)]

pub mod mock_api;
pub mod namespace;
pub mod piped_cli;
pub mod real_cli;
