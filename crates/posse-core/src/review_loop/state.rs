//! The state file: the status of a run for people, for other tools, and for a run whose journal is lost. The file only
//! mirrors the journal. Files of older programs are also read.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Final, Key, NO_FEEDBACK, Next, Note, Phase, Prompt, PromptError, Role, Rounds, Rules, primary};

/// The format version of the file.
pub(crate) const VERSION: u32 = 1;

/// The contents of a state file. Parsing is lenient where a sensible default exists, and strict where a guess could
/// repeat or lose work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateFile {
    #[serde(default = "version", deserialize_with = "count")]
    pub version: u32,
    /// The time of writing: UTC, RFC 3339, with `Z`.
    #[serde(default, deserialize_with = "lenient")]
    pub updated_at: String,
    #[serde(default, deserialize_with = "lenient")]
    pub api: String,
    #[serde(default, deserialize_with = "lenient")]
    pub provider: String,
    #[serde(default, deserialize_with = "lenient")]
    pub wd: String,
    /// Written as the text of a prompt file.
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    pub prompt: Prompt,
    #[serde(flatten)]
    pub progress: LoopProgress,
    pub final_status: FinalStatus,
    #[serde(default, deserialize_with = "lenient")]
    pub session_name: String,
    #[serde(default, deserialize_with = "terminals")]
    pub terminals: BTreeMap<Role, TerminalOf>,
    /// The directory of this run's answers.
    #[serde(default, deserialize_with = "lenient")]
    pub run_dir: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub in_flight: Option<InFlight>,
    /// Fields of other programs.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The results of the agents so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopProgress {
    #[serde(rename = "current_round", deserialize_with = "count")]
    pub round: u32,
    #[serde(rename = "current_phase", deserialize_with = "phase")]
    pub(super) phase: Phase,
    #[serde(rename = "current_cycle", deserialize_with = "count")]
    pub(super) cycle: u32,
    /// The run began with a reviewer, and that first review is still pending.
    #[serde(deserialize_with = "lenient")]
    pub(super) start_at_peer: bool,
    /// The tester's last findings.
    #[serde(deserialize_with = "feedback")]
    pub(super) feedback: String,
    #[serde(deserialize_with = "feedback")]
    pub(super) analyst_feedback: String,
    #[serde(deserialize_with = "feedback")]
    pub(super) programmer_feedback: String,
    /// The programmer's work in the failed round.
    #[serde(rename = "programmer_context_for_retry", deserialize_with = "lenient")]
    pub(super) context_for_retry: String,
    #[serde(deserialize_with = "outputs")]
    pub(super) outputs: BTreeMap<Key, String>,
}

impl Default for LoopProgress {
    fn default() -> Self {
        Self {
            round: 1,
            phase: Phase::Analyst,
            cycle: 1,
            start_at_peer: false,
            feedback: NO_FEEDBACK.into(),
            analyst_feedback: NO_FEEDBACK.into(),
            programmer_feedback: NO_FEEDBACK.into(),
            context_for_retry: String::new(),
            outputs: Key::ALL.into_iter().map(|key| (key, String::new())).collect(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum FinalStatus {
    Running,
    Pass,
    Fail,
}

/// The terminal of a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalOf {
    pub id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub provider: String,
}

/// A turn whose answer has not been accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    pub key: Key,
    pub terminal: String,
    pub dispatched_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("it is not valid JSON: {what}, at line {line}, column {column}")]
    Json { what: String, line: usize, column: usize },
    #[error("it is not a JSON object")]
    NotAnObject,
    #[error("it is of version {0}, and this program knows version {VERSION}")]
    Version(String),
    #[error("`final_status` is {0}, not RUNNING, PASS or FAIL")]
    FinalStatus(String),
    #[error("the run it tells of never got as far as having its terminals: begin a new one")]
    Initialising,
    #[error("its prompt cannot be used: {0}")]
    Prompt(#[from] PromptError),
}

impl StateFile {
    pub fn read(text: &str) -> Result<StateFile, StateError> {
        let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| json(&error))?;
        if !value.is_object() {
            return Err(StateError::NotAnObject);
        }
        match &value["version"] {
            Value::Null => {}
            version if *version == VERSION => {}
            version => return Err(StateError::Version(version.to_string())),
        }
        let status = &value["final_status"];
        FinalStatus::deserialize(status).map_err(|_| StateError::FinalStatus(status.to_string()))?;
        if let Some("initialising" | "initializing") = value["current_phase"].as_str() {
            return Err(StateError::Initialising);
        }
        Prompt::parse(value["prompt"].as_str().unwrap_or_default())?;
        let mut state: StateFile = serde_json::from_value(value).map_err(|error| json(&error))?;
        // Older files have only the id; the provider is then the file's.
        for terminal in state.terminals.values_mut().filter(|terminal| terminal.provider.is_empty()) {
            terminal.provider.clone_from(&state.provider);
        }
        Ok(state)
    }

    /// Serializes the file: pretty-printed, with a newline at the end.
    pub fn write(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

fn json(error: &serde_json::Error) -> StateError {
    let what = error.to_string().split(" at line ").next().unwrap_or_default().to_owned();
    StateError::Json { what, line: error.line(), column: error.column() }
}

fn version() -> u32 {
    VERSION
}

fn as_text<S: Serializer>(prompt: &Prompt, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(prompt)
}

fn from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Prompt, D::Error> {
    Prompt::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// Replaces an invalid value with the default.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// Reads a number from 1 on; anything else is 1.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    lenient(deserializer).map(|number: Option<NonZeroU32>| number.map_or(1, NonZeroU32::get))
}

fn phase<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Phase, D::Error> {
    lenient(deserializer).map(|phase: Option<Phase>| phase.unwrap_or(Phase::Analyst))
}

fn feedback<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text: String = lenient(deserializer)?;
    Ok(if text.trim().is_empty() { NO_FEEDBACK.to_owned() } else { text })
}

fn terminals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Role, TerminalOf>, D::Error> {
    let one = |(role, value): (String, Value)| {
        let terminal = match value {
            Value::String(id) => TerminalOf { id, provider: String::new() },
            value => serde_json::from_value(value).ok()?,
        };
        Some((role.parse().ok()?, terminal)).filter(|(_, terminal)| !terminal.id.is_empty())
    };
    Ok(lenient::<D, BTreeMap<String, Value>>(deserializer)?.into_iter().filter_map(one).collect())
}

fn outputs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Key, String>, D::Error> {
    let all: BTreeMap<String, Value> = lenient(deserializer)?;
    let text = |key: Key| all.get(key.as_str()).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Key::ALL.into_iter().map(|key| (key, text(key))).collect())
}

impl Rounds {
    pub fn progress(&self) -> &LoopProgress {
        &self.progress
    }

    /// Returns a state file without times, directories and terminals.
    #[cfg(test)]
    pub(crate) fn to_state(&self) -> StateFile {
        StateFile {
            version: VERSION,
            updated_at: String::new(),
            api: String::new(),
            provider: String::new(),
            wd: String::new(),
            prompt: self.prompt.clone(),
            progress: self.progress.clone(),
            final_status: FinalStatus::Running,
            session_name: String::new(),
            terminals: BTreeMap::new(),
            run_dir: None,
            in_flight: None,
            other: Map::new(),
        }
    }

    /// Restores a run from its file. The phase restarts with the primary, in the same cycle, and each role gets the
    /// whole task again.
    pub fn from_state(state: &StateFile, rules: Rules) -> (Rounds, Vec<Note>) {
        let max = rules.limits.max_rounds;
        let mut rounds = Rounds::new(rules, state.prompt.clone(), state.progress.clone());
        let progress = &mut rounds.progress;
        progress.cycle = progress.cycle.min(rounds.rules.limits.max_review_cycles);
        let (round, phase) = (progress.round, progress.phase);
        let (how, note) = match state.final_status {
            FinalStatus::Pass => (Final::Pass, Note::info("the run has ended already: PASS")),
            FinalStatus::Fail => (Final::Fail, Note::info("the run has ended already: FAIL")),
            FinalStatus::Running if phase == Phase::Done => {
                (Final::Fail, Note::warning("the state file says done and does not say PASS; that is a FAIL"))
            }
            FinalStatus::Running if round > max => {
                (Final::Fail, Note::warning(format!("FAIL: the run is in round {round}, and {max} are allowed")))
            }
            FinalStatus::Running => {
                let notes = rounds.take_up();
                return (rounds, notes);
            }
        };
        rounds.end(how);
        (rounds, vec![note])
    }

    fn take_up(&mut self) -> Vec<Note> {
        let phase = self.progress.phase;
        let start_at_peer = std::mem::take(&mut self.progress.start_at_peer);
        if self.missing_for(phase).is_some() {
            return self.enter(phase);
        }
        let reviewed = super::reviewed_by(primary(phase)).filter(|_| start_at_peer);
        self.progress.start_at_peer = reviewed.is_some();
        self.next = Next::Turn(reviewed.unwrap_or(primary(phase)));
        Vec::new()
    }

    /// Continues with this turn, whose answer exists or is pending, instead of restarting its phase. Returns false if
    /// the turn does not fit the run's position.
    pub fn resume_at(&mut self, key: Key) -> bool {
        let running = matches!(self.next, Next::Turn(_));
        let has_work =
            key == primary(self.progress.phase) || !self.output(primary(self.progress.phase)).trim().is_empty();
        let fits = running && key.phase() == self.progress.phase && has_work;
        if fits {
            self.next = Next::Turn(key);
        }
        fits
    }
}

#[cfg(test)]
mod tests;
