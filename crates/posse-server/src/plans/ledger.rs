//! A run of a plan as its journal tells it: the machine, and what is worth knowing besides. No IO.

use std::collections::{BTreeMap, BTreeSet};

use posse_api::{PlanEntry, PlanSpec};
use posse_core::file_problem::FileProblems;
use posse_core::plan::TaskId;
use posse_core::plan::budget::{Line, Phase, Total, Usage};
use posse_core::plan::machine::{self, Effect, Event, Part, Run, RunOutcome};
use posse_core::plan::outcome::{Denial, Outcome};
use posse_core::plan::verdict::Verdict;
use posse_core::time::Wall;

use crate::journal::Replay;

#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) spec: PlanSpec,
    pub(crate) run: Run,
    /// How often tasks were started, in this run and before.
    pub(crate) starts: BTreeMap<TaskId, u32>,
    /// What the sessions of this run have used, in all and one by one.
    pub(crate) total: Total,
    pub(crate) lines: Vec<Line>,
    /// It was told to begin.
    pub(crate) started: bool,
    /// Sessions that run: what was said of them when they were launched.
    pub(crate) launched: BTreeMap<machine::RunId, Launched>,
    /// What sessions were not allowed to do.
    pub(crate) refused: BTreeMap<machine::RunId, Vec<Denial>>,
    pub(crate) ended: Option<(RunOutcome, String)>,
    /// Its end is told everywhere.
    pub(crate) closed: bool,
    pub(crate) report: Option<String>,
    /// Nobody is there who knows the environment that the next thing takes.
    pub(crate) waits: bool,
    pub(crate) begun: Wall,
    pub(crate) changed: Wall,
}

#[derive(Clone, Debug)]
pub(crate) struct Launched {
    pub(crate) agent: String,
    pub(crate) model: Option<String>,
    pub(crate) attempt: u32,
    pub(crate) at: Wall,
}

impl Ledger {
    pub(crate) fn new(spec: PlanSpec, at: Wall) -> Result<Self, FileProblems> {
        let mut run = Run::new(&spec.file, &spec.text, spec.state.clone(), spec.settings.clone(), &spec.starts)?;
        run.take_over(&spec.left);
        Ok(Self {
            starts: spec.starts.clone(),
            spec,
            run,
            total: Total::default(),
            lines: Vec::new(),
            started: false,
            launched: BTreeMap::new(),
            refused: BTreeMap::new(),
            ended: None,
            closed: false,
            report: None,
            waits: false,
            begun: at,
            changed: at,
        })
    }

    /// Takes in an entry and says what is to be done. The same entries at the same times give the same ledger.
    pub(crate) fn take(&mut self, entry: &PlanEntry, at: Wall) -> Vec<Effect> {
        self.changed = at;
        match entry {
            PlanEntry::Created { .. } | PlanEntry::Said { .. } => Vec::new(),
            // Told again after a crash, it is the same.
            PlanEntry::Refused { run, denials } => {
                self.refused.insert(run.clone(), denials.clone());
                Vec::new()
            }
            PlanEntry::Closed { report } => {
                (self.closed, self.report) = (true, report.clone());
                Vec::new()
            }
            PlanEntry::Launched { run, agent, model, attempt, .. } => {
                let launched = Launched { agent: agent.clone(), model: model.clone(), attempt: *attempt, at };
                self.launched.insert(run.clone(), launched);
                Vec::new()
            }
            PlanEntry::Happened { event } => {
                match &**event {
                    Event::Started => self.started = true,
                    Event::SessionEnded { run, usage, outcome } => self.used(run, usage, outcome_word(outcome), at),
                    Event::ValidatorEnded { run, usage, judgement, outcome } => {
                        let word = match outcome {
                            Outcome::Done(_) => verdict_word(judgement.verdict),
                            outcome => outcome_word(outcome),
                        };
                        self.used(run, usage, word, at);
                    }
                    _ => {}
                }
                let effects = self.run.handle((**event).clone(), at);
                for effect in &effects {
                    match effect {
                        Effect::MakeArea { run } => drop(self.starts.insert(run.task.clone(), run.start)),
                        Effect::Finish { outcome, reason } => self.ended = Some((*outcome, reason.clone())),
                        _ => {}
                    }
                }
                effects
            }
        }
    }

    /// The sessions whose work is done, and neither judged nor merged.
    pub(crate) fn left(&self) -> BTreeSet<machine::RunId> {
        let run = |task: TaskId| Some(machine::RunId { start: *self.starts.get(&task)?, task, part: Part::Work });
        self.run.left().into_keys().filter_map(run).collect()
    }

    /// One more session is over.
    fn used(&mut self, run: &machine::RunId, usage: &Usage, outcome: &str, at: Wall) {
        let launched = self.launched.remove(run);
        if usage.no_session {
            return;
        }
        let agent = self.run.plan().task(run.task.as_str()).map(|task| task.agent().to_owned());
        #[allow(clippy::cast_precision_loss)] // Seconds for people.
        let seconds = launched.as_ref().map_or(0.0, |launched| (at.0 - launched.at.0) as f64 / 1000.0);
        let line = Line {
            at,
            run: self.spec.id.to_string(),
            project: Some(self.spec.directory.clone()),
            item: self.spec.item.clone(),
            plan: Some(self.spec.file.clone()),
            section: self.run.plan().section_of(&run.task).map(|section| section.id.clone()),
            task: Some(run.task.to_string()),
            attempt: launched.as_ref().map(|launched| launched.attempt),
            phase: if run.part == Part::Work { Phase::Task } else { Phase::Validation },
            agent: launched.as_ref().map(|launched| launched.agent.clone()).or(agent).unwrap_or_default(),
            model: launched.and_then(|launched| launched.model),
            outcome: outcome.to_owned(),
            seconds,
            usage: usage.clone(),
        };
        self.total.add(&line);
        self.lines.push(line);
    }
}

impl Replay for Ledger {
    type Entry = PlanEntry;

    fn replay(journal: impl IntoIterator<Item = (Wall, PlanEntry)>) -> Option<Self> {
        let mut journal = journal.into_iter();
        let (at, PlanEntry::Created { spec }) = journal.next()? else { return None };
        let mut ledger = Self::new(*spec, at).ok()?;
        for (at, entry) in journal {
            ledger.take(&entry, at);
        }
        Some(ledger)
    }
}

fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "done",
        Outcome::Failed(_) => "failed",
        Outcome::Infra(_) => "not_run",
        Outcome::Suspended { .. } => "asked",
        Outcome::Interrupted => "interrupted",
        Outcome::Limited(_) => "limited",
    }
}

pub(crate) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Warn => "warn",
        Verdict::Fail => "fail",
        Verdict::Error => "no_verdict",
    }
}
