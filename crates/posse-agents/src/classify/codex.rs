//! Codex by the rules of the seeds: the last line of the user against the assistant's lines below it, then signs of a
//! prompt that waits for input.

use std::ops::Range;

use posse_core::detect::layout::Found;
use posse_core::detect::{Decided, Sight};
use posse_core::status::{StatusKind, WaitingKind};

/// The number of last rows in which signs of work, prompts and footers count.
const TAIL: usize = 25;

pub(super) fn turns(sight: &Sight<'_>, _found: &Found) -> Option<Decided> {
    let end = sight.len();
    let tail = end.saturating_sub(TAIL)..end;
    let composer = composer(sight);
    let is_menu = |row: usize| sight.matches(row, "MENU_LINE");
    let is_user = |row: &usize| sight.matches(*row, "USER_PREFIX_PATTERN") && !is_menu(*row) && Some(*row) != composer;
    let user = (0..end).rev().find(is_user);
    let turn = user.map_or(0, |row| row + 1)..composer.unwrap_or(end).max(user.map_or(0, |row| row + 1));
    let answered = user.is_some() && sight.last_match(turn.clone(), "ASSISTANT_PREFIX_PATTERN").is_some();

    if let Some(row) = menu(sight) {
        return Some(waiting(row));
    }
    // Inside an answer these texts are quotations.
    let asked = if user.is_some() { turn.clone() } else { tail.clone() };
    if !answered {
        if let Some(row) = sight.last_match(asked.clone(), "PERMISSION_PROMPT_PATTERNS") {
            return Some(waiting(row));
        }
        if let Some(row) = sight.last_match(asked.clone(), "ERROR_PATTERN") {
            return Some(says(StatusKind::Error, row));
        }
    }
    let working = works(sight, tail.clone());
    if let (Some(row), None) = (failure(sight, asked), working) {
        return Some(says(StatusKind::Error, row));
    }
    let quiet = composer.or_else(|| prompt(sight, tail));
    match (quiet, working) {
        (Some(row), None) if answered => Some(says(StatusKind::Completed, row)),
        (Some(row), None) => Some(says(StatusKind::Idle, row)),
        (_, Some(row)) => Some(says(StatusKind::Processing, row)),
        (None, None) => None,
    }
}

/// Returns the row of the last prompt if only a footer or hints stand below it. Its text was not sent.
fn composer(sight: &Sight<'_>) -> Option<usize> {
    let row = (0..sight.len()).rev().find(|row| sight.row(*row).trim_start().starts_with('›'))?;
    let mut below = (row + 1..sight.len()).filter(|row| !sight.row(*row).trim().is_empty()).peekable();
    let some = below.peek().is_some();
    (some && !sight.matches(row, "MENU_LINE") && below.all(|row| sight.matches(row, "FOOTER"))).then_some(row)
}

/// Returns the row of the last cursor if it belongs to a menu: the option proceeds, or a hint how to choose follows.
fn menu(sight: &Sight<'_>) -> Option<usize> {
    let row = (0..sight.len()).rev().find(|row| sight.row(*row).trim_start().starts_with('›'))?;
    let hinted = (row..sight.len()).any(|row| sight.matches(row, "MENU_HINT"));
    let proceeds = sight.matches(row, "PERMISSION_PROMPT_PATTERNS");
    let answered = sight.last_match(row + 1..sight.len(), "ASSISTANT_PREFIX_PATTERN").is_some();
    (sight.matches(row, "MENU_LINE") && (hinted || proceeds) && !answered).then_some(row)
}

/// Returns the last sign of work, unless the end of a turn follows it.
fn works(sight: &Sight<'_>, tail: Range<usize>) -> Option<usize> {
    let row = sight.last_match(tail.clone(), "ACTIVE_WORK_UI_PATTERN")?;
    sight.last_match(row + 1..tail.end, "END_OF_TURN").is_none().then_some(row)
}

/// Returns the last failure that the agent reported, unless it is only an interruption by the user.
fn failure(sight: &Sight<'_>, rows: Range<usize>) -> Option<usize> {
    let row = sight.last_match(rows, "FAILURE")?;
    (!sight.matches(row, "INTERRUPTED")).then_some(row)
}

/// Returns a prompt in the last row, or one with a footer that shows the context left.
fn prompt(sight: &Sight<'_>, tail: Range<usize>) -> Option<usize> {
    let last = tail.end.checked_sub(1)?;
    let hinted = sight.matches(last, "HINT_PATTERN") && sight.row(last).trim_start().starts_with('›');
    if sight.matches(last, "IDLE_PROMPT_PATTERN") || hinted {
        return Some(last);
    }
    sight.last_match(tail.clone(), "CONTEXT_FOOTER")?;
    let is_prompt = |row: &usize| {
        let alone = sight.matches(*row, "IDLE_PROMPT_PATTERN") && sight.row(*row).contains('›');
        alone || sight.matches(*row, "HINT_PATTERN") || sight.matches(*row, "PROMPT_LINE")
    };
    tail.rev().find(is_prompt)
}

fn says(status: StatusKind, row: usize) -> Decided {
    Decided { status: Some(status), kind: None, row: Some(row) }
}

fn waiting(row: usize) -> Decided {
    Decided { status: Some(StatusKind::WaitingUserAnswer), kind: Some(WaitingKind::Permission), row: Some(row) }
}
