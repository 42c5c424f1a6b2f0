//! The end of a run: after its verdict, or by a stop.

use serde_json::Map;

use super::machine::{Leaving, Live, Run};
use super::{Effect, Entry, Spec, Step, StepOutcome, Stop, TurnRecord};
use crate::engine::RunOutcome;
use crate::ids::TerminalId;
use crate::review_loop::state::{FinalStatus, InFlight, StateFile, TerminalOf, VERSION};
use crate::review_loop::{Final, Role};
use crate::turn::Notice;

impl Run {
    /// Performs the steps after the verdict, one at a time.
    pub(super) fn after(&mut self) {
        let Some(verdict) = self.verdict() else { return };
        self.live = Live::Stepping;
        if let (Final::Pass, Some(step)) = (verdict, self.next_step()) {
            // The steps use the user's programs, name and keys from the user's environment.
            if !self.can_start {
                let why =
                    "PASS; what comes after it is to be done, and only `posse loop --resume` knows its environment";
                return self.stop(Stop::Alone, why);
            }
            let before = self.snapshot.clone().flatten();
            return self.progress.request(Effect::Step { step, before });
        }
        let leaves = self.spec.config.cleanup_on_exit;
        let terminals = self.terminals.values().copied().filter(|_| leaves).collect();
        (self.live, self.mirror_due) = (Live::Closing, false);
        let state = Some(self.mirror(Some(verdict)));
        self.progress.request(Effect::Close { terminals, state, over: true });
    }

    pub(super) fn next_step(&self) -> Option<Step> {
        let wishes = &self.spec.config.post_processing;
        let done = |step| self.steps.iter().find(|(done, _)| *done == step).map(|(_, outcome)| outcome);
        let archive = done(Step::OpenspecArchive);
        if wishes.openspec_archive && archive.is_none() {
            return Some(Step::OpenspecArchive);
        }
        // A run whose files could not be archived is not committed (LOOP-60).
        let archive_failed = matches!(archive, Some(StepOutcome::Failed(_)));
        (wishes.git_commit && !archive_failed && done(Step::GitCommit).is_none()).then_some(Step::GitCommit)
    }

    /// Stops the run. If agents are to exit, the run stops after asking them and gives up ownership. Otherwise a run
    /// resumed at once would assign a task to an exiting agent.
    pub(super) fn stop(&mut self, stop: Stop, why: &str) {
        let clean = match stop {
            // A client that brings the environment finds all agents in place.
            Stop::Alone => false,
            // No work was done yet, so agents that did start are useless.
            Stop::Start if self.is_fresh() => true,
            _ => self.spec.config.cleanup_on_exit,
        };
        let terminals = if clean { std::mem::take(&mut self.terminals).into_values().collect() } else { Vec::new() };
        self.leaving = Some(Leaving { stop, why: why.to_owned(), terminals });
        self.close();
    }

    /// Requests the steps before a stop. If posse dies first, the next daemon repeats them.
    pub(super) fn close(&mut self) {
        let Some(leaving) = &self.leaving else { return };
        let terminals = leaving.terminals.clone();
        // A run that never had its terminals leaves no state file behind (LOOP-14).
        let had_terminals = !self.is_fresh() || self.missing().is_empty();
        let state = had_terminals.then(|| self.mirror(None));
        (self.live, self.mirror_due) = (Live::Closing, false);
        self.progress.request(Effect::Close { terminals, state, over: false });
    }

    pub(super) fn closed(&mut self) {
        self.live = Live::Resting;
        if let Some(Leaving { stop, why, .. }) = self.leaving.take() {
            return self.stopped(stop, why);
        }
        let Some(verdict) = self.verdict() else { return };
        let (outcome, event, priority, word) = match verdict {
            Final::Pass => (RunOutcome::Verified, "pass", 3, "PASS"),
            Final::Fail => (RunOutcome::Failed, "fail", 4, "FAIL"),
        };
        self.progress.end(outcome, word.to_owned());
        self.tell(Entry::Finished);
        let text = format!("{word} in round {}, {}", self.rounds.round(), self.spec.directory);
        let notice = Notice { priority, title: format!("run {}: {word}", self.spec.id), text };
        self.progress.request(Effect::Notify { event, notice });
    }

    pub(super) fn stopped(&mut self, stop: Stop, why: String) {
        self.leaving = None;
        self.stopped = Some(stop);
        self.progress.end(RunOutcome::Stopped, why.clone());
        if stop != Stop::Asked {
            let id = self.spec.id;
            // Later lines may come from a screen, and do not belong in a notification.
            let first = why.lines().next().unwrap_or_default();
            let over = self.status().is_over();
            let text = if over { first.to_owned() } else { format!("{first}\nGo on with: posse loop --resume {id}") };
            let notice = Notice { priority: 4, title: format!("run {id} has stopped"), text };
            self.progress.request(Effect::Notify { event: "stopped", notice });
        }
        self.tell(Entry::Stopped { stop, why });
    }

    /// Returns the state file's current content. `verdict`: the steps after the verdict are done, and the file goes to
    /// the archive. Earlier content does not name the verdict.
    pub(super) fn mirror(&self, verdict: Option<Final>) -> Box<StateFile> {
        let Spec { id, config, directory, stamp, session, .. } = &self.spec;
        let provider = |role: &Role| config.agents.get(role).map_or_else(String::new, |choice| choice.provider.clone());
        let terminal =
            |(role, id): (&Role, &TerminalId)| (*role, TerminalOf { id: id.to_string(), provider: provider(role) });
        let in_flight = |turn: &TurnRecord| InFlight {
            key: turn.key,
            terminal: turn.terminal.to_string(),
            dispatched_at: turn.sent.or(turn.dispatching).unwrap_or(turn.begun).timestamp().to_string(),
        };
        Box::new(StateFile {
            version: VERSION,
            updated_at: self.progress.now.timestamp().to_string(),
            api: config.api.clone(),
            provider: config.provider.clone(),
            wd: directory.clone(),
            prompt: self.rounds.prompt().clone(),
            progress: self.rounds.progress().clone(),
            final_status: match verdict {
                None => FinalStatus::Running,
                Some(Final::Pass) => FinalStatus::Pass,
                Some(Final::Fail) => FinalStatus::Fail,
            },
            session_name: session.to_string(),
            terminals: self.terminals.iter().map(terminal).collect(),
            run_dir: Some(format!("{directory}/.tmp/{stamp}")),
            in_flight: self.turn().map(in_flight),
            other: Map::from_iter([("run".to_owned(), id.to_string().into())]),
        })
    }
}
