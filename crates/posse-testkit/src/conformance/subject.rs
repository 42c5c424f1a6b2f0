//! The agents that are measured.

use std::time::Duration;

use posse_core::screen::Screen;

use crate::agents::{Agent, CLAUDE, CODEX, InstallError, OPENCODE, QWEN};

pub use crate::agents::Maker;

#[derive(Clone, Copy, Debug)]
pub struct Subject {
    pub maker: Maker,
    pub version: &'static str,
    /// Whether its scenarios have to be green; the others are only reported.
    pub required: bool,
}

/// The subjects of the report, in its order. [`Subject::named`] knows others as well.
pub const SUBJECTS: [Subject; 11] = [
    Subject { maker: Maker::Claude, version: CLAUDE[1], required: true },
    Subject { maker: Maker::Claude, version: "2.1.310", required: true },
    Subject { maker: Maker::Claude, version: CLAUDE[0], required: true },
    Subject { maker: Maker::Claude, version: "2.1.120", required: true },
    Subject { maker: Maker::Codex, version: CODEX[1], required: true },
    Subject { maker: Maker::Codex, version: "0.160.1", required: true },
    Subject { maker: Maker::Codex, version: "0.155.1", required: true },
    Subject { maker: Maker::Codex, version: CODEX[0], required: false },
    Subject { maker: Maker::Codex, version: "0.130.0", required: true },
    Subject { maker: Maker::Opencode, version: OPENCODE, required: false },
    Subject { maker: Maker::Qwen, version: QWEN, required: false },
];

impl Subject {
    /// Returns the subject with this name, such as `claude_code-2.1.325`. A version that is not in [`SUBJECTS`] is
    /// played as well, but need not be green.
    pub fn named(name: &str) -> Option<Self> {
        let (provider, version) = name.rsplit_once('-')?;
        let maker = SUBJECTS.into_iter().map(|subject| subject.maker).find(|maker| maker.provider() == provider)?;
        let known = SUBJECTS.into_iter().find(|subject| subject.name() == name);
        let is_version = version.starts_with(|c: char| c.is_ascii_digit());
        // A program plays a few versions in its life, so the leak is small.
        let other = || Subject { maker, version: version.to_owned().leak(), required: false };
        known.or_else(|| is_version.then(other))
    }

    /// As it is called on the command line and in the report.
    pub fn name(&self) -> String {
        format!("{}-{}", self.provider(), self.version)
    }

    pub fn provider(&self) -> &'static str {
        self.maker.provider()
    }

    /// What to know about it to read its figures.
    pub fn about(&self) -> Option<&'static str> {
        match self.maker {
            Maker::Opencode => Some(
                "It is not done when the answer is: it takes a snapshot of the work tree with git first, and writes down what it did. That\n\
                 takes a quarter of a second on a quiet machine and several times that on a busy one, and only then it says, and shows, that\n\
                 the turn is over. It repeats failed requests five times, whatever it is told; `dropped_stream` takes a minute and a half.",
            ),
            Maker::Qwen => Some(
                "It writes what it does into a file that posse gives it, and its screen shows the rest. It tries a request that fails\n\
                 seven times, for more than a minute, whatever is set, and takes seconds to ask before it runs its first command.",
            ),
            Maker::Claude | Maker::Codex => None,
        }
    }

    pub fn agent(&self) -> Result<Agent, InstallError> {
        Agent::installed(self.maker, self.version)
    }

    /// It takes prompts.
    pub fn is_ready(&self, screen: &Screen) -> bool {
        let text = match self.maker {
            Maker::Claude => "❯\u{a0}",
            Maker::Codex => " · /",
            Maker::Opencode => "Ask anything",
            Maker::Qwen => "Type your message",
        };
        screen.rows.iter().any(|row| row.contains(text))
    }

    /// The text with which it asks for the key that interrupts a second time.
    pub fn interrupts_by_two_keys(&self) -> Option<&'static str> {
        (self.maker == Maker::Opencode).then_some("again to interrupt")
    }

    /// What it shows when it was interrupted.
    pub fn says_interrupted(&self) -> Option<&'static str> {
        (self.maker == Maker::Codex).then_some("Conversation interrupted")
    }

    /// How long it may take until it gives up on a request that fails again and again.
    pub fn gives_up_within(&self) -> Duration {
        match self.maker {
            // Seven times, whatever is set, with pauses of 77 s in all, give or take a third.
            Maker::Qwen => Duration::from_secs(150),
            // Five times, whatever is set.
            Maker::Opencode => Duration::from_secs(120),
            Maker::Claude | Maker::Codex => Duration::from_secs(60),
        }
    }

    /// An error is on the screen. Nothing is concluded from this but that the scenario may go on.
    pub fn shows_error(&self, screen: &Screen) -> bool {
        let texts: &[&str] = match self.maker {
            Maker::Claude => &["API Error", "Invalid API key", "limit", "run /login"],
            Maker::Codex => &["■ "],
            Maker::Opencode => &["rror", "annot connect", "ncorrect API key", "nauthorized", "verloaded", "imit"],
            Maker::Qwen => &["API Error", "✕"],
        };
        // While it waits to ask again by itself, it shows what went wrong too.
        let goes_on = self.maker == Maker::Opencode && screen.rows.iter().any(|row| row.contains("[retrying"));
        !goes_on && screen.rows.iter().any(|row| texts.iter().any(|text| row.contains(text)))
    }
}

/// A subject written down by its name.
pub(super) mod by_name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Subject;

    pub(in super::super) fn serialize<S: Serializer>(subject: &Subject, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&subject.name())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Subject, D::Error> {
        let name = String::deserialize(from)?;
        Subject::named(&name).ok_or_else(|| D::Error::custom(format!("unknown agent {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_found_by_name_whether_or_not_they_are_listed() {
        for subject in SUBJECTS {
            let found = Subject::named(&subject.name()).map(|found| (found.maker, found.version, found.required));
            assert_eq!(found, Some((subject.maker, subject.version, subject.required)));
        }
        let other = Subject::named("claude_code-2.1.231").map(|other| (other.maker, other.version, other.required));
        assert_eq!(other, Some((Maker::Claude, "2.1.231", false)));
        assert!(["claude_code", "mole-1.0", "codex-", "codex-x"].iter().all(|name| Subject::named(name).is_none()));
    }
}
