//! The notification for people when an item ends. No model is involved.

use std::fmt::Write as _;

use super::edit::OutcomeBlock;
use super::{Item, ItemOutcome, Kind};
use crate::visible::{shortened, words_of};

/// The maximum length of a sentence in a message.
const SENTENCE_MAX: usize = 300;

/// Returns the message about an item that has ended.
pub fn message(item: &Item, block: &OutcomeBlock) -> String {
    let ended = match (block.outcome, item.kind) {
        (ItemOutcome::Completed, Kind::Defect) => "fixed",
        (ItemOutcome::Completed, Kind::Feature) => "done",
        (ItemOutcome::CompletedWithWarnings, _) => "done, with warnings",
        (ItemOutcome::Exhausted, _) => "not done: verified too often without success",
        (ItemOutcome::Failed, _) => "failed",
        (ItemOutcome::Deadlocked, _) => "failed: nothing could go on",
    };
    let mut out = format!("{}: {ended} ({}, {})", item.slug, block.duration, block.cost);
    if let Some(reason) = &block.reason {
        let _ = write!(out, ": {}", sentence(reason));
    }
    let about = ["root cause", "summary"].iter().find_map(|title| item.section(title)).unwrap_or(&item.title);
    let _ = write!(out, "\n{}", sentence(about));
    if !block.commits.is_empty() {
        let _ = write!(out, "\ncommits: {}", block.commits.join(" "));
    }
    out
}

/// Returns the first sentence of a text, shortened to a few lines.
fn sentence(text: &str) -> String {
    let words = words_of(text);
    let end = words.find(". ").map_or(words.len(), |at| at + 1);
    shortened(&words[..end], SENTENCE_MAX)
}
