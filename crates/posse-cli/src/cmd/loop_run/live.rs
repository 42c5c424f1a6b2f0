//! The live view of a run, at the foot of a person's window: where it is, what each agent does, and the last lines of the
//! one whose turn it is.

use posse_api::{Output, RunView, Terminal};
use posse_core::ids::TerminalId;
use posse_core::rounds::Role;
use posse_core::status::StatusKind;

use crate::client::Client;
use crate::cmd::follow::Window;
use crate::cmd::ls::{answers_to, asked};
use crate::error::Error;
use crate::foot::Row;
use crate::ui::{Colour, age, colour_of, plain};

/// Lines of the terminal whose turn it is, at most: any more are no longer taken in at a glance.
const LINES: usize = 12;
/// Lines asked for. Much of what an agent draws is frames and empty rows.
const ASKED: usize = 30;
/// Rows the rest takes at most: a rule, where the run is, five roles, how to answer, and the cursor's own.
const REST: usize = 9;
/// Rows left, in a window that has them, for what has happened.
const PAST: usize = 9;

/// The run as it is now.
pub(super) async fn now(
    view: &RunView,
    terminals: &[Terminal],
    window: Window,
    client: &mut Client,
) -> Result<Vec<Row>, Error> {
    let tail = match &view.turn {
        Some(turn) => {
            let path = format!("/terminals/{}/output?mode=tail&lines={ASKED}", turn.terminal);
            client.get::<Output>(&path).await.map(|output| output.output).unwrap_or_default()
        }
        None => String::new(),
    };
    Ok(picture(view, terminals, &tail, window.rows, window.columns))
}

fn picture(view: &RunView, terminals: &[Terminal], tail: &str, rows: usize, columns: usize) -> Vec<Row> {
    let dim = |text: String| (text, Some(Colour::Dim));
    let mut picture = vec![vec![dim("─".repeat(columns))], vec![(head(view), Some(Colour::Bold))]];
    let terminal_of = |role| view.terminals.get(&role).and_then(|id| terminals.iter().find(|t| t.id == *id));
    for role in Role::ALL {
        let name = format!("{role:<15} ");
        let Some(terminal) = terminal_of(role) else {
            let missing = if view.terminals.contains_key(&role) { "gone" } else { "starting" };
            picture.push(vec![("  ".into(), None), (name, None), dim(missing.into())]);
            continue;
        };
        let turn = view.turn.as_ref().is_some_and(|turn| turn.terminal == terminal.id);
        let mark = if turn { "▸ " } else { "  " };
        let status = terminal.status.status;
        picture.push(vec![
            (mark.into(), Some(Colour::Blue)),
            (name, turn.then_some(Colour::Bold)),
            (format!("{} {status:<19} ", glyph(status)), Some(colour_of(status))),
            (format!("{:>4}  {}  ", age(terminal.status.since), terminal.id), None),
            match asked(terminal) {
                Some(asks) => (plain(&asks), Some(Colour::Yellow)),
                None => dim(plain(&format!("{:<11}  {}", terminal.provider, terminal.title))),
            },
        ]);
    }
    let of_role = |id: &TerminalId| terminals.iter().find(|terminal| terminal.id == *id);
    let asking = view.terminals.values().filter_map(of_role).find(|terminal| asked(terminal).is_some());
    if let Some(terminal) = asking.filter(|_| !view.auto_accept) {
        let text = format!("  {} answers it", answers_to(terminal, terminal.id.as_str()));
        picture.push(vec![(text, Some(Colour::Yellow))]);
    }
    let lines: Vec<&str> = tail.lines().filter(|line| says_something(line)).collect();
    let room = rows.saturating_sub(REST + PAST).clamp(3, LINES).min(rows.saturating_sub(REST)).min(lines.len());
    picture.extend(lines[lines.len() - room..].iter().map(|line| vec![dim(format!("  │ {}", plain(line)))]));
    picture
}

/// Where the run is.
fn head(view: &RunView) -> String {
    let mut head = format!("round {}/{}  {}", view.round, view.max_rounds, view.phase);
    if let Some(turn) = &view.turn {
        head.push_str(&format!(", review {}  turn {}  {}", view.cycle, turn.number, age(turn.since)));
        if turn.accepts > 0 {
            head.push_str(&format!("  {} accepted", turn.accepts));
        }
    }
    if let Some(until) = view.parked_until {
        let at = until.to_zoned(jiff::tz::TimeZone::system()).strftime("%T").to_string();
        head.push_str(&format!("  parked until {at}"));
    }
    // What a narrow window has no room for comes last.
    format!("{head}  run {}", view.id)
}

/// A status for those who see no colours.
fn glyph(status: StatusKind) -> char {
    match status {
        StatusKind::Idle => '○',
        StatusKind::Processing => '●',
        StatusKind::WaitingUserAnswer => '?',
        StatusKind::Completed => '✓',
        StatusKind::Error => '✗',
    }
}

/// Not empty, and not only a frame.
fn says_something(line: &str) -> bool {
    line.chars().any(|c| !c.is_whitespace() && !('\u{2500}'..='\u{259f}').contains(&c))
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
