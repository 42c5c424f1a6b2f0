//! Carries out the steps of a pipeline. A step that is carried out twice is the same as once: sessions are found by their names,
//! and the rest is decided from what is on disk and in git.

mod archive;
mod plan_run;

use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_agents::headless::AgentFile;
use posse_core::auto::messages::{Author, Candidate, Intake, PlanFound, Repair, Step, StepAnswer, StepId};
use posse_core::auto::{Memory, Pipeline};
use posse_core::backlog::edit::{append_verification, ask};
use posse_core::backlog::{Item, intake, planner, read, verifier};
use posse_core::plan::budget::Usage;
use posse_core::plan::outcome::{Evidence, Outcome, decide};
use posse_core::plan::verdict::Judgement;
use posse_files::backlog::{edit, text};
use tokio::sync::watch;

use super::agents::catalogue;
use super::place::{self, Draft, Work, design_path, plan_path, worktrees_params};
use crate::auto::scan::plan_file;
use crate::backlog::archive::ArchiveError;
use crate::backlog::checkout::why_away;
use crate::disk::{self, Disk};
use crate::plans::briefing::{ReportPlace, SessionOutline, agent};
use crate::plans::executor::read_report;
use crate::plans::worktrees::Worktrees;
use crate::run::effects::session::Over;
use crate::run::executor::SessionSetup;
use crate::run::{Executor, StepError};

/// The workflow of backlog pipelines. Its executor needs no further state.
#[derive(Clone)]
pub(crate) struct BacklogWork;

/// An item as it is now.
struct Subject {
    item: Item,
    text: String,
    path: String,
}

impl Executor<BacklogWork> {
    pub(super) async fn perform(
        &self,
        id: &StepId,
        step: Step,
        pipeline: &Pipeline,
        stop: watch::Receiver<bool>,
    ) -> Result<StepAnswer, StepError> {
        let candidate = pipeline
            .candidate(&id.item)
            .cloned()
            .ok_or_else(|| StepError::because("the item is not in the backlog any more"))?;
        let held = self.sessions.app.plans.services.limits.held(&self.spec.provider, crate::now());
        if let (Some(hold), Step::Plan { .. } | Step::Verify) = (held, &step)
            && !self.is_known(id).await
        {
            let (outcome, usage) = (Outcome::Limited(hold), Usage::none());
            return Ok(StepAnswer::SessionEnded { outcome: outcome.into(), judgement: None, usage });
        }
        match step {
            Step::Plan { repair } => self.plan(id, &candidate, repair, pipeline, stop).await,
            Step::Execute => self.execute(id, pipeline).await,
            Step::Verify => self.verify(id, &candidate, pipeline, stop).await,
            step => {
                let (doing, id) = (self.clone(), id.clone());
                let memory = pipeline.carried().items.get(&id.item).cloned().unwrap_or_default();
                disk::run_async(async move |disk| doing.perform_on(disk, id, step, candidate, memory).await).await
            }
        }
    }

    /// Performs effects that need no session, and those on the checkout.
    async fn perform_on(
        &self,
        disk: &Disk,
        id: StepId,
        step: Step,
        candidate: Candidate,
        memory: Memory,
    ) -> Result<StepAnswer, StepError> {
        if let Some(why) = self.away().await {
            return Ok(StepAnswer::NotNow { why });
        }
        match step {
            Step::Plan { .. } | Step::Execute | Step::Verify => Err(StepError::because("it needs a session")),
            Step::Intake => Ok(StepAnswer::Intake(self.intake(disk, &candidate))),
            Step::Mark { question } => {
                edit(disk, &self.project(&candidate.path), |text| ask(text, &question))?;
                Ok(StepAnswer::Marked)
            }
            Step::Check { by: Author::Earlier | Author::Run } => {
                let mut plan = place::existing(disk, &self.spec, &id.item)?;
                if let PlanFound::Valid { hash } = &mut plan {
                    // The file shows only how the tasks stand. The same plan, carried out again, is another one.
                    let file = plan_file(&self.spec, &id.item);
                    let (_, state) = self.sessions.app.plans.state_of_plan(&file.to_string_lossy()).await?;
                    *hash = crate::sha256(format!("{hash} {state:?}").as_bytes());
                }
                Ok(StepAnswer::PlanChecked(plan))
            }
            Step::Check { by: Author::Planner { number, .. } } => {
                let (subject, worktrees) = (self.subject(disk, &candidate)?, self.worktrees(&id).await?);
                let design = design_path(&self.spec, &id.item, begun(&memory));
                let (item, item_path) = (&subject.item, subject.path.as_str());
                let draft = Draft { spec: &self.spec, item, item_path, design: &design, number };
                Ok(StepAnswer::PlanChecked(draft.take(disk, &worktrees).await?))
            }
            Step::SetAside => {
                place::set_aside(disk, &self.spec, &id.item)?;
                Ok(StepAnswer::SetAside)
            }
            Step::Log { number, judgement } => {
                let at = crate::now().timestamp().to_zoned(jiff::tz::TimeZone::system());
                let at = at.strftime("%F %H:%M").to_string();
                let append = |text: &str| append_verification(text, number, &at, &judgement);
                edit(disk, &self.project(&candidate.path), append)?;
                Ok(StepAnswer::Logged)
            }
            Step::Gather => Ok(StepAnswer::Gathered(self.gather(disk, &id, &candidate).await)),
            Step::Retire { outcome, reason, after } => {
                Ok(match self.retire(disk, &id, &candidate, &memory, (outcome, reason, after)).await {
                    Ok((place, message)) => StepAnswer::Retired { place, message },
                    Err(ArchiveError::Away(why)) => StepAnswer::NotNow { why },
                    Err(error) => StepAnswer::Failed { why: error.to_string() },
                })
            }
        }
    }

    /// Returns why the checkout must not be read or written now, if so.
    async fn away(&self) -> Option<String> {
        why_away(Path::new(&self.spec.directory), self.spec.home.as_deref()).await
    }

    fn project(&self, path: &str) -> PathBuf {
        Path::new(&self.spec.directory).join(path)
    }

    async fn worktrees(&self, id: &StepId) -> Result<Worktrees, StepError> {
        Ok(Worktrees::open(worktrees_params(&self.spec, &self.state, Some(&id.item))).await?)
    }

    fn subject(&self, disk: &Disk, candidate: &Candidate) -> Result<Subject, StepError> {
        let path = &candidate.path;
        let text = text(disk, &self.project(path)).map_err(StepError::file(path))?;
        subject(candidate, text)
    }

    fn intake(&self, disk: &Disk, candidate: &Candidate) -> Intake {
        if !disk.exists(&self.project(&candidate.path)) {
            return Intake::Gone;
        }
        let item = match self.subject(disk, candidate) {
            Ok(subject) => subject.item,
            Err(error) => return Intake::Unreadable { why: error.to_string() },
        };
        match intake::question(&item) {
            Some(question) => Intake::Vague { question: question.to_owned() },
            None => Intake::Ready {
                hash: item.hash.clone(),
                failed: item.failed_verifications(),
                next: item.next_verification(),
            },
        }
    }

    /// Returns the item as it was when the session was begun, whatever has happened to the checkout since.
    async fn subject_of(&self, id: &StepId, candidate: &Candidate) -> Result<Subject, StepError> {
        let (doing, id, candidate) = (self.clone(), id.clone(), candidate.clone());
        disk::run(move |disk| doing.subject_on(disk, &id, &candidate)).await
    }

    fn subject_on(&self, disk: &Disk, id: &StepId, candidate: &Candidate) -> Result<Subject, StepError> {
        let (files, path) = (self.session_files(id)?, &candidate.path);
        let kept = files.join("item.md");
        let text = match disk.read_to_string(&kept) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let text = text(disk, &self.project(path)).map_err(StepError::file(path))?;
                let written = disk.create_dir_all(&files);
                let written = written.and_then(|()| disk.write_private_unsynced(&kept, text.as_bytes()));
                written?;
                text
            }
            Err(error) => return Err(error.into()),
        };
        subject(candidate, text)
    }

    async fn plan(
        &self,
        id: &StepId,
        candidate: &Candidate,
        repair: Option<Repair>,
        pipeline: &Pipeline,
        stop: watch::Receiver<bool>,
    ) -> Result<StepAnswer, StepError> {
        let (subject, worktrees) = (self.subject_of(id, candidate).await?, self.worktrees(id).await?);
        let memory = pipeline.carried().items.get(&id.item).cloned().unwrap_or_default();
        let area = worktrees.make(&Work::Plan.run(id.number)?).await?;
        let design = design_path(&self.spec, &id.item, begun(&memory));
        let plan = plan_path(&self.spec, &id.item);
        // Of a session that was begun nothing is changed.
        if let Some(repair) = &repair
            && !self.is_known(id).await
        {
            let before = worktrees.make(&Work::Plan.run(repair.planner)?).await?;
            for path in [&design, &plan] {
                let to = area.directory.join(path);
                disk::at(before.directory.join(path), move |disk, from| copy(disk, from, &to)).await?;
            }
        }
        let problems: Option<Vec<String>> = repair.map(|repair| repair.problems.lines().map(str::to_owned).collect());
        let gates = self.spec.gates();
        let agents = catalogue(&self.spec);
        let mut conventions = self.spec.conventions.clone();
        let existing = move |disk: &Disk, area: &Path| {
            conventions.retain(|path| disk.exists(&area.join(path)));
            conventions
        };
        let conventions = disk::at(&area.directory, existing).await;
        let full = |path: &str| area.directory.join(path).to_string_lossy().into_owned();
        let writes = vec![full(&plan), full(&design)];
        let (before, spec) = (memory.before, self.spec.clone());
        let prompt = move |role: &AgentFile, report: &Path, nonce: &str| {
            let report = report.to_string_lossy();
            let brief = planner::PlannerBrief {
                role: &role.text,
                item: &subject.item,
                item_path: &subject.path,
                item_text: &subject.text,
                design_path: &design,
                plan_path: &plan,
                conventions: &conventions,
                agents: &agents,
                gates: &gates,
                report_file: Some(&report),
                nonce,
                repair: problems.as_deref(),
                failed: before.as_deref(),
            };
            brief.render(&spec.prompts)
        };
        let timeout = self.spec.config.pipeline.plan_timeout;
        let (over, mut outcome) =
            self.session(id, Work::Plan, &area.directory, writes, timeout, pipeline, stop, prompt).await?;
        // Without a report its plan is looked at, unless it could not do what it wanted to.
        if over.facts.denials().is_empty() {
            outcome = outcome.without_report(planner::TASK, "");
        }
        Ok(StepAnswer::SessionEnded { outcome: outcome.into(), judgement: None, usage: over.usage() })
    }

    async fn verify(
        &self,
        id: &StepId,
        candidate: &Candidate,
        pipeline: &Pipeline,
        stop: watch::Receiver<bool>,
    ) -> Result<StepAnswer, StepError> {
        let (subject, worktrees) = (self.subject_of(id, candidate).await?, self.worktrees(id).await?);
        let area = worktrees.make(&Work::Verify.run(id.number)?).await?;
        let (_, commits) = self.plan_state(id).await.unwrap_or_default();
        let diff = self.changes(&commits).await;
        let gates = self.spec.gates();
        let (item, spec) = (subject.item.clone(), self.spec.clone());
        let prompt = move |role: &AgentFile, _: &Path, nonce: &str| {
            let brief = verifier::VerifierBrief {
                role: &role.text,
                item: &subject.item,
                item_path: &subject.path,
                item_text: &subject.text,
                diff: &diff,
                gates: &gates,
                nonce,
            };
            brief.render(&spec.prompts)
        };
        let timeout = self.spec.config.task.timeout;
        let (over, outcome) =
            self.session(id, Work::Verify, &area.directory, Vec::new(), timeout, pipeline, stop, prompt).await?;
        let words = over.facts.last_words().unwrap_or_default();
        let outcome = outcome.without_report(verifier::TASK, words);
        let judgement = match &outcome {
            Outcome::Done(report) => verifier::judge(report.verdict.is_some().then_some(report), words, &item),
            _ => Judgement::none(),
        };
        place::remove_empty(&worktrees).await;
        Ok(StepAnswer::SessionEnded { outcome: outcome.into(), judgement: Some(judgement), usage: over.usage() })
    }

    /// Runs a session to its end, or resumes it, and returns its result. `writes`: the file it must write in its work
    /// tree, by its full path. A session without one reports in its last message.
    #[allow(clippy::too_many_arguments)] // All of it is one session.
    async fn session(
        &self,
        id: &StepId,
        work: Work,
        area: &Path,
        writes: Vec<String>,
        timeout: Duration,
        pipeline: &Pipeline,
        stop: watch::Receiver<bool>,
        prompt: impl FnOnce(&AgentFile, &Path, &str) -> String + Send + 'static,
    ) -> Result<(Over, Outcome), StepError> {
        let (provider, texts) = self.provider().await?;
        let files = self.session_files(id)?;
        let (spec, item, worktree) = (self.spec.clone(), id.item.clone(), area.to_owned());
        let (wanted, max_budget_usd) = (writes.clone(), pipeline.left(&id.item));
        let prepare = move |disk: &Disk| {
            // The project's own agent of that name, else ours.
            let role = agent(&spec.agents, work.agent())?;
            // By the kind of work, not the agent's file: a project's own planner gets no more permissions than ours.
            let profile = spec.policy().grant_work(work.agent(), &role)?;
            let report = ReportPlace::make(disk, &files)?;
            let outline = SessionOutline {
                rules: &spec.sessions,
                program: &spec.program,
                provider: &provider,
                profile: &profile,
                worktree: &worktree,
                files: &files,
                task: work.as_str(),
                item: Some(item.as_str()),
                model: role.model.as_deref(),
                max_budget_usd,
                writes: wanted,
            };
            let spawn = outline.spawn(disk, &report, &prompt(&role, &report.file, &report.nonce));
            let (agent, profile, model) = (role.name, profile.name, role.model);
            Ok::<_, StepError>((SessionSetup { spawn, texts, timeout, agent, profile, model, attempt: None }, report))
        };
        let (setup, report) = disk::run(prepare).await?;
        let over = self.run_session(id, setup, stop).await?;
        let text = if writes.is_empty() { None } else { disk::at(&report.file, read_report).await };
        let task = work.as_str().parse()?;
        let limit = over.limit(pipeline.quota().probes(), &self.spec.config.rate_limit);
        let evidence = over.evidence(&task, &report.nonce, text.as_deref(), limit);
        let outcome = decide(&Evidence { deliverables: &writes, ..evidence });
        // Not its fault: what it may spend is what is left of the budget.
        let is_out_of_money = over.spent_all() && !matches!(outcome, Outcome::Done(_));
        Ok((over, if is_out_of_money { Outcome::Interrupted } else { outcome }))
    }
}

fn subject(candidate: &Candidate, text: String) -> Result<Subject, StepError> {
    let path = candidate.path.clone();
    let (item, _) = read(&candidate.item, candidate.kind, &path, &text)?;
    Ok(Subject { item, text, path })
}

fn begun(memory: &Memory) -> jiff::Timestamp {
    memory.begun.unwrap_or_else(crate::now).timestamp()
}

fn copy(disk: &Disk, from: &Path, to: &Path) -> Result<(), StepError> {
    if !disk.symlink_metadata(from).is_ok_and(|found| found.is_file()) {
        return Ok(());
    }
    if let Some(directory) = to.parent() {
        disk.create_dir_all(directory)?;
    }
    disk.copy(from, to)?;
    Ok(())
}
