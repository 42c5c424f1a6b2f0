//! Finds the parts of a screen once per look: the input field, the conversation above it, the last turn, a menu. Rules
//! then refer to regions instead of rows.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;

use super::compile::{Detector, Pattern};
use super::dialog::{self, Menu};
use super::engine::Sight;
use super::rules::Layout;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub composer: Option<Composer>,
    pub menu: Option<Menu>,
    /// The first row of the last turn.
    pub turn: usize,
}

/// The input field. Its rows exclude the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composer {
    pub rows: Range<usize>,
    /// The first row below it, frame included.
    pub below: usize,
    /// The end of the conversation: the first row of a list that completes the draft, or of the input field.
    pub above: usize,
}

/// The rows that a rule applies to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub enum Region {
    #[default]
    Screen,
    /// `tail:N`: the last N rows.
    Tail(usize),
    /// `footer:N`: the last N non-blank rows.
    Footer(usize),
    /// Above the input field.
    Conversation,
    Turn,
    Composer,
    BelowComposer,
    Menu,
    AboveMenu,
    /// The rows from the dialog's frame to the end of the screen.
    Dialog,
    /// `after:PATTERN_NAME`.
    After(Pattern),
    Title,
    Foreground,
}

#[derive(Debug, thiserror::Error)]
#[error("there is no region {0:?}")]
pub struct UnknownRegion(String);

impl TryFrom<String> for Region {
    type Error = UnknownRegion;
    fn try_from(text: String) -> Result<Self, UnknownRegion> {
        Ok(match (text.split_once(':').unwrap_or((&text, "")), text.as_str()) {
            (("after", name), _) if !name.is_empty() => Self::After(format!("@{name}").into()),
            (("tail", count), _) => Self::Tail(count.parse().map_err(|_| UnknownRegion(text))?),
            (("footer", count), _) => Self::Footer(count.parse().map_err(|_| UnknownRegion(text))?),
            (_, "screen") => Self::Screen,
            (_, "conversation") => Self::Conversation,
            (_, "turn") => Self::Turn,
            (_, "composer") => Self::Composer,
            (_, "below_composer") => Self::BelowComposer,
            (_, "menu") => Self::Menu,
            (_, "above_menu") => Self::AboveMenu,
            (_, "dialog") => Self::Dialog,
            (_, "title") => Self::Title,
            (_, "foreground") => Self::Foreground,
            _ => return Err(UnknownRegion(text)),
        })
    }
}

impl Detector {
    pub(super) fn find(&self, sight: &Sight<'_>) -> Found {
        let layout = &self.rules.layout;
        let mut composer = composer(layout, sight);
        if let Some(composer) = &mut composer {
            composer.above = list(layout, sight, composer).unwrap_or(composer.rows.start);
        }
        let end = composer.as_ref().map_or(sight.len(), |composer| composer.above);
        let turn = sight.last(0..end, &layout.prompt_echo).map_or(0, |row| row + 1);
        let from = composer.as_ref().map_or(0, |composer| composer.below);
        let menu = dialog::menu(self, sight, from);
        Found { composer, menu, turn }
    }

    /// Returns the row after a dialog that is open above the input field. Claude Code 2.1.140 keeps its spinner and its
    /// input field below the question of an MCP tool. The agent's own text never starts with a frame in column 0.
    pub(super) fn end_of_dialog_above_composer(&self, sight: &Sight<'_>) -> Option<usize> {
        let rules = &self.rules.dialog;
        let footer = rules.footer.as_ref()?;
        let composer = composer(&self.rules.layout, sight)?;
        let top = composer.rows.start.checked_sub(1)?;
        let is_between = |row: &usize| sight.row(*row).trim().is_empty() || sight.hit(*row, &rules.above_composer);
        let last = (0..top).rev().find(|row| !is_between(row)).filter(|row| sight.hit(*row, [footer]))?;
        let dialog = dialog::menu(self, &sight.until(last), 0)?;
        let frame = sight.last(0..dialog.rows.start, &rules.frame)?;
        (sight.row(frame).starts_with(['─', '▔']) && dialog.rows.start < last).then_some(last + 1)
    }

    /// Returns the rows without a scrollbar at their end: a run of rows that all end in its track or thumb.
    pub(super) fn without_scrollbar<'a>(&self, rows: &'a [String]) -> Cow<'a, [String]> {
        let mut rows = Cow::Borrowed(rows);
        let mut start = 0;
        while self.rules.layout.scrollbar && start < rows.len() {
            let run = rows[start..].iter().take_while(|row| row.trim_end().ends_with(['│', '█'])).count();
            let thumb = rows[start..start + run].iter().any(|row| row.trim_end().ends_with('█'));
            // A box also has a border there, but no thumb.
            if run >= SCROLLED && thumb {
                for row in &mut rows.to_mut()[start..start + run] {
                    row.truncate(row.trim_end().len());
                    row.pop();
                    row.truncate(row.trim_end().len());
                }
            }
            start += run + 1;
        }
        rows
    }

    /// Returns the rows of a region. `None` if this screen has no such region.
    pub(super) fn rows(&self, region: &Region, sight: &Sight<'_>, found: &Found) -> Option<Range<usize>> {
        let end = sight.len();
        let composer = found.composer.as_ref();
        Some(match region {
            Region::Screen => 0..end,
            Region::Tail(count) => end.saturating_sub(*count)..end,
            Region::Footer(count) => {
                let filled = (0..end).rev().filter(|row| !sight.row(*row).trim().is_empty());
                filled.take(*count).last().unwrap_or(end)..end
            }
            Region::Conversation => 0..composer.map_or(end, |composer| composer.above),
            Region::Turn => found.turn..composer.map_or(end, |composer| composer.above).max(found.turn),
            Region::Composer => composer?.rows.clone(),
            Region::BelowComposer => composer?.below..end,
            Region::Menu => found.menu.as_ref()?.rows.clone(),
            Region::AboveMenu => found.menu.as_ref()?.above.clone(),
            Region::Dialog => {
                let top = || sight.last(0..end, &self.rules.dialog.frame).map_or(0, |row| row + 1);
                found.menu.as_ref().map_or_else(top, |menu| menu.above.start)..end
            }
            Region::After(pattern) => sight.last(0..end, [pattern])? + 1..end,
            Region::Title | Region::Foreground => return None,
        })
    }
}

/// The minimum number of rows of a scrollable view.
const SCROLLED: usize = 3;

fn composer(layout: &Layout, sight: &Sight<'_>) -> Option<Composer> {
    let Layout { composer, composer_not, frame_above, frame_below, .. } = layout;
    composer.as_ref()?;
    if frame_above.is_none() && frame_below.is_some() {
        return block(layout, sight);
    }
    (0..sight.len()).rev().filter(|row| sight.hit(*row, composer)).find_map(|row| {
        let framed = frame_above.is_none() || (row > 0 && sight.hit(row - 1, frame_above));
        if sight.hit(row, composer_not) || !framed {
            return None;
        }
        if frame_below.is_none() {
            return open(layout, sight, row);
        }
        let end = (row + 1..sight.len()).find(|below| sight.hit(*below, frame_below))?;
        Some(Composer { rows: row..end, below: end, above: row })
    })
}

/// Finds a field with a border on its left: the adjacent rows above the one that closes it.
fn block(layout: &Layout, sight: &Sight<'_>) -> Option<Composer> {
    let below = sight.last(0..sight.len(), &layout.frame_below)?;
    let start = (0..below).rev().take_while(|row| sight.hit(*row, &layout.composer)).last()?;
    let end = below.saturating_sub(layout.info_rows).max(start);
    Some(Composer { rows: start..end, below, above: start })
}

/// Returns the first row of a list that completes the draft.
fn list(layout: &Layout, sight: &Sight<'_>, composer: &Composer) -> Option<usize> {
    let completion = layout.completion.as_ref()?;
    let draft = draft(layout, sight, composer);
    let start = composer.rows.start;
    let filled = |row: usize| !sight.row(row).trim().is_empty();
    let right_above = start >= 2 && !filled(start - 1) && filled(start - 2);
    if !right_above || !layout.completes.as_ref()?.is_match(&draft) {
        return None;
    }
    // In the first column a list has only its selected row and arrows.
    let selected = (0..start).rev().find(|row| sight.hit(*row, [completion]) || !is_indented(sight.row(*row)))?;
    let first = (0..selected).rev().take_while(|row| filled(*row) && is_indented(sight.row(*row))).last();
    sight.hit(selected, [completion]).then_some(first.unwrap_or(selected))
}

fn is_indented(row: &str) -> bool {
    row.starts_with("  ") || row.chars().all(|c| is_blank(c) || matches!(c, '↑' | '↓'))
}

/// Finds a field without a frame: below it are only the rest of the draft and, after a blank row, a footer.
fn open(layout: &Layout, sight: &Sight<'_>, row: usize) -> Option<Composer> {
    let Layout { only_below, not_below, .. } = layout;
    let filled = |below: &usize| !sight.row(*below).trim().is_empty();
    let footer = (row + 1..sight.len()).rev().take_while(filled).last()?;
    let alone = only_below.is_none() || (row + 1..sight.len()).filter(filled).all(|row| sight.hit(row, only_below));
    let other = (footer..sight.len()).any(|row| sight.hit(row, not_below));
    (footer > row + 1 && alone && !other).then_some(Composer { rows: row..footer, below: footer, above: row })
}

/// Returns the content of the input field, without its mark, border and indentation.
pub(super) fn draft(layout: &Layout, sight: &Sight<'_>, composer: &Composer) -> String {
    let mut draft = String::new();
    for row in composer.rows.clone() {
        let text = sight.row(row);
        let inside = text.trim_start().strip_prefix(['│', '┃']).map(|inside| inside.trim_end_matches(['│', '┃', ' ']));
        let marked = row == composer.rows.start && (inside.is_none() || layout.frame_above.is_some());
        let text = inside.unwrap_or(text);
        let text = if marked { after_mark(text.trim_start_matches(' ')) } else { text };
        draft.push_str(text.strip_prefix("  ").unwrap_or(text).trim_end_matches(is_blank));
        draft.push('\n');
    }
    let draft = draft.trim_end_matches(is_blank).trim_start_matches(['\n', ' ', '\u{a0}']);
    if layout.placeholder.as_ref().is_some_and(|pattern| pattern.is_match(draft)) {
        return String::new();
    }
    draft.to_owned()
}

/// Returns whether a character is blank. Some agents draw their cursor as a zero-width space.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{200b}'
}

fn after_mark(text: &str) -> &str {
    let mut rest = text.chars();
    rest.next();
    rest.as_str()
}
