//! The program that is typed to: an input field, dialogs, turns, and the quirks that were measured.

use crate::rows::{Ask, Kind, Picture};

/// Claude Code 2.1.325 drops keys so soon after a dialog was drawn.
pub(crate) const DEAF: u64 = 200;
/// Claude Code 2.1.197 lost an Enter so soon after a paste into a new input field; Codex takes one so soon after a typed
/// character for a line break.
const GUARD: u64 = 100;

/// What happened, and by whose key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Submitted {
        order: usize,
        text: String,
    },
    /// An option of a dialog was chosen, or the dialog refused (`None`). Dialogs are numbered as they open.
    Chosen {
        order: usize,
        dialog: usize,
        option: Option<usize>,
    },
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Label { text: String, label: String },
}

#[derive(Clone, Debug)]
struct Open {
    number: usize,
    ask: usize,
    cursor: usize,
    drawn: u64,
}

/// Something the program will do by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Announce the questions, then open them one after the other.
    Ask(Vec<usize>),
    Draw(Vec<usize>),
    EndTurn,
}

#[derive(Default)]
pub(crate) struct Program {
    kind: Kind,
    pieces: Vec<Piece>,
    labels: usize,
    dialog: Option<Open>,
    /// Questions that follow at once.
    next: Vec<usize>,
    announced: bool,
    pub(crate) busy: bool,
    echoes: Vec<String>,
    dialogs: usize,
    /// What each dialog asked, from number 1.
    pub(crate) asked: Vec<usize>,
    born: u64,
    pasted: u64,
    typed: u64,
    /// In so many of a hundred cases Enter does nothing, for no reason we know.
    pub(crate) lossy: u64,
    pub(crate) facts: Vec<Fact>,
    /// What it will do, and in how many milliseconds.
    pub(crate) plans: Vec<(u64, Plan)>,
    /// What each submitted prompt leads to.
    pub(crate) turn: Vec<(u64, Plan)>,
    pub(crate) printed: u64,
    /// It goes to work, and says so.
    pub(crate) says_working: bool,
}

impl Program {
    pub(crate) fn new(kind: Kind, born: u64) -> Self {
        Self { kind, born, ..Self::default() }
    }

    pub(crate) fn picture(&self) -> Picture {
        let shown = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Label { label, .. } => label.clone(),
        };
        let dialog = self.dialog.as_ref().map(|open| (open.ask, open.cursor));
        Picture {
            // Hidden while a dialog is open, and back unchanged afterwards.
            draft: if dialog.is_some() { String::new() } else { self.pieces.iter().map(shown).collect() },
            dialog,
            busy: self.busy && dialog.is_none(),
            echoes: self.echoes.clone(),
            cut: None,
            about_to_ask: self.announced,
        }
    }

    pub(crate) fn leave_draft(&mut self, text: &str) {
        self.pieces = vec![Piece::Text(text.to_owned())];
    }

    pub(crate) fn open_dialog(&self) -> Option<(usize, &'static Ask)> {
        self.dialog.as_ref().map(|open| (open.number, &self.kind.asks()[open.ask]))
    }

    pub(crate) fn open_for(&self, now: u64) -> Option<u64> {
        self.dialog.as_ref().map(|open| now - open.drawn)
    }

    pub(crate) fn open(&mut self, mut asks: Vec<usize>, now: u64) {
        self.announced = false;
        if self.dialog.is_some() {
            self.next.extend(asks);
            return;
        }
        let ask = asks.remove(0);
        self.next.extend(asks);
        self.dialogs += 1;
        self.asked.push(ask);
        self.printed += 900;
        self.dialog = Some(Open { number: self.dialogs, ask, cursor: 0, drawn: now });
    }

    pub(crate) fn carry_out(&mut self, plan: Plan, now: u64) {
        match plan {
            // It asks one after the other, and announces each.
            Plan::Ask(asks) if self.kind == Kind::Codex && (self.announced || self.dialog.is_some()) => {
                self.next.extend(asks);
            }
            Plan::Ask(asks) if self.kind == Kind::Codex => {
                self.announced = true;
                // 0.92 s, and 2.15 s while someone types.
                self.plans.push((920 + (now % 7) * 200, Plan::Draw(asks)));
            }
            Plan::Ask(asks) | Plan::Draw(asks) => self.open(asks, now),
            Plan::EndTurn if self.dialog.is_some() || self.announced => self.plans.push((500, Plan::EndTurn)),
            Plan::EndTurn => {
                self.busy = false;
                self.printed += 100;
            }
        }
    }

    /// Bytes of one write. `chance` decides whether Enter is lost.
    pub(crate) fn keys(&mut self, order: usize, bytes: &[u8], now: u64, chance: u64) {
        let mut rest = bytes;
        while let Some((&first, more)) = rest.split_first() {
            if let Some(pasted) = rest.strip_prefix(b"\x1b[200~") {
                let end = pasted.windows(6).position(|window| window == b"\x1b[201~").unwrap();
                self.paste(std::str::from_utf8(&pasted[..end]).unwrap(), now);
                rest = &pasted[end + 6..];
                continue;
            }
            if let [b'\x1b', b'[', arrow, more @ ..] = rest {
                self.arrow(*arrow, now);
                rest = more;
                continue;
            }
            self.key(order, first, now, chance);
            rest = more;
        }
    }

    fn deaf(&self, now: u64) -> bool {
        self.kind == Kind::Claude325 && self.dialog.as_ref().is_some_and(|open| now < open.drawn + DEAF)
    }

    fn arrow(&mut self, arrow: u8, now: u64) {
        let deaf = self.deaf(now);
        let Some(open) = &mut self.dialog else { return };
        let last = self.kind.asks()[open.ask].options.len() - 1;
        match arrow {
            _ if deaf => return,
            b'A' => open.cursor = open.cursor.saturating_sub(1),
            _ => open.cursor = (open.cursor + 1).min(last),
        }
        self.printed += 30;
    }

    fn paste(&mut self, text: &str, now: u64) {
        if self.dialog.is_some() {
            return;
        }
        self.pasted = now;
        self.printed += 60;
        self.labels += 1;
        self.pieces.push(match self.kind.label(self.labels, text) {
            Some(label) => Piece::Label { text: text.to_owned(), label },
            None => Piece::Text(text.to_owned()),
        });
    }

    fn key(&mut self, order: usize, byte: u8, now: u64, chance: u64) {
        if let Some(open) = &self.dialog {
            if self.deaf(now) {
                return;
            }
            let ask = &self.kind.asks()[open.ask];
            let digit = (b'1'..=b'9').contains(&byte).then(|| (byte - b'1') as usize);
            let letter = ask.letters.get(&char::from(byte)).copied();
            match byte {
                b'\r' => self.choose(order, Some(open.cursor), now),
                b'\x1b' => {
                    let refusing = ask.options.iter().position(|label| label.ends_with("(esc)"));
                    self.choose(order, refusing, now);
                }
                _ => {
                    let digit = digit.filter(|at| ask.numbered && *at < ask.options.len());
                    if let Some(option) = digit.or(letter) {
                        self.choose(order, Some(option), now);
                    }
                }
            }
            return;
        }
        self.printed += 10;
        match byte {
            b'\r' => self.enter(order, now, chance),
            b'\x7f' => match self.pieces.last_mut() {
                Some(Piece::Text(text)) => {
                    text.pop();
                    if text.is_empty() {
                        self.pieces.pop();
                    }
                }
                _ => drop(self.pieces.pop()),
            },
            0x15 => self.clear_line(),
            // The cursor is at the end of the line already.
            b'\x1b' | 0x05 => {}
            _ => {
                self.typed = now;
                self.pieces.push(Piece::Text((byte as char).to_string()));
            }
        }
    }

    /// Up to the line break before; all of it in the older version.
    fn clear_line(&mut self) {
        while let Some(piece) = self.pieces.last_mut() {
            match piece {
                Piece::Text(text) if self.kind == Kind::Claude325 && text.contains('\n') => {
                    let end = text.rfind('\n').unwrap();
                    text.truncate(end + 1);
                    return;
                }
                _ => drop(self.pieces.pop()),
            }
        }
    }

    fn enter(&mut self, order: usize, now: u64, chance: u64) {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) | Piece::Label { text, .. } => text.clone(),
        };
        let text: String = self.pieces.iter().map(text).collect();
        let new = self.kind == Kind::Claude197 && self.pasted < self.born + 500 && now < self.pasted + GUARD;
        if text.trim().is_empty() || new || chance < self.lossy {
            return;
        }
        if self.kind == Kind::Codex && self.typed + GUARD > now && self.typed > 0 {
            self.pieces.push(Piece::Text("\n".into()));
            return;
        }
        let shown = self.picture().draft;
        self.pieces.clear();
        self.echoes.push(shown);
        if self.echoes.len() > 2 {
            self.echoes.remove(0);
        }
        self.says_working = true;
        if !self.busy {
            self.plans.extend(self.turn.clone());
        }
        self.busy = true;
        self.facts.push(Fact::Submitted { order, text });
    }

    /// An answer, by the keys of an order or by somebody else.
    pub(crate) fn choose(&mut self, order: usize, option: Option<usize>, now: u64) {
        let Some(open) = self.dialog.take() else { return };
        self.facts.push(Fact::Chosen { order, dialog: open.number, option });
        self.printed += 500;
        self.says_working = true;
        let next = std::mem::take(&mut self.next);
        match self.kind {
            _ if next.is_empty() => {}
            Kind::Codex => self.plans.push((30, Plan::Ask(next))),
            // Parallel calls: the next one takes its place in the same frame.
            _ => self.open(next, now),
        }
    }
}
