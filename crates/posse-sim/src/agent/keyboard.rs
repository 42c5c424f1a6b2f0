//! Handles keys in the input box and in dialogs.

use super::draft::PromptMessage;
use super::keys::TypedKey;
use super::player::{ActivityKind, AgentCut, AgentHost, ScriptedAgent};
use super::record::AgentRecord;
use crate::scenario::AgentLook;

/// The user's answer to a dialog: an option, counted from 0, or `None` for a cancel.
pub(super) type DialogChoice = Option<usize>;

impl<H: AgentHost> ScriptedAgent<H> {
    /// Handles a key in the open dialog. Returns the answer if the key gives one.
    pub(super) fn dialog_key(&mut self, key: &TypedKey) -> Option<DialogChoice> {
        let now = self.host.now();
        let codex = self.scenario.look == AgentLook::Codex;
        let activity = self.activity.as_mut()?;
        let ActivityKind::Ask(dialog) = &mut activity.kind else { return None };
        if now < activity.since + self.scenario.dialog_deaf {
            return None;
        }
        let last = dialog.options.len().saturating_sub(1);
        match key {
            TypedKey::Enter => return Some(Some(dialog.cursor)),
            TypedKey::Char(digit @ '1'..='9') if dialog.ask.numbered && *digit as usize - '1' as usize <= last => {
                return Some(Some(*digit as usize - '1' as usize));
            }
            TypedKey::Char('y') if codex => return Some(dialog.ask.accept.first().map(|at| at - 1)),
            TypedKey::Char('n') if codex => return Some(None),
            TypedKey::Esc | TypedKey::Ctrl('c') => return Some(None),
            TypedKey::Up => dialog.cursor = dialog.cursor.saturating_sub(1),
            TypedKey::Down => dialog.cursor = (dialog.cursor + 1).min(last),
            _ => {}
        }
        None
    }

    pub(super) fn composer_key(&mut self, key: TypedKey) -> Result<(), AgentCut> {
        match key {
            TypedKey::Char(c) => {
                self.draft.push(c);
                self.typed = Some(self.host.now());
            }
            TypedKey::Newline => self.draft.push('\n'),
            TypedKey::Paste(text) => self.draft.paste(text, self.scenario.look),
            TypedKey::Backspace => self.draft.backspace(),
            TypedKey::Ctrl('u') => self.draft.clear(),
            TypedKey::Enter => return self.enter(),
            TypedKey::Esc | TypedKey::Ctrl('c') if self.turn.is_some() => return Err(AgentCut::Interrupted),
            TypedKey::Ctrl('c') if !self.draft.is_empty() => self.draft.clear(),
            TypedKey::Ctrl('c') => return Err(AgentCut::Exit(if self.ready { 0 } else { 130 })),
            _ => {}
        }
        Ok(())
    }

    fn enter(&mut self) -> Result<(), AgentCut> {
        let now = self.host.now();
        if !self.ready {
            return Ok(());
        }
        if self.typed.is_some_and(|typed| now < typed + self.scenario.burst_guard) {
            self.draft.push('\n');
        } else if !self.draft.message().text.trim().is_empty() {
            let message = self.draft.take();
            return self.submit(message);
        }
        Ok(())
    }

    /// Queues a prompt. It plays when the agent is idle.
    pub(super) fn submit(&mut self, message: PromptMessage) -> Result<(), AgentCut> {
        self.records.push(AgentRecord::Submitted { prompt: message.text.clone() });
        if matches!(message.text.trim(), "/exit" | "/quit") {
            return Err(AgentCut::Exit(0));
        }
        if self.turn.is_some() {
            self.records.push(AgentRecord::Queued { prompt: message.text.clone() });
        }
        self.queue.push_back(message);
        Ok(())
    }
}
