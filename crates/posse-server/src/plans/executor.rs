//! Carries out the effects of a run of a plan.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use posse_agents::headless::HeadlessRules;
use posse_core::plan::State;
use posse_core::plan::budget::Usage;
use posse_core::plan::file::Isolation;
use posse_core::plan::keep::Fate;
use posse_core::plan::machine::{Effect, Event, Launch, MergeResult, Part, PlanCheck, Run, RunId};
use posse_core::plan::names::commit_message;
use posse_core::plan::outcome::{Evidence, FailedHow, Failure, Outcome, decide};
use posse_core::plan::prompt::SharedCheckout;
use posse_core::plan::verdict::{Judgement, judge};
use tokio::sync::watch;

use super::briefing::{self, Briefing};
use super::worktrees::{Gates, Keeping, Kept, Sweep, TaskWorktree, WorktreeError, Worktrees, at_fault, not_made};
use crate::disk::{self, Disk, ScratchDir};
use crate::run::effects::session::Over;
use crate::run::executor::{SessionSetup, Signal};
use crate::run::{Executor, StepError};
use posse_files::child::{self, Leftovers};

/// A check that takes longer has failed: whole test suites run in it.
const GATE: Duration = Duration::from_secs(30 * 60);
/// Texts of plans are merged in an instant.
const MERGE: Duration = Duration::from_secs(10);
/// Maximum size of a report that is read.
const REPORT: u64 = 1 << 20;

/// The workflow of plans, with the state of its executor.
#[derive(Clone)]
pub(crate) struct PlanWork {
    /// `Err`: why there is no place to work in.
    pub(super) worktrees: Result<Arc<Worktrees>, StepError>,
    /// Set when checks are to be ended, and no more started.
    pub(super) no_checks: watch::Sender<bool>,
}

impl Executor<PlanWork> {
    pub(super) async fn carry_out_plan(&self, effect: Effect, run: &Run, stop: watch::Receiver<bool>) -> Option<Event> {
        Some(match effect {
            Effect::MakeArea { run: id } => {
                let made =
                    async { Ok::<_, StepError>(self.work.worktrees.clone()?.begin(&id, &self.gates(run)).await?) };
                match made.await {
                    // Stopped: no session is started in a work tree when a run stops.
                    Err(error) if !is_stop(&error) => Event::AreaFailed { run: id, why: error.to_string() },
                    Ok(_) | Err(_) => Event::AreaReady { run: id },
                }
            }
            Effect::StartSession { run: id, launch } => {
                let ended = self.run_task_session(&id, &launch, run, stop).await;
                ended.unwrap_or_else(|error| not_started(&id, &error.to_string()))
            }
            Effect::CheckPlan => match self.check_plan(run).await {
                Ok(checks) => Event::PlanChecked { checks },
                Err(_) => Event::PlanCheckStopped,
            },
            Effect::RunGates { run: id } => {
                let checked = async {
                    let (worktrees, worktree) = self.worktree(&id).await?;
                    Ok::<_, StepError>(
                        worktrees.check(&worktree, &self.commit_message(&id, run), &self.gates(run)).await?,
                    )
                };
                match checked.await {
                    Ok(failed) => Event::GatesEnded { run: id, failed },
                    Err(error) if is_stop(&error) => Event::GatesStopped { run: id },
                    Err(error) => Event::GatesNotRun { run: id, why: error.to_string() },
                }
            }
            Effect::Merge { run: id } => {
                let merged = async {
                    let (worktrees, worktree) = self.worktree(&id).await?;
                    Ok(worktrees.merge(&worktree, &self.commit_message(&id, run), &self.gates(run)).await)
                };
                let not_now = |error: StepError| MergeResult::NotNow { why: error.to_string() };
                let result = merged.await.unwrap_or_else(not_now);
                Event::MergeEnded { run: id, result }
            }
            // The driver's own.
            _ => return None,
        })
    }

    async fn check_plan(&self, run: &Run) -> Result<Vec<PlanCheck>, WorktreeError> {
        let gates = self.gates(run);
        match &self.work.worktrees {
            Ok(worktrees) => worktrees.check_plan(self.spec.git.base.as_deref(), &gates).await,
            Err(why) => Ok(gates.of_plan().map(|gate| not_made(gate, why)).collect()),
        }
    }

    async fn worktree(&self, run: &RunId) -> Result<(Arc<Worktrees>, TaskWorktree), StepError> {
        let worktrees = self.work.worktrees.clone()?;
        let worktree = worktrees.find(run).await?;
        Ok((worktrees, worktree))
    }

    fn commit_message(&self, id: &RunId, run: &Run) -> String {
        let name = run.plan().task(id.task.as_str()).map_or("", |task| task.name.as_str());
        let attempt = run.state().get(&id.task).map_or(1, |record| record.attempts.max(1));
        commit_message(&run.plan().name, (&id.task, name), &format!("{}/{id}", self.spec.id), attempt)
    }

    /// The checks of the project and of the plan, as they were when the run began: sessions cannot change these.
    fn gates(&self, run: &Run) -> Gates {
        let environment = self.context.iter().flat_map(|context| context.environment.clone()).collect();
        let stop = Some(self.work.no_checks.subscribe());
        Gates { commands: self.spec.gates(run.plan()), limit: GATE, environment, stop }
    }

    /// Removes work trees that are no longer needed. Returns the kept ones, and why.
    pub(super) async fn tidy(&self, state: &State) -> Vec<String> {
        let Ok(worktrees) = &self.work.worktrees else { return Vec::new() };
        let keeping = Keeping { state, keep: self.spec.config.git.keep_failed, now: crate::now() };
        match worktrees.clean(&keeping, Sweep::Remove).await {
            Ok(all) => all.iter().filter(|kept| kept.fate != Fate::Goes).map(shown).collect(),
            Err(error) => vec![error.to_string()],
        }
    }

    /// Removes work trees whose work is merged. What cannot go now is looked at once more at the end.
    pub(super) fn remove_areas(&self, merged: Vec<RunId>) {
        let Ok(worktrees) = self.work.worktrees.clone() else { return };
        crate::spawn(async move {
            if let Err(error) = worktrees.done_with(&merged).await {
                tracing::debug!("merged work areas stay for now: {error}");
            }
        });
    }

    async fn run_task_session(
        &self,
        id: &RunId,
        launch: &Launch,
        run: &Run,
        stop: watch::Receiver<bool>,
    ) -> Result<Event, StepError> {
        let (briefing, texts, worktree) = self.prepare(id, launch, run).await?;
        let setup = SessionSetup {
            spawn: briefing.spawn.clone(),
            texts,
            timeout: launch.timeout,
            agent: launch.agent.clone(),
            profile: briefing.profile.name.clone(),
            model: launch.model.clone(),
            attempt: Some(launch.attempt),
        };
        let over = self.run_session(id, setup, stop).await?;
        if let Some(edited) = briefing.changed_copy().await {
            let _ = self.signals.send(Signal::Wake(edited));
        }
        Ok(self.judge(id, run, &briefing, &worktree, over).await)
    }

    async fn prepare(
        &self,
        id: &RunId,
        launch: &Launch,
        run: &Run,
    ) -> Result<(Briefing, Arc<HeadlessRules>, TaskWorktree), StepError> {
        let (worktrees, worktree) = self.worktree(id).await?;
        let (provider, texts) = self.provider().await?;
        let stat = match id.part {
            Part::Work => String::new(),
            Part::Validation { .. } => {
                worktrees.validator_begins().await?;
                worktrees.stat(&worktree).await?
            }
        };
        let before = RunId { start: id.start.saturating_sub(1), ..id.clone() };
        let in_place = self.spec.git.isolation == Isolation::InPlace;
        let branch_before = worktrees.find(&before).await.ok().map(|worktree| worktree.branch).filter(|_| !in_place);
        let not_its_own = worktrees.not_its_own(&worktree).await?;
        let files = self.session_files(id)?;
        let (spec, at) = (self.spec.clone(), worktree.clone());
        let (of, launch_of, run_of) = (id.clone(), launch.clone(), run.clone());
        let write = move |disk: &Disk| {
            let setting = briefing::Setting {
                disk,
                spec: &spec,
                provider: &provider,
                worktree: &at.directory,
                files: &files,
                stat: &stat,
                branch_before: branch_before.as_deref(),
                in_place: in_place.then_some(SharedCheckout { branch: &at.branch, not_yours: &not_its_own }),
            };
            briefing::write(&setting, &of, &launch_of, &run_of)
        };
        let briefing = disk::run(write).await?;
        Ok((briefing, texts, worktree))
    }

    /// Returns forbidden changes the session made to the user's checkout, if it worked there.
    async fn traces(&self, id: &RunId, worktree: &TaskWorktree) -> Result<Option<String>, StepError> {
        let worktrees = self.work.worktrees.clone()?;
        let traces = worktrees.session_over(id, worktree).await?;
        for note in traces.notes {
            self.warn(id, note);
        }
        Ok(traces.trespass)
    }

    /// Returns the outcome of the session.
    async fn judge(&self, id: &RunId, run: &Run, briefing: &Briefing, worktree: &TaskWorktree, over: Over) -> Event {
        let traces = self.traces(id, worktree).await;
        let left_work = match &self.work.worktrees {
            Ok(worktrees) => worktrees.has_work(worktree).await.map_err(|error| cannot_be_told(&error)),
            Err(why) => Err(Outcome::Infra(Failure::new(FailedHow::Lost, why.to_string()))),
        };
        let report = disk::at(&briefing.report.file, read_report).await;
        let limit = over.limit(run.quota().probes(), &self.spec.config.rate_limit);
        let works = id.part == Part::Work;
        let deliverables = [briefing.report.file.to_string_lossy().into_owned()];
        let evidence = Evidence {
            may_write: works && briefing.profile.writes(),
            left_work: matches!(left_work, Ok(true)),
            deliverables: if briefing.reports_in_file { &deliverables } else { &[] },
            ..over.evidence(&id.task, &briefing.report.nonce, report.as_deref(), limit)
        };
        let mut outcome = decide(&evidence);
        if let (Err(unknown), Outcome::Failed(Failure { kind: FailedHow::NoEvidence, .. })) = (left_work, &outcome) {
            outcome = unknown;
        }
        // Not the task's fault: what it may spend is what is left of the budget.
        if over.spent_all() && !matches!(outcome, Outcome::Done(_)) {
            outcome = Outcome::Interrupted;
        }
        outcome = with_traces(outcome, traces);
        let words = over.facts.last_words().unwrap_or_default();
        let mut judgement = Judgement::none();
        if !works {
            // A verdict in words is one too.
            outcome = outcome.without_report(id.task.as_str(), words.lines().last().unwrap_or_default());
            if let Outcome::Done(report) = &outcome {
                judgement = judge(report.verdict.is_some().then_some(report), words);
            }
        }
        session_ended(id, outcome, judgement, over.usage())
    }
}

/// Returns the outcome of a session, given its changes to the user's files.
fn with_traces(outcome: Outcome, traces: Result<Option<String>, StepError>) -> Outcome {
    match (traces, outcome) {
        (Ok(Some(trespass)), _) => Outcome::Failed(Failure::new(FailedHow::UsersWork, trespass)),
        // Nothing of the session is used in these cases, and an exhausted quota must be reported.
        (_, outcome @ (Outcome::Interrupted | Outcome::Limited(_))) | (Ok(None), outcome) => outcome,
        (Err(why), _) => {
            Outcome::Infra(Failure::new(FailedHow::Lost, format!("what the session did cannot be told: {why}")))
        }
    }
}

/// Returns the outcome if a session's work cannot be inspected: it has damaged its work tree, or something else is
/// wrong.
fn cannot_be_told(error: &WorktreeError) -> Outcome {
    let why = format!("what the session did cannot be told: {error}");
    match at_fault(error) {
        Some(_) => Outcome::Failed(Failure::new(FailedHow::NoEvidence, why)),
        None => Outcome::Infra(Failure::new(FailedHow::Lost, why)),
    }
}

/// Reports whether the checks were killed because the run stops.
fn is_stop(error: &StepError) -> bool {
    matches!(error.cause(), Some(WorktreeError::Stopped))
}

fn not_started(id: &RunId, why: &str) -> Event {
    let message = format!("the session could not be started: {why}");
    let outcome = Outcome::Infra(Failure::new(FailedHow::NotStarted, message));
    session_ended(id, outcome, Judgement::none(), Usage::none())
}

pub(super) fn session_ended(id: &RunId, outcome: Outcome, judgement: Judgement, usage: Usage) -> Event {
    let run = id.clone();
    match id.part {
        Part::Work => Event::SessionEnded { run, outcome, usage },
        Part::Validation { .. } => Event::ValidatorEnded { run, judgement, outcome, usage },
    }
}

/// A work tree that stays, in one line.
fn shown(kept: &Kept) -> String {
    format!("{} (branch {}): {}", kept.directory.display(), kept.branch, kept.why)
}

/// A report that is too long to be one is none.
pub(crate) fn read_report(disk: &Disk, path: &Path) -> Option<String> {
    let size = disk.symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    if size > REPORT {
        return Some(format!("{size} bytes are no report"));
    }
    Some(String::from_utf8_lossy(&disk.read_bounded(path, REPORT).ok()?).into_owned())
}

/// Three texts of a plan, put together line by line. Nothing if they do not fit.
pub(super) async fn merge_texts(ours: &str, base: &str, theirs: &str) -> Option<String> {
    let texts = [("ours", ours.to_owned()), ("base", base.to_owned()), ("theirs", theirs.to_owned())];
    let write = move |disk: &Disk| -> Option<(ScratchDir, Command)> {
        let directory = disk::scratch_dir(disk, "posse-merge-").ok()?;
        let mut command = Command::new("git");
        command.arg("merge-file").arg("-p");
        for (name, text) in texts {
            let path = directory.path().join(name);
            disk.write(&path, text.as_bytes()).ok()?;
            command.arg(path);
        }
        Some((directory, command))
    };
    let (_directory, command) = disk::run(write).await?;
    let merged = child::run(command, b"", MERGE, Leftovers::Stay).await.ok()?;
    merged.status.success().then(|| String::from_utf8_lossy(&merged.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use posse_core::engine::hold::Hold;
    use posse_core::plan::report::Report;
    use posse_core::time::Wall;

    use super::*;

    #[test]
    fn what_a_session_did_to_the_users_files_counts() {
        let limited = Outcome::Limited(Hold { until: Wall(1), reason: "used up".into(), known: true });
        let done = Outcome::Done(Report::completed("t", "done"));
        let trespass = || Ok(Some("it took a".to_owned()));
        let unknown = || Err(WorktreeError::Nobody.into());
        for outcome in [Outcome::Interrupted, limited.clone(), done.clone()] {
            assert_eq!(with_traces(outcome.clone(), Ok(None)), outcome);
            let Outcome::Failed(failure) = with_traces(outcome, trespass()) else { panic!("it did harm") };
            assert_eq!((failure.kind, failure.message.as_str()), (FailedHow::UsersWork, "it took a"));
        }
        assert_eq!(with_traces(limited.clone(), unknown()), limited, "everyone must hear of it");
        assert_eq!(with_traces(Outcome::Interrupted, unknown()), Outcome::Interrupted);
        let Outcome::Infra(failure) = with_traces(done, unknown()) else { panic!("nobody knows what it did") };
        assert!(failure.message.contains("cannot be told: git does not know who you are"), "{}", failure.message);
    }
}
