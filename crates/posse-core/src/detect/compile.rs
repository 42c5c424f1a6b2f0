//! Rules made ready: patterns compiled once, names resolved, examples checked.

use regex::{Regex, RegexSet, RegexSetBuilder};

use super::Look;
use super::answer::Answer;
use super::engine::{Classifier, Memo};
use super::layout::Region;
use super::rules::{AnswerRule, Pattern, Rule, Rules};
use crate::status::StatusKind;

/// Why rules cannot be used. The message names the rule.
#[derive(Debug, thiserror::Error)]
pub enum BadRules {
    #[error("{place}: {pattern:?} is not a regular expression: {error}")]
    Regex { place: String, pattern: String, error: Box<regex::Error> },
    #[error("{place}: there is no pattern named {name:?}")]
    UnknownPattern { place: String, name: String },
    #[error("{place}: there is no region {region:?}")]
    UnknownRegion { place: String, region: String },
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

/// Room for the automaton of all patterns of an agent. With too little it is thrown away and made again and again.
const DFA_BYTES: usize = 8 << 20;

/// An index into the set of all patterns.
pub(super) type PatternId = usize;

#[derive(Debug)]
pub(super) struct Places {
    pub(super) composer: Option<PatternId>,
    pub(super) composer_not: Option<PatternId>,
    pub(super) frame_above: Option<PatternId>,
    pub(super) frame_below: Option<PatternId>,
    pub(super) only_below: Option<PatternId>,
    pub(super) not_below: Option<PatternId>,
    pub(super) info_rows: usize,
    pub(super) plain: Option<PatternId>,
    pub(super) placeholder: Option<Regex>,
    pub(super) completes: Option<Regex>,
    pub(super) completion: Option<PatternId>,
    pub(super) prompt_echo: Option<PatternId>,
    pub(super) menu_cursor: Option<PatternId>,
    pub(super) first_option: Option<PatternId>,
    pub(super) dialog_frame: Option<PatternId>,
    pub(super) dialog_footer: Option<PatternId>,
    pub(super) above_composer: Option<PatternId>,
    pub(super) dialog_start: Option<PatternId>,
    pub(super) dialog_fence: Option<PatternId>,
    pub(super) decoration: Option<PatternId>,
}

#[derive(Debug, Default)]
pub(super) struct Labels {
    pub(super) accept: Option<Regex>,
    pub(super) widen: Option<Regex>,
    pub(super) deny: Option<Regex>,
}

#[derive(Debug)]
pub(super) struct Tool {
    pub(super) row: Regex,
    pub(super) subject: Option<Regex>,
    pub(super) tool: String,
    pub(super) fenced: bool,
}

#[derive(Debug)]
pub(super) struct Ready {
    pub(super) region: Region,
    pub(super) any: Vec<PatternId>,
    pub(super) all: Vec<PatternId>,
    pub(super) none: Vec<PatternId>,
    pub(super) except: Vec<PatternId>,
    pub(super) somewhere: Vec<PatternId>,
    pub(super) stale: Vec<PatternId>,
    pub(super) right_below: Vec<PatternId>,
    pub(super) classifier: Option<Classifier>,
}

/// Reads screens of one agent. Made once, shared by all its terminals.
#[derive(Debug)]
pub struct Detector {
    pub(super) rules: Rules,
    pub(super) ready: Vec<Ready>,
    pub(super) set: RegexSet,
    /// The patterns again, one by one, for what is not a row.
    pub(super) single: Vec<Regex>,
    pub(super) names: std::collections::BTreeMap<String, Vec<PatternId>>,
    pub(super) places: Places,
    pub(super) labels: Labels,
    pub(super) tools: Vec<Tool>,
    /// One for each question in text.
    pub(super) text_questions: Vec<PatternId>,
    pub(super) option_rows: Vec<PatternId>,
    pub(super) answers: Vec<Answer>,
}

/// Collects patterns; the same text is compiled once.
struct Collector<'r> {
    rules: &'r Rules,
    patterns: Vec<String>,
}

impl Collector<'_> {
    fn add(&mut self, place: &str, pattern: &Pattern) -> Result<Vec<PatternId>, BadRules> {
        let texts = match pattern.strip_prefix('@') {
            None => std::slice::from_ref(pattern),
            Some(name) => match self.rules.patterns.get(name) {
                Some(named) => named.as_slice(),
                None => return Err(BadRules::UnknownPattern { place: place.into(), name: name.into() }),
            },
        };
        texts.iter().map(|text| self.intern(place, text)).collect()
    }

    fn intern(&mut self, place: &str, text: &str) -> Result<PatternId, BadRules> {
        regex(place, text)?;
        let text = fast(text);
        if let Some(known) = self.patterns.iter().position(|known| *known == text) {
            return Ok(known);
        }
        self.patterns.push(text);
        Ok(self.patterns.len() - 1)
    }

    fn many(&mut self, place: &str, patterns: &[Pattern]) -> Result<Vec<PatternId>, BadRules> {
        let mut ids = Vec::new();
        for pattern in patterns {
            ids.extend(self.add(place, pattern)?);
        }
        Ok(ids)
    }

    /// One pattern for each that is written, also where a name stands for several.
    fn each(&mut self, place: &str, patterns: &[Pattern]) -> Result<Vec<PatternId>, BadRules> {
        patterns.iter().map(|pattern| self.intern(place, &self.text(place, pattern)?)).collect()
    }

    /// A place is one pattern. Several under one name are joined.
    fn place(&mut self, place: &str, pattern: Option<&Pattern>) -> Result<Option<PatternId>, BadRules> {
        let Some(pattern) = pattern else { return Ok(None) };
        let joined = self.text(place, pattern)?;
        self.intern(place, &joined).map(Some)
    }

    fn text(&self, place: &str, pattern: &Pattern) -> Result<String, BadRules> {
        let Some(name) = pattern.strip_prefix('@') else { return Ok(pattern.clone()) };
        let named = self.rules.patterns.get(name);
        let named = named.ok_or_else(|| BadRules::UnknownPattern { place: place.into(), name: name.into() })?;
        Ok(named.as_slice().iter().map(|text| format!("(?:{text})")).collect::<Vec<_>>().join("|"))
    }

    fn single(&self, place: &str, pattern: Option<&Pattern>) -> Result<Option<Regex>, BadRules> {
        pattern.map(|pattern| regex(place, &self.text(place, pattern)?)).transpose()
    }

    fn region(&mut self, place: &str, text: &str) -> Result<Region, BadRules> {
        let unknown = || BadRules::UnknownRegion { place: place.into(), region: text.into() };
        let (name, argument) = text.split_once(':').unwrap_or((text, ""));
        let count = || argument.parse().map_err(|_| unknown());
        Ok(match name {
            "tail" => Region::Tail(count()?),
            "footer" => Region::Footer(count()?),
            "after" => match self.place(place, Some(&format!("@{argument}")))? {
                Some(pattern) => Region::After(pattern),
                None => return Err(unknown()),
            },
            _ if !argument.is_empty() => return Err(unknown()),
            "screen" => Region::Screen,
            "conversation" => Region::Conversation,
            "turn" => Region::Turn,
            "composer" => Region::Composer,
            "below_composer" => Region::BelowComposer,
            "menu" => Region::Menu,
            "above_menu" => Region::AboveMenu,
            "dialog" => Region::Dialog,
            "title" => Region::Title,
            "foreground" => Region::Foreground,
            _ => return Err(unknown()),
        })
    }
}

/// Where a word ends is decided by ASCII letters only. With those of all scripts every row that is not ASCII, as rows with
/// borders are, is matched about fifty times slower.
fn fast(pattern: &str) -> String {
    pattern.replace(r"\b", r"(?-u:\b)")
}

fn regex(place: &str, pattern: &str) -> Result<Regex, BadRules> {
    Regex::new(&fast(pattern)).map_err(|error| BadRules::Regex {
        place: place.into(),
        pattern: pattern.into(),
        error: Box::new(error),
    })
}

impl Detector {
    /// `classifiers` finds decisions that are written in code, by name.
    pub fn new(rules: Rules, classifiers: impl Fn(&str) -> Option<Classifier>) -> Result<Self, BadRules> {
        let mut collector = Collector { rules: &rules, patterns: Vec::new() };
        let ready =
            rules.rules.iter().map(|rule| ready(&mut collector, rule, &classifiers)).collect::<Result<_, _>>()?;
        if let Some(twice) =
            rules.rules.iter().enumerate().find(|(at, rule)| rules.rules[..*at].iter().any(|r| r.id == rule.id))
        {
            return Err(BadRules::SameId(twice.1.id.clone()));
        }
        let layout = &rules.layout;
        let dialog = &rules.dialog;
        let cursor =
            (!dialog.cursors.is_empty()).then(|| format!(r"^[\s│┃]*[{}]\s+\S", regex::escape(&dialog.cursors)));
        let places = Places {
            composer: collector.place("layout.composer", layout.composer.as_ref())?,
            composer_not: collector.place("layout.composer_not", layout.composer_not.as_ref())?,
            frame_above: collector.place("layout.frame_above", layout.frame_above.as_ref())?,
            frame_below: collector.place("layout.frame_below", layout.frame_below.as_ref())?,
            only_below: collector.place("layout.only_below", layout.only_below.as_ref())?,
            not_below: collector.place("layout.not_below", layout.not_below.as_ref())?,
            info_rows: layout.info_rows,
            plain: collector.place("layout.plain", layout.plain.as_ref())?,
            placeholder: collector.single("layout.placeholder", layout.placeholder.as_ref())?,
            completes: collector.single("layout.completes", layout.completes.as_ref())?,
            completion: collector.place("layout.completion", layout.completion.as_ref())?,
            prompt_echo: collector.place("layout.prompt_echo", layout.prompt_echo.as_ref())?,
            menu_cursor: collector.place("dialog.cursors", cursor.as_ref())?,
            first_option: collector.place("dialog.first", dialog.first.as_ref())?,
            dialog_frame: collector.place("dialog.frame", dialog.frame.as_ref())?,
            dialog_footer: collector.place("dialog.footer", dialog.footer.as_ref())?,
            above_composer: collector.place("dialog.above_composer", dialog.above_composer.as_ref())?,
            dialog_start: collector.place("dialog.start", dialog.start.as_ref())?,
            dialog_fence: collector.place("dialog.fence", dialog.fence.as_ref())?,
            decoration: collector.place("dialog.decoration", dialog.decoration.as_ref())?,
        };
        let labels = Labels {
            accept: collector.single("dialog.accept", dialog.accept.as_ref())?,
            widen: collector.single("dialog.widen", dialog.widen.as_ref())?,
            deny: collector.single("dialog.deny", dialog.deny.as_ref())?,
        };
        let tools = dialog.tool.iter().map(|rule| {
            let row = regex("dialog.tool.row", &collector.text("dialog.tool.row", &rule.row)?)?;
            let subject = collector.single("dialog.tool.subject", rule.subject.as_ref())?;
            Ok(Tool { row, subject, tool: rule.tool.clone(), fenced: rule.fenced })
        });
        let tools = tools.collect::<Result<_, _>>()?;
        let mut text_questions = Vec::new();
        for question in &rules.dialog.text {
            text_questions.extend(collector.place("dialog.text.row", Some(&question.row))?);
        }
        let mut option_rows = Vec::new();
        for row in &rules.dialog.row {
            option_rows.extend(collector.place("dialog.row", Some(row))?);
        }
        let answers = rules.answer.iter().map(|rule| {
            let marker = regex("answer.marker", &collector.text("answer.marker", &rule.marker)?)?;
            let marker_not = collector.single("answer.marker_not", rule.marker_not.as_ref())?;
            let followed_by = collector.single("answer.followed_by", rule.followed_by.as_ref())?;
            let stop = collector.single("answer.stop", rule.stop.as_ref())?;
            let AnswerRule { skip_question, needs_stop, indent, .. } = *rule;
            Ok(Answer { marker, marker_not, followed_by, stop, skip_question, needs_stop, indent })
        });
        let answers = answers.collect::<Result<_, _>>()?;
        let mut names = std::collections::BTreeMap::new();
        for name in rules.patterns.keys() {
            names.insert(name.clone(), collector.add(&format!("patterns.{name}"), &format!("@{name}"))?);
        }
        let patterns = collector.patterns;
        let place =
            |error| BadRules::Regex { place: "all patterns".into(), pattern: String::new(), error: Box::new(error) };
        let set = RegexSetBuilder::new(&patterns).dfa_size_limit(DFA_BYTES).build().map_err(place)?;
        let single = patterns.iter().map(|pattern| Regex::new(pattern)).collect::<Result<_, _>>().map_err(place)?;
        let detector =
            Self { ready, set, single, names, places, labels, tools, text_questions, option_rows, answers, rules };
        detector.check_examples()?;
        detector.check_menus()?;
        Ok(detector)
    }

    /// Whether the input field of this agent is known. Without it nothing can be proven about what was typed.
    pub fn has_composer(&self) -> bool {
        self.places.composer.is_some()
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
                let rows = if rule.region == "title" { Vec::new() } else { rows };
                let title = (rule.region == "title").then_some(example.as_str());
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
}

/// Rows around a menu: as it stands alone, and below an answer.
const ABOVE_MENU: [&str; 2] = ["", "An answer of the agent.\n\n"];

impl Detector {
    /// A menu in the place of the input field is never a screen that waits for a prompt. Looks at every example with a
    /// menu, and at menus made of the characters that mark a cursor.
    fn check_menus(&self) -> Result<(), BadRules> {
        let rules = self.rules.rules.iter();
        let mut screens: Vec<String> = rules
            .flat_map(|rule| rule.holds.iter().chain(&rule.fails).filter(|_| rule.region != "title"))
            .cloned()
            .collect();
        for cursor in self.rules.dialog.cursors.chars() {
            let menu = format!("  Do you want to proceed?\n\n  {cursor} 1. Yes\n    2. No");
            screens.extend(ABOVE_MENU.map(|above| format!("{above}{menu}")));
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

fn ready(
    collector: &mut Collector<'_>,
    rule: &Rule,
    classifiers: &impl Fn(&str) -> Option<Classifier>,
) -> Result<Ready, BadRules> {
    let place = format!("rule {:?}", rule.id);
    let classifier = match &rule.classifier {
        None => None,
        Some(name) => match classifiers(name) {
            Some(classifier) => Some(classifier),
            None => return Err(BadRules::UnknownClassifier { place, name: name.clone() }),
        },
    };
    Ok(Ready {
        region: collector.region(&place, &rule.region)?,
        any: collector.many(&place, &rule.any)?,
        all: collector.each(&place, &rule.all)?,
        none: collector.many(&place, &rule.none)?,
        except: collector.many(&place, &rule.except)?,
        somewhere: collector.many(&place, rule.somewhere.as_slice())?,
        stale: collector.many(&place, rule.stale_if_followed_by.as_slice())?,
        right_below: collector.many(&place, rule.right_below.as_slice())?,
        classifier,
    })
}

impl Ready {
    pub(super) fn has_conditions(&self) -> bool {
        !(self.any.is_empty() && self.all.is_empty())
    }
}
