//! What a message means while a question is open.

use super::decision::{Decision, NotAnswered, Wish};
use crate::detect::Reading;
use crate::status::StatusKind;
use crate::time::Mono;

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

/// The question on the screen, followed from look to look: since when it is there, and whether it was answered in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Showing {
    pub question: String,
    pub since: Mono,
    pub pressed: bool,
}

impl Showing {
    /// Takes in a look. A question that was away for a moment is a new one.
    pub fn follow(showing: &mut Option<Showing>, reading: &Reading, now: Mono) {
        let question = question(reading);
        if showing.as_ref().map(|showing| &showing.question) != question.as_ref() {
            *showing = question.map(|question| Showing { question, since: now, pressed: false });
        }
    }

    /// Adds to a decision what is known of its question.
    pub fn complete(showing: Option<&Showing>, decision: &mut Decision) {
        if let Some(showing) = showing.filter(|showing| showing.question == decision.question) {
            decision.since = Some(showing.since);
            decision.again = showing.pressed;
        }
    }

    /// An answer is over that pressed its key so often.
    pub fn answered(showing: &mut Option<Showing>, decision: &Decision, presses: u32) {
        if let Some(showing) = showing.as_mut().filter(|showing| showing.question == decision.question) {
            showing.pressed |= presses > 0;
        }
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
