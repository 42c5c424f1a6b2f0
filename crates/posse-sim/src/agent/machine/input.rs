//! Handles keys in the input box and in dialogs.

use posse_core::time::Mono;

use super::play::{ActiveStep, PlayPart, TurnPlay};
use super::{AgentEffect, PromptMessage, ScriptedAgent};
use crate::agent::keys::TypedKey;
use crate::agent::record::AgentRecord;
use crate::scenario::AgentLook;

/// The effect of a key on an open dialog.
enum DialogReply {
    Choose(usize),
    Cancel,
    Move(usize),
    Nothing,
}

impl ScriptedAgent {
    pub(super) fn take_keys(&mut self, keys: Vec<TypedKey>, now: Mono) {
        for key in keys {
            if self.ending.is_some() {
                return;
            }
            if matches!(self.play, Some(TurnPlay { act: ActiveStep::Ask(_), .. })) {
                self.dialog_key(&key, now);
            } else {
                self.composer_key(key, now);
            }
            // If the key ended a step, the next key goes to the step after it.
            self.advance(now);
        }
    }

    fn dialog_key(&mut self, key: &TypedKey, now: Mono) {
        let y_accepts = self.scenario.look == AgentLook::Codex;
        let Some(TurnPlay { act: ActiveStep::Ask(dialog), .. }) = &mut self.play else {
            return;
        };
        if now < dialog.drawn + self.scenario.dialog_deaf {
            self.records.push(AgentRecord::Ignored);
            return;
        }
        let last = dialog.options.len().saturating_sub(1);
        let reply = match key {
            TypedKey::Enter => DialogReply::Choose(dialog.cursor),
            TypedKey::Char(digit @ '1'..='9') if dialog.ask.numbered => {
                let at = *digit as usize - '1' as usize;
                if at <= last { DialogReply::Choose(at) } else { DialogReply::Nothing }
            }
            TypedKey::Char('y') if y_accepts => {
                dialog.ask.accept.first().map_or(DialogReply::Nothing, |at| DialogReply::Choose(at - 1))
            }
            TypedKey::Char('n') if y_accepts => DialogReply::Cancel,
            TypedKey::Esc | TypedKey::Ctrl('c') => DialogReply::Cancel,
            TypedKey::Up => DialogReply::Move(dialog.cursor.saturating_sub(1)),
            TypedKey::Down => DialogReply::Move((dialog.cursor + 1).min(last)),
            TypedKey::Paste(_) => {
                self.records.push(AgentRecord::Ignored);
                DialogReply::Nothing
            }
            _ => DialogReply::Nothing,
        };
        match reply {
            DialogReply::Choose(at) => self.answer(Some(at), now),
            DialogReply::Cancel => self.answer(None, now),
            DialogReply::Move(to) => dialog.cursor = to,
            DialogReply::Nothing => {}
        }
    }

    fn composer_key(&mut self, key: TypedKey, now: Mono) {
        match key {
            TypedKey::Char(c) => {
                self.draft.push(c);
                self.typed = Some(now);
            }
            TypedKey::Newline => self.draft.push('\n'),
            TypedKey::Paste(text) => self.draft.paste(text, self.scenario.look),
            TypedKey::Backspace => self.draft.backspace(),
            TypedKey::Ctrl('u') => self.draft.clear(),
            TypedKey::Enter => self.enter(now),
            TypedKey::Esc | TypedKey::Ctrl('c') if self.in_turn() => self.interrupt(now),
            TypedKey::Ctrl('c') if !self.draft.is_empty() => self.draft.clear(),
            TypedKey::Ctrl('c') if !self.ready => self.ending = Some(AgentEffect::Exit(130)),
            TypedKey::Ctrl('c') => self.ending = Some(AgentEffect::Exit(0)),
            _ => {}
        }
    }

    fn enter(&mut self, now: Mono) {
        if !self.ready {
            return;
        }
        if self.typed.is_some_and(|typed| now < typed + self.scenario.burst_guard) {
            self.draft.push('\n');
            return;
        }
        let Some(message) = self.take_draft() else {
            return;
        };
        self.submit(message, now);
    }

    /// Takes the draft, unless it is blank.
    fn take_draft(&mut self) -> Option<PromptMessage> {
        let message = self.draft.message();
        if message.text.trim().is_empty() {
            return None;
        }
        Some(self.draft.take())
    }

    fn in_turn(&self) -> bool {
        matches!(self.play, Some(TurnPlay { part: PlayPart::Turn { .. }, .. }))
    }
}
