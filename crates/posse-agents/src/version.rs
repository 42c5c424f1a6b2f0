//! Versions of agents: numbers, compared from the left.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(Vec<u64>);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is no version: numbers with dots between them")]
pub struct BadVersion(String);

impl Version {
    /// Parses the first version in a program's output: `codex-cli 0.166.0`, `2.1.325 (Claude Code)`.
    pub fn said(text: &str) -> Option<Self> {
        text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find_map(|word| word.trim_matches('.').parse().ok())
    }
}

impl FromStr for Version {
    type Err = BadVersion;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadVersion(text.to_owned());
        let numbers: Vec<u64> = text.split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| bad())?;
        if numbers.len() < 2 { Err(bad()) } else { Ok(Self(numbers)) }
    }
}

impl TryFrom<String> for Version {
    type Error = BadVersion;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.pad(&numbers.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_say() {
        for (said, version) in [
            ("codex-cli 0.166.0\n", Some("0.166.0")),
            ("2.1.325 (Claude Code)", Some("2.1.325")),
            ("v1.18.33.", Some("1.18.33")),
            ("built in 2026, version 0.15.10-beta.1", Some("0.15.10")),
            ("no version", None),
            ("3", None),
        ] {
            assert_eq!(Version::said(said).map(String::from).as_deref(), version, "{said}");
        }
    }

    #[test]
    fn numbers_are_compared_not_letters() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert!(version("0.145.0") < version("0.156"));
        assert!(version("0.156") <= version("0.156.0") && version("0.156.0") < version("0.1000"));
        for bad in ["1", "1.", "1.x", "", "1..2"] {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
    }
}
