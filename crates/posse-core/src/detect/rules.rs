//! How rules are written down. Unknown keys are errors: a misspelt condition that is silently ignored makes a rule hold
//! where it must not.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::Strength;
use super::compile::Pattern;
use super::dialog::Meaning;
use super::engine::Classifier;
use super::layout::Region;
use crate::status::{StatusKind, WaitingKind};

/// Everything that decides how a screen of one agent is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Regular expressions by name. A name may stand for several of which any will do.
    #[serde(deserialize_with = "one_or_several")]
    pub patterns: BTreeMap<String, Vec<String>>,
    pub layout: Layout,
    pub dialog: DialogRules,
    /// Where the last answer of the agent is. The first that finds one decides.
    pub answer: Vec<AnswerRule>,
    /// In the order in which they are tried.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

/// Where things are on the screen.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Layout {
    /// The row with the input field. With `frame_below` and without `frame_above`: every row of it.
    pub composer: Option<Pattern>,
    /// A row that looks like it and is not.
    pub composer_not: Option<Pattern>,
    /// The row right above it, where it has a frame.
    pub frame_above: Option<Pattern>,
    /// The row that closes it. What stands between is the draft.
    pub frame_below: Option<Pattern>,
    /// Every filled row below it is one of these, where it has no frame. The last paragraph is the footer, the rest draft.
    pub only_below: Option<Pattern>,
    /// Such a row in the footer means that this is something else, where it has no frame.
    pub not_below: Option<Pattern>,
    /// Rows may end in the bar of a scrolled view. It is cut off before anything is matched.
    pub scrollbar: bool,
    /// How many rows at its end are not the draft: they tell the mode and the model.
    pub info_rows: usize,
    /// A row that is an input field without any of this, if the cursor is in it and nothing else goes on.
    pub plain: Option<Pattern>,
    /// What the input field shows when it is empty.
    pub placeholder: Option<Pattern>,
    /// A draft for which a list of what it may become is drawn right above the input field, one blank row between.
    /// Everything else stands further above. Such a list is no part of the conversation.
    pub completes: Option<Pattern>,
    /// The selected row of such a list.
    pub completion: Option<Pattern>,
    /// A prompt of the user in the conversation: the turn is what stands below the last one.
    pub prompt_echo: Option<Pattern>,
}

/// How the options of a dialog are written, and which of them mean what.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DialogRules {
    /// The characters that mark the option under the cursor.
    pub cursors: String,
    /// A row with one of them. Made of `cursors`.
    #[serde(skip)]
    pub(super) cursor: Option<Pattern>,
    /// The first option of a numbered menu whose cursor no character marks. Only numbers choose in it.
    pub first: Option<Pattern>,
    /// The row above which a dialog does not reach.
    pub frame: Option<Pattern>,
    /// The last row of a dialog that may be open above the input field. The rows below it are left out then.
    pub footer: Option<Pattern>,
    /// The rows that may stand between that row and the input field, besides blank ones.
    pub above_composer: Option<Pattern>,
    /// The row with the question, where a dialog begins with it. Otherwise the question is right above the options.
    pub start: Option<Pattern>,
    /// Rows right before and after the command, where the model's own words stand outside of them.
    pub fence: Option<Pattern>,
    /// Rows inside a dialog that are decoration.
    pub decoration: Option<Pattern>,
    /// Labels that allow this once and nothing else.
    pub accept: Option<Pattern>,
    /// Labels that allow more than this once. They win over `accept`.
    pub widen: Option<Pattern>,
    pub deny: Option<Pattern>,
    /// Labels may end in the key that chooses them, in brackets.
    pub key_in_label: bool,
    /// Numbers choose, at once.
    pub digits: bool,
    /// Rows in which the options stand side by side, their labels in groups. The selected one stands on a ground of the
    /// colour in which the row's first character, its border, is drawn.
    pub row: Vec<Pattern>,
    /// Questions without a menu.
    pub text: Vec<TextQuestion>,
    /// What a dialog is about, by its first row.
    pub tool: Vec<ToolRule>,
}

/// A question that is a row of text and is answered by typing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextQuestion {
    /// The row with the question.
    pub row: Pattern,
    pub options: Vec<TextOption>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextOption {
    pub label: String,
    pub meaning: Meaning,
    /// What is typed; Enter follows, ...
    pub key: String,
    /// ... unless the key alone does it.
    #[serde(default = "yes")]
    pub then_enter: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    /// Matched against the rows of the dialog above its options.
    pub row: Pattern,
    pub tool: String,
    /// A group named `subject` in this pattern, with the rest of its paragraph, is the command or the path. Otherwise it
    /// is all that stands between title and question.
    pub subject: Option<Pattern>,
    /// The command stands between two fences, and what stands between the title and the first is the model's own words.
    #[serde(default)]
    pub fenced: bool,
}

/// Where an answer begins and ends, and what of it is only layout.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRule {
    /// The row where an answer begins. What it matches is cut off; the rest of the row belongs to the answer.
    pub marker: Pattern,
    /// Rows that look like it and are not: tools at work. Matched against the row and the one below it.
    pub marker_not: Option<Pattern>,
    /// Only a marker with such a row somewhere below it counts.
    pub followed_by: Option<Pattern>,
    /// The row of the marker and the paragraph below it are what was asked.
    #[serde(default)]
    pub skip_question: bool,
    /// The answer ends above the first such row.
    pub stop: Option<Pattern>,
    /// An answer that does not end is not one.
    #[serde(default)]
    pub needs_stop: bool,
    /// How many blanks before each row are layout.
    #[serde(default)]
    pub indent: usize,
}

/// What must be there for a rule to be tried at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    Composer,
    NoComposer,
    /// A menu with a cursor on one of its options.
    Menu,
    NoMenu,
    /// The title of the window is not known.
    NoTitle,
    /// Nothing at all is on the screen.
    Empty,
}

/// One rule. All that is written must hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub id: String,
    /// `nothing`: this screen says nothing about the status, and the last one holds.
    #[serde(deserialize_with = "status_or_nothing")]
    pub status: Option<StatusKind>,
    pub kind: Option<WaitingKind>,
    #[serde(default = "layout")]
    pub strength: Strength,
    /// It looks for the row with which this agent closes a turn. A status told by such a rule need not stand for a
    /// while before it is believed.
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
    /// Rows that never count, whatever else they match.
    #[serde(default)]
    pub except: Vec<Pattern>,
    /// This must be on the screen as well, wherever it stands.
    pub somewhere: Option<Pattern>,
    /// Such a row below the last match, anywhere on the screen, means that it is history.
    pub stale_if_followed_by: Option<Pattern>,
    /// The nearest filled row above the last match must be one of these.
    pub right_below: Option<Pattern>,
    /// The rule for a code-written decision of this name, instead of conditions.
    pub classifier: Option<String>,
    #[serde(skip)]
    pub(super) decides: Option<Classifier>,
    /// Why this is so; people read it in `explain`.
    pub why: String,
    /// Screens on which it must hold, and on which it must not. Checked when the rules are loaded.
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
