//! Names of items and their files.

use std::str::FromStr;

use serde::Deserialize;

use crate::ids::checked_text;
use crate::plan::names::slug_of;

/// The maximum length of a name, in bytes. Paths and branches append suffixes to it.
const SLUG_MAX: usize = 120;
/// The maximum length of the title in the name of a new file.
const TITLE_MAX: usize = 50;

/// What an item is called: the name of its file without `.md`. Safe as a part of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String")]
pub struct Slug(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSlug {
    #[error("its name does not end in .md")]
    NotMarkdown,
    #[error("a README is not an item; if this is one, give it another name")]
    Readme,
    #[error("`.report.md` is how reports are called; give it another name")]
    Report,
    #[error("its name has {0:?} in it; rename it: letters, digits, '_', '-' and '.', the first one no '-' or '.'")]
    Character(char),
    #[error("its name is longer than {SLUG_MAX} bytes; rename it")]
    TooLong,
    #[error("its name is empty")]
    Empty,
}

impl Slug {
    /// Returns the item in a file of this name.
    pub fn of_file(name: &str) -> Result<Self, BadSlug> {
        let stem = name.strip_suffix(".md").ok_or(BadSlug::NotMarkdown)?;
        if stem.eq_ignore_ascii_case("readme") {
            return Err(BadSlug::Readme);
        }
        if stem.ends_with(".report") {
            return Err(BadSlug::Report);
        }
        stem.parse()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn file_name(&self) -> String {
        format!("{}.md", self.0)
    }

    /// Returns the leading number: 7 for `07-colours`.
    pub fn number(&self) -> Option<u32> {
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let ends = matches!(self.0.as_bytes().get(digits), None | Some(b'-' | b'_' | b'.'));
        self.0[..digits].parse().ok().filter(|_| ends)
    }

    /// Returns the name without its number.
    pub fn words(&self) -> &str {
        match self.number() {
            Some(_) => self.0.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(['-', '_', '.']),
            None => &self.0,
        }
    }

    /// Returns the sort key for natural order: 9 comes before 10, and names without a number come last.
    pub fn order(&self) -> (u32, &str) {
        (self.number().unwrap_or(u32::MAX), &self.0)
    }
}

impl FromStr for Slug {
    type Err = BadSlug;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let first = s.chars().next().ok_or(BadSlug::Empty)?;
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if s.len() > SLUG_MAX {
            return Err(BadSlug::TooLong);
        }
        let wrong = s.chars().find(|c| !(letter(*c) || matches!(c, '.' | '-')));
        match wrong.or((!letter(first)).then_some(first)) {
            Some(wrong) => Err(BadSlug::Character(wrong)),
            None => Ok(Self(s.to_owned())),
        }
    }
}

checked_text!(Slug, BadSlug);

/// Returns the number of the next item. `taken` are all names ever used, including those in the archives, because a
/// reused number would merge two items.
pub fn next_number<'s>(taken: impl IntoIterator<Item = &'s Slug>) -> u32 {
    taken.into_iter().filter_map(Slug::number).max().unwrap_or(0).saturating_add(1)
}

/// Returns the name of a new item: its number and the beginning of its title.
pub fn new_slug(number: u32, title: &str) -> Slug {
    Slug(format!("{number:02}-{}", slug_of(title, TITLE_MAX, "item")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t91_any_plain_name_is_an_item() {
        for (name, number, words) in [
            ("9-foo.md", Some(9), "foo"),
            ("prose-name.md", None, "prose-name"),
            ("01-a.b_c.md", Some(1), "a.b_c"),
            ("_draft.md", None, "_draft"),
            ("3d-view.md", None, "3d-view"),
            ("7.md", Some(7), ""),
        ] {
            let slug = Slug::of_file(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((slug.number(), slug.words()), (number, words), "{name}");
            assert_eq!(slug.file_name(), name);
        }
    }

    #[test]
    fn other_names_say_why() {
        for (name, error) in [
            ("notes.txt", BadSlug::NotMarkdown),
            ("README.md", BadSlug::Readme),
            ("readme.md", BadSlug::Readme),
            ("9-foo.report.md", BadSlug::Report),
            (".hidden.md", BadSlug::Character('.')),
            ("-rf.md", BadSlug::Character('-')),
            ("a b.md", BadSlug::Character(' ')),
            ("ü.md", BadSlug::Character('ü')),
            ("a/../b.md", BadSlug::Character('/')),
            (".md", BadSlug::Empty),
        ] {
            assert_eq!(Slug::of_file(name), Err(error), "{name}");
        }
        assert_eq!(Slug::of_file(&format!("{}.md", "x".repeat(121))), Err(BadSlug::TooLong));
    }

    #[test]
    fn numbers_never_come_back() {
        let taken: Vec<Slug> =
            ["9-foo", "12-archived", "3-failed", "prose", "2026"].iter().map(|s| s.parse().unwrap()).collect();
        assert_eq!(next_number(&taken[..4]), 13);
        assert_eq!(next_number(&taken), 2027);
        assert_eq!(next_number([]), 1);
    }

    #[test]
    fn new_names_are_names() {
        for (title, slug) in [
            ("The `--drain` flag: ends too early!", "05-the-drain-flag-ends-too-early"),
            ("Ünïcödé", "05-n-c-d"),
            ("../../etc", "05-etc"),
            ("???", "05-item"),
        ] {
            assert_eq!(new_slug(5, title).as_str(), slug);
        }
        let long = new_slug(u32::MAX, &"word ".repeat(100));
        assert_eq!(long.as_str().parse::<Slug>(), Ok(long));
    }
}
