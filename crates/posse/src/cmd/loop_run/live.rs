//! The live view of a run, at the foot of a person's window: where it is, what each agent does, and the last lines of the
//! one whose turn it is. Drawn over itself; everything above it stays.

use posse_core::rounds::Role;
use posse_core::status::StatusKind;
use posse_server::api::types::{Output, Terminal};
use posse_server::runs::view::RunView;
use unicode_width::UnicodeWidthStr;

use crate::client::Client;
use crate::cmd::ls::asked;
use crate::error::Error;
use crate::ui::{Colour, Ui, age, colour_of, cut, plain, window};

/// Lines of the terminal whose turn it is, at most: any more are no longer taken in at a glance.
const LINES: usize = 12;
/// Lines asked for. Much of what an agent draws is frames and empty rows.
const ASKED: usize = 30;
/// Rows the rest takes at most: a rule, where the run is, five roles, how to answer, and the cursor's own.
const REST: usize = 9;
/// Rows left, in a window that has them, for what has happened.
const PAST: usize = 9;
/// What terminals that know it show only as a whole; the others ignore it.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

pub(super) struct Live<'a> {
    ui: &'a Ui,
    /// How wide the rows are that were drawn last.
    drawn: Vec<usize>,
}

/// A row of it: texts and their colours.
type Row = Vec<(String, Option<Colour>)>;

impl<'a> Live<'a> {
    pub(super) fn new(ui: &'a Ui) -> Self {
        Self { ui, drawn: Vec::new() }
    }

    /// Takes it away.
    pub(super) fn clear(&mut self) {
        let back = self.back(size().1);
        self.ui.print(&back);
    }

    /// Lines that stay, and below them the run as it is now. All at once, so that nothing flickers.
    pub(super) async fn draw(&mut self, client: &mut Client, view: &RunView, lines: &str) -> Result<(), Error> {
        let terminals: Vec<Terminal> = client.get("/terminals").await?;
        let tail = match &view.turn {
            Some(turn) => {
                let path = format!("/terminals/{}/output?mode=tail&lines={ASKED}", turn.terminal);
                client.get::<Output>(&path).await.map(|output| output.output).unwrap_or_default()
            }
            None => String::new(),
        };
        let (rows, columns) = size();
        let mut text = format!("{BEGIN}{}{lines}", self.back(columns));
        for row in picture(view, &terminals, &tail, rows, columns) {
            let (row, width) = painted(&row, columns, self.ui);
            text.push_str(&format!("{row}\n"));
            self.drawn.push(width);
        }
        self.ui.print(&format!("{text}{END}"));
        Ok(())
    }

    /// Back to where it was drawn, with nothing below.
    fn back(&mut self, columns: usize) -> String {
        // A window that was made narrower has broken rows in two.
        let rows: usize = self.drawn.drain(..).map(|width| width.div_ceil(columns).max(1)).sum();
        if rows > 0 { format!("\x1b[{rows}A\r\x1b[J") } else { String::new() }
    }
}

fn size() -> (usize, usize) {
    window().map_or((24, 80), |(rows, columns)| (rows.into(), columns.into()))
}

/// A row that fits into the window, and how wide it is.
fn painted(row: &Row, columns: usize, ui: &Ui) -> (String, usize) {
    let (mut text, mut used) = (String::new(), 0);
    for (part, colour) in row {
        let part = if used < columns { cut(part, columns - used) } else { String::new() };
        used += part.width();
        text.push_str(&colour.map_or_else(|| part.clone(), |colour| ui.paint(&part, colour)));
    }
    (text, used)
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
    let asking = view.terminals.values().find(|id| {
        let terminal = terminals.iter().find(|terminal| terminal.id == **id);
        terminal.and_then(asked).is_some()
    });
    if let Some(id) = asking.filter(|_| !view.auto_accept) {
        let text = format!("  `posse approve {id}` or `posse deny {id}` answers it");
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
