//! A run of the loop, for the driver of runs.
//!
//! `send_and_wait` of the spec is a turn of this loop. `TurnEffect::Send` (`send_input`) comes first. Then the
//! terminal's status (`get_status`, pushed by the pump) and the response file (`wait_for_response_file`) feed the
//! machine until it has its answer. Where the run allows that, `get_last_output` supplies it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use posse_api::{EventBody, JournalView, LoopView, RunKind};
use posse_core::file_problem::FileProblems;
use posse_core::ids::TerminalId;
use posse_core::review_loop::Role;
use posse_core::run::{Caller, Effect, Entry, Input, Run, RunEvent, Spec, TurnEvent};
use posse_core::status::StatusKind;
use posse_core::time::Wall;
use posse_core::turn::{self, Level, Seen};
use tokio::sync::{mpsc, oneshot, watch};

use super::claim::{Claim, ClaimError};
use super::executor::{self, LoopWork};
use super::{LoopLedger, Loops, view};
use crate::disk;
use crate::pump::Observation;
use crate::run::{Effects, EntryOf, Executor, SpecFields, Stopping, SupervisorError, Workflow};
use crate::watched_files::FileWatch;

type Driver = crate::run::Driver<LoopWork>;

pub(crate) type LoopEntry = EntryOf<LoopWork>;

/// State that only drivers of the loop have.
pub(crate) struct LoopLocal {
    /// Held while the run is driven.
    claim: Result<Claim, ClaimError>,
    /// The client that begins or resumes the run.
    caller: Option<Caller>,
    /// Sent when the run has begun or was resumed.
    begun: Option<oneshot::Sender<()>>,
    /// The terminal that is watched, what its pump pushes, and the epoch of its status when the turn began.
    watched: Option<(TerminalId, watch::Receiver<Observation>)>,
    first_epoch: Option<u64>,
    watched_turn: u64,
    /// Reports changes of the response file of the turn, and whether it was renamed into place.
    response_changed: mpsc::UnboundedReceiver<bool>,
    response_watch: Option<FileWatch>,
}

impl LoopLocal {
    pub(super) fn new(
        claim: Result<Claim, ClaimError>,
        caller: Option<Caller>,
        begun: Option<oneshot::Sender<()>>,
    ) -> Self {
        Self {
            claim,
            caller,
            begun,
            watched: None,
            first_epoch: None,
            watched_turn: 0,
            response_changed: mpsc::unbounded_channel().1,
            response_watch: None,
        }
    }
}

/// Waits for a change of the watched terminal. Returns whether it is still there.
async fn changed(watched: &mut Option<(TerminalId, watch::Receiver<Observation>)>) -> Option<bool> {
    Some(watched.as_mut()?.1.changed().await.is_ok())
}

/// An event that only drivers of the loop wait for.
pub(crate) enum LoopWake {
    Observed {
        there: bool,
    },
    /// The response file may have changed.
    FileStirred {
        placed: bool,
    },
}

impl Workflow for LoopWork {
    const KIND: RunKind = RunKind::Loop;
    const RUN: &'static str = "run";
    const WAITS: &'static str = "nobody is there who knows the environment of the agents";
    const ENDED: &'static str = "stopped";

    type Spec = Spec;
    type Machine = Run;
    type Session = Role;
    type View = LoopView;
    type Local = LoopLocal;
    type Wake = LoopWake;

    fn fields(spec: &Spec) -> SpecFields<'_> {
        SpecFields {
            id: spec.id,
            resource: &spec.state_file,
            directory: &spec.directory,
            provider: &spec.config.provider,
            stop_files: None,
            idle_timeout: Default::default(),
            asked: Wall::default(),
            notifications: &spec.config.notifications,
            plan_file: None,
            item: None,
        }
    }

    fn machine(spec: &Spec, at: Wall) -> Result<Run, FileProblems> {
        Ok(Run::new(spec.clone(), at))
    }

    fn title(ledger: &LoopLedger) -> String {
        format!("run {}", ledger.spec.id)
    }

    fn view(ledger: &LoopLedger, _: &str) -> LoopView {
        view::run_view(ledger, &format!("{}/.tmp/{}", ledger.spec.directory, ledger.spec.stamp))
    }

    /// The moment in which it is journaled counts.
    fn happened(input: Input) -> LoopEntry {
        LoopEntry::Happened { event: Box::new(Input { mono: crate::mono(), ..input }) }
    }

    fn said(level: Level, _: Option<&Role>, text: String) -> LoopEntry {
        Self::happened(RunEvent::Said { level, text }.into())
    }

    /// A closed run has no entry for that.
    fn closed(_: Option<String>) -> LoopEntry {
        Self::said(Level::Detail, None, String::new())
    }

    /// Answers must arrive unmasked. Secrets on a screen are not needed.
    fn is_by_a_person(input: &Input) -> bool {
        !matches!(input.event, RunEvent::Status { .. })
    }

    fn events(ledger: &LoopLedger, _: &LoopEntry, _: i64) -> Vec<EventBody> {
        let event = |view: JournalView| EventBody::RunEntry {
            run_id: ledger.spec.id,
            run_seq: view.seq,
            view: Some(Box::new(view)),
        };
        view::told(&ledger.machine, ledger.changed).map(event).collect()
    }

    fn messages<'a>(ledger: &'a LoopLedger, _: &'a LoopEntry) -> Vec<(Level, Cow<'a, str>)> {
        let said = |(_, entry): (_, &'a Entry)| match entry {
            Entry::Said { level, text } => Some((*level, text.into())),
            _ => None,
        };
        ledger.machine.told().filter_map(said).collect()
    }

    /// A stopped run is read as it is listed.
    fn lists(ledger: &LoopLedger, _: &LoopEntry) -> bool {
        ledger.machine.told().next().is_some()
    }

    async fn open(loops: &Loops, ledger: &LoopLedger) -> Result<(Self, LoopLocal), SupervisorError> {
        let claim = loops.claim(&ledger.spec).await;
        Ok((Self::new(&ledger.spec), LoopLocal::new(claim, None, None)))
    }

    fn is_started(_: &LoopLedger) -> bool {
        true
    }

    async fn begin(driver: &mut Driver) -> Effects<Self> {
        let go = match &driver.local.claim {
            Ok(_) => {
                let (alive, adopted) = driver.living().await;
                RunEvent::Go { alive, adopted, caller: driver.local.caller }
            }
            // Another run now uses the files of a run that was active when the last daemon ended.
            Err(error) => RunEvent::NotResumed { why: error.to_string() },
        };
        let effects = driver.apply(go.into()).await;
        if let Some(begun) = driver.local.begun.take() {
            let _ = begun.send(());
        }
        effects
    }

    async fn start(driver: &mut Driver, effect: Effect) -> Effects<Self> {
        match effect {
            Effect::Watch(terminal) => driver.watch(terminal).await,
            // Waited for: nothing may write the file again after it was archived.
            Effect::WriteState(state) => {
                let files = driver.executor.work.files.clone();
                disk::run(move |disk| files.write_state(disk, *state)).await;
                Ok(Vec::new())
            }
            effect => driver.spawn(effect).await,
        }
    }

    async fn carry_out(executor: &Executor<Self>, effect: Effect, _: &Run, _: watch::Receiver<bool>) -> Option<Input> {
        executor.perform(effect).await.map(Input::from)
    }

    async fn answered(driver: &mut Driver, input: Input) -> Effects<Self> {
        driver.happens(input.event).await
    }

    async fn wait(local: &mut LoopLocal, _: &LoopLedger) -> LoopWake {
        tokio::select! {
            Some(there) = changed(&mut local.watched) => LoopWake::Observed { there },
            Some(placed) = local.response_changed.recv() => LoopWake::FileStirred { placed },
            else => std::future::pending().await,
        }
    }

    async fn woken(driver: &mut Driver, wake: LoopWake) -> Effects<Self> {
        match wake {
            LoopWake::Observed { there } => {
                driver.local.watched = driver.local.watched.take().filter(|_| there);
                driver.look_at_terminal().await
            }
            LoopWake::FileStirred { placed } => {
                driver.executor.work.placed = placed;
                driver.of_turn(turn::Event::FileStirred).await
            }
        }
    }

    /// A run that rests can be resumed: its journal stays open.
    async fn close(_: &mut Driver) -> Result<(), Stopping> {
        Ok(())
    }
}

impl Driver {
    async fn happens(&mut self, event: RunEvent) -> Effects<LoopWork> {
        match self.ledger.machine.heeds(&event) {
            true => self.apply(event.into()).await,
            false => Ok(Vec::new()),
        }
    }

    /// Something about the turn that is under way.
    async fn of_turn(&mut self, event: turn::Event) -> Effects<LoopWork> {
        let turn = self.ledger.machine.turns;
        self.happens(RunEvent::Turn { turn, event: TurnEvent::Waiting(event) }).await
    }

    /// Watches this terminal from now on, and no other; and the response file of the turn.
    async fn watch(&mut self, terminal: TerminalId) -> Effects<LoopWork> {
        let run = &self.ledger.machine;
        if self.local.watched_turn != run.turns {
            (self.local.watched_turn, self.local.first_epoch) = (run.turns, None);
        }
        if let Some(turn) = run.turn() {
            let (tell, changed) = mpsc::unbounded_channel();
            let work = &mut self.executor.work;
            work.placed = false;
            self.local.response_watch = Some(work.files.watch(&self.executor.sessions.files, turn.key, tell).await);
            self.local.response_changed = changed;
        }
        let observed = executor::observe(&self.app, terminal).await;
        self.local.watched = observed.map(|observed| (terminal, observed));
        self.look_at_terminal().await
    }

    /// Sends the machine the current state of the watched terminal.
    async fn look_at_terminal(&mut self) -> Effects<LoopWork> {
        let Some((terminal, observed)) = &mut self.local.watched else {
            return self.of_turn(turn::Event::Gone("it was deleted".into())).await;
        };
        let terminal = *terminal;
        let Observation { status, exit, excerpt, answered } = observed.borrow_and_update().clone();
        if let Some(exit) = exit {
            self.local.watched = None;
            return self.of_turn(turn::Event::Gone(format!("its program {exit}"))).await;
        }
        let seen = Seen::of(&status).with_words(excerpt);
        // An agent that is quiet under another number has worked in between, however short it was.
        let first = *self.local.first_epoch.get_or_insert(seen.epoch);
        let quiet = matches!(seen.kind, Some(StatusKind::Idle | StatusKind::Completed));
        let worked = if seen.unproven { answered } else { seen.epoch > first + 1 };
        let mut effects = self.happens(RunEvent::Status { terminal, seen }).await?;
        if quiet && worked {
            effects.extend(self.of_turn(turn::Event::MessageChanged).await?);
        }
        Ok(effects)
    }

    /// Returns the run's live terminals, and those that were being started when the last daemon ended.
    async fn living(&self) -> (BTreeSet<TerminalId>, BTreeMap<Role, TerminalId>) {
        let run = &self.ledger.machine;
        let mut alive = BTreeSet::new();
        for terminal in run.terminals.values() {
            if executor::is_alive(&self.app, *terminal).await {
                alive.insert(*terminal);
            }
        }
        let mut adopted = BTreeMap::new();
        let patience = tokio::time::Instant::now() + executor::GETTING_READY;
        for (role, name) in &run.starting {
            if let Some(terminal) = executor::find_running(&self.app, &run.spec, name).await
                && executor::is_alive(&self.app, terminal).await
                && executor::gets_ready(&self.app, terminal, patience).await
            {
                adopted.insert(*role, terminal);
                alive.insert(terminal);
            }
        }
        (alive, adopted)
    }
}
