//! Plays a turn: one step after the other, on one connection.

use std::net::TcpStream;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::time::Duration;

use crate::model::log::ModelEvent;
use crate::model::reply::{PIECE, Protocol, ReplyWriter};
use crate::model::request::{ModelRequest, RequestKind};
use crate::model::shared::{ConnectionGone, ServerShared};
use crate::model::{http, tools};
use crate::scenario::{ScriptStep, ScriptTurn, ServiceFailure, ToolUse};

pub(crate) struct ReplyPlayer<'a> {
    shared: &'a ServerShared,
    to: &'a TcpStream,
    protocol: Protocol,
    query: &'a ModelRequest,
    request: u64,
    writer: Box<dyn ReplyWriter>,
    /// Whether the head of the stream was sent.
    begun: bool,
    calls: usize,
}

impl From<std::io::Error> for ConnectionGone {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

impl<'a> ReplyPlayer<'a> {
    pub(crate) fn new(
        shared: &'a ServerShared,
        to: &'a TcpStream,
        protocol: Protocol,
        query: &'a ModelRequest,
        request: u64,
    ) -> Self {
        let writer = protocol.writer(query, request);
        Self { shared, to, protocol, query, request, writer, begun: false, calls: 0 }
    }

    pub(crate) fn play(&mut self, turn: Option<ScriptTurn>) {
        let turn = turn.unwrap_or_else(|| {
            ScriptTurn::of([ScriptStep::say(match self.query.kind {
                RequestKind::Side { answer, .. } => answer,
                RequestKind::Subagent => "Nothing to report.",
                RequestKind::Conversation => "The script is over.",
            })])
        });
        if self.all(&turn.steps).is_err() {
            self.shared.lose(self.request);
        }
    }

    fn all(&mut self, steps: &[ScriptStep]) -> Result<(), ConnectionGone> {
        for step in steps {
            if self.step(step)?.is_break() {
                return Ok(());
            }
        }
        self.end()
    }

    fn step(&mut self, step: &ScriptStep) -> Result<ControlFlow<()>, ConnectionGone> {
        match step {
            ScriptStep::Say(said) => self.send(said.rate, |writer| writer.text(&said.text))?,
            ScriptStep::Think(thought) => {
                self.begin()?;
                if !thought.text.is_empty() {
                    self.send(None, |writer| writer.thought(&thought.text))?;
                }
                self.pause(thought.time)?;
            }
            ScriptStep::Tool(call) => self.call(&tools::as_written(self.query, call))?,
            ScriptStep::Run(run) => self.call(&tools::run(self.query, run))?,
            ScriptStep::Write(file) => self.call(&tools::write(self.query, file))?,
            ScriptStep::Pause(time) => self.pause(*time)?,
            ScriptStep::WaitFor(gate) => self.shared.pass_gate(self.request, gate)?,
            ScriptStep::Fail(failure) if !failure.applies(self.query.attempt()) => {}
            ScriptStep::Fail(failure) if failure.dropped => {
                self.shared.record(self.request, ModelEvent::Dropped);
                return Ok(ControlFlow::Break(()));
            }
            ScriptStep::Fail(failure) => return self.fail(failure).map(ControlFlow::Break),
            // `Scenario::check_for` rejects these for a model.
            ScriptStep::Print(_)
            | ScriptStep::Ask(_)
            | ScriptStep::Answer(_)
            | ScriptStep::Crash(_)
            | ScriptStep::Exit(_)
            | ScriptStep::Report(_)
            | ScriptStep::Result(_) => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn pause(&self, time: Duration) -> Result<(), ConnectionGone> {
        self.shared.pause(self.request, time)
    }

    fn begin(&mut self) -> Result<(), ConnectionGone> {
        if self.begun || !self.query.streamed {
            return Ok(());
        }
        self.begun = true;
        http::stream_head(self.to)?;
        self.shared.record(self.request, ModelEvent::FirstByte);
        for event in self.writer.open() {
            http::chunk(self.to, &event)?;
        }
        Ok(())
    }

    /// Sends a part of the reply, at `rate` characters per second if given.
    fn send(
        &mut self,
        rate: Option<NonZeroU32>,
        part: impl FnOnce(&mut dyn ReplyWriter) -> Vec<String>,
    ) -> Result<(), ConnectionGone> {
        self.begin()?;
        for event in part(&mut *self.writer) {
            if self.query.streamed {
                http::chunk(self.to, &event)?;
            }
            if let Some(rate) = rate {
                self.pause(Duration::from_secs_f64(PIECE as f64 / f64::from(rate.get())))?;
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &ToolUse) -> Result<(), ConnectionGone> {
        self.calls += 1;
        let id = format!("toolu_scripted{:06}x{}", self.request, self.calls);
        self.send(None, |writer| writer.call(&id, call))?;
        let event = ModelEvent::ToolAsked { id, name: call.name.clone(), input: call.input.clone() };
        self.shared.record(self.request, event);
        Ok(())
    }

    fn fail(&mut self, failure: &ServiceFailure) -> Result<(), ConnectionGone> {
        let status = if failure.status == 0 { 500 } else { failure.status };
        let to = self.to;
        let in_stream = self.begun.then(|| self.writer.failure(failure));
        let refusal = self.protocol.refusal(failure).to_string();
        let headers = failure.headers_now();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.finish(ModelEvent::Failed { status }, || match in_stream {
            None => http::answer(to, status, &headers, &refusal, true),
            Some(events) => http::last_chunks(to, &events),
        })
    }

    fn end(&mut self) -> Result<(), ConnectionGone> {
        self.begin()?;
        let (events, reason) = self.writer.close();
        let to = self.to;
        let streamed = self.query.streamed;
        let whole = self.writer.whole().to_string();
        self.finish(ModelEvent::Ended { reason }, || {
            if streamed { http::last_chunks(to, &events) } else { http::answer(to, 200, &[], &whole, true) }
        })
    }

    /// Sends the end of a reply and logs it in one step, so that the agent's reaction always follows it in the log.
    fn finish(&self, event: ModelEvent, send: impl FnOnce() -> std::io::Result<()>) -> Result<(), ConnectionGone> {
        self.shared.change(|state| {
            send()?;
            if let ModelEvent::Ended { .. } = event {
                state.script.answered(self.query);
            }
            if !self.query.streamed {
                state.record(Some(self.request), ModelEvent::FirstByte);
            }
            state.record(Some(self.request), event);
            // A connection that ends after this does not count as lost.
            state.connections.remove(&self.request);
            Ok(())
        })
    }
}
