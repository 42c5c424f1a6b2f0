//! The text in the input box.

use crate::scenario::AgentLook;

/// A prompt: its text, and what the screen shows for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PromptMessage {
    pub(super) text: String,
    pub(super) shown: String,
}

impl PromptMessage {
    pub(super) fn plain(text: &str) -> PromptMessage {
        PromptMessage { text: text.to_owned(), shown: text.to_owned() }
    }
}

#[derive(Debug, Default)]
pub(super) struct PromptDraft {
    pieces: Vec<DraftPiece>,
    /// The number of pastes shown as labels so far.
    folded: usize,
}

#[derive(Debug)]
enum DraftPiece {
    Text(String),
    /// A long paste, shown as a label.
    Folded {
        text: String,
        label: String,
    },
}

impl PromptDraft {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn message(&self) -> PromptMessage {
        let mut message = PromptMessage::default();
        for piece in &self.pieces {
            let (text, shown) = match piece {
                DraftPiece::Text(text) => (text, text),
                DraftPiece::Folded { text, label } => (text, label),
            };
            message.text.push_str(text);
            message.shown.push_str(shown);
        }
        message
    }

    pub(super) fn take(&mut self) -> PromptMessage {
        let message = self.message();
        self.pieces.clear();
        message
    }

    pub(super) fn push(&mut self, c: char) {
        if let Some(DraftPiece::Text(text)) = self.pieces.last_mut() {
            text.push(c);
        } else {
            self.pieces.push(DraftPiece::Text(c.to_string()));
        }
    }

    /// Adds a paste. The screen shows a long one as a label.
    pub(super) fn paste(&mut self, text: String, look: AgentLook) {
        if text.chars().count() > look.longest_paste() {
            self.folded += 1;
            let label = look.paste_label(self.folded, &text);
            self.pieces.push(DraftPiece::Folded { text, label });
        } else if let Some(DraftPiece::Text(before)) = self.pieces.last_mut() {
            before.push_str(&text);
        } else if !text.is_empty() {
            self.pieces.push(DraftPiece::Text(text));
        }
    }

    pub(super) fn backspace(&mut self) {
        if let Some(DraftPiece::Text(text)) = self.pieces.last_mut() {
            text.pop();
            if text.is_empty() {
                self.pieces.pop();
            }
        } else {
            self.pieces.pop();
        }
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
