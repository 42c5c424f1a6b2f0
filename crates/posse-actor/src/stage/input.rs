//! What keys do: in the input box, and in a dialog.

use std::time::Duration;

use super::play::{Act, Part, Play};
use super::{Armed, Arms, DOUBLE_PRESS, Ending, Message, Stage};
use crate::keys::Key;
use crate::look::Look;
use crate::record::{By, Ignored, Record};
use crate::scenario::CtrlU;
use crate::time::Mono;

/// Measured on Claude Code 2.1.197: an Enter sooner than this after the first box did nothing, 5 of 5 times.
const FIRST_ENTER: Duration = Duration::from_millis(100);

/// What a key does to an open dialog.
enum Reply {
    Choose(usize),
    Cancel,
    Move(usize),
    Nothing,
}

impl Stage {
    pub(super) fn take_keys(&mut self, keys: Vec<Key>, now: Mono) {
        for key in keys {
            if self.ending.is_some() {
                return;
            }
            if matches!(self.play, Some(Play { act: Act::Ask(_), .. })) {
                self.dialog_key(&key, now);
            } else {
                self.composer_key(key, now);
            }
            // A key may have ended a step; the next key meets what comes after it.
            self.advance(now);
        }
    }

    fn dialog_key(&mut self, key: &Key, now: Mono) {
        let y_accepts = self.scenario.y_accepts.unwrap_or_else(|| self.scenario.look.y_accepts());
        let Some(Play { act: Act::Ask(dialog), .. }) = &mut self.play else {
            return;
        };
        if now < dialog.drawn + self.scenario.dialog_deaf {
            self.records.push(Record::Ignored(Ignored::DialogDeaf));
            return;
        }
        let last = dialog.options.len().saturating_sub(1);
        let reply = match key {
            Key::Enter => Reply::Choose(dialog.cursor),
            Key::Char(digit @ '1'..='9') if dialog.ask.numbered => {
                let at = *digit as usize - '1' as usize;
                if at <= last { Reply::Choose(at) } else { Reply::Nothing }
            }
            Key::Char('y') if y_accepts => dialog.ask.accept.first().map_or(Reply::Nothing, |at| Reply::Choose(at - 1)),
            Key::Char('n') if y_accepts => Reply::Cancel,
            Key::Esc | Key::Ctrl('c') => Reply::Cancel,
            Key::Up => Reply::Move(dialog.cursor.saturating_sub(1)),
            Key::Down => Reply::Move((dialog.cursor + 1).min(last)),
            Key::Paste(_) => {
                self.records.push(Record::Ignored(Ignored::PasteIntoDialog));
                Reply::Nothing
            }
            _ => Reply::Nothing,
        };
        match reply {
            Reply::Choose(at) => self.answer(Some(at), key.name(), now),
            Reply::Cancel => self.answer(None, key.name(), now),
            Reply::Move(to) => dialog.cursor = to,
            Reply::Nothing => {}
        }
    }

    fn composer_key(&mut self, key: Key, now: Mono) {
        let look = self.scenario.look;
        let armed = self.armed.take().map(|armed| armed.what);
        match key {
            Key::Char(c) => {
                self.draft.push(c);
                self.typed = Some(now);
            }
            Key::Newline => self.draft.push('\n'),
            Key::Paste(text) => {
                let fold = self.scenario.fold_paste.unwrap_or_else(|| look.usual_fold());
                self.draft.paste(text, fold, look);
            }
            Key::Backspace => self.draft.backspace(),
            Key::Ctrl('u') => match self.scenario.ctrl_u {
                CtrlU::All => self.draft.clear(),
                CtrlU::Line => self.draft.clear_line(),
            },
            Key::Enter => self.enter(now),
            Key::Tab if look == Look::Codex && self.in_turn() => {
                if let Some(message) = self.take_draft() {
                    self.submit(message, By::Keys, now);
                }
            }
            Key::Up if self.draft.is_empty() && !self.queue.is_empty() => {
                let texts: Vec<String> = self.queue.drain(..).map(|message| message.text).collect();
                self.draft.prepend(Message::plain(&texts.join("\n")));
            }
            Key::Esc if self.in_turn() => self.interrupt(now),
            Key::Esc if !self.draft.is_empty() => match armed {
                Some(Arms::ClearDraft) => self.draft.clear(),
                _ => self.armed = Some(Armed { what: Arms::ClearDraft, until: now + DOUBLE_PRESS }),
            },
            Key::Ctrl('c') if self.in_turn() => self.interrupt(now),
            Key::Ctrl('c') if !self.draft.is_empty() => self.draft.clear(),
            Key::Ctrl('c') if self.ready.is_none() => self.ending = Some(Ending::Exit(130)),
            Key::Ctrl('c' | 'd') if self.draft.is_empty() && !self.in_turn() => match armed {
                Some(Arms::Exit) => self.ending = Some(Ending::Exit(0)),
                _ if look != Look::Claude => self.ending = Some(Ending::Exit(0)),
                _ => self.armed = Some(Armed { what: Arms::Exit, until: now + DOUBLE_PRESS }),
            },
            _ => {}
        }
    }

    fn enter(&mut self, now: Mono) {
        let Some(ready) = self.ready else {
            return;
        };
        if self.scenario.swallow_first_enter && now < ready + FIRST_ENTER {
            self.records.push(Record::Ignored(Ignored::FirstEnter));
            return;
        }
        if self.typed.is_some_and(|typed| now < typed + self.scenario.burst_guard) {
            self.draft.push('\n');
            return;
        }
        let Some(message) = self.take_draft() else {
            return;
        };
        if self.scenario.look == Look::Codex && self.in_turn() {
            self.steer(message);
        } else {
            self.submit(message, By::Keys, now);
        }
    }

    /// The draft, unless there is nothing in it.
    fn take_draft(&mut self) -> Option<Message> {
        let message = self.draft.message();
        if message.text.trim().is_empty() {
            return None;
        }
        Some(self.draft.take())
    }

    fn in_turn(&self) -> bool {
        matches!(self.play, Some(Play { part: Part::Turn { .. }, .. }))
    }
}
