//! Agents that print a prompt like `[profile] 22% λ >` and leave all output on the screen. The number of prompts after
//! a question shows whether the question is still open.

use posse_core::detect::layout::Found;
use posse_core::detect::{Decided, Sight};
use posse_core::status::{StatusKind, WaitingKind};

pub(super) fn prompts(sight: &Sight<'_>, _found: &Found) -> Option<Decided> {
    let end = sight.len();
    let last_prompt = sight.last_match(0..end, "IDLE_PROMPT_PATTERN")?;
    if let Some(row) = sight.last_match(0..end, "ERROR_PATTERN") {
        return Some(Decided { status: Some(StatusKind::Error), kind: None, row: Some(row) });
    }
    if let Some((row, prompts)) = permission(sight)
        && prompts <= 1
    {
        let kind = Some(WaitingKind::Permission);
        return Some(Decided { status: Some(StatusKind::WaitingUserAnswer), kind, row: Some(row) });
    }
    let status = match sight.last_match(0..end, "RESPONSE_MARKER") {
        None => StatusKind::Idle,
        Some(answer) if last_prompt >= answer => StatusKind::Completed,
        Some(_) => StatusKind::Processing,
    };
    Some(Decided { status: Some(status), kind: None, row: Some(last_prompt) })
}

/// Returns the row of the last question, and the number of lines after it that have a prompt. An open question has one
/// such line, its own prompt; an answered one has at least two. A prompt redrawn on the same line counts once.
fn permission(sight: &Sight<'_>) -> Option<(usize, usize)> {
    (0..sight.len()).rev().filter(|row| sight.matches(*row, "PERMISSION_START")).find_map(|row| {
        let text = (row..sight.len()).map(|row| sight.row(row)).collect::<Vec<_>>().join("\n");
        let asked = sight.find_in(&text, "PERMISSION_PROMPT_PATTERNS")?;
        let prompts = text[asked.end..].split('\n').filter(|line| sight.find_in(line, "IDLE_PROMPT_PATTERN").is_some());
        Some((row, prompts.count()))
    })
}
