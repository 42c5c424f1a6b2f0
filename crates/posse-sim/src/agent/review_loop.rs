//! Plays a role of the review loop. A prompt asks for an answer in a file, and the name of the file tells which turn it is.
//! The usual answers pass the gates of the loop, or fail them on purpose: the loop looks for headings, verdict lines,
//! section names and words of evidence.

use std::collections::BTreeMap;
use std::time::Duration;

use posse_core::review_loop::Key;

use super::player::{AgentCut, AgentEffect, AgentHost, ScriptedAgent};
use super::record::AgentRecord;
use crate::scenario::{AgentAnswer, AgentQuestion, LoopPlay, PlayKind, ScriptStep, Thought};

/// The memory of an agent of the review loop between turns.
#[derive(Debug, Default)]
pub(super) struct LoopMemory {
    /// Number of requests (`tester.asked`) and answers (`tester.answered`) of each turn, unless a directory counts
    /// them.
    tally: BTreeMap<String, u32>,
    /// The last request. A prompt that names no file, such as `continue`, repeats it.
    request: Option<LoopAnswerRequest>,
    /// Number of times the loop asked for this key.
    nth: u32,
    /// The number of this turn among those that answered this key, once it has answered.
    answered: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LoopAnswerRequest {
    key: Key,
    path: String,
}

impl LoopMemory {
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

impl<H: AgentHost> ScriptedAgent<H> {
    /// Returns the steps for a prompt, or `None` if the agent has to ignore it.
    pub(super) fn steps_for(&mut self, prompt: &str) -> Result<Option<Vec<ScriptStep>>, AgentCut> {
        self.note_request(prompt)?;
        let asked = self.memory.request.as_ref().map(|request| (request.key, self.memory.nth));
        let turn = self.scenario.turn_for(prompt, asked, self.turns_in_order);
        self.turns_in_order += usize::from(turn.is_some_and(|turn| !turn.is_conditional()));
        Ok(match turn {
            Some(turn) => (!turn.ignore).then(|| turn.steps.clone()),
            None if self.scenario.play == PlayKind::Loop && asked.is_some() => {
                Some(usual_steps(&self.scenario.review_loop))
            }
            None => Some(vec![ScriptStep::say("You said: {prompt}")]),
        })
    }

    fn note_request(&mut self, prompt: &str) -> Result<(), AgentCut> {
        self.memory.answered = None;
        if let Some(request) = request(prompt) {
            self.memory.request = Some(request);
        }
        if let Some(LoopAnswerRequest { key, path }) = self.memory.request.clone() {
            self.memory.nth = self.count(&format!("{key}.asked"))?;
            self.records.push(AgentRecord::Asked { key, nth: self.memory.nth, path });
        }
        Ok(())
    }

    fn count(&mut self, what: &str) -> Result<u32, AgentCut> {
        if let Some(directory) = &self.scenario.review_loop.state_dir {
            return self.host.count(&directory.join(what));
        }
        let count = self.memory.tally.entry(what.to_owned()).or_default();
        *count = count.saturating_add(1);
        Ok(*count)
    }

    pub(super) fn answer(&mut self, answer: &AgentAnswer) -> Result<(), AgentCut> {
        let Some(LoopAnswerRequest { key, path }) = self.memory.request.clone() else {
            return self.fail(self.scenario.look.error("the prompt names no file to answer in".to_owned()));
        };
        let nth = match self.memory.answered {
            Some(nth) => nth,
            None => self.count(&format!("{key}.answered"))?,
        };
        self.memory.answered = Some(nth);
        let usual = || text(key, approves(key, nth.saturating_sub(1), &self.scenario.review_loop), nth);
        let text = answer.text.as_ref().map_or_else(usual, |text| self.fill(text));
        let writes = writes(answer, &path, &answer.bytes(&text));
        if answer.late.is_zero() {
            let work = |agent: &mut Self| {
                for (gap, effect) in writes {
                    agent.pass(agent.host.now() + gap)?;
                    agent.emit(&effect)?;
                }
                Ok(())
            };
            return self.show_tool("Bash", &format!("cat > {path}"), None, work);
        }
        let mut due = self.host.now() + answer.late;
        for (gap, effect) in writes {
            due = due + gap;
            self.later.push((due, effect));
        }
        Ok(())
    }
}

/// The turn of an agent of the review loop for which the scenario has none.
fn usual_steps(play: &LoopPlay) -> Vec<ScriptStep> {
    let mut steps = vec![ScriptStep::Think(Thought { time: play.think, ..Thought::default() })];
    steps.extend(
        (1..=play.permissions)
            .map(|number| ScriptStep::Ask(Box::new(AgentQuestion::permission(format!("make check-{number}"))))),
    );
    steps.extend([ScriptStep::Answer(AgentAnswer::default()), ScriptStep::say("The answer is written.")]);
    steps
}

/// Returns the writes that make an answer, each with the time since the one before.
fn writes(answer: &AgentAnswer, path: &str, bytes: &[u8]) -> Vec<(Duration, AgentEffect)> {
    let path = || path.into();
    if answer.pieces == 0 {
        return vec![(Duration::ZERO, AgentEffect::Write { path: path(), bytes: bytes.to_vec() })];
    }
    let pieces = usize::try_from(answer.pieces).unwrap_or(usize::MAX).min(bytes.len()).max(1);
    // The file is emptied first, as a shell does for a redirection.
    let piece = |bytes: &[u8], last| AgentEffect::Piece { path: path(), bytes: bytes.to_vec(), last };
    let mut writes = vec![(Duration::ZERO, piece(&[], false))];
    writes.extend((0..pieces).map(|number| {
        let part = &bytes[bytes.len() * number / pieces..bytes.len() * (number + 1) / pieces];
        (answer.gap, piece(part, number + 1 == pieces))
    }));
    writes
}

/// Returns the file that a prompt asks for: the last one that the prompt quotes for a shell, as posse's instruction does.
fn request(prompt: &str) -> Option<LoopAnswerRequest> {
    let ends = Key::ALL.into_iter().filter_map(|key| {
        let end = format!("/{}'", key.file_name());
        Some((prompt.rfind(&end)? + end.len() - 1, key))
    });
    let (end, key) = ends.max()?;
    let start = prompt[..end].rfind(" '/")? + 2;
    Some(LoopAnswerRequest { key, path: prompt[start..end].replace(r"'\''", "'") })
}

/// Returns whether the next answer approves, on the way to PASS. In each round, reviewers find fault as often as
/// configured and then approve. Testers fail as often as configured.
fn approves(key: Key, answered_before: u32, play: &LoopPlay) -> bool {
    match key {
        Key::Analyst | Key::Programmer => true,
        Key::AnalystReview | Key::ProgrammerReview => {
            answered_before % play.revisions.saturating_add(1) >= play.revisions
        }
        Key::Tester => answered_before >= play.failures,
    }
}

/// Returns the answer that approves or finds fault. `nth` counts the answers, so that no two are equal.
fn text(key: Key, approves: bool, nth: u32) -> String {
    let body = match (key, approves) {
        (Key::Analyst, _) => include_str!("../../answers/analyst.md"),
        (Key::Programmer, _) => include_str!("../../answers/programmer.md"),
        (Key::AnalystReview, true) => include_str!("../../answers/analyst_review_approved.md"),
        (Key::AnalystReview, false) => include_str!("../../answers/analyst_review_revise.md"),
        (Key::ProgrammerReview, true) => include_str!("../../answers/programmer_review_approved.md"),
        (Key::ProgrammerReview, false) => include_str!("../../answers/programmer_review_revise.md"),
        (Key::Tester, true) => include_str!("../../answers/tester_pass.md"),
        (Key::Tester, false) => include_str!("../../answers/tester_fail.md"),
    };
    format!("{body}\n(Answer {nth} of {key}.)\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviewers_revise_and_testers_fail_as_often_as_configured() {
        use Key::{Analyst, AnalystReview, ProgrammerReview, Tester};
        let play = |revisions, failures| LoopPlay { revisions, failures, ..LoopPlay::default() };
        let cases = [
            (Analyst, play(1, 1), "+++++"),
            (AnalystReview, play(1, 0), "-+-+-"),
            (ProgrammerReview, play(2, 0), "--+--"),
            (ProgrammerReview, play(0, 0), "+++++"),
            (Tester, play(1, 0), "+++++"),
            (Tester, play(1, 2), "--+++"),
            (ProgrammerReview, play(u32::MAX, 0), "-----"),
        ];
        for (key, play, expected) in cases {
            let verdicts: String = (0..5).map(|before| if approves(key, before, &play) { '+' } else { '-' }).collect();
            assert_eq!(verdicts, expected, "{key:?} {play:?}");
        }
    }

    #[test]
    fn answer_file_is_the_last_one_that_the_prompt_quotes() {
        for (prompt, expected) in [
            ("cat > '/p/test_result.md.part' <<'E' && mv '/p/test_result.md.part' '/p/test_result.md'", Some("tester")),
            ("into '/p/analyst_summary.md', not '/p/programmer_summary.md'", Some("programmer")),
            ("Answer in '/p/test_result.md'.\nIt said: see /p/programmer_summary.md", Some("tester")),
            ("see /p/test_result.md and 'a/test_result.md'", None),
            ("'/p/my_test_result.md' don't / stop", None),
            (r"Write '/p/it'\''s/test_result.md' please.", Some("tester")),
            ("", None),
        ] {
            let found = request(prompt);
            assert_eq!(found.as_ref().map(|request| request.key.as_str()), expected, "{prompt}");
            assert!(found.is_none_or(|request| request.path.starts_with("/p/")), "{prompt}");
        }
    }
}
