//! Identifiers: 128-bit ids written as UUIDs, and the small generator that mints them.
//!
//! The crate has no randomness of its own: the seed comes with `Input::Boot`.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A 128-bit id in UUID form. Copy, ordered, and equal to its canonical text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub u128);

/// The app's own id of a session row.
pub type SessionId = Uuid;
/// The app's own id of a message.
pub type MessageId = Uuid;
/// The CLI's id of a conversation (`--session-id`).
pub type CliSessionId = Uuid;

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            (n >> 96) as u32,
            (n >> 80) as u16,
            (n >> 64) as u16,
            (n >> 48) as u16,
            n & 0xffff_ffff_ffff
        )
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a UUID of 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAUuid;

impl FromStr for Uuid {
    type Err = NotAUuid;

    fn from_str(text: &str) -> Result<Self, NotAUuid> {
        if text.len() != 36 {
            return Err(NotAUuid);
        }
        let mut n: u128 = 0;
        for (at, c) in text.bytes().enumerate() {
            match (at, c) {
                (8 | 13 | 18 | 23, b'-') => {}
                (8 | 13 | 18 | 23, _) => return Err(NotAUuid),
                (_, c) => {
                    let digit = (c as char).to_digit(16).ok_or(NotAUuid)?;
                    n = (n << 4) | u128::from(digit);
                }
            }
        }
        Ok(Uuid(n))
    }
}

impl Serialize for Uuid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uuid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| serde::de::Error::custom("not a UUID"))
    }
}

/// A small seeded generator (SplitMix64). Good for ids and jitter, not for secrets.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator whose whole future follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random (version 4) UUID.
    pub fn uuid(&mut self) -> Uuid {
        let n = (u128::from(self.next_u64()) << 64) | u128::from(self.next_u64());
        Uuid((n & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn text_and_id_are_one() {
        let text = "0f3a1b2c-4d5e-4f60-8a9b-0c1d2e3f4a5b";
        let id: Uuid = text.parse().expect("a UUID");
        assert_eq!(id.to_string(), text);
        assert_eq!("0f3a1b2c4d5e4f608a9b0c1d2e3f4a5b".parse::<Uuid>(), Err(NotAUuid));
        assert_eq!("zf3a1b2c-4d5e-4f60-8a9b-0c1d2e3f4a5b".parse::<Uuid>(), Err(NotAUuid));
    }

    #[test]
    fn minted_ids_are_version_4_and_follow_the_seed() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        let (x, y) = (a.uuid(), b.uuid());
        assert_eq!(x, y);
        assert_ne!(x, a.uuid());
        let text = x.to_string();
        assert_eq!(text.as_bytes()[14], b'4', "{text}");
        assert!(matches!(text.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{text}");
    }
}
