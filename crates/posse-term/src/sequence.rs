//! Finds the boundaries of escape sequences in a stream that arrives in arbitrary pieces.
//!
//! The emulator passes only whole characters and whole sequences to vt100, for three reasons. A reply knows the exact
//! offset at which its query ended. An unfinished sequence is held here and not inside the parser of vt100 (whose state
//! cannot be read), so a checkpoint can be taken behind any byte. A string without an end cannot fill the memory.
//!
//! The boundaries are those of vte, the parser inside vt100, with three deliberate differences, all in strings that vt100
//! would ignore anyway: the byte 9C does not end a device control string (it occurs inside UTF-8 text), `ESC k` begins a
//! string (tmux and screen expect a title there), and overlong strings are cut.
//!
//! This module does not interpret sequences.

use memchr::memchr;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;

/// The number of bytes of a string sequence that are kept; the rest is dropped. Four times the longest payload that is
/// passed on. Larger ones are pictures and clipboards, which are not interpreted.
pub(crate) const STRING_MAX: usize = 16 << 10;

/// A control sequence of this length is dropped as garbage. The longest valid ones set two colours and all attributes in
/// about 60 bytes.
pub(crate) const CONTROL_MAX: usize = 1 << 10;

/// One whole sequence, or a run of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamPiece<'a> {
    /// Text and single control characters. Never ends inside a character; may contain invalid bytes.
    Text(&'a [u8]),
    /// `ESC`, intermediate bytes, and a last one.
    Escape { intermediates: &'a [u8], last: u8 },
    /// `ESC [ …`
    Control(Control<'a>),
    /// `ESC ] … ` up to its terminator.
    Command { body: &'a [u8], end: Terminator },
    /// `ESC P …` without its terminator.
    Device(&'a [u8]),
    /// A string that is ignored (`ESC _`, `ESC ^`, `ESC X`, `ESC k`), or a broken sequence.
    Nothing,
}

/// The terminator of a command. An answer must end like its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terminator {
    Bell,
    /// `ESC \`, and everything else that ends a string.
    String,
}

impl Terminator {
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Terminator::Bell => b"\x07",
            Terminator::String => b"\x1b\\",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control<'a> {
    /// The whole sequence, with the introducer.
    pub(crate) raw: &'a [u8],
    /// One of `<`, `=`, `>`, `?` directly after the introducer.
    pub(crate) private: Option<u8>,
    /// Digits, `;` and `:`.
    pub(crate) parameters: &'a [u8],
    pub(crate) intermediates: &'a [u8],
    pub(crate) last: u8,
}

impl<'a> Control<'a> {
    /// Parses `ESC [ … last`, as the scanner collects it. `None` for a sequence that is broken or too long.
    fn parse(raw: &'a [u8]) -> Option<Self> {
        let (&last, body) = raw.get(2..)?.split_last()?;
        let private = body.first().copied().filter(|b| matches!(b, b'<'..=b'?'));
        let body = &body[usize::from(private.is_some())..];
        let digits = body.iter().take_while(|b| matches!(b, b'0'..=b';')).count();
        let (parameters, intermediates) = body.split_at(digits);
        let whole = raw.len() < CONTROL_MAX && intermediates.iter().all(|b| matches!(b, 0x20..=0x2f));
        whole.then_some(Self { raw, private, parameters, intermediates, last })
    }

    /// Returns the parameters, at least one. A missing one is 0; of sub-parameters the first counts.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u16> + 'a {
        self.parameters.split(|b| *b == b';').map(|p| number(p.split(|b| *b == b':').next().unwrap_or_default()))
    }

    /// Returns the parameter at `index`, or `default` if it is missing or 0.
    pub(crate) fn number_or(&self, index: usize, default: u16) -> u16 {
        self.numbers().nth(index).filter(|n| *n != 0).unwrap_or(default)
    }
}

/// Parses decimal digits; saturates at the largest number.
pub(crate) fn number(digits: &[u8]) -> u16 {
    digits.iter().fold(0u16, |n, b| n.saturating_mul(10).saturating_add(u16::from(b.wrapping_sub(b'0'))))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ScannerState {
    /// Text; the held bytes are the beginning of a character.
    #[default]
    Ground,
    Escape,
    Control,
    String,
    /// An `ESC` inside a string: the end of the string, and perhaps the start of another sequence.
    StringEscape,
}

enum ScanStep {
    /// The byte was taken; the piece is not complete yet.
    More,
    /// A control character inside a sequence: it acts at once, as if it preceded the sequence.
    Character,
    /// The byte completed the held piece.
    Done(Terminator),
    /// The held string was complete before this byte, which is not taken.
    Before,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Scanner {
    state: ScannerState,
    held: Vec<u8>,
    /// The completed bytes, from which pieces borrow.
    done: Vec<u8>,
}

impl Scanner {
    /// Returns the next whole piece and removes its bytes from `input`. `None` if no bytes are left.
    pub(crate) fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Option<StreamPiece<'s>> {
        loop {
            if self.state == ScannerState::Ground {
                if self.held.is_empty() {
                    if let Some(text) = self.text(input) {
                        return Some(StreamPiece::Text(text));
                    }
                } else if self.completes_character(input) {
                    return Some(StreamPiece::Text(&self.done));
                }
                if self.state == ScannerState::Ground {
                    if input.is_empty() {
                        return None;
                    }
                    continue;
                }
            }
            let bytes = *input;
            let (&byte, rest) = bytes.split_first()?;
            match self.step(byte) {
                ScanStep::More => *input = rest,
                ScanStep::Character => {
                    *input = rest;
                    return Some(StreamPiece::Text(&bytes[..1]));
                }
                ScanStep::Done(end) => {
                    *input = rest;
                    return Some(self.piece(end));
                }
                ScanStep::Before => return Some(self.piece(Terminator::String)),
            }
        }
    }

    /// Returns whether no sequence and no character has started.
    pub(crate) fn is_at_ground(&self) -> bool {
        self.state == ScannerState::Ground && self.held.is_empty()
    }

    /// Returns the bytes of an unfinished sequence or character. Scanning them again from the ground leads back here.
    pub(crate) fn unfinished(&self) -> Vec<u8> {
        let mut bytes = self.held.clone();
        if self.state == ScannerState::StringEscape {
            bytes.push(ESC);
        }
        bytes
    }

    /// Restores a scanner in the middle of a piece. `None` if these bytes are not the beginning of one piece.
    pub(crate) fn resume(unfinished: &[u8]) -> Option<Self> {
        let mut scanner = Self::default();
        let mut rest = unfinished;
        let whole = scanner.next(&mut rest).is_some();
        (!whole && scanner.unfinished() == unfinished).then_some(scanner)
    }

    /// Returns the text up to the next escape sequence. If there is no text, changes the state.
    fn text<'a>(&mut self, input: &mut &'a [u8]) -> Option<&'a [u8]> {
        let bytes = *input;
        let end = memchr(ESC, bytes).unwrap_or(bytes.len());
        if end == 0 && !bytes.is_empty() {
            *input = &bytes[1..];
            self.begin_escape();
            return None;
        }
        let (text, rest) = bytes.split_at(end);
        let (text, partial) = text.split_at(text.len() - cut_character(text));
        // A character cut off by an escape sequence is lost; one cut off by the end of input is kept.
        if rest.is_empty() {
            self.held.extend_from_slice(partial);
        }
        *input = rest;
        let text = whole_characters(text);
        (!text.is_empty()).then_some(text)
    }

    /// Returns whether the held start of a character became a whole one, now in `done`. A start that turns out wrong is
    /// dropped, and the byte that showed it is examined again.
    fn completes_character(&mut self, input: &mut &[u8]) -> bool {
        while let Some((&byte, rest)) = input.split_first() {
            self.held.push(byte);
            match std::str::from_utf8(&self.held) {
                Ok(_) => {
                    *input = rest;
                    self.finish_held();
                    return true;
                }
                Err(error) if error.error_len().is_none() => *input = rest,
                Err(_) => {
                    self.held.clear();
                    return false;
                }
            }
        }
        false
    }

    fn begin_escape(&mut self) {
        self.held.clear();
        self.held.push(ESC);
        self.state = ScannerState::Escape;
    }

    fn finish_held(&mut self) {
        std::mem::swap(&mut self.held, &mut self.done);
        self.held.clear();
    }

    fn keep(&mut self, byte: u8, state: ScannerState) -> ScanStep {
        self.state = state;
        self.held.push(byte);
        ScanStep::More
    }

    fn done(&mut self, end: Terminator) -> ScanStep {
        self.state = ScannerState::Ground;
        ScanStep::Done(end)
    }

    fn step(&mut self, byte: u8) -> ScanStep {
        use ScannerState::{Control, Escape, Ground, String, StringEscape};
        match (self.state, byte) {
            // `next` deals with the ground itself.
            (Ground, _) => ScanStep::More,
            (String, _) => self.step_string(byte),
            (StringEscape, b'\\') => self.done(Terminator::String),
            (StringEscape, _) => {
                // `piece` removes the held bytes and leaves the `ESC`.
                self.state = Escape;
                ScanStep::Before
            }
            (_, ESC) => {
                self.begin_escape();
                ScanStep::More
            }
            (_, CAN | SUB) => {
                self.held.clear();
                self.done(Terminator::String)
            }
            (_, 0x00..=0x1f) => ScanStep::Character,
            (_, 0x7f..) => ScanStep::More,
            (Escape, _) => self.step_escape(byte),
            (Control, _) => self.step_control(byte),
        }
    }

    fn step_escape(&mut self, byte: u8) -> ScanStep {
        let first = self.held.len() == 1;
        match byte {
            0x20..=0x2f if self.held.len() >= CONTROL_MAX => ScanStep::More,
            0x20..=0x2f => self.keep(byte, ScannerState::Escape),
            b'[' if first => self.keep(byte, ScannerState::Control),
            b']' | b'P' | b'X' | b'^' | b'_' | b'k' if first => self.keep(byte, ScannerState::String),
            _ => {
                self.held.push(byte);
                self.done(Terminator::String)
            }
        }
    }

    fn step_control(&mut self, byte: u8) -> ScanStep {
        if self.held.len() < CONTROL_MAX {
            self.held.push(byte);
        }
        if byte >= 0x40 { self.done(Terminator::String) } else { ScanStep::More }
    }

    fn step_string(&mut self, byte: u8) -> ScanStep {
        match byte {
            ESC => {
                self.state = ScannerState::StringEscape;
                ScanStep::More
            }
            BEL if self.held.get(1) == Some(&b']') => self.done(Terminator::Bell),
            CAN | SUB => self.done(Terminator::String),
            0x00..=0x1f => ScanStep::More,
            _ if self.held.len() < STRING_MAX => self.keep(byte, ScannerState::String),
            _ => ScanStep::More,
        }
    }

    /// Returns the held piece, and drops a broken one.
    fn piece(&mut self, end: Terminator) -> StreamPiece<'_> {
        self.finish_held();
        if self.state == ScannerState::Escape {
            self.held.push(ESC);
        }
        let body = self.done.get(2..).unwrap_or_default();
        match self.done.get(1) {
            None | Some(b'X' | b'^' | b'_' | b'k') => StreamPiece::Nothing,
            Some(b'[') => Control::parse(&self.done).map_or(StreamPiece::Nothing, StreamPiece::Control),
            Some(b']') => StreamPiece::Command { body, end },
            Some(b'P') => StreamPiece::Device(body),
            Some(_) => {
                let intermediates = &self.done[1..self.done.len() - 1];
                StreamPiece::Escape { intermediates, last: self.done[self.done.len() - 1] }
            }
        }
    }
}

/// Returns text without unfinished characters at its end, because vte loses the bytes after them.
fn whole_characters(mut text: &[u8]) -> &[u8] {
    loop {
        match cut_character(text) {
            0 => return text,
            cut => text = &text[..text.len() - cut],
        }
    }
}

/// Returns the number of bytes of an unfinished character at the end.
pub(crate) fn cut_character(text: &[u8]) -> usize {
    // A character has at most four bytes, so a cut one shows its first byte among the last three.
    let tail = &text[text.len().saturating_sub(3)..];
    let Some(lead) = tail.iter().rposition(|b| *b >= 0xc0) else { return 0 };
    match std::str::from_utf8(&tail[lead..]) {
        Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => tail.len() - lead,
        _ => 0,
    }
}

#[cfg(test)]
pub(crate) mod tests;
