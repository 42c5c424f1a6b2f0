//! Jobs for the agent of a terminal: the requests, and the resulting actions of the pump.

use posse_api::{EventBody, Question};
use posse_core::audit::{self, Who};
use posse_core::delivery::{KeyId, Wish};
use posse_core::status::Event as LifeEvent;

use super::messages::{Answerer, InputError};
use super::*;

pub(super) enum Wanted {
    /// A message: a prompt, or `y` or `n` while a question is open.
    Message(Order, Answerer),
    /// Answer the open question; if one is named (`identity`), only that one.
    Answer { wish: Wish, question: Option<String>, words: Option<String>, answerer: Answerer },
}

pub(super) enum Queued {
    Job(Box<Wanted>, By),
    /// A caller wants to see the question.
    Look(oneshot::Sender<Result<Question, InputError>>),
}

pub(super) enum By {
    Request(oneshot::Sender<Result<Option<i64>, InputError>>),
    /// A request that is recorded, so that it is not executed twice. See `Pump::deliver`.
    Noted {
        writer: WriterId,
        sequence: u64,
    },
    Ourselves,
}

pub(super) enum Do {
    Type(KeyId, Vec<u8>),
    Look,
    /// Record this, and report when it is stored (`Agent::noted`). Nothing is typed before.
    Note(Who, Box<audit::Answering>),
    Over(Box<Over>),
}

pub(super) struct Over {
    pub(super) by: By,
    pub(super) result: Result<(), InputError>,
    pub(super) log: Option<Box<EventBody>>,
    /// The event for the terminal's status.
    pub(super) life: Option<LifeEvent>,
    pub(super) ended: Option<(Who, audit::Ended)>,
}

impl Do {
    pub(super) fn refused(by: By, error: InputError) -> Self {
        Do::Over(Box::new(Over { by, result: Err(error), log: None, life: None, ended: None }))
    }
}

impl Queued {
    pub(super) fn refused(self, why: InputError) -> Option<Do> {
        match self {
            Queued::Job(_, by) => Some(Do::refused(by, why)),
            Queued::Look(reply) => {
                let _ = reply.send(Err(why));
                None
            }
        }
    }

    /// Returns whether this job is useful only while a question is open.
    pub(super) fn is_about_a_question(&self) -> bool {
        match self {
            Queued::Look(_) => true,
            Queued::Job(wanted, _) => match &**wanted {
                Wanted::Answer { .. } => true,
                Wanted::Message(order, _) => matches!(order.text.trim(), "y" | "n"),
            },
        }
    }
}
