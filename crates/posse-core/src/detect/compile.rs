//! Compiles rules: patterns are compiled once, names resolved, examples checked.

use std::collections::BTreeMap;
use std::ops::Range;

use regex::{Captures, Regex, RegexSet, RegexSetBuilder};
use serde::Deserialize;

use super::Look;
use super::engine::{Classifier, Memo};
use super::layout::Region;
use super::rules::{AnswerRule, DialogRules, Layout, Rule, Rules, ToolRule};
use crate::status::StatusKind;

/// The reason why rules cannot be used. The message names the rule.
#[derive(Debug, thiserror::Error)]
pub enum BadRules {
    #[error("{place}: {pattern:?} is not a regular expression: {error}")]
    Regex { place: String, pattern: String, error: Box<regex::Error> },
    #[error("{place}: there is no pattern named {name:?}")]
    UnknownPattern { place: String, name: String },
    #[error("{place}: there is no classifier {name:?}")]
    UnknownClassifier { place: String, name: String },
    #[error("two rules are called {0:?}")]
    SameId(String),
    #[error("rule {id:?} {expected} on its own example:\n{example}")]
    Example { id: String, expected: &'static str, example: String },
    #[error(
        "rule {id:?} says {status} while a menu stands on the screen, so a prompt would be typed into it. Let a rule for the \
         menu come first (`when = [\"menu\"]`), or have this rule want the input field (`when = [\"composer\"]`):\n{screen}"
    )]
    MenuIsReady { id: String, status: StatusKind, screen: String },
}

/// The memory for the automaton of all patterns of an agent. With too little it is discarded and rebuilt repeatedly.
const DFA_BYTES: usize = 8 << 20;

/// A pattern as written: a regular expression, or `@NAME` for a named one, which may have alternatives.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "String")]
pub struct Pattern {
    pub(super) text: String,
    expressions: Vec<Regex>,
    /// Indices of its expressions in the set that rows are matched against.
    pub(super) in_set: Vec<usize>,
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self { text, expressions: Vec::new(), in_set: Vec::new() }
    }
}

impl Pattern {
    pub(super) fn is_match(&self, text: &str) -> bool {
        debug_assert!(!self.expressions.is_empty(), "{:?} is compiled", self.text);
        self.expressions.iter().any(|expression| expression.is_match(text))
    }

    pub(super) fn find(&self, text: &str) -> Option<Range<usize>> {
        let found = self.expressions.iter().filter_map(|expression| expression.find(text));
        found.map(|found| found.range()).min_by_key(|range| range.start)
    }

    pub(super) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.expressions.iter().find_map(|expression| expression.captures(text))
    }
}

/// Reads screens of one agent. Created once, shared by all its terminals.
#[derive(Debug)]
pub struct Detector {
    pub(super) rules: Rules,
    pub(super) set: RegexSet,
    pub(super) names: BTreeMap<String, Pattern>,
}

struct Collector<'r> {
    named: &'r BTreeMap<String, Vec<String>>,
    /// The expressions that rows are matched against.
    set: Vec<(String, Regex)>,
}

impl Collector<'_> {
    /// Compiles patterns. With `for_rows`, rows are matched against all of them at once.
    fn add<'p>(
        &mut self,
        place: &str,
        for_rows: bool,
        patterns: impl IntoIterator<Item = &'p mut Pattern>,
    ) -> Result<(), BadRules> {
        for pattern in patterns {
            for text in self.expressions(place, &pattern.text)? {
                let known = self.set.iter().position(|(known, _)| *known == text);
                let expression = match known {
                    Some(at) => self.set[at].1.clone(),
                    None => compiled(place, &text)?,
                };
                pattern.in_set.extend(for_rows.then_some(known.unwrap_or(self.set.len())));
                pattern.expressions.push(expression.clone());
                if for_rows && known.is_none() {
                    self.set.push((text, expression));
                }
            }
        }
        Ok(())
    }

    /// Returns the expressions that a pattern stands for.
    ///
    /// Word boundaries are ASCII only. With Unicode boundaries, rows with non-ASCII characters such as borders match
    /// about fifty times slower.
    fn expressions(&self, place: &str, pattern: &str) -> Result<Vec<String>, BadRules> {
        let fast = |text: &str| text.replace(r"\b", r"(?-u:\b)");
        let Some(name) = pattern.strip_prefix('@') else { return Ok(vec![fast(pattern)]) };
        let named = self.named.get(name);
        let named = named.ok_or_else(|| BadRules::UnknownPattern { place: place.into(), name: name.into() })?;
        Ok(named.iter().map(|text| fast(text)).collect())
    }

    fn layout(&mut self, layout: &mut Layout) -> Result<(), BadRules> {
        let Layout { composer, composer_not, frame_above, frame_below, only_below, not_below, plain, .. } = layout;
        let rows = [composer, composer_not, frame_above, frame_below, only_below, not_below, plain];
        self.add("layout", true, rows.into_iter().flatten())?;
        self.add("layout", true, [&mut layout.completion, &mut layout.prompt_echo].into_iter().flatten())?;
        self.add("layout", false, [&mut layout.placeholder, &mut layout.completes].into_iter().flatten())
    }

    fn dialog(&mut self, dialog: &mut DialogRules) -> Result<(), BadRules> {
        let cursor = || format!(r"^[\s│┃]*[{}]\s+\S", regex::escape(&dialog.cursors)).into();
        dialog.cursor = (!dialog.cursors.is_empty()).then(cursor);
        let DialogRules { cursor, first, frame, footer, above_composer, start, fence, decoration, .. } = dialog;
        let rows = [cursor, first, frame, footer, above_composer, start, fence, decoration];
        self.add("dialog", true, rows.into_iter().flatten())?;
        self.add("dialog.text", true, dialog.text.iter_mut().map(|question| &mut question.row))?;
        self.add("dialog.row", true, &mut dialog.row)?;
        let labels = [&mut dialog.accept, &mut dialog.widen, &mut dialog.deny];
        self.add("dialog", false, labels.into_iter().flatten())?;
        for ToolRule { row, subject, .. } in &mut dialog.tool {
            self.add("dialog.tool", false, [row].into_iter().chain(subject))?;
        }
        Ok(())
    }

    fn rule(&mut self, rule: &mut Rule) -> Result<(), BadRules> {
        let place = format!("rule {:?}", rule.id);
        let Rule { any, all, none, except, somewhere, stale_if_followed_by, right_below, region, .. } = rule;
        self.add(&place, true, [any, all, none, except].into_iter().flatten())?;
        self.add(&place, true, [somewhere, stale_if_followed_by, right_below].into_iter().flatten())?;
        if let Region::After(pattern) = region { self.add(&place, true, [pattern]) } else { Ok(()) }
    }

    fn answer(&mut self, rule: &mut AnswerRule) -> Result<(), BadRules> {
        let AnswerRule { marker, marker_not, followed_by, stop, .. } = rule;
        self.add("answer", false, [marker].into_iter().chain(marker_not).chain(followed_by).chain(stop))
    }
}

fn compiled(place: &str, pattern: &str) -> Result<Regex, BadRules> {
    Regex::new(pattern).map_err(|error| BadRules::Regex {
        place: place.into(),
        pattern: pattern.into(),
        error: Box::new(error),
    })
}

impl Detector {
    /// Compiles rules. `classifiers` finds decisions written in code by their name.
    pub fn new(mut rules: Rules, classifiers: impl Fn(&str) -> Option<Classifier>) -> Result<Self, BadRules> {
        let named = std::mem::take(&mut rules.patterns);
        let mut collector = Collector { named: &named, set: Vec::new() };
        let mut ids = std::collections::BTreeSet::new();
        for rule in &mut rules.rules {
            if !ids.insert(rule.id.clone()) {
                return Err(BadRules::SameId(rule.id.clone()));
            }
            collector.rule(rule)?;
            if let Some(name) = &rule.classifier {
                let place = || format!("rule {:?}", rule.id);
                let unknown = || BadRules::UnknownClassifier { place: place(), name: name.clone() };
                rule.decides = Some(classifiers(name).ok_or_else(unknown)?);
            }
        }
        collector.layout(&mut rules.layout)?;
        collector.dialog(&mut rules.dialog)?;
        rules.answer.iter_mut().try_for_each(|rule| collector.answer(rule))?;
        let mut names = BTreeMap::new();
        for name in named.keys() {
            let mut pattern = Pattern::from(format!("@{name}"));
            collector.add("patterns", true, [&mut pattern])?;
            names.insert(name.clone(), pattern);
        }
        let set = RegexSetBuilder::new(collector.set.iter().map(|(text, _)| text)).dfa_size_limit(DFA_BYTES).build();
        let set = set.map_err(|error| BadRules::Regex {
            place: "all patterns".into(),
            pattern: String::new(),
            error: Box::new(error),
        })?;
        rules.patterns = named;
        let detector = Self { rules, set, names };
        detector.check_examples()?;
        detector.check_menus()?;
        Ok(detector)
    }

    /// Returns whether the input field of this agent is known. Without it nothing can be proven about typed text.
    pub fn has_composer(&self) -> bool {
        self.rules.layout.composer.is_some()
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    fn check_examples(&self) -> Result<(), BadRules> {
        for rule in &self.rules.rules {
            let outcomes =
                rule.holds.iter().map(|text| (text, true)).chain(rule.fails.iter().map(|text| (text, false)));
            for (example, expected) in outcomes {
                let rows: Vec<String> = example.lines().map(str::to_owned).collect();
                let rows = if rule.is_about_title() { Vec::new() } else { rows };
                let title = rule.is_about_title().then_some(example.as_str());
                let look = Look { rows: &rows, title, ..Look::default() };
                let held =
                    self.explain(look, &mut Memo::default()).verdicts.iter().any(|v| v.rule == rule.id && v.held);
                if held != expected {
                    let expected = if expected { "does not hold" } else { "holds" };
                    return Err(BadRules::Example { id: rule.id.clone(), expected, example: example.clone() });
                }
            }
        }
        Ok(())
    }

    /// Checks that a menu in place of the input field is never read as a screen that waits for a prompt. Tries every
    /// example with a menu, and menus made of the cursor characters.
    fn check_menus(&self) -> Result<(), BadRules> {
        let rules = self.rules.rules.iter();
        let mut screens: Vec<String> = rules
            .flat_map(|rule| rule.holds.iter().chain(&rule.fails).filter(|_| !rule.is_about_title()))
            .cloned()
            .collect();
        for cursor in self.rules.dialog.cursors.chars() {
            let menu = format!("  Do you want to proceed?\n\n  {cursor} 1. Yes\n    2. No");
            screens.extend(["", "An answer of the agent.\n\n"].map(|above| format!("{above}{menu}")));
        }
        for screen in screens {
            let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
            let mut memo = Memo::default();
            let reading = self.read(Look { rows: &rows, ..Look::default() }, &mut memo);
            let ready = reading.status.filter(|kind| matches!(kind, StatusKind::Idle | StatusKind::Completed));
            if let Some(status) = ready.filter(|_| self.shows_menu(&memo)) {
                return Err(BadRules::MenuIsReady { id: reading.rule, status, screen });
            }
        }
        Ok(())
    }
}
