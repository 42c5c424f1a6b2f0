//! The screen of the agent whose turn it is, for the picture of a run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use posse_api::{LoopView, StreamMessage};
use posse_core::ids::TerminalId;
use posse_core::screen::Size;
use posse_term::emulator::{Emulator, HistoryLimit};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use crate::client::Client;

/// Rows of the screen that are looked at. Much of what an agent draws is frames and empty rows.
const TAIL: usize = 30;
/// The pause before a changed screen is drawn, because agents draw in many small steps.
const FRAME: Duration = Duration::from_millis(100);

/// The screen of an agent, kept up to date by the terminal's stream.
pub(super) struct TurnScreen {
    terminal: TerminalId,
    emulator: Arc<Mutex<Emulator>>,
    changed: Arc<Notify>,
    /// Reads the stream, until it breaks or this is dropped.
    reading: JoinSet<()>,
}

/// Returns the last lines of the agent whose turn it is. Subscribes to its terminal when the turn begins, and again if the
/// stream broke.
pub(super) async fn follow_turn(view: &LoopView, screen: &mut Option<TurnScreen>, client: &Client) -> String {
    let Some(turn) = &view.turn else {
        *screen = None;
        return String::new();
    };
    let is_read = |screen: &mut TurnScreen| {
        screen.terminal == turn.terminal && screen.reading.try_join_next().is_none() && !screen.reading.is_empty()
    };
    if !screen.as_mut().is_some_and(is_read) {
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
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let (emulator, changed) = shared;
            while let Some(Ok(message)) = socket.next().await {
                let ended = draw(&message, &mut emulator.lock().unwrap_or_else(PoisonError::into_inner));
                changed.notify_one();
                if ended {
                    // The program has ended, and its last screen stays.
                    std::future::pending::<()>().await;
                }
            }
        });
        Some(Self { terminal, emulator, changed, reading })
    }

    /// Waits until there is something new to draw.
    pub(super) async fn changed(&self) {
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
