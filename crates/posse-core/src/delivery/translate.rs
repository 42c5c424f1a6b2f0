//! What a message means while a question is open.

use super::answer::{Decision, NotAnswered, Wish};
use crate::detect::Reading;
use crate::status::StatusKind;

/// What is to be done with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    /// No question is open: it is a prompt.
    Prompt,
    /// It answers the open question.
    Answer(Decision),
    /// A question is open, and this does not answer it. Nothing is typed.
    Refused(NotAnswered),
}

/// The question that is open, by name. A question that is only text is known by its row.
pub fn question(reading: &Reading) -> Option<String> {
    match &reading.dialog {
        Some(dialog) => Some(dialog.id.clone()),
        None if reading.status == Some(StatusKind::WaitingUserAnswer) => {
            reading.evidence.as_ref().map(|evidence| evidence.text.trim_end().to_owned())
        }
        None => None,
    }
}

/// `y` while a question is open means: accept it, as the seeds have it. `n` means: refuse it; that never allows anything,
/// and who types it means nothing else. All other text is refused: typed into a dialog it would be lost, and its Enter
/// would accept whatever is highlighted.
pub fn translate(message: &str, reading: &Reading) -> Meant {
    let Some(question) = question(reading) else {
        return match reading.status {
            Some(StatusKind::WaitingUserAnswer) => Meant::Refused(NotAnswered::Unclear),
            _ => Meant::Prompt,
        };
    };
    let wish = match message.trim() {
        "y" => Wish::Accept,
        "n" => Wish::Deny,
        _ => return Meant::Refused(NotAnswered::NoAnswer),
    };
    let decision = Decision::new(question, wish);
    match decision.check(reading) {
        Ok(()) => Meant::Answer(decision),
        Err(why) => Meant::Refused(why),
    }
}
