//! The agents that are measured.

use crate::agents::{Agent, CLAUDE, CODEX, InstallError, OPENCODE, QWEN};

pub use crate::agents::Maker;

#[derive(Clone, Copy, Debug)]
pub struct ConformanceSubject {
    pub maker: Maker,
    pub version: &'static str,
    /// Whether its scenarios have to be green; the others are only reported.
    pub required: bool,
}

/// The subjects of the report, in its order. [`ConformanceSubject::named`] knows others as well.
pub const SUBJECTS: [ConformanceSubject; 11] = [
    ConformanceSubject { maker: Maker::Claude, version: CLAUDE[1], required: true },
    ConformanceSubject { maker: Maker::Claude, version: "2.1.310", required: true },
    ConformanceSubject { maker: Maker::Claude, version: CLAUDE[0], required: true },
    ConformanceSubject { maker: Maker::Claude, version: "2.1.120", required: true },
    ConformanceSubject { maker: Maker::Codex, version: CODEX[1], required: true },
    ConformanceSubject { maker: Maker::Codex, version: "0.160.1", required: true },
    ConformanceSubject { maker: Maker::Codex, version: "0.155.1", required: true },
    ConformanceSubject { maker: Maker::Codex, version: CODEX[0], required: false },
    ConformanceSubject { maker: Maker::Codex, version: "0.130.0", required: true },
    ConformanceSubject { maker: Maker::Opencode, version: OPENCODE, required: false },
    ConformanceSubject { maker: Maker::Qwen, version: QWEN, required: false },
];

impl ConformanceSubject {
    /// Returns the subject with this name, such as `claude_code-2.1.325`. A version that is not in [`SUBJECTS`] is played as
    /// well, but need not be green.
    pub fn named(name: &str) -> Option<Self> {
        let (provider, version) = name.rsplit_once('-')?;
        let maker = SUBJECTS.into_iter().map(|subject| subject.maker).find(|maker| maker.provider() == provider)?;
        let known = SUBJECTS.into_iter().find(|subject| subject.name() == name);
        let is_version = version.starts_with(|c: char| c.is_ascii_digit());
        // A program plays a few versions in its life, so the leak is small.
        let other = || ConformanceSubject { maker, version: version.to_owned().leak(), required: false };
        known.or_else(|| is_version.then(other))
    }

    pub fn name(&self) -> String {
        format!("{}-{}", self.provider(), self.version)
    }

    pub fn provider(&self) -> &'static str {
        self.maker.provider()
    }

    pub fn agent(&self) -> Result<Agent, InstallError> {
        Agent::installed(self.maker, self.version)
    }
}

/// A subject written down by its name.
pub(super) mod by_name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::ConformanceSubject;

    pub(in super::super) fn serialize<S: Serializer>(subject: &ConformanceSubject, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&subject.name())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ConformanceSubject, D::Error> {
        let name = String::deserialize(from)?;
        ConformanceSubject::named(&name).ok_or_else(|| D::Error::custom(format!("unknown agent {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_found_by_name_whether_or_not_they_are_listed() {
        let found = |name: &str| ConformanceSubject::named(name).map(|found| (found.name(), found.required));
        for subject in SUBJECTS {
            assert_eq!(found(&subject.name()), Some((subject.name(), subject.required)));
        }
        assert_eq!(found("claude_code-2.1.231"), Some(("claude_code-2.1.231".to_owned(), false)));
        assert!(["claude_code", "mole-1.0", "codex-", "codex-x"].iter().all(|name| found(name).is_none()));
    }
}
