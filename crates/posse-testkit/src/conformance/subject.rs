//! The agents that are measured.

use posse_sim::conformance::ConformanceCase;

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
    listed(Maker::Claude, CLAUDE[1], true),
    listed(Maker::Claude, "2.1.310", true),
    listed(Maker::Claude, CLAUDE[0], true),
    listed(Maker::Claude, "2.1.120", true),
    listed(Maker::Codex, CODEX[1], true),
    listed(Maker::Codex, "0.160.1", true),
    listed(Maker::Codex, "0.155.1", true),
    listed(Maker::Codex, CODEX[0], false),
    listed(Maker::Codex, "0.130.0", true),
    listed(Maker::Opencode, OPENCODE, false),
    listed(Maker::Qwen, QWEN, false),
];

const fn listed(maker: Maker, version: &'static str, required: bool) -> ConformanceSubject {
    ConformanceSubject { maker, version, required }
}

impl ConformanceSubject {
    /// Returns the subject with this name, such as `claude_code-2.1.325`. A version that is not in [`SUBJECTS`] is played as
    /// well, but need not be green.
    pub fn named(name: &str) -> Option<Self> {
        let (provider, version) = name.rsplit_once('-')?;
        let maker = Maker::of_provider(provider).filter(|_| version.starts_with(|c: char| c.is_ascii_digit()))?;
        // A program plays a few versions in its life, so the leak is small.
        let other = || listed(maker, version.to_owned().leak(), false);
        Some(SUBJECTS.into_iter().find(|subject| subject.name() == name).unwrap_or_else(other))
    }

    pub fn name(&self) -> String {
        format!("{}-{}", self.provider(), self.version)
    }

    /// Returns the name of the file in which something of a run is kept.
    pub(super) fn artefact_name(&self, scenario: &ConformanceCase, kind: &str) -> String {
        format!("{}-{}.{kind}", self.name(), scenario.name)
    }

    pub fn provider(&self) -> &'static str {
        self.maker.provider()
    }

    pub fn agent(&self) -> Result<Agent, InstallError> {
        Agent::installed(self.maker, self.version)
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
