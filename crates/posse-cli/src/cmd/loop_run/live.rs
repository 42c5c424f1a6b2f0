//! The live view of a run, at the foot of a person's window: where it is, what each agent does, and the last lines of the
//! one whose turn it is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use posse_api::{LoopView, StreamMessage, Terminal};
use posse_core::ids::TerminalId;
use posse_core::rounds::Role;
use posse_core::screen::Size;
use posse_core::status::StatusKind;
use posse_term::emulator::{Emulator, HistoryLimit};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use crate::client::Client;
use crate::cmd::ls::{answers_to, asked};
use crate::cmd::run::picture;
use crate::status_area::Row;
use crate::ui::{Colour, age, clock, colour_of, plain};

/// Maximum number of lines of the terminal whose turn it is. More cannot be read at a glance.
const LINES: usize = 12;
/// Rows of the screen that are looked at. Much of what an agent draws is frames and empty rows.
const TAIL: usize = 30;
/// Rows the rest takes at most: a rule, where the run is, five roles, how to answer, and the cursor's own.
const REST: usize = 9;
/// Rows left, in a window that has them, for what has happened.
const PAST: usize = 9;

/// The pause before a changed screen is drawn, because agents draw in many small steps.
const FRAME: Duration = Duration::from_millis(100);

/// The screen of the agent whose turn it is, kept up to date by the terminal's stream.
pub(in crate::cmd) struct TurnScreen {
    terminal: TerminalId,
    emulator: Arc<Mutex<Emulator>>,
    changed: Arc<Notify>,
    reading: AbortOnDrop,
}

/// Returns the last lines of the agent whose turn it is. Subscribes to its terminal when the turn begins, and again if the
/// stream broke.
pub(in crate::cmd) async fn follow_turn(view: &LoopView, screen: &mut Option<TurnScreen>, client: &Client) -> String {
    let Some(turn) = &view.turn else {
        *screen = None;
        return String::new();
    };
    if !screen.as_ref().is_some_and(|screen| screen.terminal == turn.terminal && !screen.reading.0.is_finished()) {
        *screen = TurnScreen::subscribe(turn.terminal, client).await;
    }
    screen.as_ref().map(TurnScreen::tail).unwrap_or_default()
}

impl TurnScreen {
    async fn subscribe(terminal: TerminalId, client: &Client) -> Option<Self> {
        let url = format!("ws://posse/terminals/{terminal}/stream");
        let (mut socket, _) = client_async(url, client.raw_stream().await.ok()?).await.ok()?;
        let emulator = Arc::new(Mutex::new(Emulator::new(Size::DEFAULT, HistoryLimit::default())));
        let changed = Arc::new(Notify::new());
        let shared = (emulator.clone(), changed.clone());
        let read = async move {
            let (emulator, changed) = shared;
            while let Some(Ok(message)) = socket.next().await {
                let ended = draw(&message, &mut emulator.lock().unwrap_or_else(PoisonError::into_inner));
                changed.notify_one();
                if ended {
                    // The program has ended, and its last screen stays.
                    std::future::pending::<()>().await;
                }
            }
        };
        Some(Self { terminal, emulator, changed, reading: AbortOnDrop(tokio::spawn(read)) })
    }

    /// Waits until there is something new to draw.
    pub(in crate::cmd) async fn changed(&self) {
        self.changed.notified().await;
        sleep(FRAME).await;
    }

    fn tail(&self) -> String {
        let screen = self.emulator.lock().unwrap_or_else(PoisonError::into_inner).screen();
        let rows = screen.filled_rows();
        rows[rows.len().saturating_sub(TAIL)..].join("\n")
    }
}

/// Draws what the stream brings. Returns whether the program has ended.
fn draw(message: &Message, emulator: &mut Emulator) -> bool {
    match message {
        Message::Binary(framed) => drop(emulator.feed(framed.get(8..).unwrap_or_default())),
        Message::Text(text) => match serde_json::from_str(text) {
            Ok(StreamMessage::Start { size, .. }) => *emulator = Emulator::new(size, HistoryLimit::default()),
            Ok(StreamMessage::Resized { size, .. }) => emulator.resize(size),
            Ok(StreamMessage::Exited { .. }) => return true,
            _ => {}
        },
        _ => {}
    }
    false
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(in crate::cmd) fn picture(
    view: &LoopView,
    terminals: &[Terminal],
    tail: &str,
    rows: usize,
    columns: usize,
) -> Vec<Row> {
    let dim = |text: String| (text, Some(Colour::Dim));
    let mut picture = picture::head("─", columns, vec![(head(view), Some(Colour::Bold))]);
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

/// Round, phase and turn.
fn head(view: &LoopView) -> String {
    let mut head = format!("round {}/{}  {}", view.round, view.max_rounds, view.phase);
    if let Some(turn) = &view.turn {
        head.push_str(&format!(", review {}  turn {}  {}", view.cycle, turn.number, age(turn.since)));
        if turn.accepts > 0 {
            head.push_str(&format!("  {} accepted", turn.accepts));
        }
    }
    if let Some(hold) = &view.hold {
        head.push_str(&format!("  parked until {}", clock(hold.until)));
    }
    // A narrow window cuts the end.
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
mod tests;
