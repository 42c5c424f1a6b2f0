//! Typed text, and its appearance on the screen.

use regex::Regex;

/// The minimum length of a part that identifies a text, as input fields show few rows. Shorter parts are ambiguous.
const PART: usize = 24;

/// Returns the part of a text that may be typed: no control characters but `\n`, and nothing that could end a paste.
pub fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    text.trim_end_matches('\n').to_owned()
}

pub fn paste(text: &str, bracketed: bool) -> Vec<u8> {
    if bracketed { format!("\x1b[200~{text}\x1b[201~").into_bytes() } else { text.as_bytes().to_vec() }
}

/// Reduces a text to characters that every screen keeps: rows are wrapped anywhere, tabs become spaces, and programs
/// disagree about the width of unusual characters.
fn essence(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic() || (!c.is_ascii() && c.is_alphanumeric())).collect()
}

/// A text to be recognised on a screen.
#[derive(Clone, Debug)]
pub struct Recognised {
    essence: String,
    /// The lengths up to each blank line, which ends the draft of an input field without a frame.
    paragraphs: Vec<usize>,
    pasted: Option<Regex>,
}

impl Recognised {
    pub fn new(text: &str, pasted: Option<Regex>) -> Self {
        let paragraphs = text.match_indices("\n\n").map(|(end, _)| essence(&text[..end]).len()).collect();
        Self { essence: essence(text), paragraphs, pasted }
    }

    /// Returns whether a draft shows the text: all of it, a large part, or the label of a long paste.
    pub fn shown_by(&self, draft: &str) -> bool {
        if draft.is_empty() {
            return false;
        }
        let seen = essence(draft);
        if self.essence.is_empty() || seen == self.essence || self.is_label(draft) {
            return true;
        }
        // A leading mark may turn into the mark of the input field.
        let marked = self.essence.strip_prefix(['!', '/', '#']).is_some_and(|rest| !rest.is_empty() && rest == seen);
        let paragraphs = self.paragraphs.contains(&seen.len()) && self.essence.starts_with(&seen);
        marked || paragraphs || (seen.len() >= PART && self.essence.contains(&seen))
    }

    /// Returns whether a draft is the label of a long paste, of any text.
    pub fn is_label(&self, draft: &str) -> bool {
        self.pasted.as_ref().is_some_and(|pasted| pasted.is_match(draft.trim()))
    }

    /// Returns whether the draft still contains the text, perhaps with additions.
    pub(super) fn is_in(&self, draft: &str) -> bool {
        self.shown_by(draft) || (!self.essence.is_empty() && essence(draft).contains(&self.essence))
    }

    /// Returns whether the draft is the text, or its label, followed by `mark`; `before` is the draft without the mark.
    pub(super) fn is_followed_by(&self, mark: &str, draft: &str, before: &str) -> bool {
        let seen = essence(draft);
        let Some(rest) = seen.strip_suffix(mark).filter(|rest| !rest.is_empty() && seen != essence(before)) else {
            return false;
        };
        let label = draft.trim().strip_suffix(mark).is_some_and(|label| self.is_label(label));
        label || rest == essence(before) || (rest.len() >= PART && self.essence.ends_with(rest))
    }

    /// Returns whether an echo in the conversation belongs to this text. Echoes are often cut short.
    pub fn echoed_by(&self, echo: &str) -> bool {
        let seen = essence(echo);
        self.is_label(echo) || (!seen.is_empty() && self.essence.starts_with(&seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_removed_from_typed_text() {
        for (text, cleaned) in [
            ("a\r\nb\rc\n", "a\nb\nc"),
            ("a\x1b[201~rm -rf /\r", "a[201~rm -rf /"),
            ("\u{9b}201~\x03\x04x\ty\0", "201~x\ty"),
            ("\n", ""),
        ] {
            assert_eq!(clean(text), cleaned, "{text:?}");
        }
        assert_eq!(paste("a\nb", true), b"\x1b[200~a\nb\x1b[201~");
    }

    #[test]
    fn draft_is_recognised_with_any_wrapping() {
        let pasted = Regex::new(r"^\[Pasted text #\d+(?: \+\d+ lines)?\]$").unwrap();
        let long = "Please read the file docs/architecture.md and tell me what it says.";
        for (text, draft, shown) in [
            ("fix it", "fix it", true),
            ("fix it", "fix", false),
            ("fix it", "", false),
            ("a\n\tb", "a\n  b", true),
            (long, "Please read the file docs/architec\nture.md and tell me what it says.", true),
            (long, "architecture.md and tell me what it says.", true),
            (long, "what it says.", false),
            (long, "[Pasted text #3 +60 lines]", true),
            (long, "see [Pasted text #3 +60 lines]", false),
            ("!ls", "ls", true),
            ("one\ntwo\n\nthree", "one\ntwo", true),
            ("one\ntwo\n\nthree", "one", false),
            ("¡🎉!", "🎉", false),
            ("🎉", "🎉", true),
        ] {
            assert_eq!(Recognised::new(text, Some(pasted.clone())).shown_by(draft), shown, "{text:?} as {draft:?}");
        }
        for (text, before, draft, followed) in [
            ("fix it", "fix it", "fix it.", true),
            ("fix it", "fix it", "fix it", false),
            ("fix it", "fix it", ".", false),
            (long, long, long, false),
            (long, "architecture.md and tell me what it says.", "ture.md and tell me what it says..", true),
            (long, "[Pasted text #3]", "[Pasted text #3].", true),
        ] {
            let recognised = Recognised::new(text, Some(pasted.clone()));
            assert_eq!(recognised.is_followed_by(".", draft, before), followed, "{draft:?} after {before:?}");
        }
    }
}
