//! The driver of one run: journals inputs, hands them to the machine, starts the resulting effects.
//!
//! Executors carry effects out elsewhere and answer with inputs. Only the journal is waited for, because it has an order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use posse_api::{EventBody, RunEntry};
use posse_core::engine::{Control, Machine, StopHow};
use posse_core::turn::Level;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{mpsc, oneshot, watch};

use super::effects::session::Sessions;
use super::executor::Signal;
use super::journal::{self, journal_entry};
use super::ledger::RunLedger;
use super::messages;
use super::shared_limits::LimitsHandle;
use super::stop_file::{StopFile, StopWatch};
use super::supervisor::{ActiveRuns, RunServices, Supervisor};
use super::{EffectOf, Effects, EntryOf, Executor, InputOf, Stopping, Workflow};
use crate::api::App;
use crate::notify::Notice;
use crate::run::LaunchContext;

/// A command for the driver of a run. Answered when it is journaled; a driver that has ended does not answer.
pub(crate) enum Command<W: Workflow> {
    Input(Box<InputOf<W>>, oneshot::Sender<()>),
    Stop(StopHow, oneshot::Sender<()>),
    /// A client provides the environment of sessions.
    Context(LaunchContext, oneshot::Sender<()>),
}

pub(crate) struct Driver<W: Workflow> {
    pub(crate) ledger: Arc<RunLedger<W>>,
    /// The number of the last entry.
    pub(crate) seq: i64,
    pub(crate) app: App,
    pub(crate) executor: Executor<W>,
    signals: UnboundedReceiver<Signal<W>>,
    commands: UnboundedReceiver<Command<W>>,
    /// The registry in which the ledger is published.
    active: ActiveRuns<W>,
    /// Ends the sessions that run.
    stops: BTreeMap<W::Session, watch::Sender<bool>>,
    /// Effects that need the environment of sessions, which no client has provided.
    waiting: Vec<EffectOf<W>>,
    pub(crate) limits: LimitsHandle,
    pub(crate) stop_files: StopWatch,
    pub(crate) local: W::Local,
}

impl<W: Workflow> Supervisor<W> {
    /// Drives a run in a task of its own.
    pub(crate) fn drive(
        &self,
        app: &App,
        ledger: RunLedger<W>,
        seq: i64,
        (work, local): (W, W::Local),
        context: Option<LaunchContext>,
    ) {
        let spec = ledger.spec.clone();
        let fields = W::fields(&spec);
        let id = fields.id;
        let (sender, commands) = self.enter(id);
        let (signal, signals) = mpsc::unbounded_channel();
        let RunServices { files, executable, limits, stop_files, .. } = self.services.clone();
        let mut driver = Driver {
            limits: limits.join(&fields, W::title(&ledger)),
            stop_files: stop_files.watch(fields.directory.as_ref(), fields.stop_files, id, fields.asked),
            seq,
            app: app.clone(),
            executor: Executor {
                spec: spec.clone(),
                sessions: Sessions { app: app.clone(), files, executable },
                context,
                state: self.state_of(id),
                signals: signal,
                work,
            },
            signals,
            commands,
            active: self.active.clone(),
            stops: BTreeMap::new(),
            waiting: Vec::new(),
            local,
            ledger: Arc::new(ledger),
        };
        driver.update(|_| ());
        let (supervisor, app) = (self.clone(), app.clone());
        crate::spawn(async move {
            if driver.drive().await.is_ok() {
                supervisor.leave(id, &sender);
                W::ended(&app, &spec).await;
                super::retention::tidy(&app).await;
            }
        });
    }
}

impl<W: Workflow> Driver<W> {
    /// Drives the run until it has an outcome.
    async fn drive(mut self) -> Result<(), Stopping> {
        // A new run has none.
        let mut effects: VecDeque<EffectOf<W>> = self.ledger.machine.outstanding().iter().cloned().collect();
        effects.extend(W::begin(&mut self).await?);
        effects.extend(self.look_at_limits().await?);
        if !W::is_started(&self.ledger) {
            effects.extend(self.apply(Control::Started.into()).await?);
        }
        loop {
            while let Some(effect) = effects.pop_front() {
                effects.extend(W::start(&mut self, effect).await?);
            }
            effects.extend(W::settle(&mut self).await?);
            if !effects.is_empty() {
                continue;
            }
            if self.ledger.machine.outcome().is_some() {
                return W::close(&mut self).await;
            }
            self.say_whether_it_waits().await?;
            effects.extend(self.next().await?);
        }
    }

    async fn say_whether_it_waits(&mut self) -> Result<(), Stopping> {
        let waits = !self.waiting.is_empty();
        if self.ledger.waits != waits {
            self.update(|ledger| ledger.waits = waits);
            let (level, text) = if waits { (Level::Warning, W::WAITS) } else { (Level::Info, "going on") };
            self.say(level, text.into()).await?;
        }
        Ok(())
    }

    /// Waits for what happens next. Returns the effects that follow.
    async fn next(&mut self) -> Effects<W> {
        let deadline = self.ledger.machine.deadline();
        let due = async {
            match deadline {
                Some(deadline) => {
                    let left = u64::try_from(deadline.0 - crate::now().0).unwrap_or(0);
                    tokio::time::sleep(Duration::from_millis(left)).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            signal = self.signals.recv() => match signal.ok_or(Stopping)? {
                Signal::Answer(input) => {
                    if let Some(ended) = W::session_ended(&input) {
                        self.stops.remove(ended.session);
                    }
                    W::answered(self, *input).await
                }
                Signal::Entry(entry) => self.record(entry).await,
                Signal::Activity(session, text) => {
                    let run_id = W::fields(&self.ledger.spec).id;
                    let said = EventBody::SessionSaid { run_id, session: session.to_string() };
                    if let Some(text) = text {
                        self.update(|ledger| ledger.activity.insert(session, text));
                    }
                    // After the update: subscribers look at the run now.
                    self.app.publish(said);
                    Ok(Vec::new())
                }
                Signal::Wake(wake) => W::woken(self, wake).await,
            },
            command = self.commands.recv() => self.obey(command.ok_or(Stopping)?).await,
            wake = W::wait(&mut self.local, &self.ledger) => W::woken(self, wake).await,
            Some(()) = self.limits.changes.recv() => self.look_at_limits().await,
            (file, how) = self.stop_files.next() => self.stop_file_found(&file, how).await,
            () = due => self.apply(Control::Tick.into()).await,
        }
    }

    async fn obey(&mut self, command: Command<W>) -> Effects<W> {
        let (effects, taken) = match command {
            Command::Input(input, taken) => (self.apply(*input).await?, taken),
            Command::Stop(how, taken) => (self.stop(how).await?, taken),
            Command::Context(context, taken) => {
                self.executor.context = Some(context);
                W::context_provided(self).await;
                (std::mem::take(&mut self.waiting), taken)
            }
        };
        let _ = taken.send(());
        Ok(effects)
    }

    async fn stop(&mut self, how: StopHow) -> Effects<W> {
        let mut effects = self.apply(Control::Stop(how).into()).await?;
        effects.extend(self.drop_waiting(W::dropped_by_stop).await?);
        Ok(effects)
    }

    async fn stop_file_found(&mut self, file: &StopFile, how: Option<StopHow>) -> Effects<W> {
        let path = file.path.display();
        let mut effects = Vec::new();
        if let Some(how) = how {
            self.say(Level::Info, format!("{path} is there: stopping")).await?;
            effects = self.stop(how).await?;
        } else {
            self.say(Level::Warning, format!("{path} is older than this run, and does not stop it")).await?;
        }
        file.is_journaled();
        Ok(effects)
    }

    /// Sends the machine the slots and spending of other runs, if they changed.
    pub(crate) async fn look_at_limits(&mut self) -> Effects<W> {
        let mut spent = Vec::new();
        for level in self.ledger.machine.levels().iter().filter(|level| level.of.is_shared()) {
            match self.app.plans.spent(level, &W::fields(&self.ledger.spec)).await {
                Ok(total) => spent.push((level.name.clone(), total)),
                Err(error) => tracing::warn!("cannot read what other runs have spent: {error}"),
            }
        }
        match W::limits_input(&self.ledger, &self.limits, spent) {
            Some(input) => self.apply(input).await,
            None => Ok(Vec::new()),
        }
    }

    /// Journals an input and hands it to the machine.
    pub(crate) async fn apply(&mut self, input: InputOf<W>) -> Effects<W> {
        let mut effects = W::before_input(self).await?;
        effects.extend(self.record(W::happened(input)).await?);
        Ok(effects)
    }

    pub(crate) async fn say(&mut self, level: Level, text: String) -> Result<(), Stopping> {
        self.record(W::said(level, None, text)).await.map(drop)
    }

    /// Takes an entry in and journals it. If the disk refuses, the run waits: nothing is done without the journal.
    pub(crate) async fn record(&mut self, entry: EntryOf<W>) -> Effects<W> {
        let entry = journal::masked::<W>(entry);
        let sessions = self.ledger.lines.len();
        let effects = self.update(|ledger| ledger.take(&entry, crate::now()));
        self.seq += 1;
        let fields = W::fields(&self.ledger.spec);
        for (level, text) in W::messages(&self.ledger, &entry) {
            messages::log(fields.id, level, &text);
        }
        let usage = self.ledger.lines.get(sessions).cloned();
        let journal = journal_entry(&self.ledger, &self.executor.state, self.seq, &entry, usage);
        journal::write_surely(&self.app, journal, fields.notifications).await?;
        self.limits.keep(&W::tasks_in_progress(&self.ledger.machine));
        if let RunEntry::Happened { event } = &entry
            && let Some(ended) = W::session_ended(event)
        {
            self.limits.spent();
            if let Some(hold) = ended.hold {
                self.limits.hold(hold);
            }
        }
        Ok(effects)
    }

    /// Changes the ledger and publishes it.
    fn update<T>(&mut self, change: impl FnOnce(&mut RunLedger<W>) -> T) -> T {
        let id = W::fields(&self.ledger.spec).id;
        let mut active = super::lock(&self.active);
        let mut run = active.get_mut(&id);
        // Without the published reference the ledger is changed in place.
        run.iter_mut().for_each(|run| run.ledger = None);
        let changed = change(Arc::make_mut(&mut self.ledger));
        if let Some(run) = run {
            run.ledger = Some(self.ledger.clone());
        }
        changed
    }

    /// Starts an effect in a task of its own, or lets it wait for the environment of sessions.
    pub(crate) async fn spawn(&mut self, effect: EffectOf<W>) -> Effects<W> {
        if self.executor.context.is_none() && W::needs_context(&self.executor, &self.ledger, &effect).await {
            self.waiting.push(effect);
            return Ok(Vec::new());
        }
        let (stop, stopped) = watch::channel(false);
        if let Some(session) = W::session_of(&effect) {
            self.stops.insert(session.clone(), stop);
        }
        let (executor, machine) = (self.executor.clone(), self.ledger.machine.clone());
        crate::spawn(async move {
            if let Some(input) = W::carry_out(&executor, effect, &machine, stopped).await {
                executor.answer(input);
            }
        });
        Ok(Vec::new())
    }

    /// Ends a session. One that waits is not started.
    pub(crate) async fn end_session(&mut self, session: &W::Session) -> Effects<W> {
        match self.stops.get(session) {
            Some(stop) => {
                let _ = stop.send(true);
                Ok(Vec::new())
            }
            None => self.drop_waiting(|effect| W::session_of(effect) == Some(session)).await,
        }
    }

    /// Answers effects that wait for the environment of sessions, without carrying them out.
    pub(crate) async fn drop_waiting(&mut self, drops: impl Fn(&EffectOf<W>) -> bool) -> Effects<W> {
        let mut effects = Vec::new();
        let dropped: Vec<EffectOf<W>> = self.waiting.extract_if(.., |effect| drops(effect)).collect();
        for input in dropped.into_iter().filter_map(W::not_started) {
            effects.extend(self.apply(input).await?);
        }
        Ok(effects)
    }

    pub(crate) fn notify(&self, notice: Option<Notice>) {
        if let Some(notice) = notice {
            self.app.notifier.tell(W::fields(&self.ledger.spec).notifications, notice);
        }
    }

    /// Journals the end of the run, and notifies the user.
    pub(crate) async fn over(&mut self, report: Option<String>) -> Result<(), Stopping> {
        self.notify(messages::ended(&self.ledger));
        self.record(W::closed(report)).await.map(drop)
    }
}
