//! Fresh ids. Not a source of secrets: uniqueness is all that is asked of them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// 64 bits from the standard library's randomly keyed hasher.
fn random() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(COUNTER.fetch_add(1, Ordering::Relaxed));
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// A random uuid, version 4.
pub(crate) fn uuid() -> String {
    let (high, low) = (random(), random());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        0x8000 | (low >> 48 & 0x3fff),
        low & 0xffff_ffff_ffff
    )
}

/// An id such as `msg_0a1b…`, in the form the API gives out.
pub(crate) fn tagged(tag: &str) -> String {
    format!("{tag}_{:016x}", random())
}

/// Whether `text` has the shape of a uuid.
pub(crate) fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
