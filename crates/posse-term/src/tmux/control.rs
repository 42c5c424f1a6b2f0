//! What tmux says in control mode (`tmux -C`): bytes in, messages out.
//!
//! Lines that begin with `%` are messages; what stands between `%begin` and the `%end` or `%error` with the same
//! numbers is the answer to a command, whatever it looks like. A program's output is one line with everything
//! unprintable as `\ooo`, and becomes the bytes it was.
//!
//! Pure: no IO, no panic for any bytes, and no more memory than `LINE_MAX` and `BLOCK_MAX` allow.

use memchr::memchr;

use super::command::{PaneId, SessionId, WindowId};

/// The longest line kept. Output comes in lines of some ten KiB; the longest honest line is one of a captured
/// history whose rows were wrapped, and what we keep of one is far less.
const LINE_MAX: usize = 1 << 20;
/// The largest answer kept: a full history at the largest size stays below.
const BLOCK_MAX: usize = 16 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Reply(Reply),
    Output {
        pane: PaneId,
        bytes: Vec<u8>,
    },
    /// tmux sends no more of this pane's output: we did not take it fast enough.
    Paused(PaneId),
    /// How the panes of a window lie now, as far as they can be seen.
    Layout {
        window: WindowId,
        layout: String,
    },
    /// Windows, panes or sessions came or went.
    Changed,
    /// This connection looks at another session now.
    Session(SessionId),
    /// The connection ends.
    Exit {
        reason: String,
    },
}

/// The answer to one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    /// Whether the command came over this connection. Others have their answers told too, such as the one that
    /// made the connection.
    pub(super) ours: bool,
    pub(super) failed: bool,
    pub(super) lines: Vec<Vec<u8>>,
}

impl Reply {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.lines.join(&b'\n')).into_owned()
    }
}

#[derive(Default)]
pub(super) struct Parser {
    line: Vec<u8>,
    /// More of the line came than is kept.
    cut: bool,
    block: Option<Block>,
}

struct Block {
    /// Time, number and flags as they stand behind `%begin`. The end repeats them.
    name: Vec<u8>,
    reply: Reply,
    length: usize,
}

impl Parser {
    /// Takes the next bytes, cut anywhere, and hands on each message that is complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut tell: impl FnMut(Message)) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (head, rest) = (&bytes[..end], &bytes[end + 1..]);
            if self.line.is_empty() && head.len() <= LINE_MAX {
                self.line(head, false, &mut tell);
            } else {
                self.keep(head);
                let line = std::mem::take(&mut self.line);
                let cut = std::mem::take(&mut self.cut);
                self.line(&line, cut, &mut tell);
            }
            bytes = rest;
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_MAX - self.line.len();
        self.cut |= bytes.len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn line(&mut self, line: &[u8], cut: bool, tell: &mut impl FnMut(Message)) {
        let (word, rest) = split_word(line);
        if let Some(block) = &mut self.block {
            if matches!(word, b"%end" | b"%error") && rest == block.name {
                block.reply.failed = word == b"%error";
                if let Some(block) = self.block.take() {
                    tell(Message::Reply(block.reply));
                }
            } else if block.length + line.len() < BLOCK_MAX {
                block.length += line.len() + 1;
                block.reply.lines.push(line.to_vec());
            }
        } else if word == b"%begin" {
            let ours = rest.rsplit(|b| *b == b' ').next() == Some(b"1");
            let reply = Reply { ours, ..Reply::default() };
            self.block = Some(Block { name: rest.to_vec(), reply, length: 0 });
        } else if !cut && let Some(message) = notification(word, rest) {
            tell(message);
        }
    }
}

/// What a line outside of an answer means, if it means anything to us.
fn notification(word: &[u8], rest: &[u8]) -> Option<Message> {
    Some(match word {
        b"%output" => {
            let (pane, value) = split_word(rest);
            Message::Output { pane: id(pane)?, bytes: unescape(value) }
        }
        b"%extended-output" => {
            let (pane, rest) = split_word(rest);
            // Its age, perhaps more in time, and a colon of its own.
            let value = rest.windows(3).position(|three| three == b" : ").map(|at| &rest[at + 3..])?;
            Message::Output { pane: id(pane)?, bytes: unescape(value) }
        }
        b"%pause" => Message::Paused(id(rest)?),
        b"%layout-change" => {
            let mut words = rest.split(|b| *b == b' ');
            let window = id(words.next()?)?;
            let whole = words.next()?;
            // While one pane fills the window, the second one says so.
            let layout = words.next().filter(|visible| !visible.is_empty()).unwrap_or(whole);
            Message::Layout { window, layout: String::from_utf8_lossy(layout).into_owned() }
        }
        b"%window-add"
        | b"%window-close"
        | b"%unlinked-window-add"
        | b"%unlinked-window-close"
        | b"%window-pane-changed"
        | b"%sessions-changed" => Message::Changed,
        b"%session-changed" => Message::Session(id(split_word(rest).0)?),
        b"%exit" => Message::Exit { reason: String::from_utf8_lossy(rest).into_owned() },
        // Renames, subscriptions, buffers, other clients: nothing we act on. And what newer ones may add.
        _ => return None,
    })
}

fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b' ', line) {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, b""),
    }
}

fn id<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// `\ooo` is a byte; everything else is itself, a lone backslash too.
fn unescape(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        match rest[at + 1..] {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = &rest[at + 4..];
            }
            _ => {
                out.push(b'\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
