//! The text in the input box.

use crate::scenario::AgentLook;

/// A prompt: its text, and what the screen shows for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PromptMessage {
    pub(super) text: String,
    pub(super) shown: String,
}

impl PromptMessage {
    pub(super) fn plain(text: impl Into<String>) -> PromptMessage {
        let text = text.into();
        PromptMessage { shown: text.clone(), text }
    }
}

/// Characters, and long pastes, which are shown as labels.
#[derive(Debug, Default)]
pub(super) struct PromptDraft {
    pieces: Vec<PromptMessage>,
    /// The number of pastes shown as labels so far.
    labels: usize,
}

impl PromptDraft {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn message(&self) -> PromptMessage {
        let joined = |part: fn(&PromptMessage) -> &str| self.pieces.iter().map(part).collect();
        PromptMessage { text: joined(|piece| &piece.text), shown: joined(|piece| &piece.shown) }
    }

    pub(super) fn take(&mut self) -> PromptMessage {
        let message = self.message();
        self.clear();
        message
    }

    pub(super) fn push(&mut self, c: char) {
        self.pieces.push(PromptMessage::plain(c));
    }

    pub(super) fn paste(&mut self, text: String, look: AgentLook) {
        if text.chars().count() > look.longest_paste() {
            self.labels += 1;
            self.pieces.push(PromptMessage { shown: look.paste_label(self.labels, &text), text });
        } else {
            text.chars().for_each(|c| self.push(c));
        }
    }

    /// Removes a character or a whole label.
    pub(super) fn backspace(&mut self) {
        self.pieces.pop();
    }

    pub(super) fn clear(&mut self) {
        self.pieces.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paste_is_shown_as_a_label_and_sent_whole() {
        let mut draft = PromptDraft::default();
        let long = "one\n".repeat(AgentLook::Claude.longest_paste());
        draft.push('a');
        draft.paste(long.clone(), AgentLook::Claude);
        draft.push('b');
        let shown = "a[Pasted text #1 +800 lines]b".into();
        assert_eq!(draft.message(), PromptMessage { text: format!("a{long}b"), shown });
        draft.backspace();
        draft.backspace();
        assert_eq!(draft.message(), PromptMessage::plain("a"));
        draft.paste("1".repeat(AgentLook::Codex.longest_paste() + 1), AgentLook::Codex);
        assert_eq!(draft.take().shown, "a[Pasted Content 1001 chars]");
        assert!(draft.is_empty());
    }
}
