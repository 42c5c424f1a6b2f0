//! Small values a scenario is written with: durations, counts, and steps with a short and a long form.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// A time span that may have no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowLong {
    For(Duration),
    Forever,
}

impl FromStr for HowLong {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "forever" { Ok(HowLong::Forever) } else { parse_duration(text).map(HowLong::For) }
    }
}

/// Longer is a slip of the pen or a "forever".
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration: write a number and a unit, like \"250ms\", \"3s\" or \"2m\"");
    let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit.trim_start() {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        _ => return Err(wrong()),
    };
    if seconds > LONGEST.as_secs_f64() {
        return Err(format!("`{text}` is longer than a week: did you mean \"forever\"?"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Reads a value that is a word (`"3s"`) or, with more to say, a table (`{ for = "3s", … }`).
pub(super) fn word_or_table<'de, D, T, Table>(deserializer: D, expected: &'static str) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display> + From<Table>,
    Table: Deserialize<'de>,
{
    struct Either<T, Table>(&'static str, PhantomData<(T, Table)>);
    impl<'de, T, Table> Visitor<'de> for Either<T, Table>
    where
        T: FromStr<Err: fmt::Display> + From<Table>,
        Table: Deserialize<'de>,
    {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str(self.0)
        }
        fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
            word.parse().map_err(E::custom)
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            Table::deserialize(MapAccessDeserializer::new(map)).map(T::from)
        }
    }
    deserializer.deserialize_any(Either(expected, PhantomData))
}

impl<'de> Deserialize<'de> for HowLong {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parse_duration(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

pub(super) fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u32::deserialize(deserializer).map(|ms| Duration::from_millis(ms.into()))
}

pub(super) fn fps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        fps @ 1..=60 => Ok(fps),
        other => Err(D::Error::custom(format!("{other} frames per second: choose 1 to 60"))),
    }
}

/// Bytes from text in which `\e \a \n \r \t \\ \xHH` stand for bytes; all else is itself.
pub(super) fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let tail = &rest[at + 1..];
        let (byte, length) = match tail.chars().next() {
            Some('e') => (0x1b, 1),
            Some('a') => (0x07, 1),
            Some('n') => (b'\n', 1),
            Some('r') => (b'\r', 1),
            Some('t') => (b'\t', 1),
            Some('\\') => (b'\\', 1),
            Some('x') => {
                let digits = tail.get(1..3).ok_or("`\\x` needs two hexadecimal digits")?;
                let byte = u8::from_str_radix(digits, 16).map_err(|_| format!("`\\x{digits}` is no byte"))?;
                (byte, 3)
            }
            other => return Err(format!("`\\{}` is no escape", other.unwrap_or(' '))),
        };
        bytes.push(byte);
        rest = &tail[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "3", "s", "3 hours", "-1s", "1.2.3s", "1e9s", "999999m"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn escapes_make_any_byte() {
        assert_eq!(unescape(r"\e[31m\xff\\é\n").unwrap(), b"\x1b[31m\xff\\\xc3\xa9\n");
        assert_eq!(unescape("\u{1b}[m").unwrap(), b"\x1b[m");
        for wrong in [r"\", r"\q", r"\x4", r"\xzz", r"\xé1"] {
            assert!(unescape(wrong).is_err(), "{wrong}");
        }
    }
}
