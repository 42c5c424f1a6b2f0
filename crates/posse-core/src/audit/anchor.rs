//! A copy of the chain's head outside of the audit's own files. A chain rewritten from some entry on is consistent with
//! its head, but not with earlier anchors.

use std::collections::BTreeMap;
use std::fmt;

use super::{Flaw, FlawKind, Hash, Mark};
use crate::time::Wall;

/// The start of an anchor line. Log daemons prepend their own fields.
const TAG: &str = "posse-audit:";

/// One anchored head. Written as a line, `posse-audit: home=0123456789ab seq=12 hash=… at=1700000000123`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchored {
    /// Distinguishes the audits of several homes in one anchor file.
    pub home: String,
    pub end: Mark,
    pub at: Wall,
}

impl fmt::Display for Anchored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { home, end: Mark { seq, hash }, at } = self;
        write!(f, "{TAG} home={home} seq={seq} hash={hash} at={}", at.0)
    }
}

impl Anchored {
    /// Parses a line; returns `None` for lines of other programs.
    pub fn parse(line: &str) -> Option<Self> {
        let words: BTreeMap<&str, &str> =
            line.split_once(TAG)?.1.split_ascii_whitespace().filter_map(|word| word.split_once('=')).collect();
        let hash: Hash = words.get("hash")?.parse().ok()?;
        let end = Mark { seq: words.get("seq")?.parse().ok()?, hash };
        Some(Self { home: (*words.get("home")?).to_owned(), end, at: Wall(words.get("at")?.parse().ok()?) })
    }
}

/// Compares the audit with its anchors. `hashes` are the current hashes of its entries.
pub fn compare(anchored: &[Anchored], home: &str, hashes: &BTreeMap<i64, Hash>) -> Vec<Flaw> {
    let ours: Vec<Mark> =
        anchored.iter().filter(|one| one.home == home && one.end.seq > 0).map(|one| one.end).collect();
    let mut flaws: Vec<Flaw> = ours
        .iter()
        .filter_map(|mark| match hashes.get(&mark.seq) {
            Some(hash) if *hash == mark.hash => None,
            Some(_) => Some(Flaw::of(FlawKind::NotAsAnchored, mark.seq)),
            None => Some(Flaw::of(FlawKind::AnchoredMissing, mark.seq)),
        })
        .collect();
    let last_anchored = ours.iter().map(|mark| mark.seq).max().unwrap_or(0);
    if let Some((last, _)) = hashes.last_key_value()
        && *last > last_anchored
    {
        flaws.push(Flaw::range(FlawKind::Unanchored, last_anchored + 1, *last));
    }
    flaws.sort_unstable();
    flaws.dedup();
    flaws
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> Hash {
        Hash::of_text(text)
    }

    fn anchored(home: &str, seq: i64, text: &str) -> Anchored {
        Anchored { home: home.into(), end: Mark { seq, hash: hash(text) }, at: Wall(17) }
    }

    #[test]
    fn a_line_is_read_as_it_was_written_also_behind_the_words_of_a_log() {
        let one = anchored("0123456789ab", 12, "x");
        assert_eq!(Anchored::parse(&one.to_string()), Some(one.clone()));
        assert_eq!(Anchored::parse(&format!("Nov 17 22:00:00 host posse[17]: {one}")), Some(one.clone()));
        let cut = one.to_string();
        for bad in ["", "posse-audit:", "posse-audit: home=a seq=x hash=y at=1", &cut[..cut.len() - 40]] {
            assert_eq!(Anchored::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_rewritten_and_a_shortened_chain_do_not_fit_the_anchor() {
        let now = |texts: &[&str]| (1..).zip(texts.iter().map(|text| hash(text))).collect::<BTreeMap<i64, Hash>>();
        let heads = [anchored("h", 1, "a"), anchored("h", 2, "b"), anchored("other", 2, "z"), anchored("h", 3, "c")];
        let check = |texts: &[&str]| compare(&heads, "h", &now(texts));
        assert_eq!(check(&["a", "b", "c"]), []);
        assert_eq!(
            check(&["a", "B", "C"]),
            [Flaw::of(FlawKind::NotAsAnchored, 2), Flaw::of(FlawKind::NotAsAnchored, 3)]
        );
        assert_eq!(check(&["a", "b"]), [Flaw::of(FlawKind::AnchoredMissing, 3)]);
        assert_eq!(check(&["a", "b", "c", "d", "e"]), [Flaw::range(FlawKind::Unanchored, 4, 5)]);
        assert_eq!(compare(&[], "h", &now(&["a"])), [Flaw::range(FlawKind::Unanchored, 1, 1)], "an emptied anchor");
        assert_eq!(compare(&[], "h", &now(&[])), []);
        // A head covers all entries before it, so an anchor that was switched on late is enough.
        assert_eq!(compare(&heads[3..], "h", &now(&["a", "b", "c"])), []);
    }
}
