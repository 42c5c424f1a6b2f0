//! A scripted agent with a manual clock and an emulator, for tests.

use std::num::NonZeroU16;
use std::time::Duration;

use crate::agent::machine::{AgentEffect, AgentInput, ScriptedAgent};
use crate::agent::record::AgentRecord;
use crate::agent::review_loop::Tally;
use crate::agent::rows::ScreenSize;
use crate::scenario::Scenario;
use posse_core::time::Mono;

pub(crate) struct Theatre {
    pub(crate) agent: ScriptedAgent,
    pub(crate) now: Mono,
    terminal: vt100::Parser,
    /// All effects except frames.
    seen: Vec<AgentEffect>,
    pub(crate) frames: usize,
    pub(crate) ticks: usize,
}

impl Theatre {
    pub(crate) fn open(scenario: &str, columns: u16, rows: u16) -> Theatre {
        Theatre::open_after(scenario, Tally::default(), columns, rows)
    }

    pub(crate) fn open_after(scenario: &str, tally: Tally, columns: u16, rows: u16) -> Theatre {
        let scenario = Scenario::parse(scenario).unwrap_or_else(|error| panic!("{error}\n{scenario}"));
        let now = Mono(Duration::from_secs(5));
        let (agent, effects) = ScriptedAgent::open(scenario, tally, ScreenSize::new(columns, rows), now);
        let terminal = vt100::Parser::new(not_zero(rows), not_zero(columns), 1000);
        let mut theatre = Theatre { agent, now, terminal, seen: Vec::new(), frames: 0, ticks: 0 };
        theatre.take(effects);
        theatre
    }

    fn take(&mut self, effects: Vec<AgentEffect>) {
        for effect in effects {
            if let Some(bytes) = effect.bytes() {
                self.terminal.process(&bytes);
            }
            match effect {
                AgentEffect::Paint(_) => self.frames += 1,
                other => self.seen.push(other),
            }
        }
    }

    pub(crate) fn event(&mut self, event: AgentInput) {
        let effects = self.agent.handle(event, self.now);
        self.take(effects);
    }

    pub(crate) fn keys(&mut self, bytes: impl AsRef<[u8]>) {
        self.event(AgentInput::Bytes(bytes.as_ref()));
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.terminal.set_size(not_zero(rows), not_zero(columns));
        self.event(AgentInput::Resize(ScreenSize::new(columns, rows)));
    }

    /// Lets time pass, with ticks exactly at the deadlines of the agent.
    pub(crate) fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        let mut standing_still = 0;
        while let Some(due) = self.agent.deadline().filter(|due| *due <= end) {
            assert!(due >= self.now, "a deadline in the past");
            standing_still = if due == self.now { standing_still + 1 } else { 0 };
            assert!(standing_still < 10_000, "time does not move");
            self.now = due;
            self.ticks += 1;
            self.event(AgentInput::Tick);
        }
        self.now = end;
    }

    pub(crate) fn wait_ms(&mut self, ms: u64) {
        self.wait(Duration::from_millis(ms));
    }

    /// Returns the effects since the last call, without frames.
    pub(crate) fn happened(&mut self) -> Vec<AgentEffect> {
        std::mem::take(&mut self.seen)
    }

    /// Returns the records since the last call.
    pub(crate) fn records(&mut self) -> Vec<AgentRecord> {
        let records = self.happened().into_iter();
        records.filter_map(|effect| if let AgentEffect::Log(record) = effect { Some(record) } else { None }).collect()
    }

    pub(crate) fn rows(&self) -> Vec<String> {
        let (_, columns) = self.terminal.screen().size();
        self.terminal.screen().rows(0, columns.get()).collect()
    }

    /// Returns the screen without blank rows at its end; a no-break space becomes `␣`.
    pub(crate) fn screen(&self) -> String {
        self.rows().join("\n").replace('\u{a0}', "␣").trim_end_matches('\n').to_owned()
    }

    pub(crate) fn terminal(&self) -> &vt100::Screen {
        self.terminal.screen()
    }
}

fn not_zero(value: u16) -> NonZeroU16 {
    NonZeroU16::new(value).expect("a terminal has a size")
}
