//! A run, replayed from its journal: the machine, and other facts worth keeping. No IO.

use std::collections::BTreeMap;
use std::sync::Arc;

use posse_api::RunEntry;
use posse_core::engine::{Control, Machine};
use posse_core::file_problem::FileProblems;
use posse_core::plan::budget::{Line, Total};
use posse_core::plan::outcome::Denial;
use posse_core::plan::verdict::Verdict;
use posse_core::time::Wall;

use super::{EffectOf, EntryOf, InputOf, SessionEnded, Workflow};

#[derive(Clone)]
pub(crate) struct RunLedger<W: Workflow> {
    pub(crate) spec: Arc<W::Spec>,
    pub(crate) machine: W::Machine,
    pub(crate) launched: BTreeMap<W::Session, LaunchedSession>,
    pub(crate) activity: BTreeMap<W::Session, String>,
    pub(crate) refused: BTreeMap<W::Session, Vec<Denial>>,
    /// The usage of sessions that ended: the sum, and one line for each.
    pub(crate) total: Total,
    pub(crate) lines: Vec<Line>,
    pub(crate) started: bool,
    /// Nothing follows.
    pub(crate) closed: bool,
    pub(crate) report: Option<String>,
    /// The next effect needs the environment of sessions, which no client has provided.
    pub(crate) waits: bool,
    pub(crate) begun: Wall,
    pub(crate) changed: Wall,
}

#[derive(Clone, Debug)]
pub(crate) struct LaunchedSession {
    pub(crate) agent: String,
    pub(crate) model: Option<String>,
    pub(crate) attempt: Option<u32>,
    pub(crate) at: Wall,
}

impl<W: Workflow> RunLedger<W> {
    pub(crate) fn new(spec: W::Spec, at: Wall) -> Result<Self, FileProblems> {
        Ok(Self {
            machine: W::machine(&spec, at)?,
            spec: Arc::new(spec),
            launched: BTreeMap::new(),
            activity: BTreeMap::new(),
            refused: BTreeMap::new(),
            total: Total::default(),
            lines: Vec::new(),
            started: false,
            closed: false,
            report: None,
            waits: false,
            begun: at,
            changed: at,
        })
    }

    /// Replays the journal into a run. Returns nothing if the journal does not begin with the creation of a run.
    pub(crate) fn replay(journal: Vec<(i64, Wall, EntryOf<W>)>) -> Option<Self> {
        let mut journal = journal.into_iter();
        let (_, at, RunEntry::Created { spec }) = journal.next()? else { return None };
        let mut ledger = Self::new(*spec, at).ok()?;
        for (_, at, entry) in journal {
            ledger.take(&entry, at);
        }
        Some(ledger)
    }

    /// Takes in an entry and returns what is to be done. The same entries at the same times give the same ledger.
    pub(crate) fn take(&mut self, entry: &EntryOf<W>, at: Wall) -> Vec<EffectOf<W>> {
        self.changed = at;
        match entry {
            RunEntry::Created { .. } | RunEntry::Said { .. } => {}
            // After a crash this may be journaled again.
            RunEntry::Refused { id, denials } => drop(self.refused.insert(id.clone(), denials.clone())),
            RunEntry::Closed { report } => {
                self.closed = true;
                // One that was stopped while it waited waits no more.
                self.waits = false;
                self.report.clone_from(report);
            }
            RunEntry::Launched { id, agent, model, attempt, .. } => {
                let (agent, model) = (agent.clone(), model.clone());
                self.launched.insert(id.clone(), LaunchedSession { agent, model, attempt: *attempt, at });
            }
            RunEntry::Happened { event } => return self.apply(event, at),
        }
        Vec::new()
    }

    fn apply(&mut self, input: &InputOf<W>, at: Wall) -> Vec<EffectOf<W>> {
        self.started |= *input == InputOf::<W>::from(Control::Started);
        if let Some(ended) = W::session_ended(input) {
            self.count(&ended, at);
        }
        self.machine.handle(input.clone(), at)
    }

    fn count(&mut self, ended: &SessionEnded<'_, W>, at: Wall) {
        self.activity.remove(ended.session);
        let launched = self.launched.remove(ended.session);
        if ended.usage.no_session {
            return;
        }
        let fields = W::fields(&self.spec);
        #[allow(clippy::cast_precision_loss)] // Seconds for people.
        let seconds = launched.as_ref().map_or(0.0, |launched| (at.0 - launched.at.0) as f64 / 1000.0);
        let mut line = Line {
            at,
            run: fields.id.to_string(),
            project: Some(fields.directory.to_owned()),
            item: fields.item.map(str::to_owned),
            plan: fields.plan_file.map(str::to_owned),
            section: None,
            task: None,
            attempt: launched.as_ref().and_then(|launched| launched.attempt),
            phase: ended.phase,
            agent: launched.as_ref().map(|launched| launched.agent.clone()).unwrap_or_default(),
            model: launched.and_then(|launched| launched.model),
            outcome: ended.outcome.to_owned(),
            seconds,
            usage: ended.usage.clone(),
        };
        W::complete_line(self, ended.session, &mut line);
        self.total.add(&line);
        self.lines.push(line);
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
