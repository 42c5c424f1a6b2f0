//! How a protocol says things. Pure: what comes out is text to send.

use serde_json::Value;

use crate::request::Asked;
use crate::scenario::{Failure, ToolCall};
use crate::{anthropic, chat, openai};

/// Short enough that an answer comes in several pieces, as from a real model.
const PIECE: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's chat completions, which others speak too.
    Chat,
}

/// One answer in the making. Each part of it is a list of events to stream; [`Voice::whole`] is all of it at once.
/// Text after text is one block, which stays open until something else comes: a connection that is cut after it is
/// cut in the middle.
pub(crate) trait Voice {
    fn open(&mut self) -> Vec<String>;
    fn text(&mut self, text: &str) -> Vec<String>;
    fn thought(&mut self, text: &str) -> Vec<String>;
    fn call(&mut self, id: &str, call: &ToolCall) -> Vec<String>;
    /// An error in the middle of the stream. Nothing follows.
    fn failure(&mut self, failure: &Failure) -> Vec<String>;
    /// The end, and its reason: the given one, or the usual one.
    fn close(&mut self, reason: Option<&str>) -> (Vec<String>, String);
    fn whole(&self) -> Value;
}

impl Protocol {
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let by_end =
            [("/v1/messages", Self::Messages), ("/responses", Self::Responses), ("/chat/completions", Self::Chat)];
        by_end.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, protocol)| protocol)
    }

    pub(crate) fn read(self, body: &Value, agent_id: Option<&str>) -> Asked {
        match self {
            Self::Messages => anthropic::read(body, agent_id),
            Self::Responses => openai::read(body),
            Self::Chat => chat::read(body),
        }
    }

    pub(crate) fn voice(self, asked: &Asked, request: u64, tokens: u64) -> Box<dyn Voice> {
        match self {
            Self::Messages => Box::new(anthropic::Answer::new(asked, request, tokens)),
            Self::Responses => Box::new(openai::Answer::new(asked, request, tokens)),
            Self::Chat => Box::new(chat::Answer::new(asked, request, tokens)),
        }
    }

    /// The body of an HTTP error.
    pub(crate) fn refusal(self, failure: &Failure) -> Value {
        match self {
            Self::Messages => anthropic::refusal(failure),
            Self::Responses | Self::Chat => openai::refusal(failure),
        }
    }
}

/// Text in the pieces it is sent in.
pub(crate) fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}

/// A named server-sent event, whose data says its name again.
pub(crate) fn event(name: &str, mut data: Value) -> String {
    data["type"] = name.into();
    format!("event: {name}\ndata: {data}\n\n")
}

/// Roughly, as models count.
pub(crate) fn tokens(text: &str) -> u64 {
    text.len() as u64 / 4 + 1
}
