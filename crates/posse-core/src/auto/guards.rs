//! The bound on starts per hour. The counter survives restarts.

use serde::{Deserialize, Serialize};

use crate::backlog::Slug;
use crate::plan::config::PipelineLimits;
use crate::time::Wall;

const HOUR: i64 = 3_600_000;

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
}
