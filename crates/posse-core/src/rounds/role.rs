//! Who takes part, and which turns there are.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Phase;

/// One of the five who share the work. Each has a terminal of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Analyst,
    PeerAnalyst,
    Programmer,
    PeerProgrammer,
    Tester,
}

impl Role {
    pub const ALL: [Role; 5] = [Self::Analyst, Self::PeerAnalyst, Self::Programmer, Self::PeerProgrammer, Self::Tester];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Analyst => "analyst",
            Self::PeerAnalyst => "peer_analyst",
            Self::Programmer => "programmer",
            Self::PeerProgrammer => "peer_programmer",
            Self::Tester => "tester",
        }
    }

    /// The profile it has unless another is asked for.
    pub fn profile(self) -> &'static str {
        match self {
            Self::Analyst => "system_analyst",
            Self::PeerAnalyst => "peer_system_analyst",
            Self::Programmer => "programmer",
            Self::PeerProgrammer => "peer_programmer",
            Self::Tester => "tester",
        }
    }

    /// The turn that is its own.
    pub fn key(self) -> Key {
        match self {
            Self::Analyst => Key::Analyst,
            Self::PeerAnalyst => Key::AnalystReview,
            Self::Programmer => Key::Programmer,
            Self::PeerProgrammer => Key::ProgrammerReview,
            Self::Tester => Key::Tester,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown role {0:?}; known are analyst, peer_analyst, programmer, peer_programmer, tester")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|role| role.as_str() == s).ok_or_else(|| UnknownRole(s.to_owned()))
    }
}

/// A kind of turn: what is asked for, and the name of the file in which the answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    Analyst,
    AnalystReview,
    Programmer,
    ProgrammerReview,
    Tester,
}

impl Key {
    pub const ALL: [Key; 5] =
        [Self::Analyst, Self::AnalystReview, Self::Programmer, Self::ProgrammerReview, Self::Tester];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Analyst => "analyst",
            Self::AnalystReview => "analyst_review",
            Self::Programmer => "programmer",
            Self::ProgrammerReview => "programmer_review",
            Self::Tester => "tester",
        }
    }

    /// Whose turn it is.
    pub fn role(self) -> Role {
        match self {
            Self::Analyst => Role::Analyst,
            Self::AnalystReview => Role::PeerAnalyst,
            Self::Programmer => Role::Programmer,
            Self::ProgrammerReview => Role::PeerProgrammer,
            Self::Tester => Role::Tester,
        }
    }

    /// The phase in which it is asked for.
    pub fn phase(self) -> Phase {
        match self {
            Self::Analyst | Self::AnalystReview => Phase::Analyst,
            Self::Programmer | Self::ProgrammerReview => Phase::Programmer,
            Self::Tester => Phase::Tester,
        }
    }

    /// The file in which the answer comes.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Analyst => "analyst_summary.md",
            Self::AnalystReview => "analyst_review.md",
            Self::Programmer => "programmer_summary.md",
            Self::ProgrammerReview => "programmer_review.md",
            Self::Tester => "test_result.md",
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown turn {0:?}; known are analyst, analyst_review, programmer, programmer_review, tester")]
pub struct UnknownKey(String);

impl FromStr for Key {
    type Err = UnknownKey;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|key| key.as_str() == s).ok_or_else(|| UnknownKey(s.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_everywhere() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
            assert_eq!(role.key().role(), role);
        }
        for key in Key::ALL {
            assert_eq!(key.as_str().parse(), Ok(key));
            assert_eq!(serde_json::to_value(key).unwrap(), key.as_str());
            assert_eq!(key.role().key(), key);
        }
        assert!("Analyst".parse::<Role>().unwrap_err().to_string().contains("peer_programmer"));
        assert!("peer_analyst".parse::<Key>().is_err());
    }
}
