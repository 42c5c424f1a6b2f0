//! The text being written in the input box.

use crate::look::Look;

/// A prompt on its way: what it says, and what the screen shows for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) shown: String,
}

impl Message {
    pub(super) fn plain(text: &str) -> Message {
        Message { text: text.to_owned(), shown: text.to_owned() }
    }
}

#[derive(Debug, Default)]
pub(super) struct Draft {
    pieces: Vec<Piece>,
    /// Long pastes are numbered for as long as the agent lives.
    folded: usize,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    /// A long paste, shown as a label.
    Folded {
        text: String,
        label: String,
    },
}

impl Draft {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn message(&self) -> Message {
        let mut message = Message::default();
        for piece in &self.pieces {
            let (text, shown) = match piece {
                Piece::Text(text) => (text, text),
                Piece::Folded { text, label } => (text, label),
            };
            message.text.push_str(text);
            message.shown.push_str(shown);
        }
        message
    }

    pub(super) fn take(&mut self) -> Message {
        let message = self.message();
        self.pieces.clear();
        message
    }

    pub(super) fn push(&mut self, c: char) {
        if let Some(Piece::Text(text)) = self.pieces.last_mut() {
            text.push(c);
        } else {
            self.pieces.push(Piece::Text(c.to_string()));
        }
    }

    /// `fold` is the number of characters from which on a paste is shown as a label; 0 is never.
    pub(super) fn paste(&mut self, text: String, fold: usize, look: Look) {
        if fold > 0 && text.chars().count() > fold {
            self.folded += 1;
            let label = look.paste_label(self.folded, &text);
            self.pieces.push(Piece::Folded { text, label });
        } else if let Some(Piece::Text(before)) = self.pieces.last_mut() {
            before.push_str(&text);
        } else if !text.is_empty() {
            self.pieces.push(Piece::Text(text));
        }
    }

    /// Puts a message before what is there.
    pub(super) fn prepend(&mut self, message: Message) {
        if !message.text.is_empty() {
            self.pieces.insert(0, Piece::Text(message.text));
        }
    }

    pub(super) fn backspace(&mut self) {
        if let Some(Piece::Text(text)) = self.pieces.last_mut() {
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

    /// Removes the last line; if that is empty, the line break before it.
    pub(super) fn clear_line(&mut self) {
        while let Some(piece) = self.pieces.last_mut() {
            match piece {
                Piece::Folded { .. } => {
                    self.pieces.pop();
                }
                Piece::Text(text) => {
                    let line_start = text.rfind('\n').map(|at| if at + 1 == text.len() { at } else { at + 1 });
                    text.truncate(line_start.unwrap_or(0));
                    if text.is_empty() {
                        self.pieces.pop();
                    }
                    if line_start.is_some() {
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pastes_are_shown_as_a_label_and_sent_whole() {
        let mut draft = Draft::default();
        draft.push('a');
        draft.paste("one\ntwo\nthree".into(), 5, Look::Claude);
        draft.push('b');
        assert_eq!(
            draft.message(),
            Message { text: "aone\ntwo\nthreeb".into(), shown: "a[Pasted text #1 +2 lines]b".into() }
        );
        draft.backspace();
        draft.backspace();
        assert_eq!(draft.message(), Message::plain("a"));
        draft.paste("123456".into(), 5, Look::Codex);
        assert_eq!(draft.take().shown, "a[Pasted Content 6 chars]");
        assert!(draft.is_empty());
    }

    #[test]
    fn a_line_at_a_time_can_be_cleared() {
        let mut draft = Draft::default();
        draft.paste("one\ntwo".into(), 0, Look::Plain);
        let mut seen = Vec::new();
        while !draft.is_empty() {
            draft.clear_line();
            seen.push(draft.message().text);
        }
        assert_eq!(seen, ["one\n", "one", ""]);
        draft.clear_line();
        draft.backspace();
    }
}
