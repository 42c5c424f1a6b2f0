//! How a question is to be answered, whether it may be, and what can become of it.

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
    /// Choose the one option that allows this once.
    Accept,
    Deny,
    /// Choose this option, from 0. An operator has pointed at it.
    Option(usize),
}

/// What was decided, and on which question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// As `question` names it.
    pub question: String,
    pub wish: Wish,
    /// Who decides. A run may accept permissions only, and deny everything but a question of the start; its yes needs evidence
    /// that the screen shows what is asked. Everyone else has read the question.
    pub by: By,
    /// Since when it has been on the screen, if that is known.
    pub since: Option<Mono>,
    /// An earlier answer has pressed its key, and the question has been there ever since. That key may still be unread:
    /// the cursor must be seen to move before another is pressed.
    pub again: bool,
    /// The words to type into the option that `wish` names.
    pub words: Option<TypedWords>,
}

/// An answer in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedWords {
    pub text: String,
    /// What the option says until something is typed into it.
    label: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// No question is on the screen any more.
    Closed,
    /// Another one is, maybe in the very same words.
    Another,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    pub verified: Verified,
    /// How often the answering key was pressed.
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

/// Why a question was not answered, and whether a key was pressed that could have.
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

    /// Answers in words, typed into the option that takes them.
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

    /// The question on the screen, with what was typed into it so far left out.
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

    /// Whether it can be carried out on this screen. Nothing is typed where it cannot.
    pub fn check(&self, reading: &Reading) -> Result<(), NotAnswered> {
        let Some(now) = self.asked(reading) else { return Err(NotAnswered::Vanished) };
        let Some(dialog) = &reading.dialog else {
            // Text only. What was typed may stand behind it.
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
                // Its label is what was typed.
                Some(_) if self.words.is_some() => Ok(()),
                Some(Meaning::Widen) => Err(NotAnswered::Widens),
                Some(_) => Ok(()),
            },
        }
    }

    /// Whether what is known about the question is enough for who decides.
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
