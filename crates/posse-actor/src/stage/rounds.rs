//! Playing in the loop: which turn a prompt gets, and how its answer is written.

use std::time::Duration;

use super::play::{Part, Play};
use super::script::Asked;
use super::{Effect, Stage};
use crate::record::{Record, hash};
use crate::rounds::{Count, Request, Tally, TurnKey, request, tally_file, text, usual_verdict};
use crate::scenario::{Answer, Ask, HowLong, LoopPlay, PlayKind, Step, Think, Tool};
use crate::time::Mono;

/// What an agent of the loop remembers.
#[derive(Debug)]
pub(super) struct Memory {
    tally: Tally,
    /// What was asked for last. A prompt that names no file, such as a `continue`, is about this one.
    request: Option<Request>,
    /// The number of the prompt for it.
    nth: u32,
    /// This turn has answered.
    answered: bool,
}

impl Memory {
    pub(super) fn new(tally: Tally) -> Memory {
        Memory { tally, request: None, nth: 0, answered: false }
    }

    pub(super) fn asked(&self) -> Option<Asked<'_>> {
        let request = self.request.as_ref()?;
        Some(Asked { key: request.key, path: &request.path, nth: self.nth })
    }
}

/// Something that is done by itself when its time has come.
#[derive(Debug)]
pub(super) struct Later {
    due: Mono,
    effect: Effect,
    /// It is part of the turn, and not done if that is broken off.
    in_turn: bool,
}

impl Stage {
    /// The steps for a prompt; none if nothing comes of it.
    pub(super) fn steps_for(&mut self, prompt: &str) -> Option<Vec<Step>> {
        self.heed(prompt);
        let turn = match self.scenario.play {
            PlayKind::Script => {
                let turn = self.scenario.turn_for(prompt, self.turns_in_order).map(|at| &self.scenario.turns[at]);
                self.turns_in_order += usize::from(turn.is_some_and(|turn| turn.on.is_none()));
                turn
            }
            PlayKind::Loop => {
                let asked = self.memory.asked().map(|asked| (asked.key, asked.nth));
                self.scenario.loop_turn_for(prompt, asked)
            }
        };
        match turn {
            Some(turn) if turn.ignore => None,
            Some(turn) => Some(turn.steps.clone()),
            None if self.scenario.play == PlayKind::Loop && self.memory.request.is_some() => {
                Some(usual_steps(&self.scenario.loop_play))
            }
            None => Some(vec![Step::Say("You said: {prompt}".to_owned())]),
        }
    }

    /// Takes note of what a prompt asks for.
    fn heed(&mut self, prompt: &str) {
        self.memory.answered = false;
        if let Some(request) = request(prompt) {
            self.memory.request = Some(request);
        }
        let Some(Request { key, path }) = self.memory.request.clone() else {
            return;
        };
        self.memory.nth = self.count(key, Count::Asked);
        self.records.push(Record::Asked {
            key,
            nth: self.memory.nth,
            path,
            hash: hash(prompt),
            length: prompt.len(),
            first: prompt.lines().next().unwrap_or_default().to_owned(),
        });
    }

    fn count(&mut self, key: TurnKey, what: Count) -> u32 {
        if let Some(folder) = &self.scenario.loop_play.state_dir {
            self.effects.push(Effect::Count(tally_file(folder, key, what)));
        }
        self.memory.tally.add(key, what)
    }

    pub(super) fn begin_answer(&mut self, answer: &Answer, now: Mono) {
        let Some(Request { key, path }) = self.memory.request.clone() else {
            return self.fail_turn("the prompt names no file to answer in".to_owned(), now);
        };
        if !self.memory.answered {
            self.memory.answered = true;
            self.count(key, Count::Answered);
        }
        let nth = self.memory.tally.get(key, Count::Answered);
        let text = answer.text.as_ref().map_or_else(
            || {
                let due = || usual_verdict(key, nth.saturating_sub(1), &self.scenario.loop_play);
                text(key, answer.verdict.unwrap_or_else(due), nth)
            },
            |text| self.fill(text),
        );
        let writes = writes(answer, &path, answer.bytes(&text));
        if let Some(late) = answer.late {
            return self.schedule(writes, now + late, false);
        }
        let tool = Tool {
            name: "Bash".to_owned(),
            input: format!("cat > {path}"),
            output: None,
            time: HowLong::For(writes.iter().map(|(wait, _)| *wait).sum()),
        };
        self.schedule(writes, now, true);
        self.do_what_is_due(now);
        self.begin_step(Step::Tool(tool), now);
    }

    fn schedule(&mut self, writes: Vec<(Duration, Effect)>, start: Mono, in_turn: bool) {
        let mut due = start;
        for (wait, effect) in writes {
            due = due + wait;
            self.later.push(Later { due, effect, in_turn });
        }
    }

    /// Does what was put off until now, in its order.
    pub(super) fn do_what_is_due(&mut self, now: Mono) {
        let (due, later): (Vec<Later>, Vec<Later>) = self.later.drain(..).partition(|later| later.due <= now);
        self.later = later;
        for Later { effect, .. } in due {
            self.do_now(effect, now);
        }
    }

    pub(super) fn next_due(&self) -> Option<Mono> {
        self.later.iter().map(|later| later.due).min()
    }

    /// The turn is over: what belongs to it and was not done will not be.
    pub(super) fn drop_what_is_left_of_the_turn(&mut self) {
        self.later.retain(|later| !later.in_turn);
    }

    /// What the turn that is played was asked for.
    pub(super) fn asked(&self) -> Option<Asked<'_>> {
        match &self.play {
            Some(Play { part: Part::Turn { .. }, .. }) => self.memory.asked(),
            _ => None,
        }
    }
}

/// What an agent of the loop does unless told otherwise.
fn usual_steps(play: &LoopPlay) -> Vec<Step> {
    let mut steps = Vec::new();
    if play.think != HowLong::For(Duration::ZERO) {
        steps.push(Step::Think(Think { time: play.think, verb: None, row: None }));
    }
    for number in 1..=play.permissions {
        steps.push(Step::Ask(Ask::permission(format!("make check-{number}"))));
    }
    steps.push(Step::Answer(Answer::default()));
    steps.push(Step::Say("The answer is written.".to_owned()));
    steps
}

/// The writes an answer is made of, each with the time since the one before.
fn writes(answer: &Answer, path: &str, bytes: Vec<u8>) -> Vec<(Duration, Effect)> {
    if answer.pieces == 0 {
        return vec![(Duration::ZERO, Effect::Write { path: path.into(), bytes, how: answer.how })];
    }
    let pieces = usize::try_from(answer.pieces).unwrap_or(usize::MAX).min(bytes.len()).max(1);
    // The file is emptied first, as a shell does before it runs what writes into it.
    let piece = |bytes: &[u8], last| Effect::Piece { path: path.into(), bytes: bytes.to_vec(), last };
    let mut writes = vec![(Duration::ZERO, piece(&[], false))];
    for number in 0..pieces {
        let (from, to) = (bytes.len() * number / pieces, bytes.len() * (number + 1) / pieces);
        writes.push((answer.gap, piece(&bytes[from..to], number + 1 == pieces)));
    }
    writes
}
