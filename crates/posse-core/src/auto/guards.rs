//! Bounds of a pipeline: starts per hour, and consecutive failures. The counters survive restarts.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::backlog::Slug;
use crate::plan::config::PipelineLimits;
use crate::time::Wall;

const HOUR: i64 = 3_600_000;
/// The run ends when this many items in a row fail at once or without spending anything.
const STREAK: usize = 3;

/// The starts of items within the last hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Starts(Vec<(Wall, Slug)>);

impl Starts {
    pub fn note(&mut self, item: &Slug, now: Wall) {
        self.0.retain(|(at, _)| at.0 > now.0.saturating_sub(HOUR));
        self.0.push((now, item.clone()));
    }

    /// Returns why this item may not start now. A pipeline that reaches this bound loops.
    pub fn too_many(&self, item: &Slug, limits: &PipelineLimits, now: Wall) -> Option<String> {
        let recent = || self.0.iter().filter(|(at, _)| at.0 > now.0.saturating_sub(HOUR));
        let of_item = recent().filter(|(_, other)| other == item).count();
        if of_item >= limits.max_item_starts_per_hour as usize {
            return Some(format!("loop guard: {item} was begun {of_item} times within an hour"));
        }
        let all = recent().count();
        (all >= limits.items_per_hour as usize)
            .then(|| format!("loop guard: items were begun {all} times within an hour"))
    }
}

/// Items in a row that failed at once or without spending anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Streak(BTreeSet<Slug>);

impl Streak {
    pub fn failed(&mut self, item: &Slug) {
        self.0.insert(item.clone());
    }

    /// Ends the streak.
    pub fn broken(&mut self) {
        self.0.clear();
    }

    pub fn has(&self, item: &Slug) -> bool {
        self.0.contains(item)
    }

    /// Returns why no item may start.
    pub fn too_long(&self) -> Option<String> {
        (self.0.len() >= STREAK).then(|| {
            let items: Vec<&str> = self.0.iter().map(Slug::as_str).collect();
            format!("{} items in a row failed at once or for nothing: {}", items.len(), items.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slug(name: &str) -> Slug {
        name.parse().unwrap()
    }

    #[test]
    fn t100_an_item_may_not_be_begun_too_often() {
        let (mut starts, settings) = (Starts::default(), PipelineLimits::default());
        let minute = 60_000;
        for n in 0..6 {
            assert_eq!(starts.too_many(&slug("a"), &settings, Wall(n * minute)), None, "start {n}");
            starts.note(&slug("a"), Wall(n * minute));
        }
        let told = starts.too_many(&slug("a"), &settings, Wall(6 * minute)).unwrap();
        assert_eq!(told, "loop guard: a was begun 6 times within an hour");
        assert_eq!(starts.too_many(&slug("b"), &settings, Wall(6 * minute)), None, "others may");
        assert_eq!(starts.too_many(&slug("a"), &settings, Wall(HOUR + 1)), None, "an hour later it may");
        let again: Starts = serde_json::from_str(&serde_json::to_string(&starts).unwrap()).unwrap();
        assert!(again.too_many(&slug("a"), &settings, Wall(6 * minute)).is_some(), "a restart forgives nothing");
    }

    #[test]
    fn all_together_may_not_either() {
        let (mut starts, settings) = (Starts::default(), PipelineLimits::default());
        for n in 0..30 {
            assert_eq!(starts.too_many(&slug("new"), &settings, Wall(n)), None);
            starts.note(&slug(&format!("i{n}")), Wall(n));
        }
        assert!(starts.too_many(&slug("new"), &settings, Wall(30)).is_some());
        starts.note(&slug("x"), Wall(2 * HOUR));
        assert_eq!(starts.0.len(), 1, "what is past is forgotten");
    }

    #[test]
    fn a_streak_is_of_different_items() {
        let mut streak = Streak::default();
        for item in ["a", "a", "b", "b"] {
            streak.failed(&slug(item));
        }
        assert_eq!(streak.too_long(), None);
        streak.failed(&slug("c"));
        assert!(streak.too_long().unwrap().ends_with("a, b, c"));
        streak.broken();
        assert_eq!(streak.too_long(), None);
    }
}
