//! What is known of one terminal in tmux.

use std::time::Instant;

use posse_core::ids::TerminalId;
use posse_core::screen::Size;
use posse_core::status::Exit;

use super::applied::Applied;
use super::command::{PaneId, SessionId, WindowId};
use super::doorbell::{Doorbell, Ring, Secret};
use crate::sequence::{Piece, Scanner};
use crate::wire::{Event, Stream, Summary, Wiring};

/// How much is kept of what a program prints before anybody attaches. That takes milliseconds; whoever comes later
/// gets the screen instead.
const KEPT: usize = 1 << 20;
/// How far output may run ahead of what was acknowledged. Beyond that tmux is told to stop, and the screen is taken
/// from it when the rest has been dealt with. Many times what is ever on its way to a daemon that keeps up.
const AHEAD: u64 = 8 << 20;

/// Where it is, as of the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) pane: PaneId,
    pub(super) window: WindowId,
    /// The pane's process.
    pub(super) shim: u32,
    /// The session that shows it to people.
    pub(super) session: Option<SessionId>,
    /// Nothing else is in the window.
    pub(super) alone: bool,
}

/// What to ask of tmux to get the pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) session: String,
    pub(super) name: String,
    pub(super) directory: Vec<u8>,
    pub(super) tries: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// tmux has been asked for a pane.
    Creating(Order, Instant),
    /// The shim has not rung yet.
    Starting(Instant),
    Running,
    Ended(Exit),
}

/// Where output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Nobody asked for it yet; this is all of it since the beginning.
    Kept(Vec<u8>),
    /// Nobody asked for it yet, and its beginning is not known.
    Unheard,
    Flowing,
    /// Stopped until what was told has been dealt with.
    Held,
    /// Its screen shall be taken. What still arrives is on it.
    Stopping,
    /// Its screen is being taken. This came after it: tmux may send output before an answer that was due earlier.
    Taking(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Asked to end, until then.
    Asked(Instant),
    /// Killed, and its pane closed then.
    Killed(Instant),
    Closing,
}

pub(super) struct Terminal {
    pub(super) id: TerminalId,
    pub(super) label: Vec<u8>,
    pub(super) life: Life,
    pub(super) place: Option<Place>,
    pub(super) pid: Option<u32>,
    pub(super) size: Size,
    /// Where output goes on.
    pub(super) offset: u64,
    pub(super) acknowledged: u64,
    pub(super) flow: Flow,
    /// Counts the times its screen was to be taken; answers to earlier ones mean nothing.
    pub(super) taking: u64,
    pub(super) applied: Applied,
    pub(super) ending: Option<Ending>,
    /// Its exit has been told.
    pub(super) told: bool,
    /// All its output has been heard, or can never be: how it ended may be believed.
    pub(super) over: bool,
    /// Its pane has been closed. Whatever it was, this is how it ended if the shim left no word.
    pub(super) vanished: Option<Exit>,
    /// Its pane has been told to close.
    pub(super) released: bool,
    /// Whether the program wants pastes marked, as far as its output told.
    pub(super) paste: bool,
    doorbell: Doorbell,
    scanner: Scanner,
}

/// What came of some output.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) events: Vec<Event>,
    pub(super) rang: bool,
    /// More than can be held: tmux shall send no more for now.
    pub(super) too_far: bool,
    /// The program changed its mind about pastes.
    pub(super) paste_changed: bool,
}

impl Terminal {
    pub(super) fn new(id: TerminalId, label: Vec<u8>, secret: &Secret, size: Size, life: Life) -> Self {
        Self {
            id,
            label,
            life,
            place: None,
            pid: None,
            size,
            offset: 0,
            acknowledged: 0,
            flow: Flow::Unheard,
            taking: 0,
            applied: Applied::default(),
            ending: None,
            told: false,
            over: false,
            vanished: None,
            released: false,
            paste: false,
            doorbell: Doorbell::new(secret),
            scanner: Scanner::default(),
        }
    }

    pub(super) fn is_attached(&self) -> bool {
        matches!(self.flow, Flow::Flowing | Flow::Held | Flow::Stopping | Flow::Taking(_))
    }

    /// It has been told of, or is old.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.life, Life::Running | Life::Ended(_))
    }

    pub(super) fn start_until(&self) -> Option<Instant> {
        match self.life {
            Life::Creating(_, until) | Life::Starting(until) => Some(until),
            Life::Running | Life::Ended(_) => None,
        }
    }

    pub(super) fn end_until(&self) -> Option<Instant> {
        match self.ending? {
            Ending::Asked(until) | Ending::Killed(until) => Some(until),
            Ending::Closing => None,
        }
    }

    pub(super) fn summary(&self) -> Summary {
        Summary {
            id: self.id,
            pid: self.pid.or(self.place.map(|place| place.shim)).unwrap_or(0),
            wiring: Wiring::Terminal(self.size),
            main: (self.offset, self.offset),
            error: (0, 0),
            checkpoint: None,
            exit: if let Life::Ended(exit) = self.life { Some(exit) } else { None },
            // tmux needs no checkpoints, and this is how often it gets one.
            ring: u32::MAX,
            label: self.label.clone(),
        }
    }

    /// Takes output of the pane.
    pub(super) fn output(&mut self, bytes: Vec<u8>) -> Heard {
        if let Flow::Taking(after) = &mut self.flow {
            after.extend(bytes);
            return Heard { too_far: after.len() as u64 > AHEAD, ..Heard::default() };
        }
        let (bytes, ring) = self.doorbell.listen(bytes);
        self.over |= ring == Some(Ring::Over);
        let mut heard = Heard { rang: ring.is_some(), ..Heard::default() };
        if !matches!(self.flow, Flow::Kept(_) | Flow::Flowing) {
            return heard;
        }
        heard.paste_changed = self.scan(&bytes);
        heard.events.extend(self.pass(bytes));
        if self.flow == Flow::Flowing && self.offset - self.acknowledged > AHEAD {
            self.flow = Flow::Held;
            heard.too_far = true;
        }
        heard
    }

    /// What was held back, when nothing more can come.
    pub(super) fn last_output(&mut self) -> Option<Event> {
        let bytes = self.doorbell.give_up();
        self.pass(bytes)
    }

    fn pass(&mut self, bytes: Vec<u8>) -> Option<Event> {
        if bytes.is_empty() {
            return None;
        }
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        match &mut self.flow {
            Flow::Kept(kept) if kept.len() + bytes.len() <= KEPT => {
                kept.extend(bytes);
                None
            }
            Flow::Kept(_) => {
                self.flow = Flow::Unheard;
                None
            }
            _ => Some(Event::Output { id: self.id, stream: Stream::Main, offset, bytes }),
        }
    }

    /// Whether these bytes turned the marking of pastes on or off.
    fn scan(&mut self, mut bytes: &[u8]) -> bool {
        let before = self.paste;
        while let Some(piece) = self.scanner.next(&mut bytes) {
            match piece {
                Piece::Control(control)
                    if control.private == Some(b'?') && control.numbers().any(|mode| mode == 2004) =>
                {
                    self.paste = match control.last {
                        b'h' => true,
                        b'l' => false,
                        _ => self.paste,
                    };
                }
                Piece::Escape { intermediates: b"", last: b'c' } => self.paste = false,
                _ => {}
            }
        }
        self.paste != before
    }

    /// The bytes after this are not those after the last ones: nothing unfinished counts any more.
    pub(super) fn begin_anew(&mut self, offset: u64) {
        self.doorbell.give_up();
        self.scanner = Scanner::default();
        self.offset = offset;
        self.acknowledged = offset;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(flow: Flow) -> Terminal {
        let secret = Secret::new([1; 16]);
        let mut terminal = Terminal::new(TerminalId::from_random(1), vec![], &secret, Size::DEFAULT, Life::Running);
        terminal.flow = flow;
        terminal
    }

    fn output(offset: u64, bytes: &[u8]) -> Event {
        Event::Output { id: TerminalId::from_random(1), stream: Stream::Main, offset, bytes: bytes.to_vec() }
    }

    #[test]
    fn offsets_count_the_programs_own_bytes() {
        let mut terminal = terminal(Flow::Flowing);
        assert_eq!(terminal.output(b"abc".to_vec()).events, [output(0, b"abc")]);
        let bell = |ring| Secret::new([1; 16]).bell(ring);
        let heard = terminal.output([b"de", &bell(Ring::Begun)[..], b"f"].concat());
        assert!(heard.rang && !terminal.over);
        assert_eq!(heard.events, [output(3, b"def")]);
        assert_eq!(terminal.output(b"\x18".to_vec()).events, []);
        assert_eq!(terminal.last_output(), Some(output(6, b"\x18")));
        terminal.flow = Flow::Unheard;
        let heard = terminal.output(bell(Ring::Over));
        assert!(heard.rang && terminal.over, "it is heard although its output is not");
    }

    #[test]
    fn what_came_before_somebody_asked_is_kept_up_to_a_point() {
        let mut terminal = terminal(Flow::Kept(vec![]));
        assert_eq!(terminal.output(b"abc".to_vec()).events, []);
        assert_eq!(terminal.flow, Flow::Kept(b"abc".to_vec()));
        terminal.output(vec![b'x'; KEPT]);
        assert_eq!(terminal.flow, Flow::Unheard);
        assert_eq!(terminal.output(b"abc".to_vec()), Heard::default());
    }

    #[test]
    fn one_that_is_not_dealt_with_is_held() {
        let mut terminal = terminal(Flow::Flowing);
        let chunk = vec![b'x'; 1 << 20];
        let held = (0..20).position(|_| terminal.output(chunk.clone()).too_far);
        assert_eq!((held, &terminal.flow), (Some(8), &Flow::Held));
        assert_eq!(terminal.output(chunk), Heard::default(), "tmux drops the rest, and so do we");
    }

    #[test]
    fn the_wish_for_marked_pastes_is_heard() {
        let mut terminal = terminal(Flow::Flowing);
        for (bytes, changed, paste) in [
            (&b"\x1b[?20"[..], false, false),
            (b"04h", true, true),
            (b"\x1b[?2004h\x1b[?25;2004h", false, true),
            (b"\x1b[?1049;2004l", true, false),
            (b"\x1b[2004h", false, false),
        ] {
            assert_eq!((terminal.output(bytes.to_vec()).paste_changed, terminal.paste), (changed, paste), "{bytes:?}");
        }
    }
}
