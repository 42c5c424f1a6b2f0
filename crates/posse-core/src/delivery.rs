//! No key without proof: how a message gets into an agent, and how a question of it is answered.
//!
//! Two machines of one shape, `Prompt` and `Answer`: `handle(event, now)` gives effects, `deadline()` says when to hand in
//! `Event::Time`. They are told what each look at the screen showed, and type a key only in answer to a look, never to a
//! timer. What they cannot prove they report; they never press and hope. They do not decide whether something should be
//! sent or accepted, and write nothing down: that is for who makes them.
//!
//! The danger is Enter: on a dialog it accepts the option under the cursor. Between the look and the moment the program
//! takes the key lies a gap no terminal can close. What keeps it harmless,
//! measured on Claude Code 2.1.197 and 2.1.325 and Codex 0.166 unless it says assumed:
//! - A prompt is typed only while the agent is quiet, and a quiet agent does not open dialogs by itself (assumed).
//! - Where one may all the same (background agents of Claude Code 2.1.325), a dialog takes no key in its first 200 ms:
//!   safe as long as the age of the look and the way of the key together are less, a stall of the program in between
//!   included.
//! - Codex says that it will ask about a second before it draws; from then on nothing is typed. That it does so for each of
//!   several questions in a row is assumed.
//! - Nobody else types meanwhile (assumed): the pump gives a terminal to one writer at a time. A person who is
//!   attached types through the same pump.
//! - A working agent opens dialogs at any moment. It gets no prompt.
//! - No key is repeated on the ground that nothing happened: the program may be stalled with the key still unread. First
//!   a harmless key must show that everything before it was read (`Prompt` types a character and takes it back, `Answer`
//!   moves the cursor there and back).
//!
//! A question and the next one in the very same words that takes its place within one frame are two: once the key is known
//! to have been read, what stands there is the next one.
//!
//! `posse-agents/tests/delivery` plays all of this against models of both agents, 40,000 times each.

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

/// While something is awaited, the screen is looked at this often even if the program prints nothing: a frame that was
/// missed must not cost more than people notice.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// One look at a terminal, taken now.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub reading: &'a Reading,
    /// What we believe, this look included.
    pub status: &'a Status,
    /// The program has said that it will ask, and has not drawn the question yet.
    pub about_to_ask: bool,
    /// The last prompt of the user in the conversation, as shown (`Detector::last_prompt`).
    pub echo: Option<&'a str>,
    /// The row in which the terminal's cursor stands.
    pub cursor_row: Option<&'a str>,
    /// The draft stands in a row of text that is an input field only because the cursor is in it.
    pub plain: bool,
    /// How many bytes the program has printed in all. Says whether anything at all was drawn in between.
    pub printed: u64,
}

#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// At the end of every frame, and after `Effect::Look`. Looks are handed in in the order in which they were taken.
    Read(Seen<'a>),
    Typed(KeyId),
    TypingFailed(KeyId),
    /// What the program says of itself out of band: by a hook, a state in OSC 7501, a title that turns.
    Said(&'a Claim),
    Time,
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<T> {
    /// To be typed as one piece, and answered with `Typed` or `TypingFailed`.
    Type { id: KeyId, bytes: Vec<u8> },
    /// Look at the screen now, or when the frame being drawn is complete, and hand it in.
    Look,
    /// The machine is over; nothing follows.
    Over(T),
}

pub type PromptEffect = Effect<Result<(), Failure>>;
pub type AnswerEffect = Effect<Result<Answered, Unanswered>>;

/// When a machine wants to be told the time, and when it loses patience.
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

    /// A look that was wanted has been taken.
    fn looked(&mut self, now: Mono) {
        if self.look.is_some_and(|look| look <= now) {
            self.look = Some(now + LOOK_AGAIN);
        }
    }

    /// Asks for a look that is due.
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
