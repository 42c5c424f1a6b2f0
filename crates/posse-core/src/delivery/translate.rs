//! The meaning of a message while a question is open.

use super::decision::{Decision, NotAnswered, Wish};
use crate::audit::By;
use crate::detect::{Reading, dialog};
use crate::status::StatusKind;
use crate::time::Mono;

/// The treatment of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    Prompt,
    Answer(Decision),
    /// A question is open, and the message does not answer it. Nothing is typed.
    Refused(NotAnswered),
}

/// Returns the name of the open question. A question that is only text is named by its row.
pub fn question(reading: &Reading) -> Option<String> {
    match &reading.dialog {
        Some(dialog) => Some(dialog.id.clone()),
        None if reading.status == Some(StatusKind::WaitingUserAnswer) => {
            reading.evidence.as_ref().map(|evidence| evidence.text.trim_end().to_owned())
        }
        None => None,
    }
}

/// Returns the public id of the open question: the id of a dialog, or an equivalent one for a question that is only
/// text. Its subject is in the rows around it, the last ones of the screen.
pub fn identity(reading: &Reading, tail: &[String]) -> Option<String> {
    match &reading.dialog {
        Some(dialog) => Some(dialog.id.clone()),
        None => question(reading).map(|text| dialog::identity(&text, "", tail, &[])),
    }
}

/// The question on the screen, followed across looks: since when it is there, and the failed answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Showing {
    pub question: String,
    pub since: Mono,
    /// The number of answering keys without effect. They may still be unread.
    pub presses: u32,
}

impl Showing {
    /// Processes a look. A question that disappeared for a moment is a new one.
    pub fn follow(showing: &mut Option<Showing>, reading: &Reading, now: Mono) {
        let question = question(reading);
        if showing.as_ref().map(|showing| &showing.question) != question.as_ref() {
            *showing = question.map(|question| Showing { question, since: now, presses: 0 });
        }
    }

    /// Adds the known facts about its question to a decision.
    pub fn complete(showing: Option<&Showing>, decision: &mut Decision) {
        if let Some(showing) = showing.filter(|showing| showing.question == decision.question) {
            decision.since = Some(showing.since);
            decision.again = showing.presses > 0;
        }
    }

    /// Records that an answer has ended after this many presses.
    pub fn answered(showing: &mut Option<Showing>, decision: &Decision, presses: u32) {
        if let Some(showing) = showing.as_mut().filter(|showing| showing.question == decision.question) {
            showing.presses += presses;
        }
    }
}

/// Translates a message while a question is open. `y` accepts, as in the seeds; `n` refuses and never allows anything.
/// All other text is refused: in a dialog it would be lost, and its Enter would accept the highlighted option. A bare
/// `y` names no question, so it counts as the answer of a run.
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
    let decision = Decision::new(question, wish, By::Run);
    match decision.check(reading) {
        Ok(()) => Meant::Answer(decision),
        Err(why) => Meant::Refused(why),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{asking, asking_in_text, at};
    use super::*;
    use crate::status::WaitingKind;

    #[test]
    fn question_is_named_by_its_dialog_or_its_row() {
        let dialog = asking("3f2a90d1c4e5b677", WaitingKind::Permission, &["Yes", "No"]).reading;
        assert_eq!(identity(&dialog, &["anything".into()]).as_deref(), Some("3f2a90d1c4e5b677"));
        let text = asking_in_text("Allow? [y/n]").reading;
        let [one, same, other] = ["ls", "ls", "rm"].map(|above| identity(&text, &[above.into()]));
        assert!(one.as_ref().is_some_and(|one| one.len() == 16), "{one:?}");
        assert_eq!(one, same);
        assert_ne!(one, other);
    }

    #[test]
    fn failed_answer_changes_the_followed_question() {
        let reading = asking("a", WaitingKind::Permission, &["Yes", "No"]).reading;
        let mut showing = None;
        Showing::follow(&mut showing, &reading, at(0));
        let before = showing.clone();
        Showing::follow(&mut showing, &reading, at(500));
        assert_eq!(showing, before);
        let decision = Decision::new(question(&reading).unwrap(), Wish::Accept, By::Person);
        for _ in 0..2 {
            let before = showing.clone();
            Showing::answered(&mut showing, &decision, 0);
            assert_eq!(showing, before, "no key was pressed");
            Showing::answered(&mut showing, &decision, 1);
            assert_ne!(showing, before);
        }
    }
}
