//! Delivers messages to an agent and answers its questions, without a key that is not backed by a look at the screen.
//!
//! Two machines of one shape, `Prompt` and `Answer`: `handle(event, now)` returns effects, `deadline()` returns the
//! time to send `Event::Time`. Each look at the screen arrives as an event. The machines type only in answer to a look,
//! never to a timer. They report actions whose effect they cannot prove. The caller decides whether something is sent
//! or accepted, and records it.
//!
//! The danger is Enter: on a dialog it accepts the option under the cursor. Between the look and the moment the program
//! takes the key lies a gap that no terminal can close. The following facts keep the gap harmless. They were measured
//! on Claude Code 2.1.197 and 2.1.325 and Codex 0.166 unless marked as assumed:
//! - A prompt is typed only while the agent is quiet, and a quiet agent does not open dialogs by itself (assumed).
//! - Background agents of Claude Code 2.1.325 may open one all the same, but a dialog ignores keys in its first 200 ms.
//!   This is safe if the age of the look plus the transit of the key is shorter, stalls of the program included.
//! - Codex announces a question about a second before it draws it; after the announcement nothing is typed. It is
//!   assumed that each of several questions in a row is announced.
//! - No other writer types at the same time (assumed): the pump gives a terminal to one writer at a time, and attached
//!   people type through the same pump.
//! - A working agent opens dialogs at any moment. It gets no prompt.
//! - A missing reaction is no reason to repeat a key: the program may be stalled with the key still unread. First a
//!   harmless key must show that everything before it was read (`Prompt` types a character and erases it, `Answer`
//!   moves the cursor there and back).
//!
//! A question may be replaced within one frame by another one in the same words. Once the key is known to have been
//! read, the question on the screen is the next one.
//!
//! `posse-agents/tests/delivery` runs all of this against models of both agents, 40,000 times each.

mod answer;
mod decision;
mod order;
mod prompt;
mod rules;
mod shown;
mod suggest;
#[cfg(test)]
mod testing;
mod translate;
mod typist;

use std::time::Duration;

pub use answer::Answer;
pub use decision::{Answered, Decision, NotAnswered, Unanswered, Verified, Wish};
pub use order::{Failure, Left, Order, Why};
pub use prompt::Prompt;
pub use rules::{DialogKeys, Submit};
pub use shown::{Recognised, clean, paste};
pub use suggest::Suggested;
pub use translate::{Meant, Showing, identity, question, translate};
pub use typist::KeyId;

use crate::detect::Reading;
use crate::status::{Claim, Status};
use crate::time::Mono;

/// The interval of looks while an event is awaited, because a missed frame must not cause a noticeable delay.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// One look at a terminal, taken now.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub reading: &'a Reading,
    /// The current belief, this look included.
    pub status: &'a Status,
    /// The agent has announced a question and has not drawn it yet.
    pub about_to_ask: bool,
    /// The last prompt of the user in the conversation, as shown (`Detector::last_prompt`).
    pub echo: Option<&'a str>,
    pub cursor_row: Option<&'a str>,
    /// The draft is in a row of text that is an input field only because the cursor is in it.
    pub plain: bool,
    /// The total number of bytes that the program has printed. Shows whether anything was drawn between two looks.
    pub printed: u64,
}

#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A look at the screen, sent in order: at the end of every frame, and after `Effect::Look`.
    Read(Seen<'a>),
    Typed(KeyId),
    TypingFailed(KeyId),
    /// A report of the agent about itself, out of band: a hook, a state in OSC 7501, a title that turns.
    Said(&'a Claim),
    Time,
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<T> {
    /// Type these bytes as one piece. Answered with `Typed` or `TypingFailed`.
    Type { id: KeyId, bytes: Vec<u8> },
    /// Look at the screen now, or when the current frame is complete, and send the result.
    Look,
    /// The machine has finished; no effect follows.
    Over(T),
}

pub type PromptEffect = Effect<Result<(), Failure>>;
pub type AnswerEffect = Effect<Result<Answered, Unanswered>>;

/// The time of a machine's next look, and the time at which the machine gives up.
#[derive(Clone, Copy, Debug)]
struct Clock {
    look: Option<Mono>,
    give_up: Mono,
}

impl Clock {
    fn new(look: Mono, give_up: Mono) -> Self {
        Self { look: Some(look), give_up }
    }

    fn deadline(&self) -> Mono {
        self.look.map_or(self.give_up, |look| look.min(self.give_up))
    }

    /// Schedules the next look if the last one was due.
    fn looked(&mut self, now: Mono) {
        if self.look.is_some_and(|look| look <= now) {
            self.look = Some(now + LOOK_AGAIN);
        }
    }

    /// Requests a look if one is due.
    fn ring<T>(&mut self, now: Mono) -> Vec<Effect<T>> {
        match self.look {
            Some(look) if now >= look => {
                self.look = Some(now + LOOK_AGAIN);
                vec![Effect::Look]
            }
            _ => Vec::new(),
        }
    }
}
