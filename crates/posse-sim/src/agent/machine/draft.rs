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

    fn add(&mut self, more: &PromptMessage) {
        self.text.push_str(&more.text);
        self.shown.push_str(&more.shown);
    }

    fn is_label(&self) -> bool {
        self.text != self.shown
    }
}

#[derive(Debug, Default)]
pub(super) struct PromptDraft {
    /// Text that is shown as it is, and long pastes, which are shown as labels. No piece is empty.
    pieces: Vec<PromptMessage>,
    /// The number of pastes shown as labels so far.
    labels: usize,
}

impl PromptDraft {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn message(&self) -> PromptMessage {
        let mut message = PromptMessage::default();
        self.pieces.iter().for_each(|piece| message.add(piece));
        message
    }

    pub(super) fn take(&mut self) -> PromptMessage {
        let message = self.message();
        self.clear();
        message
    }

    pub(super) fn push(&mut self, c: char) {
        self.add(PromptMessage::plain(c.encode_utf8(&mut [0; 4])));
    }

    /// Adds a paste. The screen shows a long one as a label.
    pub(super) fn paste(&mut self, text: String, look: AgentLook) {
        if text.chars().count() > look.longest_paste() {
            self.labels += 1;
            self.pieces.push(PromptMessage { shown: look.paste_label(self.labels, &text), text });
        } else if !text.is_empty() {
            self.add(PromptMessage::plain(&text));
        }
    }

    fn add(&mut self, plain: PromptMessage) {
        match self.pieces.last_mut() {
            Some(last) if !last.is_label() => last.add(&plain),
            _ => self.pieces.push(plain),
        }
    }

    pub(super) fn backspace(&mut self) {
        if let Some(mut last) = self.pieces.pop()
            && !last.is_label()
            && last.text.pop().is_some()
            && !last.text.is_empty()
        {
            self.pieces.push(PromptMessage::plain(&last.text));
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
