//! Which tmux this is, and whether it will do.

use std::fmt;

/// What we need first appeared in 3.2: flow control in control mode, `copy-mode -q`, `-N`.
const NEEDED: (u32, u32) = (3, 2);
/// The first OpenBSD whose own tmux has it; there the system's version is given.
const NEEDED_OPENBSD: (u32, u32) = (6, 9);

/// What `tmux -V` said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Released(u32, u32),
    OpenBsd(u32, u32),
    /// Built from the newest source.
    Newest,
}

impl Version {
    pub(super) fn parse(said: &str) -> Option<Self> {
        let text = said.trim().strip_prefix("tmux ")?.trim();
        let kind = if text == "master" {
            Kind::Newest
        } else if let Some(system) = text.strip_prefix("openbsd-") {
            let (major, minor) = numbers(system)?;
            Kind::OpenBsd(major, minor)
        } else {
            let (major, minor) = numbers(text.strip_prefix("next-").unwrap_or(text))?;
            Kind::Released(major, minor)
        };
        Some(Self { text: text.to_owned(), kind })
    }

    pub(super) fn will_do(&self) -> bool {
        match self.kind {
            Kind::Released(major, minor) => (major, minor) >= NEEDED,
            Kind::OpenBsd(major, minor) => (major, minor) >= NEEDED_OPENBSD,
            Kind::Newest => true,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// `3.3` of `3.3a`, `3.2-rc3` or `3.3`.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.split_once('.')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    Some((major.parse().ok()?, rest[..digits].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_will_do_and_versions_that_will_not() {
        for (said, expected) in [
            ("tmux 3.3a\n", true),
            ("tmux 3.2", true),
            ("tmux 3.2a", true),
            ("tmux 3.2-rc3", true),
            ("tmux next-3.4", true),
            ("tmux 3.10", true),
            ("tmux 4.0", true),
            ("tmux master", true),
            ("tmux openbsd-6.9", true),
            ("tmux openbsd-7.5", true),
            ("tmux 3.1c", false),
            ("tmux 2.9a", false),
            ("tmux 1.8", false),
            ("tmux next-3.1", false),
            ("tmux openbsd-6.8", false),
        ] {
            assert_eq!(Version::parse(said).map(|version| version.will_do()), Some(expected), "{said:?}");
        }
        for nonsense in
            ["", "tmux", "tmux ", "tmux three", "tmux 3", "screen 4.9", "tmux .", "tmux openbsd-", "tmux 3.x"]
        {
            assert_eq!(Version::parse(nonsense), None, "{nonsense:?}");
        }
        assert_eq!(Version::parse("tmux next-3.4").unwrap().to_string(), "next-3.4");
    }
}
