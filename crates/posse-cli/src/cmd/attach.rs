//! `posse attach`: look at a terminal and type into it, from one window or several at once.
//!
//! The terminal's bytes are drawn by an emulator in here, not passed through: the window may have another size,
//! and questions the program asks of a terminal must reach exactly one, which is the daemon's. Keys are numbered,
//! so that none is lost or typed twice when the daemon dies in the middle.

mod keys;
mod window;

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use posse_api::{ProblemKind, StreamMessage, StreamRequest, Terminal};
use posse_core::status::Exit as ProgramExit;
use posse_term::emulator::{Emulator, HistoryLimit, TerminalView};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use self::keys::DetachKey;
use self::window::{Window, write};
use crate::client::{Client, new_writer};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Look at a terminal and type into it
///
/// Several people may attach to the same terminal. The terminal keeps its size: a smaller window shows the part around the
/// cursor. With --resize the terminal takes the size of the window, of several such windows the smallest, and its own size
/// again when all have left. Ctrl-] leaves it; the program goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse attach reviewer                     Ctrl-] leaves; the program goes on
  posse attach reviewer --read-only         only look
  posse attach reviewer --resize            fit the program to this window
  posse attach reviewer --detach-key ctrl-q")]
pub(crate) struct Args {
    /// The terminal: its id, the beginning of it, or its name
    terminal: String,
    /// The key that detaches: `ctrl-` and a letter, or `ctrl-]`, `ctrl-\`, `ctrl-^`, `ctrl-_`
    #[arg(long, value_name = "KEY", default_value = "ctrl-]")]
    detach_key: String,
    /// Only look: keys do not reach the program
    #[arg(long)]
    read_only: bool,
    /// Give the terminal the size of this window while you are attached
    #[arg(long)]
    resize: bool,
}

/// The shortest time between two paints of a window.
const FRAME: Duration = Duration::from_millis(16);

/// First and longest wait before another try, when the daemon answers but gives no stream.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let detach_key = detach_key(&args.detach_key)?;
    need_window()?;
    let (client, terminal) = Client::with_terminal(&args.terminal).await?;
    let look = AttachState::new(&terminal, args.read_only, args.resize);
    follow(client, &terminal, detach_key, look, ui).await
}

/// Attaches to a terminal that was started for this window, and fits it to the window.
pub(crate) async fn attach(client: Client, terminal: &Terminal, ui: &Ui) -> Result<Exit, Error> {
    need_window()?;
    follow(client, terminal, detach_key("ctrl-]")?, AttachState::new(terminal, false, true), ui).await
}

fn detach_key(name: &str) -> Result<DetachKey, Error> {
    DetachKey::new(name).ok_or_else(|| {
        Error::usage(format!("{name:?} cannot be the detach key"))
            .with_hint("it is `ctrl-` and a letter, like ctrl-q, or one of ctrl-], ctrl-\\, ctrl-^ and ctrl-_")
    })
}

fn need_window() -> Result<(), Error> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok(());
    }
    let hint = "`posse output` prints what it shows, `posse send` types into it";
    Err(Error::failed("attaching needs a terminal to look through").with_hint(hint))
}

type Socket = WebSocketStream<UnixStream>;

/// Printed after the window closes, if keys were refused.
const REFUSED_INSIDE: &str = "keys were refused: processes in posse's terminals may not type to agents; attach from a shell outside, or set `answers_from_terminals = true` under `[permissions]` in your config.toml";

enum AttachEnd {
    Detached,
    Exited(ProgramExit),
    /// The connection broke; the terminal may still run.
    Broken,
}

/// The state that outlives a broken connection.
struct AttachState {
    emulator: Emulator,
    view: TerminalView,
    read_only: bool,
    /// The terminal takes the size of the window.
    resize: bool,
    writer: u64,
    next_sequence: u64,
    /// Keys the terminal has not confirmed yet.
    unconfirmed: VecDeque<(u64, Vec<u8>)>,
    /// The emulator's offset in the terminal's output, once the terminal is shown. The emulator's own offset includes
    /// the initial picture.
    offset: Option<u64>,
    /// Keys were refused because this runs in one of posse's terminals.
    refused_inside: bool,
    /// The pause before the next attempt; short again as soon as a stream has begun.
    wait: Duration,
}

async fn follow(
    mut client: Client,
    terminal: &Terminal,
    detach_key: DetachKey,
    mut look: AttachState,
    ui: &Ui,
) -> Result<Exit, Error> {
    let mut resized = signal(SignalKind::window_change()).map_err(Error::io("cannot watch the window"))?;
    let mut window = Window::open(detach_key).map_err(Error::io("cannot use this terminal"))?;
    client.only_running();
    let end = loop {
        let Some(socket) = reach(&mut client, terminal, &mut window, &mut look).await? else {
            break AttachEnd::Detached;
        };
        match session(socket, (&mut window, &mut resized), &mut look).await {
            Ok(AttachEnd::Broken) | Err(Error::Lost(_)) => {}
            other => break other?,
        }
    };
    drop(window);
    if look.refused_inside {
        ui.warn(REFUSED_INSIDE);
    }
    match end {
        AttachEnd::Exited(exit) => ui.say(&format!("[{} {exit}]", terminal.name)),
        _ => {
            ui.say(&format!("[detached from {}; it goes on: `posse attach {}`]", terminal.name, terminal.id));
            let size = look.emulator.size();
            if size.smallest(Window::size()) != size {
                ui.say(&format!(
                    "[this window is smaller than the terminal ({size}); --resize fits the terminal to it]"
                ));
            }
        }
    }
    Ok(Exit::Ok)
}

/// Connects to the terminal, again if need be, or finds the reason why that cannot be. What is typed in between is kept
/// for the program; `None` if it is the detach key.
async fn reach(
    client: &mut Client,
    terminal: &Terminal,
    window: &mut Window,
    look: &mut AttachState,
) -> Result<Option<Socket>, Error> {
    loop {
        let path = format!("/terminals/{}", terminal.id);
        let from = look.offset.map(|offset| format!("&from={offset}")).unwrap_or_default();
        let url = format!("ws://posse{path}/stream?writer={}{from}", look.writer);
        let wait = look.wait;
        look.wait = (wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
        let reached = async {
            sleep(wait).await;
            // Waits for a daemon that crashed, and detects a removed terminal.
            let _: Terminal = client.get(&path).await?;
            let stream = client.raw_stream().await.map_err(|error| Error::Lost(error.to_string()))?;
            let connected = tokio_tungstenite::client_async(url, stream).await;
            connected.map(|(socket, _)| socket).map_err(|error| Error::Lost(error.to_string()))
        };
        tokio::pin!(reached);
        let reached = loop {
            tokio::select! {
                reached = &mut reached => break reached,
                typed = window.typed() => {
                    let typed = typed.map_err(Error::io("cannot read the keyboard"))?;
                    look.typed(typed.keys);
                    if typed.detach {
                        return Ok(None);
                    }
                }
            }
        };
        match reached {
            Err(Error::Lost(_)) => {}
            other => return other.map(Some),
        }
    }
}

async fn session(
    mut socket: Socket,
    (window, resized): (&mut Window, &mut Signal),
    look: &mut AttachState,
) -> Result<AttachEnd, Error> {
    for (sequence, keys) in &look.unconfirmed {
        send(&mut socket, input(*sequence, keys)).await?;
    }
    send_view(&mut socket, look.resize).await?;
    let mut paint_at: Option<Instant> = None;
    let mut continued = false;
    loop {
        let painting = async {
            match paint_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = socket.next() => {
                let Some(Ok(message)) = message else { return Ok(AttachEnd::Broken) };
                match message {
                    Message::Binary(bytes) => {
                        look.output(&bytes, continued);
                        continued = true;
                        paint_at.get_or_insert(Instant::now() + if look.emulator.in_frame() { FRAME } else { Duration::from_millis(4) });
                    }
                    Message::Text(text) => match serde_json::from_str(&text) {
                        Ok(StreamMessage::Start { size, continued: goes_on, .. }) => {
                            continued = goes_on;
                            look.wait = FIRST_WAIT;
                            if goes_on {
                                look.emulator.resize(size);
                                paint_at.get_or_insert(Instant::now() + FRAME);
                            } else {
                                look.emulator = Emulator::new(size, HistoryLimit::default());
                            }
                        }
                        Ok(StreamMessage::Resized { size, .. }) => {
                            look.emulator.resize(size);
                            paint_at.get_or_insert(Instant::now() + FRAME);
                        }
                        Ok(StreamMessage::InputDone { sequence }) => look.unconfirmed.retain(|(number, _)| *number > sequence),
                        Ok(StreamMessage::InputRefused { why: ProblemKind::KeeperSilent, .. }) => {
                            return Err(Error::failed("what you typed was not typed: the keeper does not answer").with_hint("it is not typed later either; `posse doctor` says what is wrong"));
                        }
                        Ok(StreamMessage::InputRefused { sequence, why }) => {
                            look.refused_inside |= why == ProblemKind::FromTerminal;
                            // Not taken: the user hears it as one hears a full keyboard buffer.
                            look.unconfirmed.retain(|(number, _)| *number != sequence);
                            write(b"\x07");
                        }
                        Ok(StreamMessage::Exited { exit }) => {
                            write(&look.view.paint(&look.emulator, Window::size()));
                            return Ok(AttachEnd::Exited(exit));
                        }
                        Err(error) => return Err(Error::Nonsense(error.to_string())),
                    },
                    Message::Close(_) => return Ok(AttachEnd::Broken),
                    _ => {}
                }
            }
            typed = window.typed() => {
                let typed = typed.map_err(Error::io("cannot read the keyboard"))?;
                let sent = match look.typed(typed.keys) {
                    Some((sequence, keys)) => send(&mut socket, input(*sequence, keys)).await,
                    None => Ok(()),
                };
                if typed.detach {
                    return Ok(AttachEnd::Detached);
                }
                sent?;
            }
            _ = resized.recv() => {
                if look.resize {
                    send_view(&mut socket, true).await?;
                }
                look.view.forget();
                paint_at = Some(Instant::now());
            }
            () = painting => {
                paint_at = None;
                write(&look.view.paint(&look.emulator, Window::size()));
            }
        }
    }
}

impl AttachState {
    fn new(terminal: &Terminal, read_only: bool, resize: bool) -> Self {
        Self {
            emulator: Emulator::new(terminal.size, HistoryLimit::default()),
            view: TerminalView::new(),
            read_only,
            resize,
            writer: new_writer(),
            next_sequence: 1,
            unconfirmed: VecDeque::new(),
            offset: None,
            refused_inside: false,
            wait: Duration::ZERO,
        }
    }

    /// Numbers what was typed, to be sent now and, until the terminal confirms it, again.
    fn typed(&mut self, keys: Vec<u8>) -> Option<&(u64, Vec<u8>)> {
        if keys.is_empty() || self.read_only {
            return None;
        }
        self.unconfirmed.push_back((self.next_sequence, keys));
        self.next_sequence += 1;
        self.unconfirmed.back()
    }

    /// Output, or the picture a stream begins with. Answers of this emulator are dropped.
    fn output(&mut self, framed: &[u8], continued: bool) {
        let Some((offset, bytes)) = framed.split_first_chunk::<8>() else { return };
        let offset = u64::from_be_bytes(*offset);
        match self.offset {
            Some(seen) if continued => {
                if offset > seen {
                    self.emulator.skip_to(self.emulator.offset());
                }
                let known = seen.saturating_sub(offset) as usize;
                self.emulator.feed(bytes.get(known..).unwrap_or_default());
                self.offset = Some(seen.max(offset + bytes.len() as u64));
            }
            _ => {
                self.emulator.feed(bytes);
                self.offset = Some(offset);
            }
        }
    }
}

fn input(sequence: u64, keys: &[u8]) -> Message {
    Message::Binary([&sequence.to_be_bytes(), keys].concat().into())
}

/// Announces a viewer of the terminal, and asks for the size of the window if the terminal is to take it.
async fn send_view(socket: &mut Socket, resize: bool) -> Result<(), Error> {
    let view = serde_json::to_string(&StreamRequest::View { size: resize.then(Window::size) });
    send(socket, Message::Text(view.unwrap_or_default().into())).await
}

async fn send(socket: &mut Socket, message: Message) -> Result<(), Error> {
    socket.send(message).await.map_err(|error| Error::Lost(error.to_string()))
}
