//! Carries out the effects of a run of the loop.

use std::path::Path;
use std::time::Duration;

use posse_agents::launch::Mode;
use posse_api::{Create, ProblemKind};
use posse_core::audit::{By, Who};
use posse_core::delivery::{Failure, Left, NotAnswered, Order, Unanswered, Wish};
use posse_core::finalize::{Snapshot, commit_message};
use posse_core::ids::{RunId, TerminalId, WriterId};
use posse_core::review_loop::Role;
use posse_core::review_loop::config::AgentChoice;
use posse_core::run::{Effect, RunEvent, Sent, Spec, Step, StepOutcome, TurnEffect, TurnEvent, TurnRecord};
use posse_core::turn::files::Suffix;
use posse_core::turn::{self, AcceptFailure};
use tokio::sync::watch;

use super::files::RunFiles;
use crate::api::{ApiError, App, agents, terminals};
use crate::disk::{self, Disk};
use crate::environment::Environment;
use crate::finalize;
use crate::hub::{self, SessionChoice};
use crate::notify::Notice;
use crate::pump::{self, Answerer, InputError, Observation, PumpHandle, TextPart};
use crate::run::executor::Signal;
use crate::run::{Executor, LaunchContext};

/// Maximum number of messages in a turn: a prompt and its reminders are numbered together.
const MESSAGES_PER_TURN: u64 = 1000;
/// Timeout for agents that were being started when posse died. Real agents need a few seconds.
pub(super) const GETTING_READY: Duration = Duration::from_secs(15);
/// Timeout for agents that are asked to exit: as long as a user waits for a command that stops.
const LEAVING: Duration = Duration::from_secs(3);
/// The time without output after which a terminal counts as having taken no input, and the polling interval. A busy
/// machine delays an echo by some tens of milliseconds.
const TRACES_QUIET: Duration = Duration::from_millis(400);
const TRACES_LOOKS: u32 = 20;

/// Everything that the effects of a run need besides the fields of [`Executor`].
#[derive(Clone)]
pub(crate) struct LoopWork {
    pub(super) files: RunFiles,
    /// The response file is known to have been renamed into place.
    pub(super) placed: bool,
}

impl LoopWork {
    pub(super) fn new(spec: &Spec) -> Self {
        Self { files: RunFiles::new(&spec.directory, &spec.stamp, &spec.state_file), placed: false }
    }
}

impl Executor<LoopWork> {
    fn app(&self) -> &App {
        &self.sessions.app
    }

    pub(super) async fn perform(&self, effect: Effect) -> Option<RunEvent> {
        match effect {
            Effect::StartTerminal { role, choice, name } => {
                let result = match &self.context {
                    Some(context) => self.start_terminal(context, role, choice, name).await,
                    None => Err(ApiError::invalid("nobody who knows its environment is there")),
                };
                let terminal = result.map_err(|error| why_not_started(&error));
                let started = RunEvent::TerminalStarted { role, terminal: terminal.clone() };
                let is_told = self.signals.send(Signal::Answer(Box::new(started.into()))).is_ok();
                if let (false, true, Ok(terminal)) = (is_told, self.spec.config.cleanup_on_exit, terminal) {
                    // The run stopped meanwhile, and its other agents have left.
                    self.app().end_terminal(terminal, 0).await;
                }
                None
            }
            Effect::Turn(record, effect) => {
                let event = self.perform_for(&record, effect).await?;
                Some(RunEvent::Turn { turn: record.turn, event })
            }
            Effect::Notify { event, notice } => {
                self.notify(event, notice);
                None
            }
            Effect::TakeSnapshot => Some(RunEvent::Snapshot(self.snapshot().await)),
            Effect::Step { step, before } => Some(RunEvent::StepDone { step, outcome: self.step(step, before).await }),
            Effect::Close { terminals, state, over } => {
                self.ask_to_leave(terminals).await;
                let files = self.work.files.clone();
                let close = move |disk: &Disk| {
                    if let Some(state) = state {
                        files.write_state(disk, *state);
                    }
                    if over {
                        files.archive_state(disk);
                    }
                };
                disk::run(close).await;
                Some(RunEvent::Closed)
            }
            // The driver's own.
            Effect::Watch(_) | Effect::WriteState(_) => None,
        }
    }

    async fn perform_for(&self, record: &TurnRecord, effect: TurnEffect) -> Option<TurnEvent> {
        let TurnRecord { turn, key, terminal, .. } = *record;
        let message = |n: u32| turn * MESSAGES_PER_TURN + u64::from(n);
        let event = match effect {
            TurnEffect::ClearStale { number } => {
                let printed = printed(self.app(), terminal).await;
                let stale = self.work.files.keep(key, number, Some(Suffix::Stale)).await;
                return Some(TurnEvent::StaleCleared { stale: stale.map_err(|error| error.to_string()), printed });
            }
            TurnEffect::Send => {
                let sent = match self.send_input(terminal, message(0), record.text.clone()).await {
                    Sent::Uncertain(_) => self.look_for_traces(record).await,
                    sent => sent,
                };
                return Some(TurnEvent::Sent(sent));
            }
            TurnEffect::Archive { number, suffix } => {
                return Some(TurnEvent::Archived(self.work.files.keep_if_possible(key, number, suffix).await));
            }
            TurnEffect::Remind { n, text } => match self.send_input(terminal, message(n), text).await {
                Sent::Taken | Sent::Lost => return None,
                Sent::Not(why) | Sent::Uncertain(why) | Sent::Gone(why) => turn::Event::NotReminded(why),
            },
            TurnEffect::LookAtFile { lived_until } => {
                turn::Event::File(self.work.files.look(key, lived_until, self.work.placed).await)
            }
            TurnEffect::Accept { n, cap, question } => {
                let who = Who {
                    by: By::Run,
                    from: None,
                    role: Some(key.role().to_string()),
                    run: Some(self.spec.id.to_string()),
                    turn: Some(turn),
                    count: Some((n, cap)),
                };
                turn::Event::Accepted(self.accept(terminal, question, who).await)
            }
            TurnEffect::AskLastOutput => turn::Event::LastOutput(get_last_output(self.app(), terminal).await),
        };
        Some(TurnEvent::Waiting(event))
    }

    async fn start_terminal(
        &self,
        context: &LaunchContext,
        role: Role,
        choice: AgentChoice,
        name: String,
    ) -> Result<TerminalId, ApiError> {
        let mode = choice.mode.as_deref().map(str::parse::<Mode>).transpose();
        let mode = mode.map_err(|error| ApiError::invalid(error.to_string()))?;
        let create = Create {
            provider: Some(choice.provider),
            mode,
            model: choice.model,
            agent_profile: Some(choice.profile),
            trusted: self.spec.trusted,
            name: Some(name.clone()),
            working_directory: self.spec.directory.clone(),
            environment: context.environment.clone(),
            ..Create::default()
        };
        match agents::start(self.app(), create, SessionChoice::Any, self.spec.session.clone()).await {
            Ok(terminal) => {
                tracing::info!(run = %self.spec.id, "{role} is terminal {}", terminal.id);
                Ok(terminal.id)
            }
            Err(error) => {
                // If the run has stopped meanwhile, its next driver may have taken it over.
                let started = matches!(
                    error.kind(),
                    ProblemKind::StartTimeout | ProblemKind::StartFailed | ProblemKind::NameTaken | ProblemKind::Ended
                );
                if started && !self.signals.is_closed() {
                    self.end_what_was_started(&name).await;
                }
                Err(error)
            }
        }
    }

    /// Ends an agent that did not get ready. Its output stays readable.
    async fn end_what_was_started(&self, name: &str) {
        if let Some(terminal) = find_running(self.app(), &self.spec, name).await {
            self.app().end_terminal(terminal, 0).await;
        }
    }

    /// Types a message. However often it is asked for under one number, it is typed once.
    async fn send_input(&self, terminal: TerminalId, sequence: u64, text: String) -> Sent {
        let Some(pump) = find(self.app(), terminal).await else { return Sent::Gone("it was deleted".into()) };
        let order = Order { text, ..Order::default() };
        let writer = writer(self.spec.id);
        let who = Who { by: By::Run, run: Some(self.spec.id.to_string()), ..Who::person() };
        let answerer = Answerer::allowed(who);
        match pump.ask(|reply| pump::PumpCommand::Message { order, answerer, writer, sequence, reply }).await {
            Some(Ok(())) => Sent::Taken,
            None => Sent::Gone("it was deleted".into()),
            Some(Err(error @ (InputError::Ended | InputError::Lost))) => Sent::Gone(error.to_string()),
            Some(Err(error @ InputError::Uncertain)) => Sent::Uncertain(error.to_string()),
            Some(Err(error @ InputError::NotDelivered(Failure { left: Left::Unknown, .. }))) => {
                Sent::Uncertain(error.to_string())
            }
            Some(Err(error)) => Sent::Not(error.to_string()),
        }
    }

    /// `send_input(terminal, "y")`: accepts the question that is open, if it is this one. The audit comes first, wherever
    /// a question is answered.
    async fn accept(&self, terminal: TerminalId, question: Option<String>, who: Who) -> Result<(), AcceptFailure> {
        let gone = || AcceptFailure::Gone("it was deleted".into());
        let pump = find(self.app(), terminal).await.ok_or_else(gone)?;
        let answerer = Answerer::allowed(who);
        let answer =
            pump.ask(|reply| pump::PumpCommand::Answer { wish: Wish::Accept, question, words: None, answerer, reply });
        match answer.await.ok_or_else(gone)? {
            Ok(_) => Ok(()),
            Err(error @ (InputError::Ended | InputError::Lost)) => Err(AcceptFailure::Gone(error.to_string())),
            Err(
                error @ (InputError::Question(NotAnswered::Unproven(_))
                | InputError::NotAnswered(Unanswered { why: NotAnswered::Unproven(_), presses: 0 })),
            ) => Err(AcceptFailure::Unproven(error.to_string())),
            // No key was pressed that could have answered it: that does not count (LOOP-41).
            Err(error @ InputError::NotAnswered(Unanswered { presses: 0, .. })) => {
                Err(AcceptFailure::Refused(error.to_string()))
            }
            Err(error @ InputError::NotAnswered(_)) => Err(AcceptFailure::Failed(error.to_string())),
            Err(error) => Err(AcceptFailure::Refused(error.to_string())),
        }
    }

    /// Finds out from the terminal whether the prompt of this turn arrived.
    async fn look_for_traces(&self, turn: &TurnRecord) -> Sent {
        let gone = || Sent::Uncertain("the terminal is gone".into());
        if disk::at(self.work.files.response(turn.key), Disk::exists).await {
            return Sent::Taken;
        }
        let since = turn.dispatching.unwrap_or(turn.begun);
        // Keys may have been in flight when posse died, and an agent shows their effect with a delay. So the prompt
        // counts as lost only if the terminal has printed nothing in between.
        let Some(pump) = find(self.app(), turn.terminal).await else { return gone() };
        let Some(observed) = pump.ask(pump::PumpCommand::Observe).await else { return gone() };
        let mut before = None;
        for _ in 0..TRACES_LOOKS {
            let wanted = turn.text.clone();
            let Some(Some(shown)) = pump.ask(|reply| pump::PumpCommand::Traces { text: wanted, reply }).await else {
                return Sent::Uncertain("its screen cannot be read".into());
            };
            let traces = posse_core::run::judge_traces(&shown, &observed.borrow().status, since, turn.printed);
            if traces == Sent::Taken || before.as_ref() == Some(&(shown.clone(), traces.clone())) {
                return traces;
            }
            before = Some((shown, traces));
            tokio::time::sleep(TRACES_QUIET).await;
        }
        Sent::Uncertain("it prints without end, and does not show what it was asked last".into())
    }

    /// Asks agents to leave, all at once. One that takes long to listen is not waited for; it is asked all the same.
    async fn ask_to_leave(&self, terminals: Vec<TerminalId>) {
        let mut asking = tokio::task::JoinSet::new();
        for terminal in terminals {
            let app = self.app().clone();
            asking.spawn(async move {
                // An agent that has exited need not be asked.
                let _ = terminals::ask_to_leave(&app, terminal).await;
            });
        }
        let all = async { while asking.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LEAVING, all).await;
        asking.detach_all();
    }

    fn notify(&self, event: &'static str, notice: turn::Notice) {
        let turn::Notice { priority, title, text } = notice;
        tracing::info!(run = %self.spec.id, "{title}: {text}");
        let run = Some(self.spec.id.to_string());
        let notice = Notice { event, priority, title, text, run };
        self.app().notifier.tell(&self.spec.config.notifications, notice);
    }

    /// Records the user's own changes in the project, before any agent has touched it.
    async fn snapshot(&self) -> Option<Snapshot> {
        finalize::begin(Path::new(&self.spec.directory), &self.environment()).await.unwrap_or_else(|error| {
            tracing::warn!(run = %self.spec.id, "what is uncommitted cannot be told apart from the run's work: {error}");
            None
        })
    }

    /// The environment for the steps after PASS. The run does not ask for them without a client that provides it.
    fn environment(&self) -> Environment {
        Environment::of(self.context.as_ref().map(|context| context.environment.clone()).unwrap_or_default())
    }

    async fn step(&self, step: Step, before: Option<Snapshot>) -> StepOutcome {
        let environment = self.environment();
        let directory = Path::new(&self.spec.directory);
        match step {
            Step::OpenspecArchive => finalize::openspec_archive(directory, &environment).await,
            Step::GitCommit if self.spec.imported.is_some() => {
                let text = "the run was taken up from its state file, which does not say what was yours when it began";
                StepOutcome::Skipped(format!("{text}; commit it yourself"))
            }
            Step::GitCommit => {
                let wished = &self.spec.config.post_processing.git_commit_comment;
                let message = commit_message(wished, self.spec.id.as_str());
                let quarantine = self.work.files.archive().join("quarantine");
                finalize::git_commit(directory, &message, &quarantine, before.as_ref(), &environment).await
            }
        }
    }
}

/// In words, without hints at a terminal that is gone by then.
fn why_not_started(error: &ApiError) -> String {
    if error.kind() == ProblemKind::StartTimeout { error.to_string() } else { error.in_full() }
}

/// The writer id of a run. No person and no other run has it: their upper half always differs.
fn writer(run: RunId) -> WriterId {
    WriterId(0x706f_7373_0000_0000 | u64::from(run.bits()))
}

/// The terminal of the run that has this name, if its program runs.
pub(super) async fn find_running(app: &App, spec: &Spec, name: &str) -> Option<TerminalId> {
    let views = app.ask(hub::HubCommand::List).await.unwrap_or_default();
    let records = views.into_iter().map(|view| view.record);
    let mut mine = records.filter(|record| record.name.as_str() == name && record.session == spec.session);
    mine.find(|record| record.exit.is_none()).map(|record| record.id)
}

async fn find(app: &App, terminal: TerminalId) -> Option<PumpHandle> {
    app.ask(|reply| hub::HubCommand::Find(terminal, reply)).await.ok().flatten()
}

/// Reports whether a terminal exists and its program runs. Waits for a keeper that is still starting.
pub(super) async fn is_alive(app: &App, terminal: TerminalId) -> bool {
    // If several are lost at once, the hub handles one after the other; a query must not take the last for alive.
    match find(app, terminal).await {
        Some(pump) => pump.ask(pump::PumpCommand::Alive).await.unwrap_or(false),
        None => false,
    }
}

/// Waits until an agent that was being started when posse died is ready for input. An agent that does not get ready is
/// ended: it may wait forever for input that only the earlier daemon could have sent.
pub(super) async fn gets_ready(app: &App, terminal: TerminalId, patience: tokio::time::Instant) -> bool {
    let ready = async {
        let Some(mut observed) = observe(app, terminal).await else { return false };
        let rests = observed.wait_for(|now| now.exit.is_some() || !now.status.is_busy()).await;
        rests.is_ok_and(|now| now.exit.is_none())
    };
    if tokio::time::timeout_at(patience, ready).await.unwrap_or(false) {
        return true;
    }
    tracing::warn!("terminal {terminal} was being started when posse died, and never got ready; it is ended");
    app.end_terminal(terminal, 0).await;
    false
}

async fn printed(app: &App, terminal: TerminalId) -> Option<u64> {
    let traces = find(app, terminal).await?.ask(|reply| pump::PumpCommand::Traces { text: String::new(), reply }).await;
    traces.flatten().map(|shown| shown.printed)
}

/// Subscribes to everything of a terminal that matters to a run. `None`: it was deleted.
pub(super) async fn observe(app: &App, terminal: TerminalId) -> Option<watch::Receiver<Observation>> {
    find(app, terminal).await?.ask(pump::PumpCommand::Observe).await
}

/// The agent's last message. One of an earlier turn would be the answer to something else.
async fn get_last_output(app: &App, terminal: TerminalId) -> Option<String> {
    find(app, terminal).await?.ask(|reply| pump::PumpCommand::Text(TextPart::Answer, reply)).await.flatten()
}
