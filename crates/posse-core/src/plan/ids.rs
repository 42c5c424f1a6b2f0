//! Ids of tasks.

use std::borrow::Borrow;
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;

use crate::ids::checked_text;

/// The maximum length of an id, in bytes. Branches and directories contain it.
const ID_MAX: usize = 64;

/// What a plan calls a task: `1.2`, `2.1a`, `docs`. One line, no white space. Cheap to copy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String")]
#[schema(value_type = String)]
pub struct TaskId(Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTaskId {
    #[error("an id may not be empty")]
    Empty,
    #[error("an id has at most {ID_MAX} bytes, this one has {0}")]
    TooLong(usize),
    #[error("an id may not contain {0:?}; use letters, digits, '.', '-' and '_'")]
    Character(char),
}

impl TaskId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id as part of a path or branch. Different ids give different results: other characters than letters,
    /// digits and `-` become `_` and hex bytes. A dot between digits stays.
    pub fn slug(&self) -> String {
        let bytes = self.0.as_bytes();
        let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
        let mut slug = String::with_capacity(bytes.len());
        for (i, byte) in bytes.iter().enumerate() {
            match byte {
                b'-' if i == 0 => slug.push_str("_2d"),
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => slug.push(*byte as char),
                b'.' if i > 0 && digit(i - 1) && digit(i + 1) => slug.push('.'),
                _ => slug.push_str(&format!("_{byte:02x}")),
            }
        }
        slug
    }
}

impl FromStr for TaskId {
    type Err = BadTaskId;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        if s.is_empty() {
            return Err(BadTaskId::Empty);
        }
        if s.len() > ID_MAX {
            return Err(BadTaskId::TooLong(s.len()));
        }
        match s.chars().find(|c| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '@' | '#' | '/' | ':'))) {
            Some(c) => Err(BadTaskId::Character(c)),
            None => Ok(Self(s.into())),
        }
    }
}

checked_text!(TaskId, BadTaskId);

/// Allows lookups in maps with `&str`.
impl Borrow<str> for TaskId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_safe_and_tell_ids_apart() {
        let ids = ["1.1", "1-1", "1_1", "1_2d1", "a.lock", "..", "../x", "-rf", "é", "a/b", "a:b", "A", "a"];
        let mut slugs: Vec<String> = ids.iter().map(|id| id.parse::<TaskId>().unwrap().slug()).collect();
        assert_eq!(slugs[0], "1.1");
        for slug in &slugs {
            assert!(!slug.contains("..") && !slug.contains('/') && !slug.starts_with('-'), "{slug}");
            assert!(!slug.ends_with(".lock") && slug.is_ascii(), "{slug}");
        }
        slugs.sort();
        slugs.dedup();
        assert_eq!(slugs.len(), ids.len());
    }

    #[test]
    fn what_cannot_be_an_id() {
        for (id, why) in
            [("", BadTaskId::Empty), ("a b", BadTaskId::Character(' ')), ("a\n", BadTaskId::Character('\n'))]
        {
            assert_eq!(id.parse::<TaskId>(), Err(why));
        }
        assert_eq!("x".repeat(65).parse::<TaskId>(), Err(BadTaskId::TooLong(65)));
    }
}
