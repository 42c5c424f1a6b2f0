//! Reads of the response file. At most one is pending, and only reads since the terminal became quiet count.

use super::files::SETTLED;
use super::{Answer, AnswerFrom, Effect, Level, Look, Turn};
use crate::time::Mono;

/// The state of the pending read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looking {
    No,
    /// The read was requested. `stale`: its result may predate this quiet period. `stirred`: the file has changed since
    /// the request.
    Asked {
        stale: bool,
        stirred: bool,
    },
    /// The read is repeated at this time.
    Again(Mono),
}

/// The reason to read the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookReason {
    /// Results of reads that began earlier do not count.
    QuietBegins,
    /// Results of reads that began earlier may be out of date.
    Stirred,
    /// A final confirmation.
    Anyway,
}

impl Looking {
    /// Discards past and pending reads. A pending read still reports its result.
    pub(super) fn forget(&mut self) {
        match self {
            Looking::Asked { stale, .. } => *stale = true,
            Looking::No | Looking::Again(_) => *self = Looking::No,
        }
    }
}

impl Turn {
    /// Requests a read of the file, unless a pending one suffices.
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
