//! The live view of a run, at the foot of a person's window: where it is, what each agent does, and the last lines of the
//! one whose turn it is. Drawn over itself; everything above it stays.

use posse_core::rounds::Role;
use posse_core::status::StatusKind;
use posse_server::api::types::{Output, Terminal};
use posse_server::runs::view::RunView;
use unicode_width::UnicodeWidthStr;

use crate::client::Client;
use crate::error::Error;
use crate::ui::{Colour, Ui, age, colour_of, cut, plain, window};

/// Rows besides the lines of the terminal: two rules, the head, five roles.
const FIXED: usize = 8;
/// Lines of the terminal whose turn it is: at least so many, at most so many.
const LINES: (usize, usize) = (3, 12);
/// Lines asked for. Much of what an agent draws is frames and empty rows.
const ASKED: usize = 30;
/// Wider than this no line is easier to read.
const WIDEST: usize = 100;

pub(in crate::cmd) struct Live<'a> {
    ui: &'a Ui,
    /// Rows drawn last.
    rows: usize,
}

impl<'a> Live<'a> {
    pub(super) fn new(ui: &'a Ui) -> Self {
        Self { ui, rows: 0 }
    }

    /// Takes it away.
    pub(super) fn clear(&mut self) {
        if self.rows > 0 {
            self.ui.print(&format!("\x1b[{}A\x1b[J", self.rows));
            self.rows = 0;
        }
    }

    /// Says something above it.
    pub(in crate::cmd) fn line(&mut self, text: &str) {
        self.clear();
        self.ui.line(text);
    }

    pub(super) async fn draw(&mut self, client: &mut Client, view: &RunView) -> Result<(), Error> {
        let terminals: Vec<Terminal> = client.get("/terminals").await?;
        let tail = match &view.turn {
            Some(turn) => {
                let path = format!("/terminals/{}/output?mode=tail&lines={ASKED}", turn.terminal);
                client.get::<Output>(&path).await.map(|output| output.output).unwrap_or_default()
            }
            None => String::new(),
        };
        let (rows, columns) = window().map_or((24, 80), |(rows, columns)| (usize::from(rows), usize::from(columns)));
        let text = picture(view, &terminals, &tail, (rows, columns), self.ui);
        // In one piece, over what is there: nothing flickers.
        let up = if self.rows > 0 { format!("\x1b[{}A", self.rows) } else { String::new() };
        self.rows = text.lines().count();
        self.ui.print(&format!("{up}{}\x1b[J", text.replace('\n', "\x1b[K\n")));
        Ok(())
    }
}

/// No row is wider than the window, and there are fewer of them than it has: else it could not be drawn over.
fn picture(view: &RunView, terminals: &[Terminal], tail: &str, (rows, columns): (usize, usize), ui: &Ui) -> String {
    let width = columns.min(WIDEST);
    let dim = |text: &str| ui.paint(text, Colour::Dim);
    let mut lines = vec![dim(&"─".repeat(width)), ui.paint(&cut(&head(view), width), Colour::Bold)];
    for role in Role::ALL {
        let terminal = view.terminals.get(&role).and_then(|id| terminals.iter().find(|t| t.id == *id));
        lines.push(match terminal {
            Some(terminal) => row(view, role, terminal, width, ui),
            None => fitted(&[(format!("  {role:<15}  "), Colour::Plain), ("starting".into(), Colour::Dim)], width, ui),
        });
    }
    if let Some(turn) = &view.turn {
        let name = format!("── {} {} ", turn.role, turn.terminal);
        lines.push(dim(&cut(&format!("{name}{}", "─".repeat(width.saturating_sub(name.width()))), width)));
        // Half of the window is for what has happened.
        let room = (rows / 2).saturating_sub(FIXED).clamp(LINES.0, LINES.1);
        let said: Vec<&str> = tail.lines().filter(|line| says_something(line)).collect();
        let said = said[said.len().saturating_sub(room)..].iter();
        lines.extend(said.map(|line| dim(&cut(&plain(line), width))));
    }
    lines.truncate(rows.saturating_sub(1));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Where the run is.
fn head(view: &RunView) -> String {
    let mut parts = vec![format!("round {} of at most {}", view.round, view.max_rounds), view.phase.clone()];
    if let Some(turn) = &view.turn {
        parts.push(format!("turn {}, {}", turn.number, age(turn.since)));
        if turn.attempt > 1 {
            parts.push(format!("try {}", turn.attempt));
        }
        if turn.accepts > 0 {
            parts.push(format!("{} accepted", turn.accepts));
        }
    }
    if let Some(until) = view.parked_until {
        let at = until.to_zoned(jiff::tz::TimeZone::system()).strftime("%T").to_string();
        parts.push(format!("parked until {at}"));
    }
    parts.join(" · ")
}

/// One agent: whether it is its turn, what it does and for how long, which agent it is, and what it is about.
fn row(view: &RunView, role: Role, terminal: &Terminal, width: usize, ui: &Ui) -> String {
    let turn = view.turn.as_ref().is_some_and(|turn| turn.terminal == terminal.id);
    let status = terminal.status.status;
    let asks = terminal
        .status
        .dialog
        .as_ref()
        .map(|dialog| format!("asks: {}", dialog.subject.as_deref().unwrap_or(&dialog.question)));
    let about = plain(&asks.unwrap_or_else(|| terminal.title.clone()));
    let spans = [
        (if turn { "▸ " } else { "  " }.to_owned(), Colour::Blue),
        (format!("{role:<15}  "), if turn { Colour::Bold } else { Colour::Plain }),
        (format!("{} {status:<19} ", glyph(status)), colour_of(status)),
        (format!("{:>4}  ", age(terminal.status.since)), Colour::Plain),
        (format!("{:<11}  {}  {about}", terminal.provider, terminal.id), Colour::Dim),
    ];
    fitted(&spans, width, ui)
}

/// As much of a painted row as fits.
fn fitted(spans: &[(String, Colour)], width: usize, ui: &Ui) -> String {
    let mut left = width;
    let mut row = String::new();
    for (text, colour) in spans {
        row.push_str(&ui.paint(&cut(text, left), *colour));
        if text.width() >= left {
            break;
        }
        left -= text.width();
    }
    row
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
