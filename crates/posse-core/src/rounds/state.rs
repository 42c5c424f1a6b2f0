//! The state file: where a run stands, for people, for other tools, and for a run whose journal is gone. The journal is the
//! truth; this is its mirror. Files that older programs wrote are read too.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Final, Key, NO_FEEDBACK, Next, Note, Phase, Prompt, PromptError, Role, Rounds, Rules, primary};

/// The form of the file.
const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StateFile {
    pub version: u32,
    /// When it was written: UTC, RFC 3339, with `Z`.
    pub updated_at: String,
    pub api: String,
    pub provider: String,
    pub wd: String,
    /// Written as the text of a prompt file.
    #[serde(serialize_with = "as_text")]
    pub prompt: Prompt,
    pub current_round: u32,
    pub current_phase: Phase,
    pub current_cycle: u32,
    pub start_at_peer: bool,
    pub final_status: FinalStatus,
    pub session_name: String,
    pub terminals: BTreeMap<Role, TerminalOf>,
    pub feedback: String,
    pub analyst_feedback: String,
    pub programmer_feedback: String,
    pub programmer_context_for_retry: String,
    pub outputs: BTreeMap<Key, String>,
    /// Where the answers of this run are kept.
    pub run_dir: Option<String>,
    pub in_flight: Option<InFlight>,
    /// What someone else has written there.
    #[serde(flatten)]
    pub other: Map<String, Value>,
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
    pub provider: String,
}

/// A turn that was begun and of which no answer has been taken.
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
    /// Lenient where a sensible value is at hand, strict where a guess could repeat or lose work.
    pub fn read(text: &str) -> Result<StateFile, StateError> {
        let text = text.trim_start_matches('\u{feff}');
        let value: Value = serde_json::from_str(text).map_err(|error| {
            let what = error.to_string().split(" at line ").next().unwrap_or_default().to_owned();
            StateError::Json { what, line: error.line(), column: error.column() }
        })?;
        let Value::Object(object) = value else { return Err(StateError::NotAnObject) };
        Fields(object).state()
    }

    /// As it is written: pretty, with a newline at the end.
    pub fn write(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

fn as_text<S: Serializer>(prompt: &Prompt, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(prompt)
}

/// The fields of a file, taken out one by one; what is left is somebody else's.
struct Fields(Map<String, Value>);

impl Fields {
    fn state(mut self) -> Result<StateFile, StateError> {
        match self.0.remove("version") {
            None | Some(Value::Null) => {}
            Some(version) if version == VERSION => {}
            Some(version) => return Err(StateError::Version(version.to_string())),
        }
        let final_status = self.final_status()?;
        let current_phase = self.phase()?;
        let prompt = Prompt::parse(&self.text("prompt"))?;
        let provider = self.text("provider");
        let terminals = self.terminals(&provider);
        Ok(StateFile {
            version: VERSION,
            updated_at: self.text("updated_at"),
            api: self.text("api"),
            wd: self.text("wd"),
            prompt,
            current_round: self.count("current_round"),
            current_phase,
            current_cycle: self.count("current_cycle"),
            start_at_peer: self.0.remove("start_at_peer").and_then(|value| value.as_bool()).unwrap_or(false),
            final_status,
            session_name: self.text("session_name"),
            terminals,
            feedback: self.feedback("feedback"),
            analyst_feedback: self.feedback("analyst_feedback"),
            programmer_feedback: self.feedback("programmer_feedback"),
            programmer_context_for_retry: self.text("programmer_context_for_retry"),
            outputs: self.outputs(),
            run_dir: self.0.remove("run_dir").and_then(|value| value.as_str().map(str::to_owned)),
            in_flight: self.0.remove("in_flight").and_then(|value| serde_json::from_value(value).ok()),
            provider,
            other: self.0,
        })
    }

    fn text(&mut self, name: &str) -> String {
        self.0.remove(name).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    }

    fn feedback(&mut self, name: &str) -> String {
        let text = self.text(name);
        if text.trim().is_empty() { NO_FEEDBACK.to_owned() } else { text }
    }

    /// A number from 1 on; anything else is 1.
    fn count(&mut self, name: &str) -> u32 {
        let number = self.0.remove(name).and_then(|value| value.as_u64()).unwrap_or(1);
        u32::try_from(number).unwrap_or(1).max(1)
    }

    fn final_status(&mut self) -> Result<FinalStatus, StateError> {
        let value = self.0.remove("final_status").unwrap_or_default();
        let shown = value.to_string();
        serde_json::from_value(value).map_err(|_| StateError::FinalStatus(shown))
    }

    fn phase(&mut self) -> Result<Phase, StateError> {
        let value = self.0.remove("current_phase").unwrap_or_default();
        if value.as_str().is_some_and(|phase| matches!(phase, "initialising" | "initializing")) {
            return Err(StateError::Initialising);
        }
        Ok(serde_json::from_value(value).unwrap_or(Phase::Analyst))
    }

    /// Older files have the id alone; its provider is then that of the file.
    fn terminals(&mut self, provider: &str) -> BTreeMap<Role, TerminalOf> {
        let Some(Value::Object(terminals)) = self.0.remove("terminals") else { return BTreeMap::new() };
        let one = |(role, value): (String, Value)| {
            let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
            let id = value.as_str().map(str::to_owned).or_else(|| text(&value, "id"))?;
            let provider = text(&value, "provider").unwrap_or_else(|| provider.to_owned());
            Some((role.parse().ok()?, TerminalOf { id, provider })).filter(|(_, terminal)| !terminal.id.is_empty())
        };
        terminals.into_iter().filter_map(one).collect()
    }

    fn outputs(&mut self) -> BTreeMap<Key, String> {
        let mut outputs = self.0.remove("outputs").unwrap_or_default();
        let mut one = |key: Key| match outputs.get_mut(key.as_str()).map(Value::take) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        Key::ALL.into_iter().map(|key| (key, one(key))).collect()
    }
}

impl Rounds {
    /// The part of the state file that is ours. Whoever writes it fills in the rest: times, places, terminals.
    pub fn to_state(&self) -> StateFile {
        StateFile {
            version: VERSION,
            updated_at: String::new(),
            api: String::new(),
            provider: String::new(),
            wd: String::new(),
            prompt: self.prompt.clone(),
            current_round: self.round,
            current_phase: self.phase,
            current_cycle: self.cycle,
            start_at_peer: self.start_at_peer,
            final_status: match self.next {
                Next::Over(Final::Pass) => FinalStatus::Pass,
                Next::Over(Final::Fail) => FinalStatus::Fail,
                Next::Turn(_) | Next::Stuck(_) => FinalStatus::Running,
            },
            session_name: String::new(),
            terminals: BTreeMap::new(),
            feedback: self.feedback.clone(),
            analyst_feedback: self.analyst_feedback.clone(),
            programmer_feedback: self.programmer_feedback.clone(),
            programmer_context_for_retry: self.context_for_retry.clone(),
            outputs: self.outputs.clone(),
            run_dir: None,
            in_flight: None,
            other: Map::new(),
        }
    }

    /// A run taken up from its file. Its phase begins again with the primary, in the cycle it was in, and everybody is
    /// told everything once more.
    pub fn from_state(state: &StateFile, rules: Rules) -> (Rounds, Vec<Note>) {
        let max = rules.limits.max_rounds;
        let mut rounds = Rounds::empty(rules, state.prompt.clone());
        rounds.round = state.current_round;
        rounds.cycle = state.current_cycle.min(rounds.rules.limits.max_review_cycles);
        rounds.phase = state.current_phase;
        rounds.feedback.clone_from(&state.feedback);
        rounds.analyst_feedback.clone_from(&state.analyst_feedback);
        rounds.programmer_feedback.clone_from(&state.programmer_feedback);
        rounds.context_for_retry.clone_from(&state.programmer_context_for_retry);
        rounds.outputs.extend(state.outputs.iter().map(|(key, text)| (*key, text.clone())));
        let notes = match (state.final_status, state.current_phase) {
            (FinalStatus::Pass, _) => {
                rounds.end(Final::Pass);
                vec![Note::info("the run has ended already: PASS")]
            }
            (FinalStatus::Fail, _) => {
                rounds.end(Final::Fail);
                vec![Note::info("the run has ended already: FAIL")]
            }
            (FinalStatus::Running, Phase::Done) => {
                rounds.end(Final::Fail);
                vec![Note::warning("the state file says done and does not say PASS; that is a FAIL")]
            }
            (FinalStatus::Running, _) if rounds.round > max => {
                rounds.end(Final::Fail);
                vec![Note::warning(format!("FAIL: the run is in round {}, and {max} are allowed", state.current_round))]
            }
            (FinalStatus::Running, phase) => rounds.take_up(phase, state.start_at_peer),
        };
        (rounds, notes)
    }

    fn take_up(&mut self, phase: Phase, start_at_peer: bool) -> Vec<Note> {
        if self.missing_for(phase).is_some() {
            return self.enter(phase);
        }
        let reviewed = super::reviewed_by(primary(phase)).filter(|_| start_at_peer);
        self.start_at_peer = reviewed.is_some();
        self.next = Next::Turn(reviewed.unwrap_or(primary(phase)));
        Vec::new()
    }

    /// Goes on with this turn, of which the answer is there or on its way, instead of with the beginning of its phase.
    /// False if the run is not in a place where that makes sense.
    pub fn resume_at(&mut self, key: Key) -> bool {
        let running = matches!(self.next, Next::Turn(_));
        let has_work = key == primary(self.phase) || !self.output(primary(self.phase)).trim().is_empty();
        let fits = running && key.phase() == self.phase && has_work;
        if fits {
            self.next = Next::Turn(key);
        }
        fits
    }
}

#[cfg(test)]
mod tests;
