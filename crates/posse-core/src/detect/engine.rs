//! One pass over the rows, then the rules in their order.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::compile::{Detector, Pattern};
use super::layout::{self, Found, Region};
use super::rules::{Gate, Rule};
use super::{Evidence, Look, Reading, dialog};
use crate::screen::Painted;
use crate::status::{StatusKind, WaitingKind};

/// The patterns that match one row, one bit each.
type Hits = Box<[u64]>;

/// The matches of the last look, by row: an unchanged row is not matched again.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    rows: Vec<(String, Hits)>,
}

/// Rows with their matching patterns.
pub struct Sight<'a> {
    detector: &'a Detector,
    rows: &'a [(String, Hits)],
    /// The number of rows of the terminal, including blank ones at the end.
    pub(super) height: usize,
    pub(super) colours: Option<&'a dyn Painted>,
}

/// The decision of a rule or a classifier, and its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    pub status: Option<StatusKind>,
    pub kind: Option<WaitingKind>,
    pub row: Option<usize>,
}

/// A decision written in code, for cases that do not fit into rules. Its patterns stay in the rules.
pub type Classifier = fn(&Sight<'_>, &Found) -> Option<Decided>;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub rule: String,
    pub held: bool,
    /// The matching row, or the reason for a miss.
    pub because: String,
    pub why: String,
}

/// A reading, and the result of every rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    pub reading: Reading,
    pub verdicts: Vec<Verdict>,
}

impl<'a> Sight<'a> {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn until(&self, end: usize) -> Self {
        Self { detector: self.detector, rows: &self.rows[..end], height: self.height, colours: self.colours }
    }

    pub fn row(&self, row: usize) -> &'a str {
        &self.rows[row].0
    }

    pub fn matches(&self, row: usize, name: &str) -> bool {
        self.hit(row, self.detector.names.get(name))
    }

    pub fn last_match(&self, rows: Range<usize>, name: &str) -> Option<usize> {
        rows.rev().find(|row| self.matches(*row, name))
    }

    /// Returns the first match of a named pattern in a text of several rows.
    pub fn find_in(&self, text: &str, name: &str) -> Option<Range<usize>> {
        self.detector.names.get(name)?.find(text)
    }

    pub(super) fn hit<'p>(&self, row: usize, patterns: impl IntoIterator<Item = &'p Pattern>) -> bool {
        let hits = &self.rows[row].1;
        patterns.into_iter().any(|pattern| {
            debug_assert!(!pattern.in_set.is_empty(), "rows are matched against {:?}", pattern.text);
            pattern.in_set.iter().any(|id| hits[id / 64] & (1 << (id % 64)) != 0)
        })
    }

    pub(super) fn last<'p>(
        &self,
        mut rows: Range<usize>,
        patterns: impl IntoIterator<Item = &'p Pattern> + Copy,
    ) -> Option<usize> {
        rows.rfind(|row| self.hit(*row, patterns))
    }
}

/// The reason why a rule does not match. Formatted only for `explain`, because most rules miss on every look.
#[derive(Debug, thiserror::Error)]
enum RuleMiss<'s> {
    #[error("{0}")]
    Because(&'static str),
    #[error("not in {0:?}")]
    NotIn(&'s str),
    #[error("no row matches {0}")]
    NoRow(&'s str),
    #[error("nowhere on the screen is {0}")]
    Nowhere(&'s str),
    #[error("excluded by {0:?}")]
    Excluded(&'s str),
    #[error("history: {0:?} stands below it")]
    History(&'s str),
    #[error("right above it is {0:?}")]
    RightAbove(&'s str),
}

impl Detector {
    /// Returns the rows of the last look, without those below an open dialog.
    fn sight<'a>(&'a self, memo: &'a Memo, height: usize, colours: Option<&'a dyn Painted>) -> Sight<'a> {
        let mut sight = Sight { detector: self, rows: &memo.rows, height, colours };
        if let Some(end) = self.end_of_dialog_above_composer(&sight) {
            sight.rows = &memo.rows[..end];
        }
        sight
    }

    pub fn read(&self, look: Look<'_>, memo: &mut Memo) -> Reading {
        self.match_rows(look, memo);
        let sight = self.sight(memo, look.rows.len(), look.colours);
        let found = self.find(&sight);
        for rule in &self.rules.rules {
            if let Ok(held) = self.try_rule(rule, &look, &sight, &found) {
                return self.reading(rule, &held, &look, &sight, &found);
            }
        }
        self.nothing(&sight, &found)
    }

    /// Returns the last prompt of the user in the conversation, as shown in the last look.
    pub fn last_prompt(&self, memo: &Memo) -> Option<String> {
        let sight = self.sight(memo, memo.rows.len(), None);
        let found = self.find(&sight);
        let composer = found.composer.as_ref().map_or(sight.len(), |composer| composer.above);
        let end = found.menu.as_ref().map_or(composer, |menu| menu.rows.start.min(composer));
        let row = sight.last(0..end, &self.rules.layout.prompt_echo)?;
        let first = sight.row(row);
        let mut text = first[first.chars().next()?.len_utf8()..].trim().to_owned();
        // Its further lines are indented and end at the first blank row.
        for more in (row + 1..end).map(|row| sight.row(row)).take_while(|row| row.starts_with("  ")) {
            text.push('\n');
            text.push_str(more.trim());
        }
        Some(text)
    }

    /// Returns whether the last look showed a menu in place of the input field, or one with numbers below it.
    /// Completion lists near the input field have no numbers.
    pub(super) fn shows_menu(&self, memo: &Memo) -> bool {
        let sight = self.sight(memo, memo.rows.len(), None);
        let found = self.find(&sight);
        let numbered = |menu: &dialog::Menu| menu.options.iter().all(|option| option.number.is_some());
        found.menu.as_ref().is_some_and(|menu| found.composer.is_none() || numbered(menu))
    }

    /// Returns the text after the mark of an input field that is only a row of text, up to the cursor. `None` if the
    /// cursor is not in such a row, or the agent has none.
    pub fn plain_draft(&self, rows: &[String], cursor: usize) -> Option<String> {
        let plain = self.rules.layout.plain.as_ref()?;
        let filled = |row: &usize| rows.get(*row).is_some_and(|row| !row.trim().is_empty());
        let mark = (0..=cursor).rev().take_while(filled).find(|row| plain.is_match(&rows[*row]))?;
        let text = rows[mark..=cursor].join("\n");
        Some(text[text.chars().next()?.len_utf8()..].trim().to_owned())
    }

    /// Like `read`, with every rule that was tried.
    pub fn explain(&self, look: Look<'_>, memo: &mut Memo) -> Explanation {
        self.match_rows(look, memo);
        let sight = self.sight(memo, look.rows.len(), look.colours);
        let found = self.find(&sight);
        let mut reading = None;
        let verdict = |rule: &Rule| {
            let outcome = self.try_rule(rule, &look, &sight, &found);
            let because = match &outcome {
                Ok(held) => evidence(rule, held, &look, &sight).map_or_else(|| "it always does".into(), |e| e.text),
                Err(why) => why.to_string(),
            };
            if let (Ok(held), None) = (&outcome, &reading) {
                reading = Some(self.reading(rule, held, &look, &sight, &found));
            }
            Verdict { rule: rule.id.clone(), held: outcome.is_ok(), because, why: rule.why.clone() }
        };
        let verdicts = self.rules.rules.iter().map(verdict).collect();
        Explanation { reading: reading.unwrap_or_else(|| self.nothing(&sight, &found)), verdicts }
    }

    fn match_rows(&self, look: Look<'_>, memo: &mut Memo) {
        let rows = self.without_scrollbar(look.rows);
        let filled = rows.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |last| last + 1);
        memo.rows.truncate(filled);
        for (at, row) in rows[..filled].iter().enumerate() {
            if memo.rows.get(at).is_some_and(|(known, _)| known == row) {
                continue;
            }
            let mut hits = vec![0; self.set.len().div_ceil(64)].into_boxed_slice();
            for pattern in &self.set.matches(row) {
                hits[pattern / 64] |= 1 << (pattern % 64);
            }
            match memo.rows.get_mut(at) {
                Some(known) => *known = (row.clone(), hits),
                None => memo.rows.push((row.clone(), hits)),
            }
        }
    }

    fn try_rule<'s>(
        &'s self,
        rule: &'s Rule,
        look: &Look<'s>,
        sight: &Sight<'s>,
        found: &Found,
    ) -> Result<Decided, RuleMiss<'s>> {
        let missing = |gate: &Gate| {
            let (is_missing, why) = match gate {
                Gate::Composer => (found.composer.is_none(), "no input field on the screen"),
                Gate::NoComposer => (found.composer.is_some(), "the input field is on the screen"),
                Gate::Menu => (found.menu.is_none(), "no menu on the screen"),
                Gate::NoMenu => (found.menu.is_some(), "a menu is on the screen"),
                Gate::NoTitle => (look.title.is_some_and(|title| !title.is_empty()), "the title is known"),
                Gate::Empty => (!sight.is_empty(), "the screen is not empty"),
            };
            is_missing.then_some(why)
        };
        if let Some(why) = rule.when.iter().find_map(missing) {
            return Err(RuleMiss::Because(why));
        }
        let held = |row| Decided { row, status: rule.status, kind: rule.kind };
        if let Some(classifier) = rule.decides {
            return classifier(sight, found).ok_or(RuleMiss::Because("the classifier did not decide"));
        }
        let outside = match rule.region {
            Region::Title => Some(look.title),
            Region::Foreground => Some(look.foreground),
            _ => None,
        };
        if let Some(text) = outside {
            let text = text.ok_or(RuleMiss::Because("it is not known"))?;
            let there = rule.somewhere.is_none() || sight.last(0..sight.len(), &rule.somewhere).is_some();
            let is = |pattern: &Pattern| pattern.is_match(text);
            let any = rule.any.is_empty() || rule.any.iter().any(is);
            let holds = there && any && rule.all.iter().all(is) && !rule.none.iter().any(is);
            return holds.then(|| held(None)).ok_or(RuleMiss::NotIn(text));
        }
        let rows =
            self.rows(&rule.region, sight, found).ok_or(RuleMiss::Because("there is no such region on the screen"))?;
        holds_in(rule, rows, sight).map(held)
    }

    fn reading(&self, rule: &Rule, held: &Decided, look: &Look<'_>, sight: &Sight<'_>, found: &Found) -> Reading {
        let dialog = held.kind.filter(|_| held.status == Some(StatusKind::WaitingUserAnswer));
        Reading {
            status: held.status,
            waiting_kind: held.kind,
            rule: rule.id.clone(),
            strength: rule.strength,
            evidence: evidence(rule, held, look, sight),
            dialog: dialog.and_then(|kind| match found.menu {
                Some(_) => dialog::read(self, sight, found, kind),
                None => dialog::read_text(self, sight, held.row?, kind),
            }),
            draft: self.draft(sight, found),
            ends_turn: rule.ends_turn,
            content: content(sight, found),
        }
    }

    fn draft(&self, sight: &Sight<'_>, found: &Found) -> Option<String> {
        found.composer.as_ref().map(|composer| layout::draft(&self.rules.layout, sight, composer))
    }

    fn nothing(&self, sight: &Sight<'_>, found: &Found) -> Reading {
        let (draft, content) = (self.draft(sight, found), content(sight, found));
        Reading { rule: "none".into(), draft, content, ..Reading::default() }
    }
}

/// Returns the row on which the conditions of a rule match, if they need one.
fn holds_in<'s>(rule: &'s Rule, rows: Range<usize>, sight: &Sight<'s>) -> Result<Option<usize>, RuleMiss<'s>> {
    let Rule { any, all, none, except, somewhere, stale_if_followed_by, right_below, .. } = rule;
    let counts = |row: &usize, patterns: &[Pattern]| sight.hit(*row, patterns) && !sight.hit(*row, except);
    let last_of = |patterns: &[Pattern]| rows.clone().rev().find(|row| counts(row, patterns));
    if let Some(missing) = all.iter().find(|pattern| last_of(std::slice::from_ref(pattern)).is_none()) {
        return Err(RuleMiss::NoRow(&missing.text));
    }
    if let Some(missing) = somewhere.as_ref().filter(|_| sight.last(0..sight.len(), somewhere).is_none()) {
        return Err(RuleMiss::Nowhere(&missing.text));
    }
    if let Some(row) = last_of(none) {
        return Err(RuleMiss::Excluded(sight.row(row)));
    }
    let mut last = all.first().and_then(|pattern| last_of(std::slice::from_ref(pattern)));
    if !any.is_empty() {
        last = Some(last_of(any).ok_or(RuleMiss::Because("no row matches"))?);
    }
    let stale = stale_if_followed_by.as_slice();
    if let Some(later) = last.and_then(|last| (last + 1..sight.len()).find(|row| counts(row, stale))) {
        return Err(RuleMiss::History(sight.row(later)));
    }
    let above = last.and_then(|last| (0..last).rev().find(|row| !sight.row(*row).trim().is_empty()));
    if right_below.is_some() && !above.is_some_and(|above| sight.hit(above, right_below)) {
        return Err(RuleMiss::RightAbove(above.map_or("", |above| sight.row(above))));
    }
    if any.is_empty() && all.is_empty() && !matches!(rule.region, Region::Screen) {
        last = rows.clone().next();
    }
    Ok(last)
}

fn evidence(rule: &Rule, held: &Decided, look: &Look<'_>, sight: &Sight<'_>) -> Option<Evidence> {
    let text = match rule.region {
        Region::Title => look.title,
        Region::Foreground => look.foreground,
        _ => held.row.map(|row| sight.row(row)),
    }?;
    Some(Evidence { row: held.row, text: text.trim_end().to_owned() })
}

/// Digests the conversation. Excludes the input field and the rows below it, where people type and clocks change.
fn content(sight: &Sight<'_>, found: &Found) -> u64 {
    let end = found.composer.as_ref().map_or(sight.len(), |composer| composer.above);
    let mut hasher = DefaultHasher::new();
    (0..end).for_each(|row| sight.row(row).hash(&mut hasher));
    hasher.finish()
}
