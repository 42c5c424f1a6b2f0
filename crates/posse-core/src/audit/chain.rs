//! The hash chain of the audit. Each entry has the previous entry's hash, and its own hash over that and its text. The
//! end of the chain is also stored in a second place, the head; otherwise entries could be cut off the end undetected.
//!
//! This detects every change by an attacker who does not recompute all later hashes and the head. An attacker who can
//! write both places can do that; no file on the same machine prevents it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Entry, Note};
use crate::words;

/// A SHA-256, in text as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[a-f0-9]{64}$")]
pub struct Hash([u8; 32]);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a hash is 64 hex digits")]
pub struct BadHash;

impl Hash {
    /// The predecessor hash of the first entry.
    pub const BEGINNING: Hash = Hash([0; 32]);

    /// Hashes a single text, like `sha256sum`.
    pub fn of_text(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Hashes an entry that follows another.
    pub fn of(previous: Hash, text: &str) -> Self {
        Self(Sha256::new().chain_update(previous.0).chain_update(text.as_bytes()).finalize().into())
    }
}

impl FromStr for Hash {
    type Err = BadHash;
    fn from_str(text: &str) -> Result<Self, BadHash> {
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| BadHash)?;
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(BadHash),
        };
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(hash))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Hash {
    type Error = BadHash;
    fn try_from(text: String) -> Result<Self, BadHash> {
        text.parse()
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> Self {
        hash.to_string()
    }
}

/// A stored entry. The text holds exactly the hashed bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub seq: i64,
    pub text: String,
    pub previous: String,
    pub hash: String,
}

/// A place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub seq: i64,
    pub hash: Hash,
}

impl Mark {
    pub const BEGINNING: Mark = Mark { seq: 0, hash: Hash::BEGINNING };
}

/// The end of the chain, to which entries are appended. Stored in the second place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    #[serde(flatten)]
    pub end: Mark,
    /// Set during a write: the end of the chain if the write is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Mark>,
    /// The head was once missing, when the chain ended here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unvouched: Option<i64>,
}

impl Chain {
    /// Resumes from the head, regardless of the last stored entry. Entries cut off or added in the meantime are then
    /// detected.
    pub fn resume(head: Option<&Chain>, last: Mark) -> Self {
        match head {
            Some(head) => {
                let end = head.before.filter(|before| *before == last).unwrap_or(head.end);
                Self { end, before: None, unvouched: head.unvouched }
            }
            None => Self { end: last, before: None, unvouched: (last.seq > 0).then_some(last.seq) },
        }
    }

    pub fn next(&self) -> i64 {
        self.end.seq + 1
    }

    /// Appends an entry. Its number is `next`, or higher if another writer has used that number.
    pub fn append(&mut self, note: Note, seq: i64) -> Result<Row, serde_json::Error> {
        let entry = Entry { seq, note };
        let text = serde_json::to_string(&entry)?;
        let (previous, hash) = (self.end.hash, Hash::of(self.end.hash, &text));
        self.end = Mark { seq: entry.seq, hash };
        Ok(Row { seq: entry.seq, text, previous: previous.to_string(), hash: hash.to_string() })
    }

    /// Returns the head to store while the entries since `before` are being written.
    #[must_use]
    pub fn after(&self, before: &Chain) -> Self {
        Self { before: Some(before.end), ..*self }
    }
}

words! {
    /// What is wrong with entries of the audit.
    #[derive(PartialOrd, Ord, utoipa::ToSchema)]
    pub enum FlawKind ("flaw of the audit") {
        Changed = "changed",
        Rewritten = "rewritten",
        Missing = "missing",
        Added = "added",
        Moved = "moved",
        NotAsAnchored = "not_as_anchored",
        AnchoredMissing = "anchored_missing",
        Unanchored = "unanchored",
        Unvouched = "unvouched",
    }
}

/// Something that is wrong with the audit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AuditFlaw)]
pub struct Flaw {
    pub kind: FlawKind,
    /// The first and the last entry it is about.
    pub from: i64,
    pub to: i64,
    pub text: String,
}

impl Flaw {
    pub fn of(kind: FlawKind, entry: i64) -> Self {
        Self::range(kind, entry, entry)
    }

    pub fn range(kind: FlawKind, from: i64, to: i64) -> Self {
        let (entries, is, was) = if from == to {
            (format!("entry {from}"), "is", "was")
        } else {
            (format!("entries {from} to {to}"), "are", "were")
        };
        let one_before = "it, or one before it, was changed and the hashes made anew";
        let text = match kind {
            FlawKind::Changed => format!("{entries} {was} changed"),
            FlawKind::Rewritten => format!("{entries} is not the one that was written: {one_before}"),
            FlawKind::Missing => format!("{entries} {is} missing"),
            FlawKind::Added => format!("{entries} {was} added by someone else"),
            FlawKind::Moved => format!("{entries} {is} in the wrong place"),
            FlawKind::NotAsAnchored => format!("{entries} is not as it was anchored: {one_before}"),
            FlawKind::AnchoredMissing => {
                format!("{entries} was anchored and is missing: the audit was shortened or replaced")
            }
            FlawKind::Unanchored => {
                format!("{entries} {is} not anchored: the anchor was shortened, or could not be written")
            }
            FlawKind::Unvouched => format!(
                "audit.head was missing when {entries} was the last: what came after it then may have been removed"
            ),
        };
        Self { kind, from, to, text }
    }

    pub fn moved(place: i64, entry: i64) -> Self {
        let text = format!("entry {entry} stands at place {place}");
        Self { kind: FlawKind::Moved, from: place.min(entry), to: place.max(entry), text }
    }
}

struct Link {
    previous: Hash,
    hash: Hash,
    sound: bool,
}

/// Only the number; the rest of an entry may be of a later version.
#[derive(Deserialize)]
struct Numbered {
    seq: i64,
}

impl Row {
    /// Returns the entry's number and links, if the entry is unchanged.
    fn read(&self) -> Option<(i64, Link)> {
        let (previous, hash) = (self.previous.parse().ok()?, self.hash.parse().ok()?);
        let number = serde_json::from_str::<Numbered>(&self.text).ok()?.seq;
        (Hash::of(previous, &self.text) == hash).then_some((number, Link { previous, hash, sound: true }))
    }
}

/// Collects rows one by one, in any order, and reports their flaws.
#[derive(Default)]
pub struct Verifier {
    links: BTreeMap<i64, Link>,
    flaws: Vec<Flaw>,
}

impl Verifier {
    pub fn add(&mut self, row: &Row) {
        match row.read() {
            Some((number, link)) if number == row.seq => drop(self.links.insert(number, link)),
            Some((number, link)) => {
                self.flaws.push(Flaw::moved(row.seq, number));
                self.links.entry(number).or_insert(link);
            }
            None => {
                self.flaws.push(Flaw::of(FlawKind::Changed, row.seq));
                // Its hash still allows checking the other entries.
                let hash = row.hash.parse().unwrap_or(Hash::BEGINNING);
                self.links.entry(row.seq).or_insert(Link { previous: Hash::BEGINNING, hash, sound: false });
            }
        }
    }

    pub fn finish(self, head: Option<&Chain>) -> Vec<Flaw> {
        let Self { links, mut flaws } = self;
        let last = walk(&links, &mut flaws);
        compare(&links, last, head, &mut flaws);
        let mut told = BTreeSet::new();
        flaws.retain(|flaw| told.insert(flaw.clone()));
        flaws.sort_by_key(|flaw| (flaw.from, flaw.to));
        flaws
    }
}

/// Checks each entry against its predecessor. Returns the last number.
fn walk(links: &BTreeMap<i64, Link>, flaws: &mut Vec<Flaw>) -> i64 {
    let mut last = 0;
    for (&number, link) in links {
        if number <= 0 {
            flaws.push(Flaw::range(FlawKind::Added, number, number));
            continue;
        }
        if number > last + 1 {
            flaws.push(Flaw::range(FlawKind::Missing, last + 1, number - 1));
        } else if link.sound {
            flaws.extend(unfit(links, last, link.previous));
        }
        last = number;
    }
    last
}

/// Returns the flaw if the entry after `last` claims `previous` as its predecessor.
fn unfit(links: &BTreeMap<i64, Link>, last: i64, previous: Hash) -> Option<Flaw> {
    let Some(before) = links.get(&last) else {
        return (previous != Hash::BEGINNING).then_some(Flaw::of(FlawKind::Rewritten, last + 1));
    };
    if before.hash == previous {
        return None;
    }
    // The entry follows an earlier one: posse did not know the entries in between.
    let earlier = links.range(1..last).find(|(_, link)| link.hash == previous).map(|(number, _)| *number);
    let earlier = earlier.or((previous == Hash::BEGINNING).then_some(0));
    Some(match earlier {
        Some(earlier) => Flaw::range(FlawKind::Added, earlier + 1, last),
        None if before.sound => Flaw::of(FlawKind::Rewritten, last),
        None => Flaw::of(FlawKind::Changed, last),
    })
}

/// Compares the end of the chain with the head.
fn compare(links: &BTreeMap<i64, Link>, last: i64, head: Option<&Chain>, flaws: &mut Vec<Flaw>) {
    let Some(head) = head else {
        return flaws.extend((last > 0).then_some(Flaw::of(FlawKind::Unvouched, last)));
    };
    flaws.extend(head.unvouched.map(|entry| Flaw::of(FlawKind::Unvouched, entry)));
    let end = head.before.filter(|before| before.seq >= last).unwrap_or(head.end);
    if last < end.seq {
        flaws.push(Flaw::range(FlawKind::Missing, last + 1, end.seq));
    } else if last > end.seq {
        flaws.push(Flaw::range(FlawKind::Added, end.seq + 1, last));
    }
    if links.get(&end.seq).is_some_and(|link| link.sound && link.hash != end.hash) {
        flaws.push(Flaw::of(FlawKind::Rewritten, end.seq));
    }
}
