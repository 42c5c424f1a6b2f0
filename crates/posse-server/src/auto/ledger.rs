//! A pipeline as its journal tells it: the machine, and what is worth knowing besides. No IO.

use std::collections::BTreeMap;

use posse_api::{AutoEntry, AutoSpec};
use posse_core::auto::Pipeline;
use posse_core::auto::session::SessionEnd;
use posse_core::auto::words::{DeedId, Effect, Event};
use posse_core::plan::budget::{Line, Phase, Usage};
use posse_core::time::Wall;

use crate::journal::Replay;
use crate::plans::verdict_word;

#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) spec: AutoSpec,
    pub(crate) pipeline: Pipeline,
    /// The sessions that run.
    pub(crate) launched: BTreeMap<DeedId, Launched>,
    /// What the session that ended last has used.
    pub(crate) line: Option<Line>,
    pub(crate) started: bool,
    pub(crate) closed: bool,
    /// Nobody is there who knows the environment that the next thing takes.
    pub(crate) waits: bool,
    pub(crate) begun: Wall,
    pub(crate) changed: Wall,
}

#[derive(Clone, Debug)]
pub(crate) struct Launched {
    pub(crate) agent: String,
    pub(crate) model: Option<String>,
    pub(crate) at: Wall,
}

impl Ledger {
    pub(crate) fn new(spec: AutoSpec, at: Wall) -> Self {
        let pipeline = Pipeline::new(spec.settings.clone(), spec.carried.clone());
        Self {
            spec,
            pipeline,
            launched: BTreeMap::new(),
            line: None,
            started: false,
            closed: false,
            waits: false,
            begun: at,
            changed: at,
        }
    }

    /// Takes in an entry and says what is to be done. The same entries at the same times give the same ledger.
    pub(crate) fn take(&mut self, entry: &AutoEntry, at: Wall) -> Vec<Effect> {
        self.changed = at;
        match entry {
            AutoEntry::Created { .. } | AutoEntry::Said { .. } => Vec::new(),
            AutoEntry::Closed => {
                self.closed = true;
                Vec::new()
            }
            AutoEntry::Launched { id, agent, model, .. } => {
                let launched = Launched { agent: agent.clone(), model: model.clone(), at };
                self.launched.insert(id.clone(), launched);
                Vec::new()
            }
            AutoEntry::Happened { event } => {
                match &**event {
                    Event::Started => self.started = true,
                    Event::PlannerEnded { id, end, usage } => self.used(id, Phase::Planning, outcome(end), usage, at),
                    Event::VerifierEnded { id, end, usage, judgement } => {
                        let outcome = match end {
                            SessionEnd::Over { .. } => verdict_word(judgement.verdict),
                            end => outcome(end),
                        };
                        self.used(id, Phase::Verification, outcome, usage, at);
                    }
                    _ => {}
                }
                self.pipeline.handle((**event).clone(), at)
            }
        }
    }

    /// One more session is over.
    fn used(&mut self, id: &DeedId, phase: Phase, outcome: &str, usage: &Usage, at: Wall) {
        let launched = self.launched.remove(id);
        if usage.no_session {
            return;
        }
        #[allow(clippy::cast_precision_loss)] // Seconds for people.
        let seconds = launched.as_ref().map_or(0.0, |launched| (at.0 - launched.at.0) as f64 / 1000.0);
        self.line = Some(Line {
            at,
            run: self.spec.id.to_string(),
            project: Some(self.spec.directory.clone()),
            item: Some(id.item.to_string()),
            plan: None,
            section: None,
            task: None,
            attempt: Some(1 + self.pipeline.carried().items.get(&id.item).map_or(0, |memory| memory.attempts)),
            phase,
            agent: launched.as_ref().map(|launched| launched.agent.clone()).unwrap_or_default(),
            model: launched.and_then(|launched| launched.model),
            outcome: outcome.to_owned(),
            seconds,
            usage: usage.clone(),
        });
    }
}

/// How a session ended, in a word.
fn outcome(end: &SessionEnd) -> &'static str {
    match end {
        SessionEnd::Interrupted => "interrupted",
        SessionEnd::Limited(_) => "limited",
        SessionEnd::OutOfMoney => "out_of_money",
        SessionEnd::Infra(_) => "not_run",
        SessionEnd::Failed(_) => "failed",
        SessionEnd::Asks(_) => "asked",
        SessionEnd::Over { .. } => "done",
    }
}

impl Replay for Ledger {
    type Entry = AutoEntry;

    fn replay(journal: impl IntoIterator<Item = (Wall, AutoEntry)>) -> Option<Self> {
        let mut journal = journal.into_iter();
        let (at, AutoEntry::Created { spec }) = journal.next()? else { return None };
        let mut ledger = Self::new(*spec, at);
        for (at, entry) in journal {
            ledger.take(&entry, at);
        }
        Some(ledger)
    }
}
