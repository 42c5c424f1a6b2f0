//! The commands that can answer a question, for hints.

use crate::detect::dialog::{Dialog, Meaning};
use crate::status::WaitingKind;

/// The ways in which a person can answer an open question, besides the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suggested {
    ApproveOrDeny,
    /// Accept it. The screen shows no way to refuse.
    Approve,
    Choose,
    /// Nothing readable that a command could choose.
    Keyboard,
}

impl Suggested {
    pub fn of(dialog: Option<&Dialog>, kind: Option<WaitingKind>) -> Self {
        let Some(dialog) = dialog else {
            // A question in a row of text takes y and n.
            return if kind == Some(WaitingKind::Permission) { Self::ApproveOrDeny } else { Self::Keyboard };
        };
        let chosen = |meaning: Meaning| meaning != Meaning::Widen;
        match (dialog.accepting(), dialog.denying()) {
            (Some(_), Some(_)) => Self::ApproveOrDeny,
            (Some(_), None) => Self::Approve,
            (None, _) if dialog.options.iter().any(|option| chosen(option.meaning)) => Self::Choose,
            (None, _) => Self::Keyboard,
        }
    }

    /// Returns the commands for the terminal `called`, each followed by `question`.
    pub fn commands(self, called: &str, question: &str) -> String {
        match self {
            Self::ApproveOrDeny => {
                format!("`posse approve {called}{question}` or `posse deny {called}{question}`")
            }
            Self::Approve => format!("`posse approve {called}{question}`"),
            Self::Choose => format!("`posse answer {called} --option N{question}`"),
            Self::Keyboard => format!("`posse attach {called}`"),
        }
    }
}
