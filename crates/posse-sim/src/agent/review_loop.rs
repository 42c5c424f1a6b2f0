//! The review loop, seen by one of its agents. A prompt asks for an answer in a file, and the name of the file tells
//! which turn it is. `request` finds the file in the prompt, `answer` has the usual answers.

mod answer;
mod request;

use std::collections::BTreeMap;

pub(crate) use answer::{approves, text};
pub(crate) use request::{LoopAnswerRequest, request};

/// How often each turn was asked for (`tester.asked`) and answered (`tester.answered`). A replacement agent continues
/// the tally of its predecessor.
pub type Tally = BTreeMap<String, u32>;
