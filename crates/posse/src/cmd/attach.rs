//! `posse attach`: look at a terminal and type into it, from one window or several at once.
//!
//! The terminal's bytes are drawn by an emulator in here, not passed through: the window may have another size,
//! and questions the program asks of a terminal must reach exactly one, which is the daemon's. Keys are numbered,
//! so that none is lost or typed twice when the daemon dies in the middle.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use posse_core::keys;
use posse_core::screen::Size;
use posse_core::status::Exit as ProgramExit;
use posse_server::api::types::{StreamMessage, StreamRequest, Terminal};
use posse_term::emulator::{Emulator, HistoryLimit, View};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, new_writer};
use crate::error::{Error, Exit};
use crate::ui::{Ui, window};

/// Look at a terminal and type into it
///
/// Several people may attach to the same terminal; it takes the size of the smallest window, and its own again when
/// all have left. Ctrl-] leaves it; the program goes on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The terminal: its id, the beginning of it, or its name
    terminal: String,
    /// The key that detaches
    #[arg(long, value_name = "KEY", default_value = "ctrl-]")]
    detach_key: String,
    /// Only look: whatever is typed does not reach the program
    #[arg(long)]
    read_only: bool,
}

/// How often a window is repainted at most. More is not seen.
const FRAME: Duration = Duration::from_millis(16);

struct Options {
    detach: Vec<Vec<u8>>,
    read_only: bool,
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let options = Options { detach: detach_keys(&args.detach_key)?, read_only: args.read_only };
    need_window()?;
    let mut client = Client::connect().await?;
    let terminal = client.find(&args.terminal).await?;
    follow(client, &terminal, &options, ui).await
}

/// Attaches with the usual options.
pub(crate) async fn attach(client: Client, terminal: &Terminal, ui: &Ui) -> Result<Exit, Error> {
    need_window()?;
    follow(client, terminal, &Options { detach: detach_keys("ctrl-]")?, read_only: false }, ui).await
}

fn need_window() -> Result<(), Error> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok(());
    }
    let message = "attaching needs a terminal to look through".into();
    let hint = "`posse output` prints what it shows, `posse send` types into it".to_owned();
    Err(Error::Failed { message, hint: Some(hint) })
}

/// All the ways a terminal may send this key: plain, and as the kitty protocol spells it.
fn detach_keys(name: &str) -> Result<Vec<Vec<u8>>, Error> {
    let plain =
        keys::key(name).ok_or_else(|| Error::Usage(format!("unknown key {name:?}; `posse send --help` lists them")))?;
    let mut ways = vec![plain];
    if let Some(letter) = name.strip_prefix("ctrl-") {
        let code = letter.bytes().next().unwrap_or(0);
        ways.push(format!("\x1b[{code};5u").into_bytes());
        ways.push(format!("\x1b[27;5;{code}~").into_bytes());
    }
    Ok(ways)
}

/// The user's terminal in raw mode, and back when this goes.
struct Window {
    terminal: File,
    /// The same, to be waited for. Tokio has no type for terminals; a pipe's reading end does just this.
    keyboard: pipe::Receiver,
    before: Termios,
}

impl Window {
    fn open() -> std::io::Result<Self> {
        // Opened anew, so that waiting without blocking is our affair and not that of the shell that shares it.
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = File::options().read(true).write(true).custom_flags(flags).open("/dev/tty")?;
        let before = tcgetattr(&file)?;
        let mut raw = before.clone();
        raw.make_raw();
        let keyboard = pipe::Receiver::from_file_unchecked(file.try_clone()?)?;
        let window = Self { terminal: file, keyboard, before };
        tcsetattr(&window.terminal, OptionalActions::Flush, &raw)?;
        write(View::ENTER);
        Ok(window)
    }

    async fn keys(&mut self) -> std::io::Result<Vec<u8>> {
        let mut buffer = [0; 4096];
        let n = self.keyboard.read(&mut buffer).await?;
        Ok(buffer[..n].to_vec())
    }

    fn size() -> Size {
        window().map_or(Size::DEFAULT, |(rows, cols)| Size::clamped(rows, cols))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        write(View::LEAVE);
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

fn write(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Why a look at a terminal ended.
enum End {
    Detached,
    Exited(ProgramExit),
    /// The connection broke; the terminal may well go on.
    Broken,
}

/// What outlives a broken connection.
struct Look {
    emulator: Emulator,
    view: View,
    writer: u64,
    next_sequence: u64,
    /// Keys the terminal has not confirmed yet.
    unconfirmed: VecDeque<(u64, Vec<u8>)>,
    /// Where in the terminal's output the emulator is, once it shows the terminal at all. Its own offset counts
    /// the picture it began with, too.
    offset: Option<u64>,
}

async fn follow(mut client: Client, terminal: &Terminal, options: &Options, ui: &Ui) -> Result<Exit, Error> {
    let mut resized = signal(SignalKind::window_change()).map_err(Error::io("cannot watch the window"))?;
    let mut window = Window::open().map_err(Error::io("cannot use this terminal"))?;
    let mut look = Look {
        emulator: Emulator::new(terminal.size, HistoryLimit::default()),
        view: View::new(),
        writer: new_writer(),
        next_sequence: 1,
        unconfirmed: VecDeque::new(),
        offset: None,
    };
    let end = loop {
        match session(&client, terminal, options, (&mut window, &mut resized), &mut look).await {
            Ok(End::Broken) | Err(Error::Lost(_)) => {
                // Finds the daemon again, or the reason why there is none.
                let _: Terminal = client.get(&format!("/terminals/{}", terminal.id)).await?;
            }
            other => break other?,
        }
    };
    drop(window);
    match end {
        End::Exited(exit) => ui.say(&format!("[{} {exit}]", terminal.name)),
        _ => ui.say(&format!("[detached from {}; it goes on: `posse attach {}`]", terminal.name, terminal.id)),
    }
    Ok(Exit::Ok)
}

async fn session(
    client: &Client,
    terminal: &Terminal,
    options: &Options,
    (window, resized): (&mut Window, &mut Signal),
    look: &mut Look,
) -> Result<End, Error> {
    let lost = |error: &dyn std::fmt::Display| Error::Lost(error.to_string());
    let stream = client.raw_stream().await.map_err(|error| lost(&error))?;
    let from = look.offset.map(|offset| format!("&from={offset}")).unwrap_or_default();
    let url = format!("ws://posse/terminals/{}/stream?writer={}{from}", terminal.id, look.writer);
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.map_err(|error| lost(&error))?;
    for (sequence, keys) in &look.unconfirmed {
        send(&mut socket, input(*sequence, keys)).await?;
    }
    send_size(&mut socket).await?;
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
                let Some(Ok(message)) = message else { return Ok(End::Broken) };
                match message {
                    Message::Binary(bytes) => {
                        look.output(&bytes, continued);
                        continued = true;
                        paint_at.get_or_insert(Instant::now() + if look.emulator.in_frame() { FRAME } else { Duration::from_millis(4) });
                    }
                    Message::Text(text) => match serde_json::from_str(&text) {
                        Ok(StreamMessage::Start { size, continued: goes_on, .. }) => {
                            continued = goes_on;
                            if !goes_on {
                                look.emulator = Emulator::new(size, HistoryLimit::default());
                            }
                        }
                        Ok(StreamMessage::Resized { size, .. }) => {
                            look.emulator.resize(size);
                            paint_at.get_or_insert(Instant::now() + FRAME);
                        }
                        Ok(StreamMessage::InputDone { sequence }) => look.unconfirmed.retain(|(number, _)| *number > sequence),
                        Ok(StreamMessage::InputRefused { sequence, .. }) => {
                            // Not taken: the user hears it as one hears a full keyboard buffer.
                            look.unconfirmed.retain(|(number, _)| *number != sequence);
                            write(b"\x07");
                        }
                        Ok(StreamMessage::Exited { exit }) => {
                            write(&look.view.paint(&look.emulator, Window::size()));
                            return Ok(End::Exited(exit));
                        }
                        Err(error) => return Err(Error::Nonsense(error.to_string())),
                    },
                    Message::Close(_) => return Ok(End::Broken),
                    _ => {}
                }
            }
            keys = window.keys() => {
                let keys = keys.map_err(Error::io("cannot read the keyboard"))?;
                if keys.is_empty() || options.detach.iter().any(|way| contains(&keys, way)) {
                    return Ok(End::Detached);
                }
                if !options.read_only {
                    let sequence = look.next_sequence;
                    look.next_sequence += 1;
                    let message = input(sequence, &keys);
                    look.unconfirmed.push_back((sequence, keys));
                    send(&mut socket, message).await?;
                }
            }
            _ = resized.recv() => {
                send_size(&mut socket).await?;
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

impl Look {
    /// Output, or the picture a stream begins with. Whatever the emulator would answer, nobody asked this one.
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

fn contains(keys: &[u8], way: &[u8]) -> bool {
    keys.windows(way.len()).any(|part| part == way)
}

fn input(sequence: u64, keys: &[u8]) -> Message {
    Message::Binary([&sequence.to_be_bytes(), keys].concat().into())
}

async fn send_size(socket: &mut WebSocketStream<tokio::net::UnixStream>) -> Result<(), Error> {
    let view = serde_json::to_string(&StreamRequest::View { size: Window::size() });
    send(socket, Message::Text(view.unwrap_or_default().into())).await
}

async fn send(socket: &mut WebSocketStream<tokio::net::UnixStream>, message: Message) -> Result<(), Error> {
    socket.send(message).await.map_err(|error| Error::Lost(error.to_string()))
}
