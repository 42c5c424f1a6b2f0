//! The answer to a question: how it is given, whether it is allowed, and its possible results.

use super::rules::DialogKeys;
use super::translate::question;
use crate::audit::By;
use crate::detect::Reading;
use crate::detect::dialog::{Meaning, identity};
use crate::question::{QuestionEvidence, Unproven};
use crate::status::WaitingKind;
use crate::time::Mono;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Choose the one option that allows the action once.
    Accept,
    Deny,
    /// Choose this option, counted from 0, as an operator asked.
    Option(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The question's name, as `question` returns it.
    pub question: String,
    pub wish: Wish,
    /// The origin of the decision. A run may only accept permissions, and may deny everything but startup questions;
    /// its yes needs evidence that the screen shows what is asked. Others have read the question.
    pub by: By,
    /// The time since when the question is on the screen, if known.
    pub since: Option<Mono>,
    /// An earlier answer has pressed its key, and the question is still there. That key may still be unread: the cursor
    /// must be seen to move before another key is pressed.
    pub again: bool,
    /// The words to type into the option that `wish` names.
    pub words: Option<TypedWords>,
}

/// An answer in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedWords {
    pub text: String,
    /// The option's label before something is typed into it.
    label: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// No question is on the screen any longer.
    Closed,
    /// Another question is on the screen, perhaps in the same words.
    Another,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    pub verified: Verified,
    /// The number of presses of the answering key.
    pub presses: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnswered {
    #[error("there is no question any more")]
    Vanished,
    #[error("another question is open than the one this was decided on")]
    Changed,
    #[error("the question has no option that plainly allows just this")]
    NotPlain,
    #[error("the question has no option that refuses")]
    NoRefusal,
    #[error("a {0:?} question is not accepted or refused like a permission")]
    Kind(WaitingKind),
    #[error("this option allows more than this once")]
    Widens,
    #[error("the question has no such option")]
    NoSuchOption,
    #[error("this question takes no answer in words")]
    NoWords,
    #[error("the answer comes from a process in a terminal, and the operator has not allowed that")]
    FromTerminal,
    #[error("a question is open; only y or n answers it")]
    NoAnswer,
    #[error("a question is open that cannot be read")]
    Unclear,
    #[error("the cursor of the question did not move as expected")]
    Stuck,
    #[error("the answer was typed and is not seen on the screen; it was not confirmed")]
    NotEchoed,
    #[error("the question is still open after the answer")]
    StillOpen,
    #[error("{0}; a person has to decide")]
    Unproven(Unproven),
    #[error("the terminal did not take the keys")]
    Typing,
    #[error("the program has ended")]
    Gone,
}

/// The reason why a question was not answered, and the number of presses of a key that could have answered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unanswered {
    pub why: NotAnswered,
    pub presses: u32,
}

impl Decision {
    pub fn new(question: String, wish: Wish, by: By) -> Self {
        Self { question, wish, by, since: None, again: false, words: None }
    }

    /// Turns the decision into an answer in words, typed into the option that takes them.
    pub fn in_words(mut self, text: &str, reading: &Reading, keys: &DialogKeys) -> Result<Self, NotAnswered> {
        let dialog = reading.dialog.as_ref().filter(|dialog| dialog.kind == WaitingKind::Question);
        let options = dialog.map_or(&[][..], |dialog| &dialog.options);
        let takes_words = |label: &str| keys.words.as_ref().is_some_and(|words| words.is_match(label));
        let at = options.iter().position(|option| takes_words(&option.label)).ok_or(NotAnswered::NoWords)?;
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.wish = Wish::Option(at);
        self.words = Some(TypedWords { text: text.trim().to_owned(), label: options[at].label.clone() });
        Ok(self)
    }

    /// Returns the question on the screen, without the words typed into it so far.
    fn asked(&self, reading: &Reading) -> Option<String> {
        match (&reading.dialog, &self.words, self.wish) {
            (Some(dialog), Some(words), Wish::Option(at)) => {
                let mut options = dialog.options.clone();
                options.get_mut(at)?.label.clone_from(&words.label);
                Some(identity(&dialog.title, &dialog.question, &dialog.detail, &options))
            }
            _ => question(reading),
        }
    }

    /// Checks that the decision can be carried out on this screen. If not, nothing is typed.
    pub fn check(&self, reading: &Reading) -> Result<(), NotAnswered> {
        let Some(now) = self.asked(reading) else { return Err(NotAnswered::Vanished) };
        let Some(dialog) = &reading.dialog else {
            // Text only. The typed answer may follow the question.
            return match self.wish {
                _ if !now.starts_with(&self.question) => Err(NotAnswered::Changed),
                Wish::Option(_) => Err(NotAnswered::NoSuchOption),
                _ => self.check_kind(reading.waiting_kind.unwrap_or(WaitingKind::Question)),
            };
        };
        if now != self.question {
            return Err(NotAnswered::Changed);
        }
        self.check_kind(dialog.kind)?;
        match self.wish {
            Wish::Accept => {
                dialog.accepting().ok_or(NotAnswered::NotPlain)?;
                self.check_evidence(dialog.evidence)
            }
            Wish::Deny => Ok(()),
            Wish::Option(at) => match dialog.options.get(at).map(|option| option.meaning) {
                None => Err(NotAnswered::NoSuchOption),
                // Its label is the typed text.
                Some(_) if self.words.is_some() => Ok(()),
                Some(Meaning::Widen) => Err(NotAnswered::Widens),
                Some(_) => Ok(()),
            },
        }
    }

    /// Checks that the evidence of the question suffices for the origin of the decision.
    pub fn check_evidence(&self, evidence: QuestionEvidence) -> Result<(), NotAnswered> {
        if self.by != By::Run || self.wish != Wish::Accept {
            return Ok(());
        }
        evidence.allows_automatic_yes().map_err(NotAnswered::Unproven)
    }

    fn check_kind(&self, kind: WaitingKind) -> Result<(), NotAnswered> {
        let fine = match self.wish {
            Wish::Accept => kind == WaitingKind::Permission,
            Wish::Deny => kind != WaitingKind::Startup,
            Wish::Option(_) => true,
        };
        if fine || self.by != By::Run { Ok(()) } else { Err(NotAnswered::Kind(kind)) }
    }
}
