//! How sizes, times and modes are written where people read and write them.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserializer, Serializer};

const NEVER: &str = "never";
const OFF: &str = "off";
const UNITS: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// A way to write values of `T`; for `#[serde(with = "..")]`.
pub(super) trait Notation<T>: Sized {
    /// Completes the sentence "expected ..".
    fn expecting(f: &mut fmt::Formatter<'_>) -> fmt::Result;

    fn write(value: &T) -> String;

    fn read(text: &str) -> Option<T>;

    /// For a value that is written as a bare number.
    fn read_number(_: u64) -> Option<T> {
        None
    }

    fn serialize<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Self::write(value))
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(Reader::<Self, T>(PhantomData))
    }
}

/// Bytes: a number, or text such as `64 KiB`.
pub(super) struct Size;

/// A time with its unit, such as `250ms`; `never` is [`Duration::MAX`].
pub(super) struct Time;

/// The mode of a file: octal text. A number is refused: `660` without quotes would be decimal.
pub(super) struct Mode;

/// Another notation, and `off` for `None`.
pub(super) struct OrOff<N>(PhantomData<N>);

impl<T: Copy + TryFrom<u64> + TryInto<u64>> Notation<T> for Size {
    fn expecting(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = 8 * size_of::<T>();
        write!(
            f,
            "a size below 2^{bits} bytes, such as 65536 or \"64 KiB\""
        )
    }

    fn write(value: &T) -> String {
        let bytes: u64 = (*value).try_into().unwrap_or(u64::MAX);
        let mut units = UNITS.into_iter();
        let (name, unit) = units
            .find(|(_, unit)| bytes >= *unit && bytes % unit == 0)
            .unwrap_or(("B", 1));
        format!("{} {name}", bytes / unit)
    }

    fn read(text: &str) -> Option<T> {
        let name = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let number: u64 = text.strip_suffix(name)?.parse().ok()?;
        let name = name.trim_start();
        let (_, unit) = UNITS.iter().find(|(unit, _)| *unit == name)?;
        number.checked_mul(*unit)?.try_into().ok()
    }

    fn read_number(bytes: u64) -> Option<T> {
        bytes.try_into().ok()
    }
}

impl Notation<Duration> for Time {
    fn expecting(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time with its unit, such as \"250ms\", \"10s\", \"5min\" or \"never\"")
    }

    fn write(time: &Duration) -> String {
        match *time {
            Duration::MAX => NEVER.to_owned(),
            time => humantime::format_duration(time).to_string(),
        }
    }

    fn read(text: &str) -> Option<Duration> {
        match text {
            NEVER => Some(Duration::MAX),
            text => humantime::parse_duration(text).ok(),
        }
    }
}

impl Notation<u32> for Mode {
    fn expecting(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the mode of a file as octal text, such as \"0660\"")
    }

    fn write(mode: &u32) -> String {
        format!("{mode:04o}")
    }

    fn read(text: &str) -> Option<u32> {
        u32::from_str_radix(text, 8).ok()
    }
}

impl<T, N: Notation<T>> Notation<Option<T>> for OrOff<N> {
    fn expecting(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        N::expecting(f)?;
        write!(f, ", or {OFF:?}")
    }

    fn write(value: &Option<T>) -> String {
        value.as_ref().map_or_else(|| OFF.to_owned(), N::write)
    }

    fn read(text: &str) -> Option<Option<T>> {
        match text {
            OFF => Some(None),
            text => N::read(text).map(Some),
        }
    }

    fn read_number(number: u64) -> Option<Option<T>> {
        N::read_number(number).map(Some)
    }
}

struct Reader<N, T>(PhantomData<(N, T)>);

impl<T, N: Notation<T>> Visitor<'_> for Reader<N, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        N::expecting(f)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        N::read(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        N::read_number(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        u64::try_from(number)
            .ok()
            .and_then(N::read_number)
            .ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }
}
