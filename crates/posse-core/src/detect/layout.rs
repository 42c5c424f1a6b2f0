//! Where things are on a screen: the input field, the conversation above it, the last turn, a menu. Found once per
//! look; rules then speak of regions instead of rows.

use std::ops::Range;

use super::compile::{Detector, Places};
use super::dialog::{self, Menu};
use super::engine::Sight;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub composer: Option<Composer>,
    pub menu: Option<Menu>,
    /// The first row of the last turn.
    pub turn: usize,
}

/// The input field: its rows, frame not included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composer {
    pub rows: Range<usize>,
    /// The first row below it, frame included.
    pub below: usize,
}

/// The rows a rule looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Region {
    Screen,
    Tail(usize),
    Footer(usize),
    Turn,
    Composer,
    BelowComposer,
    Menu,
    AboveMenu,
    Dialog,
    After(usize),
    Title,
    Foreground,
}

impl Detector {
    pub(super) fn find(&self, sight: &Sight<'_>) -> Found {
        let composer = composer(&self.places, sight);
        let end = composer.as_ref().map_or(sight.len(), |composer| composer.rows.start);
        let turn = self.places.prompt_echo.and_then(|echo| sight.last(0..end, echo)).map_or(0, |row| row + 1);
        let from = composer.as_ref().map_or(0, |composer| composer.below);
        let menu = dialog::menu(self, sight, from);
        Found { composer, menu, turn }
    }

    /// The rows of a region. `None`: there is no such region on this screen.
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
            Region::Turn => found.turn..composer.map_or(end, |composer| composer.rows.start).max(found.turn),
            Region::Composer => composer?.rows.clone(),
            Region::BelowComposer => composer?.below..end,
            Region::Menu => found.menu.as_ref()?.rows.clone(),
            Region::AboveMenu => found.menu.as_ref()?.above.clone(),
            Region::Dialog => {
                let framed = || self.places.dialog_frame.and_then(|frame| sight.last(0..end, frame));
                let top = || framed().map_or(0, |row| row + 1);
                found.menu.as_ref().map_or_else(top, |menu| menu.above.start)..end
            }
            Region::After(pattern) => sight.last(0..end, *pattern)? + 1..end,
            Region::Title | Region::Foreground => return None,
        })
    }
}

/// The lowest row that is the input field.
fn composer(places: &Places, sight: &Sight<'_>) -> Option<Composer> {
    let pattern = places.composer?;
    (0..sight.len()).rev().filter(|row| sight.hit(*row, pattern)).find_map(|row| {
        let not = places.composer_not.is_some_and(|not| sight.hit(row, not));
        let framed = places.frame_above.is_none_or(|frame| row > 0 && sight.hit(row - 1, frame));
        if not || !framed {
            return None;
        }
        let end = match places.frame_below {
            Some(frame) => (row + 1..sight.len()).find(|below| sight.hit(*below, frame))?,
            None => row + 1,
        };
        let alone = places.only_below.is_none_or(|only| {
            (end..sight.len()).all(|below| sight.row(below).trim().is_empty() || sight.hit(below, only))
        });
        alone.then(|| Composer { rows: row..draft_end(places, sight, row, end), below: end })
    })
}

/// Without a frame the draft goes on to the first blank row.
fn draft_end(places: &Places, sight: &Sight<'_>, row: usize, end: usize) -> usize {
    if places.frame_below.is_some() {
        return end;
    }
    (row + 1..sight.len()).find(|below| sight.row(*below).trim().is_empty()).unwrap_or(sight.len())
}

/// What stands in the input field, without the mark before it and the indentation below it.
pub(super) fn draft(places: &Places, sight: &Sight<'_>, composer: &Composer) -> String {
    let mut rows = composer.rows.clone().map(|row| sight.row(row));
    let first = rows.next().unwrap_or_default();
    let mark = first.char_indices().nth(1).map_or(first.len(), |(at, _)| at);
    let first = first[mark..].trim_matches(|c: char| c.is_whitespace() || c == '\u{200b}');
    let mut draft = first.to_owned();
    for row in rows {
        draft.push('\n');
        draft.push_str(row.strip_prefix("  ").unwrap_or(row).trim_end());
    }
    let draft = draft.trim_end();
    if places.placeholder.as_ref().is_some_and(|pattern| pattern.is_match(draft)) {
        return String::new();
    }
    draft.to_owned()
}
