//! The loop: analyst, reviewer, programmer, reviewer, tester, round after round until the tester reports PASS.
//!
//! `Rounds` is a value. `next` returns the next turn, `text` its prompt, and `answered` applies its answer. `Rounds`
//! knows nothing of terminals, files or time: `turn` delivers prompts and collects answers. The same start and the same
//! answers give the same `Rounds`, so a run can be replayed from its journal.
//!
//! Claims must be explicit. An approval counts only if it passes the gate, and a test passes only on an unambiguous
//! verdict (`verdict`). Every path through the phases ends, because cycles and rounds are limited. An answer is never
//! blank: a turn without one has failed.

mod condense;
pub mod config;
mod lines;
mod prompt;
mod role;
pub mod state;
mod texts;
mod verdict;

#[cfg(test)]
mod phase_tests;
#[cfg(test)]
mod property_tests;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use prompt::{EXPLORE_HEADER, Prompt, PromptError, SCENARIO_HEADER};
pub use role::{Key, Role};

use crate::prompts::PromptTemplates;
use crate::words;
use config::{Condensation, LoopConfig, LoopLimits};
use state::LoopProgress;
use verdict::{Outcome, Verdict};

words! {
    /// A phase of a round.
    pub enum Phase ("phase") {
        Analyst = "analyst",
        Programmer = "programmer",
        Tester = "tester",
        Done = "done",
    }
}

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    Turn(Key),
    Over(Final),
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Final {
    Pass,
    Fail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Background for later diagnosis.
    Detail,
    Info,
    Warning,
}

/// A message for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub level: Level,
    pub text: String,
}

impl Note {
    fn info(text: impl Into<String>) -> Self {
        Self { level: Level::Info, text: text.into() }
    }

    fn warning(text: impl Into<String>) -> Self {
        Self { level: Level::Warning, text: text.into() }
    }
}

/// The settings of the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    pub limits: LoopLimits,
    pub condensation: Condensation,
    pub project_test_cmd: String,
    /// Whether the project uses OpenSpec; only then do prompts mention its commands.
    pub openspec: bool,
    pub prompts: PromptTemplates,
}

impl Rules {
    pub fn new(config: &LoopConfig, openspec: bool, prompts: PromptTemplates) -> Self {
        Self {
            prompts,
            limits: config.limits,
            condensation: config.condensation,
            project_test_cmd: config.project_test_cmd.trim().to_owned(),
            openspec,
        }
    }
}

/// Placeholder for feedback that does not exist yet.
pub const NO_FEEDBACK: &str = "None yet.";

/// The state of the loop between two turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    rules: Rules,
    prompt: Prompt,
    progress: LoopProgress,
    next: Next,
    /// The roles whose terminal has received the whole task.
    told: BTreeSet<Role>,
}

impl Rounds {
    pub fn begin(rules: Rules, prompt: Prompt, start: Role) -> Rounds {
        let mut rounds = Rounds::new(rules, prompt, LoopProgress::default());
        let first = start.key();
        for key in Key::ALL.into_iter().filter(|key| *key < first && reviewed_by(*key).is_some()) {
            rounds.progress.outputs.insert(key, skipped(key.role()));
        }
        rounds.progress.start_at_peer = matches!(start, Role::PeerAnalyst | Role::PeerProgrammer);
        rounds.progress.phase = first.phase();
        rounds.next = Next::Turn(first);
        rounds
    }

    fn new(rules: Rules, prompt: Prompt, progress: LoopProgress) -> Rounds {
        Rounds { rules, prompt, progress, next: Next::Turn(Key::Analyst), told: BTreeSet::new() }
    }

    pub fn next(&self) -> Next {
        self.next
    }

    pub fn round(&self) -> u32 {
        self.progress.round
    }

    /// Returns the number of reviews in this phase, including the present one.
    pub fn cycle(&self) -> u32 {
        self.progress.cycle
    }

    pub fn phase(&self) -> Phase {
        self.progress.phase
    }

    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// Returns the last answer of this kind, or an empty text.
    pub fn output(&self, key: Key) -> &str {
        self.progress.outputs.get(&key).map_or("", String::as_str)
    }

    /// Returns the prompt of this turn. `instruction` names the destination of the answer.
    pub fn text(&self, key: Key, instruction: &str) -> String {
        texts::text(self, key, instruction)
    }

    /// Records that this role's terminal has received the whole task. Later prompts only refer to it.
    pub fn told(&mut self, role: Role) {
        self.told.insert(role);
    }

    /// Records that this role's terminal is new or may have lost its memory: the next prompt repeats the task.
    pub fn forget(&mut self, role: Role) {
        self.told.remove(&role);
    }

    /// Applies the answer to the turn returned by `next`.
    pub fn answered(&mut self, key: Key, answer: &str) -> Vec<Note> {
        if self.next != Next::Turn(key) {
            return vec![Note::warning(format!("an answer of {key} came that nobody had asked for; it is left out"))];
        }
        let answer = answer.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n").trim().to_owned();
        self.progress.outputs.insert(key, answer.clone());
        match key {
            Key::Analyst => self.go_to(Key::AnalystReview),
            Key::Programmer => self.go_to(Key::ProgrammerReview),
            Key::AnalystReview | Key::ProgrammerReview => self.reviewed(key, &answer),
            Key::Tester => self.tested(&answer),
        }
    }

    fn go_to(&mut self, key: Key) -> Vec<Note> {
        self.next = Next::Turn(key);
        Vec::new()
    }

    fn reviewed(&mut self, review: Key, answer: &str) -> Vec<Note> {
        self.progress.start_at_peer = false;
        let outcome = verdict::review_outcome(review, answer, self.progress.cycle, &self.rules);
        let (cycle, max) = (self.progress.cycle, self.rules.limits.max_review_cycles);
        let phase = self.progress.phase;
        if outcome == Outcome::Approved {
            *self.peer_feedback(review) = NO_FEEDBACK.into();
            let mut notes = vec![Note::info(format!("{phase}: approved in cycle {cycle}"))];
            notes.extend(self.enter(after(phase)));
            return notes;
        }
        let condensed = condense::review_notes(answer, &self.rules.condensation);
        let mut notes = vec![not_approved(phase, &outcome)];
        if cycle < max {
            *self.peer_feedback(review) = explained(&outcome, &condensed);
            self.progress.cycle += 1;
            self.next = Next::Turn(primary(phase));
            return notes;
        }
        let times = if max == 1 { "1 cycle".to_owned() } else { format!("{max} cycles") };
        notes.push(Note::warning(format!("{phase}: no approval after {times}; the next phase begins without it")));
        *self.peer_feedback(review) =
            format!("The reviewer did not approve after {times}. The last notes:\n{condensed}");
        notes.extend(self.enter(after(phase)));
        notes
    }

    fn peer_feedback(&mut self, review: Key) -> &mut String {
        if review == Key::AnalystReview {
            &mut self.progress.analyst_feedback
        } else {
            &mut self.progress.programmer_feedback
        }
    }

    fn tested(&mut self, answer: &str) -> Vec<Note> {
        let round = self.progress.round;
        let failed = match verdict::test_verdict(answer) {
            Verdict::Yes => {
                self.end(Final::Pass);
                return vec![Note::info(format!("PASS in round {round}"))];
            }
            Verdict::No => Note::info(format!("FAIL in round {round}")),
            Verdict::Unclear(line) => {
                Note::warning(format!("FAIL in round {round}: {line:?} is no plain verdict, so it is not a PASS"))
            }
            Verdict::Missing => Note::warning(format!(
                "FAIL in round {round}: the tester gave no `RESULT: …` line, so it is not a PASS"
            )),
        };
        self.progress.feedback = condense::test_evidence(answer, &self.rules.condensation);
        let max = self.rules.limits.max_rounds;
        if round >= max {
            self.end(Final::Fail);
            return vec![
                failed,
                Note::warning(format!("FAIL: no PASS in {max} {}", if max == 1 { "round" } else { "rounds" })),
            ];
        }
        let done = self.output(Key::Programmer).to_owned();
        self.progress.context_for_retry = condense::programmer_handoff(&done, &self.rules.condensation);
        self.progress.analyst_feedback = NO_FEEDBACK.into();
        self.progress.programmer_feedback = NO_FEEDBACK.into();
        self.progress.round += 1;
        self.clear(&[Key::Programmer, Key::ProgrammerReview, Key::Tester]);
        let mut notes = vec![failed];
        notes.extend(self.enter(Phase::Programmer));
        notes
    }

    /// Enters a phase, or the previous one if a state file lacks the phase's input.
    fn enter(&mut self, phase: Phase) -> Vec<Note> {
        let Some(missing) = self.missing_for(phase) else {
            self.start_phase(phase);
            return Vec::new();
        };
        let empty = missing.phase();
        let mut notes = vec![Note::warning(format!("the {empty} left nothing; that phase is repeated"))];
        notes.extend(self.enter(empty));
        notes
    }

    /// Returns the output that a phase needs, if it is blank.
    fn missing_for(&self, phase: Phase) -> Option<Key> {
        let needed = match phase {
            Phase::Programmer => Key::Analyst,
            Phase::Tester => Key::Programmer,
            Phase::Analyst | Phase::Done => return None,
        };
        self.output(needed).trim().is_empty().then_some(needed)
    }

    fn start_phase(&mut self, phase: Phase) {
        self.progress.phase = phase;
        self.progress.cycle = 1;
        match phase {
            Phase::Analyst => self.clear(&[Key::Analyst, Key::AnalystReview]),
            Phase::Programmer => self.clear(&[Key::Programmer, Key::ProgrammerReview]),
            Phase::Tester | Phase::Done => {}
        }
        self.next = Next::Turn(primary(phase));
    }

    fn clear(&mut self, keys: &[Key]) {
        for key in keys {
            self.progress.outputs.insert(*key, String::new());
        }
    }

    fn end(&mut self, how: Final) {
        self.progress.phase = Phase::Done;
        self.next = Next::Over(how);
    }
}

/// Returns the review of this turn's work.
fn reviewed_by(key: Key) -> Option<Key> {
    match key {
        Key::Analyst => Some(Key::AnalystReview),
        Key::Programmer => Some(Key::ProgrammerReview),
        _ => None,
    }
}

/// Returns the first turn of a phase. The final phase has none, and is never passed in.
fn primary(phase: Phase) -> Key {
    match phase {
        Phase::Analyst => Key::Analyst,
        Phase::Programmer => Key::Programmer,
        Phase::Tester | Phase::Done => Key::Tester,
    }
}

fn after(phase: Phase) -> Phase {
    match phase {
        Phase::Analyst => Phase::Programmer,
        Phase::Programmer => Phase::Tester,
        Phase::Tester | Phase::Done => Phase::Done,
    }
}

/// Returns the placeholder for a summary that was not requested.
fn skipped(role: Role) -> String {
    format!("(The {role}'s turn was skipped: this run began later. Look at the project itself for what is there.)")
}

fn not_approved(phase: Phase, outcome: &Outcome) -> Note {
    match outcome {
        Outcome::HeldBack(lack) => Note::warning(format!("{phase}: approval held back: {lack}")),
        Outcome::Unclear(line) => {
            Note::warning(format!("{phase}: {line:?} is no plain verdict, so it is not an approval"))
        }
        Outcome::Missing => {
            Note::warning(format!("{phase}: the review has no `REVIEW_RESULT: …` line, so it is not an approval"))
        }
        Outcome::Approved | Outcome::Revise => Note::info(format!("{phase}: the reviewer asks for changes")),
    }
}

/// Returns the review notes for the primary. Approving notes get an explanation why the primary works again.
fn explained(outcome: &Outcome, notes: &str) -> String {
    match outcome {
        Outcome::HeldBack(lack) => {
            format!(
                "(The reviewer approved, but that does not count yet: {lack}. Go over your work once more.)\n{notes}"
            )
        }
        _ => notes.to_owned(),
    }
}
