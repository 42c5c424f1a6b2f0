//! Plays a turn: one step after the other, onto one connection.

use std::net::TcpStream;
use std::time::Duration;

use crate::log::{Event, Role};
use crate::request::{Asked, Kind};
use crate::scenario::{Failure, Step, ToolCall, Turn, applies};
use crate::shared::{Gone, Shared};
use crate::voice::{Protocol, Voice};
use crate::{http, tools};

/// What a request is said to have had if the scenario does not care.
const TOKENS: u64 = 1200;

pub(crate) struct Player<'a> {
    shared: &'a Shared,
    to: &'a TcpStream,
    protocol: Protocol,
    asked: &'a Asked,
    role: Role,
    request: u64,
    attempt: u32,
    voice: Box<dyn Voice>,
    /// The head of a stream is out.
    begun: bool,
    between_chunks: Duration,
    calls: usize,
}

/// What follows a step.
enum Next {
    Step,
    /// The answer is over.
    Nothing,
}

impl From<std::io::Error> for Gone {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

/// Answers a request with the turn it got.
pub(crate) fn play(
    shared: &Shared,
    to: &TcpStream,
    (protocol, asked): (Protocol, &Asked),
    request: u64,
    (role, turn): (Role, Option<Turn>),
) {
    let turn = turn.unwrap_or_else(|| {
        Turn::of([Step::text(match asked.kind {
            Kind::Side { answer, .. } => answer,
            Kind::Subagent => "Nothing to report.",
            Kind::Conversation => "The script is over.",
        })])
    });
    let attempt = if let Role::Turn { attempt, .. } = role { attempt } else { 1 };
    let voice = protocol.voice(asked, request, turn.input_tokens.unwrap_or(TOKENS));
    let between_chunks = Duration::ZERO;
    let mut player =
        Player { shared, to, protocol, asked, role, request, attempt, voice, begun: false, between_chunks, calls: 0 };
    if player.all(&turn.steps).is_err() {
        shared.lose(request);
    }
}

impl Player<'_> {
    fn all(&mut self, steps: &[Step]) -> Result<(), Gone> {
        for step in steps {
            if let Next::Nothing = self.step(step)? {
                return Ok(());
            }
        }
        self.end(None)
    }

    fn step(&mut self, step: &Step) -> Result<Next, Gone> {
        match step {
            Step::Open => self.begin()?,
            Step::Text(text) => self.say(|voice| voice.text(text))?,
            Step::Think(text) => self.say(|voice| voice.thought(text))?,
            Step::Tool(call) => self.call(&tools::as_written(self.asked, call))?,
            Step::Run(wish) => self.call(&tools::run(self.asked, wish))?,
            Step::Write(wish) => self.call(&tools::write(self.asked, wish))?,
            Step::PauseMs(time) => self.shared.pause(self.request, Duration::from_millis(*time))?,
            Step::ChunkMs(time) => self.between_chunks = Duration::from_millis(*time),
            Step::WaitFor(gate) => self.shared.pass_gate(self.request, gate)?,
            Step::Raw(text) => {
                self.begin()?;
                http::chunk(self.to, text)?;
            }
            Step::Error(failure) if applies(failure.times, self.attempt) => return self.fail(failure),
            Step::Drop(drop) if applies(drop.times, self.attempt) => {
                self.shared.record(self.request, Event::Dropped);
                return Ok(Next::Nothing);
            }
            Step::Error(_) | Step::Drop(_) => {}
            Step::End(reason) => return self.end(Some(reason)).map(|()| Next::Nothing),
        }
        Ok(Next::Step)
    }

    fn begin(&mut self) -> Result<(), Gone> {
        if self.begun || !self.asked.streamed {
            return Ok(());
        }
        self.begun = true;
        http::stream_head(self.to)?;
        self.shared.record(self.request, Event::FirstByte);
        for event in self.voice.open() {
            http::chunk(self.to, &event)?;
        }
        Ok(())
    }

    fn say(&mut self, part: impl FnOnce(&mut dyn Voice) -> Vec<String>) -> Result<(), Gone> {
        self.begin()?;
        for event in part(&mut *self.voice) {
            if self.asked.streamed {
                http::chunk(self.to, &event)?;
            }
            if !self.between_chunks.is_zero() {
                self.shared.pause(self.request, self.between_chunks)?;
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &ToolCall) -> Result<(), Gone> {
        self.calls += 1;
        let prefix = if self.protocol == Protocol::Messages { "toolu" } else { "call" };
        let id = format!("{prefix}_scripted{:06}x{}", self.request, self.calls);
        self.say(|voice| voice.call(&id, call))?;
        let (name, input) = (call.name.clone(), call.input.clone());
        self.shared.record(self.request, Event::ToolAsked { id, name, input });
        Ok(())
    }

    fn fail(&mut self, failure: &Failure) -> Result<Next, Gone> {
        let event = Event::Failed { status: failure.status };
        let (to, begun) = (self.to, self.begun);
        let in_stream = if begun { self.voice.failure(failure) } else { Vec::new() };
        let refusal = self.protocol.refusal(failure).to_string();
        let headers = failure.headers_now();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.last_words(event, || {
            if !begun {
                return http::answer(to, failure.status, &headers, &refusal, true);
            }
            in_stream.iter().try_for_each(|event| http::chunk(to, event))?;
            http::last_chunk(to)
        })?;
        Ok(Next::Nothing)
    }

    fn end(&mut self, reason: Option<&str>) -> Result<(), Gone> {
        self.begin()?;
        let (events, reason) = self.voice.close(reason);
        let (to, whole) = (self.to, self.voice.whole().to_string());
        let streamed = self.asked.streamed;
        self.last_words(Event::Ended { reason }, || {
            if !streamed {
                return http::answer(to, 200, &[], &whole, true);
            }
            events.iter().try_for_each(|event| http::chunk(to, event))?;
            http::last_chunk(to)
        })
    }

    /// Sends the end of an answer and writes it down, in one: what the agent does then comes after it in the log.
    fn last_words(&self, event: Event, send: impl FnOnce() -> std::io::Result<()>) -> Result<(), Gone> {
        self.shared.change(|state| {
            send()?;
            if let Event::Ended { .. } = event {
                state.script.answered(&self.role, self.asked);
            }
            if !self.asked.streamed {
                state.record(Some(self.request), Event::FirstByte);
            }
            state.record(Some(self.request), event);
            // Whatever happens to the connection from here on, the answer was given.
            state.connections.remove(&self.request);
            Ok(())
        })
    }
}
