//! Fields that read as nothing when they are not what is expected: the CLI may change one of them and
//! spoils nothing else of its line.
//!
//! Straight from the text to the field: nothing that is not kept is built first. It knows no field by
//! its name.

use crate::id::Uuid;
use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A field that may be anything; `None` unless it is a `T`.
#[derive(Debug)]
pub(super) struct Soft<T>(pub(super) Option<T>);

impl<T> Default for Soft<T> {
    fn default() -> Self {
        Soft(None)
    }
}

/// What a field takes of JSON. What it does not take is passed over without being kept, and reads as
/// `None`; an error is one of the JSON itself.
pub(super) trait Field<'de>: Sized {
    /// A string.
    fn text(_text: &str) -> Option<Self> {
        None
    }

    /// A string that stands in the line as it is.
    fn borrowed(text: &'de str) -> Option<Self> {
        Self::text(text)
    }

    /// A number.
    fn number(_number: f64) -> Option<Self> {
        None
    }

    /// A boolean.
    fn flag(_flag: bool) -> Option<Self> {
        None
    }

    /// A list.
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    /// An object.
    fn object<A: MapAccess<'de>>(mut object: A) -> Result<Option<Self>, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

impl<'de, T: Field<'de>> Deserialize<'de> for Soft<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Take(PhantomData)).map(Soft)
    }
}

/// Hands whatever comes to the field.
struct Take<T>(PhantomData<T>);

impl<'de, T: Field<'de>> Visitor<'de> for Take<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(T::text(text))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(T::borrowed(text))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(T::number(number as f64))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(T::number(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(T::number(number))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(T::flag(flag))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        T::list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        T::object(object)
    }
}

impl Field<'_> for String {
    fn text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

/// A word or text that is looked at, or kept by whoever needs it.
impl<'de: 'a, 'a> Field<'de> for Cow<'a, str> {
    fn text(text: &str) -> Option<Self> {
        Some(Cow::Owned(text.to_owned()))
    }

    fn borrowed(text: &'de str) -> Option<Self> {
        Some(Cow::Borrowed(text))
    }
}

impl Field<'_> for Uuid {
    fn text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// What is large and mostly absent.
impl<'de, T: Field<'de>> Field<'de> for Box<T> {
    fn text(text: &str) -> Option<Self> {
        T::text(text).map(Box::new)
    }

    fn list<A: SeqAccess<'de>>(list: A) -> Result<Option<Self>, A::Error> {
        Ok(T::list(list)?.map(Box::new))
    }

    fn object<A: MapAccess<'de>>(object: A) -> Result<Option<Self>, A::Error> {
        Ok(T::object(object)?.map(Box::new))
    }
}

impl Field<'_> for f64 {
    fn number(number: f64) -> Option<Self> {
        Some(number)
    }
}

impl Field<'_> for bool {
    fn flag(flag: bool) -> Option<Self> {
        Some(flag)
    }
}

impl<'de, T: Deserialize<'de>> Field<'de> for Vec<T> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Some(items))
    }
}

impl Soft<f64> {
    /// The number as a count: fractions are cut, negatives and nonsense are zero.
    pub(super) fn count(&self) -> u64 {
        self.0.unwrap_or_default() as u64
    }

    /// The number as an HTTP status.
    pub(super) fn status(&self) -> Option<u16> {
        self.0.map(|n| n as u16)
    }

    /// The number as a time stamp.
    pub(super) fn stamp(&self) -> Option<i64> {
        self.0.map(|n| n as i64)
    }
}

impl Soft<String> {
    /// The text, empty if there is none.
    pub(super) fn text(self) -> String {
        self.0.unwrap_or_default()
    }
}

/// A field that says something, whatever it is.
#[derive(Debug)]
pub(super) struct Present;

impl<'de> Field<'de> for Present {
    fn text(_: &str) -> Option<Self> {
        Some(Present)
    }

    fn number(_: f64) -> Option<Self> {
        Some(Present)
    }

    fn flag(_: bool) -> Option<Self> {
        Some(Present)
    }

    fn list<A: SeqAccess<'de>>(list: A) -> Result<Option<Self>, A::Error> {
        IgnoredAny.visit_seq(list).map(|_| Some(Present))
    }

    fn object<A: MapAccess<'de>>(object: A) -> Result<Option<Self>, A::Error> {
        IgnoredAny.visit_map(object).map(|_| Some(Present))
    }
}
