//! What a message means while a question is open.

use super::decision::{Decision, NotAnswered, Wish};
use crate::audit::By;
use crate::detect::{Reading, dialog};
use crate::status::StatusKind;
use crate::time::Mono;

/// What is to be done with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    Prompt,
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

/// What others call the open question: the id of a dialog, and one made in the same way for a question that is only text.
/// What that is about stands in the rows around it, the last ones of the screen.
pub fn identity(reading: &Reading, tail: &[String]) -> Option<String> {
    match &reading.dialog {
        Some(dialog) => Some(dialog.id.clone()),
        None => question(reading).map(|text| dialog::identity(&text, "", tail, &[])),
    }
}

/// The question on the screen, followed from look to look: since when it is there, and whether it was answered in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Showing {
    pub question: String,
    pub since: Mono,
    /// How often an answering key was pressed in vain. It may still be unread.
    pub presses: u32,
}

impl Showing {
    /// Takes in a look. A question that was away for a moment is a new one.
    pub fn follow(showing: &mut Option<Showing>, reading: &Reading, now: Mono) {
        let question = question(reading);
        if showing.as_ref().map(|showing| &showing.question) != question.as_ref() {
            *showing = question.map(|question| Showing { question, since: now, presses: 0 });
        }
    }

    /// Adds to a decision what is known of its question.
    pub fn complete(showing: Option<&Showing>, decision: &mut Decision) {
        if let Some(showing) = showing.filter(|showing| showing.question == decision.question) {
            decision.since = Some(showing.since);
            decision.again = showing.presses > 0;
        }
    }

    /// An answer is over that pressed its key so often.
    pub fn answered(showing: &mut Option<Showing>, decision: &Decision, presses: u32) {
        if let Some(showing) = showing.as_mut().filter(|showing| showing.question == decision.question) {
            showing.presses += presses;
        }
    }
}

/// `y` while a question is open means: accept it, as the seeds have it. `n` means: refuse it; that never allows anything,
/// and has no other meaning. All other text is refused: typed into a dialog it would be lost, and its Enter would accept the
/// highlighted option. A bare `y` names no question, so it counts as the answer of a run.
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
    fn what_a_question_is_called() {
        let dialog = asking("3f2a90d1c4e5b677", WaitingKind::Permission, &["Yes", "No"]).reading;
        assert_eq!(identity(&dialog, &["anything".into()]).as_deref(), Some("3f2a90d1c4e5b677"));
        let text = asking_in_text("Allow? [y/n]").reading;
        let [one, same, other] = ["ls", "ls", "rm"].map(|above| identity(&text, &[above.into()]));
        assert!(one.as_ref().is_some_and(|one| one.len() == 16), "{one:?}");
        assert_eq!(one, same);
        assert_ne!(one, other);
    }

    /// Whoever typed at a question compares what is showing now with what was showing then.
    #[test]
    fn a_question_that_was_answered_in_vain_is_not_as_it_was() {
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
