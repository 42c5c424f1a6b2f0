//! A run of a plan as its journal tells it: the machine, and what is worth knowing besides. No IO.

use std::collections::BTreeMap;

use posse_core::plan::budget::Total;
use posse_core::plan::machine::{self, Effect, Event, Run, RunOutcome};
use posse_core::plan::{PlanProblems, TaskId};
use posse_core::time::Wall;

use super::entry::{Entry, Spec};

#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) spec: Spec,
    pub(crate) run: Run,
    /// How often tasks were started, in this run and before.
    pub(crate) starts: BTreeMap<TaskId, u32>,
    /// What the sessions of this run have used.
    pub(crate) total: Total,
    /// Sessions that run: what was said of them when they were launched.
    pub(crate) launched: BTreeMap<machine::RunId, Launched>,
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
    pub(crate) fn new(spec: Spec, at: Wall) -> Result<Self, PlanProblems> {
        let run = Run::new(&spec.file, &spec.text, spec.state.clone(), spec.settings.clone(), &spec.starts)?;
        Ok(Self {
            starts: spec.starts.clone(),
            spec,
            run,
            total: Total::default(),
            launched: BTreeMap::new(),
            ended: None,
            closed: false,
            report: None,
            waits: false,
            begun: at,
            changed: at,
        })
    }

    /// From a journal. Nothing if it does not begin as one does.
    pub(crate) fn replay(journal: impl IntoIterator<Item = (Wall, Entry)>) -> Option<Self> {
        let mut journal = journal.into_iter();
        let (at, Entry::Created { spec }) = journal.next()? else { return None };
        let mut ledger = Self::new(*spec, at).ok()?;
        for (at, entry) in journal {
            ledger.take(&entry, at);
        }
        Some(ledger)
    }

    /// Takes in an entry and says what is to be done. The same entries at the same times give the same ledger.
    pub(crate) fn take(&mut self, entry: &Entry, at: Wall) -> Vec<Effect> {
        self.changed = at;
        match entry {
            Entry::Created { .. } | Entry::Said { .. } => Vec::new(),
            Entry::Closed { report } => {
                (self.closed, self.report) = (true, report.clone());
                Vec::new()
            }
            Entry::Launched { run, agent, model, attempt, .. } => {
                let launched = Launched { agent: agent.clone(), model: model.clone(), attempt: *attempt, at };
                self.launched.insert(run.clone(), launched);
                Vec::new()
            }
            Entry::Happened { event } => {
                if let Event::SessionEnded { run, usage, .. } | Event::ValidatorEnded { run, usage, .. } = &**event {
                    self.total.add_usage(usage);
                    self.launched.remove(run);
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

    /// All that this plan has used, in all its runs.
    pub(crate) fn spent(&self) -> Total {
        let mut spent = self.spec.spent.clone();
        spent.add_total(&self.total);
        spent
    }
}
