//! Plays a scenario with a manual clock and an emulator, for tests.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::path::Path;
use std::time::Duration;

use posse_core::time::Mono;

use super::player::{AgentCut, AgentEffect, AgentHost, AgentInput, ScriptedAgent};
use super::record::AgentRecord;
use super::rows::ScreenSize;
use crate::scenario::Scenario;

/// Something that happens at a time of the play.
#[derive(Clone, Debug)]
pub(super) enum Cue {
    Keys(Vec<u8>),
    Resize(u16, u16),
    /// Takes a picture of the screen.
    Look,
}

pub(super) fn keys(keys: impl AsRef<[u8]>) -> Cue {
    Cue::Keys(keys.as_ref().to_vec())
}

/// The terminal, files and clock of an agent. The play ends after the last cue.
pub(super) struct Theatre {
    pub(super) now: Mono,
    cues: VecDeque<(Mono, Cue)>,
    pub(super) terminal: vt100::Parser,
    pub(super) looks: Vec<String>,
    /// All effects, with the milliseconds since the beginning.
    pub(super) effects: Vec<(u128, AgentEffect)>,
    /// Number of times the agent was woken by its timer.
    pub(super) ticks: usize,
}

const BEGINNING: Mono = Mono(Duration::from_secs(5));

/// Plays the cues, each with the milliseconds since the beginning. Returns the agent and how the play ended.
pub(super) fn play(
    scenario: &str,
    (columns, rows): (u16, u16),
    cues: impl IntoIterator<Item = (u64, Cue)>,
) -> (ScriptedAgent<Theatre>, AgentCut) {
    let scenario = Scenario::parse(scenario).unwrap_or_else(|error| panic!("{error}\n{scenario}"));
    let theatre = Theatre {
        now: BEGINNING,
        cues: cues.into_iter().map(|(ms, cue)| (BEGINNING + Duration::from_millis(ms), cue)).collect(),
        terminal: vt100::Parser::new(not_zero(rows), not_zero(columns), 1000),
        looks: Vec::new(),
        effects: Vec::new(),
        ticks: 0,
    };
    let mut agent = ScriptedAgent::new(theatre, scenario, ScreenSize::new(columns, rows));
    let end = agent.play();
    (agent, end)
}

impl AgentHost for Theatre {
    fn now(&self) -> Mono {
        self.now
    }

    fn wait(&mut self, until: Option<Mono>) -> Result<AgentInput, AgentCut> {
        assert!(until.is_none_or(|until| until > self.now), "a wait for the past");
        loop {
            let over = || AgentCut::Error(std::io::Error::other("the play is over").into());
            let (at, cue) = self.cues.front().cloned().ok_or_else(over)?;
            if let Some(until) = until.filter(|until| *until < at) {
                self.now = until;
                self.ticks += 1;
                return Ok(AgentInput::TimeIsUp);
            }
            self.now = at;
            self.cues.pop_front();
            match cue {
                Cue::Keys(bytes) => return Ok(AgentInput::Bytes(bytes)),
                Cue::Look => self.looks.push(self.screen()),
                Cue::Resize(columns, rows) => {
                    self.terminal.set_size(not_zero(rows), not_zero(columns));
                    return Ok(AgentInput::Resize(ScreenSize::new(columns, rows)));
                }
            }
        }
    }

    fn carry_out(&mut self, effect: &AgentEffect) -> Result<(), AgentCut> {
        if let AgentEffect::Print(text) = effect {
            self.terminal.process(text.as_bytes());
        }
        self.effects.push((self.now.since(BEGINNING).as_millis(), effect.clone()));
        Ok(())
    }

    fn count(&mut self, _: &Path) -> Result<u32, AgentCut> {
        unreachable!("no scenario here has a state directory")
    }
}

impl Theatre {
    pub(super) fn rows(&self) -> Vec<String> {
        let (_, columns) = self.terminal.screen().size();
        self.terminal.screen().rows(0, columns.get()).map(|row| row.trim_end_matches(' ').to_owned()).collect()
    }

    /// Returns the screen without blank rows at its end; a no-break space becomes `␣`.
    pub(super) fn screen(&self) -> String {
        self.rows().join("\n").replace('\u{a0}', "␣").trim_end_matches('\n').to_owned()
    }

    pub(super) fn records(&self) -> Vec<AgentRecord> {
        let records = self.effects.iter();
        records
            .filter_map(|(_, e)| if let AgentEffect::Log(record) = e { Some(record.clone()) } else { None })
            .collect()
    }

    /// Returns everything printed.
    pub(super) fn printed(&self) -> String {
        self.effects
            .iter()
            .filter_map(|(_, e)| if let AgentEffect::Print(text) = e { Some(&**text) } else { None })
            .collect()
    }

    /// Returns what was written to files, and when. A piece that is not the last one ends with `…`.
    pub(super) fn written(&self) -> Vec<(u128, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let written = self.effects.iter().filter_map(|(at, effect)| match effect {
            AgentEffect::Write { bytes, .. } => Some((*at, text(bytes))),
            AgentEffect::Piece { bytes, last, .. } => Some((*at, text(bytes) + if *last { "." } else { "…" })),
            _ => None,
        });
        written.collect()
    }
}

fn not_zero(value: u16) -> NonZeroU16 {
    NonZeroU16::new(value).expect("a terminal has a size")
}
