//! The decision of a reviewer or the tester. Verdicts fail closed: anything but an explicit yes counts as no.
//!
//! A verdict is a line of its own, `REVIEW_RESULT: …` or `RESULT: …`. A line that offers both choices is the unfilled
//! template, and is ignored. Of several verdicts the negative one counts, and a yes with a reservation is no yes.

use std::sync::LazyLock;

use regex::{RegexSet, RegexSetBuilder};

use super::lines::{section, undressed, value_of};
use super::{Key, Rules};
use crate::visible::shortened;

/// The combined meaning of a text's verdict lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Yes,
    No,
    /// A verdict line is ambiguous. Counts as no.
    Unclear(String),
    /// There is no verdict line. Counts as no.
    Missing,
}

/// The keywords of a verdict.
struct Words {
    head: &'static str,
    yes: &'static str,
    /// Prefixes of words, so that "failed" is a no as well.
    no: &'static [&'static str],
}

const TEST: Words = Words { head: "RESULT", yes: "PASS", no: &["fail"] };
const REVIEW: Words = Words { head: "REVIEW_RESULT", yes: "APPROVED", no: &["revis", "reject"] };

/// Maximum length of a line quoted in a message, in characters.
const SHOWN: usize = 120;

/// Parses the tester's verdict: yes is PASS.
pub(super) fn test_verdict(text: &str) -> Verdict {
    verdict(text, &TEST)
}

fn verdict(text: &str, words: &Words) -> Verdict {
    let mut together = Verdict::Missing;
    for line in text.split('\n') {
        if says_no(line, words) {
            return Verdict::No;
        }
        let Some(value) = value_of(line, words.head) else { continue };
        // The requested format is in capitals; "Result: the page loads" is an ordinary sentence.
        let written_as_asked = line.contains(words.head);
        match (judge(value, words), &together) {
            (Judged::No, _) => return Verdict::No,
            (Judged::Yes, Verdict::Missing) => together = Verdict::Yes,
            (Judged::Reserved, _) if written_as_asked || takes_back(value) => {
                together = Verdict::Unclear(shortened(line.trim(), SHOWN));
            }
            (Judged::Other, _) if written_as_asked => together = Verdict::Unclear(shortened(line.trim(), SHOWN)),
            _ => {}
        }
    }
    together
}

/// Returns whether the line is a no. Unlike a yes, a no also counts if it is quoted, numbered, or called final.
fn says_no(line: &str, words: &Words) -> bool {
    let Some(at) = line.find(words.head) else { return false };
    let (before, value) = (&line[..at], line[at..].trim_start_matches(words.head));
    let heading = |word: String| {
        word.bytes().all(|byte| byte.is_ascii_digit()) || ["final", "overall", "test", "the", "my"].contains(&&*word)
    };
    let stands_alone = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_') && in_words(before).all(heading);
    let value = value.trim_start_matches(|c: char| !c.is_alphanumeric() && c != ':');
    stands_alone && value.strip_prefix(':').is_some_and(|value| matches!(judge(undressed(value), words), Judged::No))
}

enum Judged {
    Yes,
    No,
    /// The yes has an addition.
    Reserved,
    /// Both choices.
    Template,
    Other,
}

fn judge(value: &str, words: &Words) -> Judged {
    let value = value.trim_start_matches(['<', '[', '(', '{', '"', '\'']);
    let end = value.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(value.len());
    let (word, rest) = value.split_at(end);
    let word = word.to_lowercase();
    let offers_more = {
        let rest = rest.trim_start();
        rest.starts_with(['|', '/', '\\']) || in_words(rest).next().is_some_and(|next| next == "or")
    };
    let yes = words.yes.to_lowercase();
    let is_no = |word: &str| words.no.iter().any(|no| word.starts_with(no));
    if offers_more && (word == yes || is_no(&word)) {
        Judged::Template
    } else if is_no(&word) {
        Judged::No
    } else if word == yes && harmless(rest) {
        Judged::Yes
    } else if in_words(value).any(|word| word == yes) {
        Judged::Reserved
    } else {
        Judged::Other
    }
}

/// Words that only repeat a yes. The ways to retract a yes are too many to list, so the harmless words are listed
/// instead.
const AFFIRMING: &str = "\
    a above acceptance again all and are as at been below checked checks code complete completed confirmed criteria \
    criterion cycle done each every everything evidence executed exit expected fine for fulfilled good great green \
    has have held hold holds is items lgtm looks met most notes observed of ok pass passed ran requirements review \
    round satisfied scenario scenarios see seen steps successful successfully tests the this verified was were work \
    works";
/// Words that may follow a count.
const COUNTED: [&str; 7] = ["checks", "criteria", "items", "requirements", "scenarios", "steps", "tests"];
/// Words that may be reported as absent.
const UNWANTED: [&str; 8] =
    ["blockers", "defects", "errors", "failures", "findings", "issues", "problems", "regressions"];

/// Returns whether the text after a yes leaves it a yes: nothing, or a separate remark that only repeats it.
fn harmless(rest: &str) -> bool {
    if !rest.contains(char::is_alphanumeric) {
        return true;
    }
    let words: Vec<String> = in_words(rest).collect();
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let before = |at: usize, by: usize| at.checked_sub(by).map_or("", word);
    let affirms = |at: usize| match word(at) {
        "no" => UNWANTED.contains(&word(at + 1)),
        "found" | "left" | "remaining" => UNWANTED.contains(&before(at, 1)),
        // 5 of 5 and 5/5, but not 3 of 5.
        number if number.starts_with(|c: char| c.is_ascii_digit()) => {
            let all = [before(at, 1), word(at + 1)].contains(&number)
                || (word(at + 1) == "of" && word(at + 2) == number)
                || (before(at, 1) == "of" && before(at, 2) == number);
            let which = matches!(before(at, 1), "all" | "cycle" | "round")
                || (before(at, 1) == "of" && matches!(before(at, 3), "cycle" | "round"));
            let counted = COUNTED.contains(&word(at + 1));
            all || which || counted || number == "100" || (number == "0" && before(at, 1) == "code")
        }
        unwanted if UNWANTED.contains(&unwanted) => before(at, 1) == "no",
        word => AFFIRMING.split(' ').any(|affirming| affirming == word),
    };
    rest.trim_start().starts_with(['-', '–', '—', ':', ';', ',', '.', '(']) && (0..words.len()).all(affirms)
}

/// Words and prefixes that express a reservation. A line not in the requested format is an ordinary sentence unless it
/// has one of these.
const RESERVATIONS: [&str; 12] =
    ["but", "if", "not", "though", "although", "however", "unless", "without", "only", "cannot", "until", "once"];
const RESERVED_STEMS: [&str; 13] = [
    "except",
    "partial",
    "fail",
    "pending",
    "assum",
    "condition",
    "skip",
    "untested",
    "block",
    "error",
    "missing",
    "revis",
    "provided",
];

fn takes_back(value: &str) -> bool {
    in_words(value).any(|word| {
        word.ends_with("n't")
            || RESERVATIONS.contains(&word.as_str())
            || RESERVED_STEMS.iter().any(|stem| word.starts_with(stem))
    })
}

fn in_words(text: &str) -> impl Iterator<Item = String> + '_ {
    let apart = |c: char| !c.is_alphanumeric() && c != '\'' && c != '’';
    text.split(apart).filter(|word| !word.is_empty()).map(|word| word.replace('’', "'").to_lowercase())
}

/// The outcome of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Approved,
    /// Approved by the reviewer, but held back by the gate.
    HeldBack(Lack),
    Revise,
    Unclear(String),
    Missing,
}

/// The part that an approval lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Lack {
    #[error("approval counts from cycle {min} on, and this is cycle {cycle}")]
    Cycles { cycle: u32, min: u32 },
    #[error("there are no review notes")]
    Notes,
    #[error("the notes show {found} of the {wanted} kinds of evidence that are wanted")]
    Evidence { found: usize, wanted: usize },
}

pub(super) fn review_outcome(review: Key, text: &str, cycle: u32, rules: &Rules) -> Outcome {
    match verdict(text, &REVIEW) {
        Verdict::Yes => lack(review, text, cycle, rules).map_or(Outcome::Approved, Outcome::HeldBack),
        Verdict::No => Outcome::Revise,
        Verdict::Unclear(line) => Outcome::Unclear(line),
        Verdict::Missing => Outcome::Missing,
    }
}

fn lack(review: Key, text: &str, cycle: u32, rules: &Rules) -> Option<Lack> {
    let limits = &rules.limits;
    let min = limits.min_review_cycles_before_approval;
    if cycle < min {
        return Some(Lack::Cycles { cycle, min });
    }
    if !limits.require_review_evidence {
        return None;
    }
    let notes = review_notes(rules.prompts.source(review.as_str()), text);
    if notes.trim().is_empty() {
        return Some(Lack::Notes);
    }
    let (found, wanted) = (evidence(review, &notes), limits.review_evidence_min_match as usize);
    (found < wanted).then_some(Lack::Evidence { found, wanted })
}

/// Returns the notes of a review, without their heading and without lines of the prompt: a returned template proves
/// nothing.
fn review_notes(template: &str, text: &str) -> String {
    let ours = |line: &str| template.lines().any(|known| undressed(known) == undressed(line));
    let lines: Vec<&str> = text.split('\n').collect();
    let notes = section(&lines, &["REVIEW_NOTES"], &[]);
    let Some((first, rest)) = notes.split_first() else { return String::new() };
    let beside = value_of(first, "REVIEW_NOTES").unwrap_or_default();
    let lines = std::iter::once(beside).chain(rest.iter().copied());
    lines.filter(|line| !ours(line)).collect::<Vec<_>>().join("\n")
}

/// Returns the number of kinds of evidence in the notes.
fn evidence(review: Key, notes: &str) -> usize {
    let patterns = if review == Key::AnalystReview { &ANALYST_EVIDENCE } else { &PROGRAMMER_EVIDENCE };
    patterns.matches(notes).iter().count()
}

static ANALYST_EVIDENCE: LazyLock<RegexSet> = LazyLock::new(|| {
    patterns(&[
        near("artifact|proposal|design|tasks|spec", "verified|missing|incomplete|correct|present|created|updated", 30),
        near(r"\bP[1-4]\b|traceability|phase", "coverage|gap|confirmed|traced|missing|complete", 40),
        near("downstream|contract", r"[\w-]\.[A-Za-z]\w{0,7}\b|module|service|component|endpoint", 40),
        near(
            "handoff|action item",
            r"\b\d+\s+(?:\w+\s+)?(?:steps?|actions?|action items?|items?|tasks?)\b|includes|contains|lists",
            40,
        ),
    ])
});

static PROGRAMMER_EVIDENCE: LazyLock<RegexSet> = LazyLock::new(|| {
    patterns(&[
        "implementation|code|task|change|diff|file".to_owned(),
        "validation|test|command|run|not_run|pytest|conda".to_owned(),
        "risk|regression|quality|coverage|evidence".to_owned(),
        "fix|issue|defect|gap|failure".to_owned(),
    ])
});

/// Returns a pattern for both words on one line, in either order, with at most `within` characters between them.
fn near(one: &str, other: &str, within: usize) -> String {
    format!("(?:{one}).{{0,{within}}}(?:{other})|(?:{other}).{{0,{within}}}(?:{one})")
}

/// Compiles the patterns. If they do not compile, nothing matches and nothing is approved; a test checks that they do.
fn patterns(patterns: &[String]) -> RegexSet {
    RegexSetBuilder::new(patterns).case_insensitive(true).build().unwrap_or_else(|_| RegexSet::empty())
}

#[cfg(test)]
mod tests;
