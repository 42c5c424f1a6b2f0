//! Handles keys in the input box and in dialogs.

use posse_core::time::Mono;

use super::play::{ActiveStep, PlayPart, StepKind, TurnPlay};
use super::{AgentEffect, ScriptedAgent};
use crate::agent::keys::TypedKey;
use crate::agent::record::AgentRecord;
use crate::scenario::AgentLook;

impl ScriptedAgent {
    pub(super) fn take_keys(&mut self, keys: Vec<TypedKey>, now: Mono) {
        for key in keys {
            if self.ending.is_some() {
                return;
            }
            if matches!(self.play, Some(TurnPlay { act: ActiveStep { kind: StepKind::Ask(_), .. }, .. })) {
                self.dialog_key(&key, now);
            } else {
                self.composer_key(key, now);
            }
            // If the key ended a step, the next key goes to the step after it.
            self.advance(now);
        }
    }

    fn dialog_key(&mut self, key: &TypedKey, now: Mono) {
        let codex = self.scenario.look == AgentLook::Codex;
        let Some(TurnPlay { act: ActiveStep { kind: StepKind::Ask(dialog), since, .. }, .. }) = &mut self.play else {
            return;
        };
        if now < *since + self.scenario.dialog_deaf {
            return self.records.push(AgentRecord::Ignored);
        }
        let last = dialog.options.len().saturating_sub(1);
        let choice = match key {
            TypedKey::Enter => Some(dialog.cursor),
            TypedKey::Char(digit @ '1'..='9') if dialog.ask.numbered && *digit as usize - '1' as usize <= last => {
                Some(*digit as usize - '1' as usize)
            }
            TypedKey::Char('y') if codex => dialog.ask.accept.first().map(|at| at - 1),
            TypedKey::Char('n') if codex => None,
            TypedKey::Esc | TypedKey::Ctrl('c') => None,
            TypedKey::Up => return dialog.cursor = dialog.cursor.saturating_sub(1),
            TypedKey::Down => return dialog.cursor = (dialog.cursor + 1).min(last),
            TypedKey::Paste(_) => return self.records.push(AgentRecord::Ignored),
            _ => return,
        };
        self.answer(choice, now);
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
        if !self.draft.message().text.trim().is_empty() {
            let message = self.draft.take();
            self.submit(message, now);
        }
    }

    fn in_turn(&self) -> bool {
        matches!(self.play, Some(TurnPlay { part: PlayPart::Turn { .. }, .. }))
    }
}
