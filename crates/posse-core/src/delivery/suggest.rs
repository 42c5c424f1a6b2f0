//! Which commands answer a question, for hints. A hint names no command that cannot.

use crate::detect::dialog::{Dialog, Meaning};
use crate::status::WaitingKind;

/// What a person can answer an open question with, besides the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suggested {
    ApproveOrDeny,
    /// Accept it. How it is refused is not on the screen.
    Approve,
    Choose,
    /// Nothing can be read that a command could choose.
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

    /// The commands, for the terminal `called`. `question` follows each.
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
