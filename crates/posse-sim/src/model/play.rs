//! Plays a turn: one step after the other, on one connection.

use std::net::TcpStream;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::model::log::ModelEvent;
use crate::model::reply::{PIECE, Protocol, ReplyPart, ReplyWriter};
use crate::model::request::{ModelRequest, RequestKind};
use crate::model::shared::{ReplyCut, ServerState};
use crate::model::{http, tools};
use crate::scenario::{ScriptStep, ScriptTurn, ServiceFailure, ToolUse};
use crate::watched::Watched;

pub(crate) struct ReplyPlayer<'a> {
    shared: &'a Watched<ServerState>,
    to: &'a TcpStream,
    protocol: Protocol,
    query: &'a ModelRequest,
    request: u64,
    writer: Box<dyn ReplyWriter>,
    parts: Vec<ReplyPart>,
    /// Whether the last part may still grow.
    open: bool,
    /// Whether the head of the stream was sent.
    begun: bool,
}

impl From<std::io::Error> for ReplyCut {
    fn from(_: std::io::Error) -> Self {
        Self::ConnectionGone
    }
}

impl<'a> ReplyPlayer<'a> {
    pub(crate) fn new(
        shared: &'a Watched<ServerState>,
        to: &'a TcpStream,
        protocol: Protocol,
        query: &'a ModelRequest,
        request: u64,
    ) -> Self {
        let writer = (protocol.writer)(query, request);
        Self { shared, to, protocol, query, request, writer, parts: Vec::new(), open: false, begun: false }
    }

    pub(crate) fn play(&mut self, turn: Option<ScriptTurn>) {
        let turn = turn.unwrap_or_else(|| {
            ScriptTurn::of([ScriptStep::say(match self.query.kind {
                RequestKind::Side { answer, .. } => answer,
                RequestKind::Subagent => "Nothing to report.",
                RequestKind::Conversation => "The script is over.",
            })])
        });
        let ended = turn.steps.iter().try_for_each(|step| self.step(step)).and_then(|()| self.end());
        if let Err(ReplyCut::ConnectionGone) = ended {
            self.shared.lose(self.request);
        }
    }

    fn step(&mut self, step: &ScriptStep) -> Result<(), ReplyCut> {
        match step {
            ScriptStep::Say(said) => self.grow(ReplyPart::Text(said.text.clone()), &said.text, said.rate)?,
            ScriptStep::Think(thought) => {
                self.begin()?;
                if !thought.text.is_empty() {
                    self.grow(ReplyPart::Thought(thought.text.clone()), &thought.text, None)?;
                }
                self.pause(thought.time)?;
            }
            ScriptStep::Tool(call) => self.call(tools::as_written(self.query, call))?,
            ScriptStep::Run(run) => self.call(tools::run(self.query, run))?,
            ScriptStep::Write(file) => self.call(tools::write(self.query, file))?,
            ScriptStep::Pause(time) => self.pause(*time)?,
            ScriptStep::WaitFor(gate) => self.shared.pass_gate(self.request, gate)?,
            ScriptStep::Fail(failure) if !failure.applies(self.query.attempt()) => {}
            ScriptStep::Fail(failure) if failure.dropped => {
                self.shared.record(self.request, ModelEvent::Dropped);
                return Err(ReplyCut::Failed);
            }
            ScriptStep::Fail(failure) => {
                self.fail(failure)?;
                return Err(ReplyCut::Failed);
            }
            // `Scenario::check_for` rejects these for a model.
            ScriptStep::Ask(_) | ScriptStep::Answer(_) | ScriptStep::Crash(_) | ScriptStep::Exit(_) => {}
        }
        Ok(())
    }

    fn pause(&self, time: Duration) -> Result<(), ReplyCut> {
        self.shared.pause(self.request, time)
    }

    fn begin(&mut self) -> Result<(), ReplyCut> {
        if self.begun || !self.query.streamed {
            return Ok(());
        }
        self.begun = true;
        http::stream_head(self.to)?;
        let opening = self.writer.open();
        self.send(&opening)
    }

    fn send(&self, events: &[String]) -> Result<(), ReplyCut> {
        if self.query.streamed {
            events.iter().try_for_each(|event| http::chunk(self.to, event))?;
        }
        Ok(())
    }

    /// Adds a part, or lets the last part grow if it has the same kind. Sends it in pieces, at `rate` characters per second
    /// if given.
    fn grow(&mut self, part: ReplyPart, text: &str, rate: Option<NonZeroU32>) -> Result<(), ReplyCut> {
        self.begin()?;
        match self.parts.last_mut() {
            Some(ReplyPart::Text(all)) if self.open && matches!(part, ReplyPart::Text(_)) => all.push_str(text),
            Some(ReplyPart::Thought(all)) if self.open && matches!(part, ReplyPart::Thought(_)) => all.push_str(text),
            _ => {
                self.settle()?;
                let begun = self.writer.begin(self.parts.len(), &part);
                self.parts.push(part);
                self.open = true;
                self.send(&begun)?;
            }
        }
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(PIECE) {
            let Some((part, before)) = self.parts.split_last() else { break };
            let event = self.writer.piece(before.len(), part, &piece.iter().collect::<String>());
            self.send(&[event])?;
            if let Some(rate) = rate {
                self.pause(Duration::from_secs_f64(PIECE as f64 / f64::from(rate.get())))?;
            }
        }
        Ok(())
    }

    /// Ends the last part.
    fn settle(&mut self) -> Result<(), ReplyCut> {
        if let Some((part, before)) = self.parts.split_last()
            && std::mem::take(&mut self.open)
        {
            let events = self.writer.end(before.len(), part);
            self.send(&events)?;
        }
        Ok(())
    }

    fn call(&mut self, tool: ToolUse) -> Result<(), ReplyCut> {
        let id = format!("toolu_scripted{:06}x{}", self.request, self.parts.len());
        let input = self.writer.input(&tool);
        let event = ModelEvent::ToolAsked { id: id.clone(), name: tool.name.clone(), input: tool.input.clone() };
        self.grow(ReplyPart::Call { id, tool }, &input, None)?;
        self.settle()?;
        self.shared.record(self.request, event);
        Ok(())
    }

    fn fail(&mut self, failure: &ServiceFailure) -> Result<(), ReplyCut> {
        let status = failure.http_status();
        let to = self.to;
        let in_stream = self.begun.then(|| self.writer.failure(failure));
        let refusal = (self.protocol.refusal)(failure).to_string();
        let headers = failure.headers_now();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.finish(ModelEvent::Failed { status }, || match in_stream {
            None => http::answer(to, status, &headers, &refusal, true),
            Some(events) => http::last_chunks(to, &events),
        })
    }

    fn end(&mut self) -> Result<(), ReplyCut> {
        self.begin()?;
        self.settle()?;
        let (events, reason) = self.writer.close(&self.parts);
        let to = self.to;
        let streamed = self.query.streamed;
        let whole = self.writer.whole(&self.parts).to_string();
        self.finish(ModelEvent::Ended { reason }, || {
            if streamed { http::last_chunks(to, &events) } else { http::answer(to, 200, &[], &whole, true) }
        })
    }

    /// Sends the end of a reply and logs it in one step, so that the agent's reaction always follows it in the log.
    fn finish(&self, event: ModelEvent, send: impl FnOnce() -> std::io::Result<()>) -> Result<(), ReplyCut> {
        self.shared.change(|state| {
            send()?;
            if let ModelEvent::Ended { .. } = event {
                state.script.answered(self.query);
            }
            state.record(Some(self.request), event);
            // A connection that ends after this does not count as lost.
            state.unanswered.remove(&self.request);
            Ok(())
        })
    }
}
