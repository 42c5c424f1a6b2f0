//! The replies of the protocols, as text to send.

use serde_json::Value;

use crate::model::request::ModelRequest;
use crate::model::{anthropic, chat, openai};
use crate::scenario::{ServiceFailure, ToolUse};

/// The number of characters in a streamed piece, small enough that a reply has several.
pub(crate) const PIECE: usize = 24;
/// The numbers of tokens that every reply reports.
pub(crate) const INPUT_TOKENS: u64 = 1200;
pub(crate) const OUTPUT_TOKENS: u64 = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Messages,
    Responses,
    Chat,
}

/// Writes one reply. Each part is a list of events to stream; [`ReplyWriter::whole`] is the whole reply at once.
/// Consecutive texts are one block, which stays open until another part follows.
pub(crate) trait ReplyWriter {
    fn open(&mut self) -> Vec<String>;
    fn text(&mut self, text: &str) -> Vec<String>;
    fn thought(&mut self, text: &str) -> Vec<String>;
    fn call(&mut self, id: &str, call: &ToolUse) -> Vec<String>;
    fn failure(&mut self, failure: &ServiceFailure) -> Vec<String>;
    /// Ends the reply, and returns the reason.
    fn close(&mut self) -> (Vec<String>, &'static str);
    fn whole(&self) -> Value;
}

impl Protocol {
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let by_end =
            [("/v1/messages", Self::Messages), ("/responses", Self::Responses), ("/chat/completions", Self::Chat)];
        by_end.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, protocol)| protocol)
    }

    pub(crate) fn read(self, body: &Value, agent_id: Option<&str>) -> ModelRequest {
        match self {
            Self::Messages => anthropic::read(body, agent_id),
            Self::Responses => openai::read(body),
            Self::Chat => chat::read(body),
        }
    }

    pub(crate) fn writer(self, asked: &ModelRequest, request: u64) -> Box<dyn ReplyWriter> {
        match self {
            Self::Messages => Box::new(anthropic::MessagesReply::new(asked, request)),
            Self::Responses => Box::new(openai::ResponsesReply::new(asked, request)),
            Self::Chat => Box::new(chat::ChatReply::new(asked, request)),
        }
    }

    pub(crate) fn refusal(self, failure: &ServiceFailure) -> Value {
        match self {
            Self::Messages => anthropic::refusal(failure),
            Self::Responses | Self::Chat => openai::refusal(failure),
        }
    }
}

pub(crate) fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}

/// Returns a named server-sent event. Its data repeats the name.
pub(crate) fn event(name: &str, mut data: Value) -> String {
    data["type"] = name.into();
    format!("event: {name}\ndata: {data}\n\n")
}
