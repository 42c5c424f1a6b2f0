//! The file format of rules. Unknown keys are errors, because an ignored condition would make a rule match too often.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::Strength;
use super::compile::Pattern;
use super::dialog::Meaning;
use super::engine::Classifier;
use super::layout::Region;
use crate::status::{StatusKind, WaitingKind};

/// The rules that read the screens of one agent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Regular expressions by name. A name may stand for several alternatives.
    #[serde(deserialize_with = "one_or_several")]
    pub patterns: BTreeMap<String, Vec<String>>,
    pub layout: Layout,
    pub dialog: DialogRules,
    /// Rules that find the agent's last answer. The first match decides.
    pub answer: Vec<AnswerRule>,
    /// In the order of evaluation.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

/// The positions of the parts of a screen.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Layout {
    /// The row with the input field. With `frame_below` and without `frame_above`: every row of it.
    pub composer: Option<Pattern>,
    /// A row that only looks like the input field.
    pub composer_not: Option<Pattern>,
    /// The row right above a framed input field.
    pub frame_above: Option<Pattern>,
    /// The row that closes a framed input field. The rows between are the draft.
    pub frame_below: Option<Pattern>,
    /// The allowed rows below an input field without a frame: the rest of the draft, and a footer as last paragraph.
    pub only_below: Option<Pattern>,
    /// A row in the footer that excludes an input field without a frame.
    pub not_below: Option<Pattern>,
    /// Rows may end in the scrollbar of a view. It is removed before matching.
    pub scrollbar: bool,
    /// The number of rows at the end of the field that show the mode and the model instead of the draft.
    pub info_rows: usize,
    /// A row that is an input field without a layout, if it has the cursor and the agent is quiet.
    pub plain: Option<Pattern>,
    /// The text of an empty input field.
    pub placeholder: Option<Pattern>,
    /// A draft for which a completion list is drawn above the input field, separated by one blank row. Everything else
    /// stands further above. The list is not part of the conversation.
    pub completes: Option<Pattern>,
    /// The selected row of a completion list.
    pub completion: Option<Pattern>,
    /// A prompt of the user in the conversation: the turn starts below the last one.
    pub prompt_echo: Option<Pattern>,
}

/// The appearance of a dialog's options, and their meanings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DialogRules {
    /// The characters that mark the option under the cursor.
    pub cursors: String,
    /// A row with one of `cursors`, from which it is made.
    #[serde(skip)]
    pub(super) cursor: Option<Pattern>,
    /// The first option of a numbered menu without a cursor character. Only numbers choose in it.
    pub first: Option<Pattern>,
    /// The row that ends a dialog at its top.
    pub frame: Option<Pattern>,
    /// The last row of a dialog that may be open above the input field. The rows below it are then ignored.
    pub footer: Option<Pattern>,
    /// The rows that may stand between that row and the input field, besides blank ones.
    pub above_composer: Option<Pattern>,
    /// The row with the question, if dialogs start with it. Otherwise the question is right above the options.
    pub start: Option<Pattern>,
    /// Rows right before and after the command that separate it from the model's own words.
    pub fence: Option<Pattern>,
    /// Decorative rows inside a dialog.
    pub decoration: Option<Pattern>,
    /// Labels that allow the action once and nothing else.
    pub accept: Option<Pattern>,
    /// Labels that allow more than this one action. They take precedence over `accept`.
    pub widen: Option<Pattern>,
    pub deny: Option<Pattern>,
    /// Labels may end in the key that chooses them, in brackets.
    pub key_in_label: bool,
    /// Numbers choose at once.
    pub digits: bool,
    /// Rows with options side by side, their labels in groups. The background of the selected one has the colour of the
    /// row's first character, its border.
    pub row: Vec<Pattern>,
    /// Questions without a menu.
    pub text: Vec<TextQuestion>,
    /// The tool and subject of a dialog, by its first row.
    pub tool: Vec<ToolRule>,
}

/// A question that is a row of text and is answered by typing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextQuestion {
    pub row: Pattern,
    pub options: Vec<TextOption>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextOption {
    pub label: String,
    pub meaning: Meaning,
    /// The text to type; Enter follows ...
    pub key: String,
    /// ... unless the key alone answers.
    #[serde(default = "yes")]
    pub then_enter: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    /// Matched against the rows of the dialog above its options.
    pub row: Pattern,
    pub tool: String,
    /// A group named `subject` in this pattern, with the rest of its paragraph, is the command or the path. Otherwise
    /// the subject is everything between title and question.
    pub subject: Option<Pattern>,
    /// The command stands between two fences, and the model's own words between the title and the first fence.
    #[serde(default)]
    pub fenced: bool,
}

/// The boundaries of an answer, and the parts of it that are only layout.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRule {
    /// The row in which an answer starts. The match is removed; the rest of the row belongs to the answer.
    pub marker: Pattern,
    /// Rows of tools, which look like a marker. Matched against the row and the one below it.
    pub marker_not: Option<Pattern>,
    /// A marker counts only if such a row follows below it.
    pub followed_by: Option<Pattern>,
    /// The row of the marker and the paragraph below it are the question.
    #[serde(default)]
    pub skip_question: bool,
    /// The answer ends above the first such row.
    pub stop: Option<Pattern>,
    /// An answer without an end does not count.
    #[serde(default)]
    pub needs_stop: bool,
    /// The number of leading spaces that are layout.
    #[serde(default)]
    pub indent: usize,
}

/// A precondition for evaluating a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    Composer,
    NoComposer,
    /// A menu with a cursor on one of its options.
    Menu,
    NoMenu,
    NoTitle,
    Empty,
}

/// One rule. All its conditions must hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub id: String,
    /// `nothing` means that this screen shows no status, and the last one remains.
    #[serde(deserialize_with = "status_or_nothing")]
    pub status: Option<StatusKind>,
    pub kind: Option<WaitingKind>,
    #[serde(default = "layout")]
    pub strength: Strength,
    /// The rule looks for the row with which this agent closes a turn. Its status is believed without a delay.
    #[serde(default)]
    pub ends_turn: bool,
    #[serde(default)]
    pub when: Vec<Gate>,
    #[serde(default)]
    pub region: Region,
    #[serde(default)]
    pub any: Vec<Pattern>,
    #[serde(default)]
    pub all: Vec<Pattern>,
    #[serde(default)]
    pub none: Vec<Pattern>,
    /// Rows that never count, even if they match.
    #[serde(default)]
    pub except: Vec<Pattern>,
    /// A row that must also be on the screen, anywhere.
    pub somewhere: Option<Pattern>,
    /// A row anywhere below the last match that makes the match history.
    pub stale_if_followed_by: Option<Pattern>,
    /// The nearest non-blank row above the last match must be one of these.
    pub right_below: Option<Pattern>,
    /// The name of a decision written in code, instead of conditions.
    pub classifier: Option<String>,
    #[serde(skip)]
    pub(super) decides: Option<Classifier>,
    /// The reason for the rule, shown by `explain`.
    pub why: String,
    /// Screens that must match, and screens that must not. Checked when the rules are loaded.
    #[serde(default)]
    pub holds: Vec<String>,
    #[serde(default)]
    pub fails: Vec<String>,
}

impl Rule {
    pub(super) fn is_about_title(&self) -> bool {
        matches!(self.region, Region::Title)
    }
}

fn layout() -> Strength {
    Strength::Layout
}

fn yes() -> bool {
    true
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Named {
        One(String),
        Several(Vec<String>),
    }
    let expressions = |named| match named {
        Named::One(one) => vec![one],
        Named::Several(several) => several,
    };
    let named = BTreeMap::<String, Named>::deserialize(deserializer)?.into_iter();
    Ok(named.map(|(name, named)| (name, expressions(named))).collect())
}

fn status_or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<StatusKind>, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "nothing" => Ok(None),
        word => word.parse().map(Some).map_err(D::Error::custom),
    }
}
