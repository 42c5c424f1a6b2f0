//! Looks at the response file: one at a time, and only what was seen since the terminal became quiet counts.

use super::files::SETTLED;
use super::{Answer, AnswerFrom, Effect, Level, Look, Turn};
use crate::time::Mono;

/// Whether a look at the file is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looking {
    No,
    /// Asked for. `stale`: what it shows may be from before this quiet. `stirred`: something has happened to the file since.
    Asked {
        stale: bool,
        stirred: bool,
    },
    /// To be asked for again at this time.
    Again(Mono),
}

/// Why the file should be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookReason {
    /// What a look showed that began earlier does not count.
    QuietBegins,
    /// What a look showed that began earlier may be out of date.
    Stirred,
    /// To be sure.
    Anyway,
}

impl Looking {
    /// What was or would be seen does not count any more. A look under way comes back all the same.
    pub(super) fn forget(&mut self) {
        match self {
            Looking::Asked { stale, .. } => *stale = true,
            Looking::No | Looking::Again(_) => *self = Looking::No,
        }
    }
}

impl Turn {
    /// Asks for a look at the file, unless one is under way that will do.
    pub(super) fn want_look(&mut self, why: LookReason, effects: &mut Vec<Effect>) {
        match &mut self.looking {
            Looking::Asked { stale, stirred } => {
                *stale |= why == LookReason::QuietBegins;
                *stirred |= why == LookReason::Stirred;
            }
            Looking::No | Looking::Again(_) => {
                self.looking = Looking::Asked { stale: false, stirred: false };
                effects.push(Effect::LookAtFile);
            }
        }
    }

    pub(super) fn looked(&mut self, look: Look, now: Mono, effects: &mut Vec<Effect>) {
        let Looking::Asked { stale, stirred } = self.looking else { return };
        self.looking = Looking::No;
        if !self.is_quiet() {
            return;
        }
        if stale {
            return self.want_look(LookReason::Anyway, effects);
        }
        match look {
            Look::Ready(text) if !text.trim().is_empty() => {
                let answer = Answer { text: text.trim().to_owned(), from: AnswerFrom::File };
                return self.end(Ok(answer), effects);
            }
            Look::Unsettled => return self.looking = Looking::Again(now + SETTLED),
            Look::NotRegular => self.complain("is not a regular file", effects),
            Look::Unreadable(why) => self.complain(&format!("cannot be read: {why}"), effects),
            Look::Absent | Look::Blank | Look::Ready(_) => {}
        }
        if stirred {
            self.want_look(LookReason::Anyway, effects);
        }
    }

    fn complain(&mut self, what: &str, effects: &mut Vec<Effect>) {
        if !std::mem::replace(&mut self.complained, true) {
            let file = self.file.clone();
            self.say(Level::Warning, |who| format!("the response file of {who}, {file}, {what}"), effects);
        }
    }
}
