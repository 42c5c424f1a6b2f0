//! Plays a role of the review loop: selects the turn for a prompt and writes its answer.

use std::time::Duration;

use posse_core::time::Mono;

use super::{AgentEffect, ScriptedAgent};
use crate::agent::record::AgentRecord;
use crate::agent::review_loop::{LoopAnswerRequest, Tally, approves, request, text};
use crate::agent::transcript::TranscriptEntry;
use crate::scenario::{AgentAnswer, AgentQuestion, LoopPlay, PlayKind, ScriptStep, Thought, ToolUse};

/// What an agent of the review loop remembers between turns.
#[derive(Debug, Default)]
pub(super) struct LoopMemory {
    tally: Tally,
    /// The last request. A prompt that names no file, such as `continue`, repeats it.
    request: Option<LoopAnswerRequest>,
    /// How often the loop asked for this key.
    nth: u32,
    /// Whether this turn has answered.
    answered: bool,
}

impl LoopMemory {
    pub(super) fn new(tally: Tally) -> LoopMemory {
        LoopMemory { tally, ..LoopMemory::default() }
    }

    /// Returns the value of a placeholder that only the review loop has.
    pub(super) fn placeholder(&self, name: &str) -> Option<String> {
        let request = self.request.as_ref()?;
        match name {
            "key" => Some(request.key.to_string()),
            "nth" => Some(self.nth.to_string()),
            "answer" => Some(request.path.clone()),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct DelayedEffect {
    pub(super) due: Mono,
    effect: AgentEffect,
    /// Whether the effect is dropped when the turn ends.
    pub(super) in_turn: bool,
}

impl ScriptedAgent {
    pub(super) fn steps_for(&mut self, prompt: &str) -> Option<Vec<ScriptStep>> {
        self.note_request(prompt);
        let key = self.memory.request.as_ref().map(|request| request.key);
        let turn = self.scenario.turn_for(prompt, key, key.map(|_| self.memory.nth), self.turns_in_order);
        self.turns_in_order += usize::from(turn.is_some_and(|turn| !turn.is_conditional()));
        match turn {
            Some(turn) if turn.ignore => None,
            Some(turn) => Some(turn.steps.clone()),
            None if self.scenario.play == PlayKind::Loop && key.is_some() => {
                Some(usual_steps(&self.scenario.review_loop))
            }
            None => Some(vec![ScriptStep::say("You said: {prompt}")]),
        }
    }

    fn note_request(&mut self, prompt: &str) {
        self.memory.answered = false;
        if let Some(request) = request(prompt) {
            self.memory.request = Some(request);
        }
        let Some(LoopAnswerRequest { key, path }) = self.memory.request.clone() else {
            return;
        };
        self.memory.nth = self.count(format!("{key}.asked"));
        self.records.push(AgentRecord::Asked { key, nth: self.memory.nth, path });
    }

    fn count(&mut self, what: String) -> u32 {
        if let Some(directory) = &self.scenario.review_loop.state_dir {
            self.effects.push(AgentEffect::Count(directory.join(&what)));
        }
        let count = self.memory.tally.entry(what).or_default();
        *count = count.saturating_add(1);
        *count
    }

    pub(super) fn begin_answer(&mut self, answer: &AgentAnswer, now: Mono) {
        let Some(LoopAnswerRequest { key, path }) = self.memory.request.clone() else {
            let row = TranscriptEntry::Error("the prompt names no file to answer in".to_owned());
            return self.fail_turn(row, now);
        };
        let answered = format!("{key}.answered");
        if !std::mem::replace(&mut self.memory.answered, true) {
            self.count(answered.clone());
        }
        let nth = self.memory.tally.get(&answered).copied().unwrap_or_default();
        let usual = || text(key, approves(key, nth.saturating_sub(1), &self.scenario.review_loop), nth);
        let text = answer.text.as_ref().map_or_else(usual, |text| self.fill(text));
        let writes = writes(answer, &path, &answer.bytes(&text));
        let time = writes.iter().map(|(wait, _)| *wait).sum();
        let late = !answer.late.is_zero();
        let mut due = now + answer.late;
        for (wait, effect) in writes {
            due = due + wait;
            self.later.push(DelayedEffect { due, effect, in_turn: !late });
        }
        if !late {
            self.run_due_effects(now);
            self.begin_step(ScriptStep::Tool(ToolUse::shell(format!("cat > {path}"), None, time)), now);
        }
    }

    pub(super) fn run_due_effects(&mut self, now: Mono) {
        let (due, later): (Vec<_>, Vec<_>) = self.later.drain(..).partition(|later| later.due <= now);
        self.later = later;
        for DelayedEffect { effect, .. } in due {
            self.emit(effect, now);
        }
    }
}

/// The turn of an agent of the review loop for which the scenario has none.
fn usual_steps(play: &LoopPlay) -> Vec<ScriptStep> {
    let mut steps = Vec::new();
    if !play.think.is_zero() {
        steps.push(ScriptStep::Think(Thought { time: play.think, ..Thought::default() }));
    }
    for number in 1..=play.permissions {
        steps.push(ScriptStep::Ask(Box::new(AgentQuestion::permission(format!("make check-{number}")))));
    }
    steps.push(ScriptStep::Answer(AgentAnswer::default()));
    steps.push(ScriptStep::say("The answer is written."));
    steps
}

/// Returns the writes that make an answer, each with the time since the one before.
fn writes(answer: &AgentAnswer, path: &str, bytes: &[u8]) -> Vec<(Duration, AgentEffect)> {
    if answer.pieces == 0 {
        return vec![(Duration::ZERO, AgentEffect::Write { path: path.into(), bytes: bytes.to_vec() })];
    }
    let pieces = usize::try_from(answer.pieces).unwrap_or(usize::MAX).min(bytes.len()).max(1);
    // The file is emptied first, as a shell does for a redirection.
    let piece = |bytes: &[u8], last| AgentEffect::Piece { path: path.into(), bytes: bytes.to_vec(), last };
    let mut writes = vec![(Duration::ZERO, piece(&[], false))];
    for number in 0..pieces {
        let part = &bytes[bytes.len() * number / pieces..bytes.len() * (number + 1) / pieces];
        writes.push((answer.gap, piece(part, number + 1 == pieces)));
    }
    writes
}
