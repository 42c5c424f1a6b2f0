//! Carries out the steps of a pipeline. A step that is carried out twice is the same as once: sessions are found by their names,
//! and the rest is decided from what is on disk and in git.

mod archive;
mod plan_run;

use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_api::AutoEntry;
use posse_core::auto::Pipeline;
use posse_core::auto::messages::{Candidate, Deed, DeedId, Intake, PlanFound, Planning, StepAnswer};
use posse_core::auto::session::{SessionEnd, session_end};
use posse_core::backlog::edit::{append_verification, ask};
use posse_core::backlog::{Item, intake, planner, read, verifier};
use posse_core::engine::hold::Hold;
use posse_core::plan::budget::Usage;
use posse_core::plan::outcome::Ended;
use posse_core::plan::report::{Report, ReportFile, Said as Status, find};
use posse_core::plan::verdict::Judgement;
use posse_files::backlog::{FoundItem, edit, scan, text};
use tokio::sync::watch;

use super::briefing::{self, Briefing, Setting};
use super::place::{self, Desk, Draft, Work, design_path, plan_path};
use crate::auto::scan::plan_file;
use crate::backlog::archive::{ArchiveError, remove_returned};
use crate::backlog::checkout::why_away;
use crate::disk::{self, Disk};
use crate::plans::executor::read_report;
use crate::run::effects::session::Over;
use crate::run::{Executor, StepError};

/// The workflow of backlog pipelines. Its executor needs no further state.
#[derive(Clone)]
pub(crate) struct BacklogWork;

/// The result of a session.
enum Ran {
    Over(Box<(Over, Briefing)>),
    /// It was not started: the quota is used up.
    Held(Hold),
}

/// An item as it is now.
struct Subject {
    item: Item,
    text: String,
    path: String,
}

impl Executor<BacklogWork> {
    pub(super) async fn perform(
        &self,
        id: &DeedId,
        deed: Deed,
        pipeline: &Pipeline,
        stop: watch::Receiver<bool>,
    ) -> Result<StepAnswer, StepError> {
        let candidate = pipeline.candidate(&id.item).cloned().ok_or(StepError::ItemGone)?;
        match deed {
            Deed::Plan(planning) => self.plan(id, &candidate, &planning, pipeline, stop).await,
            Deed::Execute { no_wait } => self.execute(id, pipeline, no_wait).await,
            Deed::Verify { timeout } => self.verify(id, &candidate, timeout, pipeline, stop).await,
            deed => {
                let (doing, id, begun) = (self.clone(), id.clone(), begun(pipeline, id));
                disk::run_async(async move |disk| doing.perform_on(disk, id, deed, candidate, begun).await).await
            }
        }
    }

    /// What needs no session, and the checkout.
    async fn perform_on(
        &self,
        disk: &Disk,
        id: DeedId,
        deed: Deed,
        candidate: Candidate,
        begun: jiff::Timestamp,
    ) -> Result<StepAnswer, StepError> {
        if let Some(why) = self.away().await {
            return Ok(StepAnswer::NotNow { why });
        }
        match deed {
            Deed::Plan(_) | Deed::Execute { .. } | Deed::Verify { .. } => Err(StepError::NotPrepared),
            Deed::Intake => Ok(StepAnswer::Intake(self.intake(disk, &candidate))),
            Deed::Mark { question } => {
                edit(disk, &self.project(&candidate.path), |text| ask(text, &question))?;
                Ok(StepAnswer::Marked)
            }
            Deed::CheckPlan { planner: None } => {
                let mut plan = place::existing(disk, &self.spec, &id.item)?;
                if let PlanFound::Valid { hash } = &mut plan {
                    // The file shows only how the tasks stand. The same plan, carried out again, is another one.
                    let file = plan_file(&self.spec, &id.item);
                    let (_, state) = self.sessions.app.plans.state_of_plan(&file.to_string_lossy()).await?;
                    *hash = place::hash(&format!("{hash} {state:?}"));
                }
                Ok(StepAnswer::PlanChecked(plan))
            }
            Deed::CheckPlan { planner: Some(number) } => {
                let (subject, desk) = (self.subject(disk, &candidate)?, self.desk(&id).await?);
                let design = design_path(&self.spec, &id.item, begun);
                let (item, item_path) = (&subject.item, subject.path.as_str());
                let draft = Draft { spec: &self.spec, item, item_path, design: &design, number };
                Ok(StepAnswer::PlanChecked(draft.take(disk, &desk).await?))
            }
            Deed::SetAside => {
                place::set_aside(disk, &self.spec, &id.item)?;
                Ok(StepAnswer::SetAside)
            }
            Deed::Log { number, judgement } => {
                let at = crate::now().timestamp().to_zoned(jiff::tz::TimeZone::system());
                let entry = verifier::entry(number, &at.strftime("%F %H:%M").to_string(), &judgement);
                edit(disk, &self.project(&candidate.path), |text| append_verification(text, &entry))?;
                Ok(StepAnswer::Logged)
            }
            Deed::Gather => Ok(StepAnswer::Gathered(self.gather(disk, &id, &candidate).await)),
            Deed::Retire(retirement) => Ok(match self.retire(disk, &id, &candidate, &retirement).await {
                Ok((place, message)) => StepAnswer::Retired { place, message },
                Err(ArchiveError::Away(away)) => StepAnswer::NotNow { why: away.to_string() },
                Err(error) => StepAnswer::NotRetired { why: error.to_string() },
            }),
        }
    }

    /// Why nothing may be read or written in the checkout now, if so.
    async fn away(&self) -> Option<String> {
        why_away(Path::new(&self.spec.directory), self.spec.home.as_deref()).await
    }

    /// Items that are in the archive as done and in the backlog again, with the same words: they go. What is to be said of
    /// it. Those that an earlier pipeline has archived go by the way of every item.
    pub(super) async fn sweep(&self) -> Vec<String> {
        let doing = self.clone();
        disk::run_async(async move |disk| doing.sweep_on(disk).await).await
    }

    async fn sweep_on(&self, disk: &Disk) -> Vec<String> {
        let found = scan(disk, Path::new(&self.spec.directory), &self.spec.shelves);
        let remembered =
            |item: &Item| self.spec.carried.items.get(&item.slug).is_some_and(|known| known.ended.is_some());
        let archived =
            |item: &Item| found.archived.iter().any(|archived| archived.slug == item.slug) && !remembered(item);
        let mut said = Vec::new();
        for FoundItem { item, path, .. } in found.items.iter().filter(|found| archived(&found.item)) {
            match remove_returned(disk, &self.item_place(item.kind, &item.slug, path)).await {
                Ok(true) => said.push(format!("{path} was done and archived already, and is removed")),
                Ok(false) => {}
                Err(error) => said.push(format!("{path} is archived already, and could not be removed: {error}")),
            }
        }
        said
    }

    fn project(&self, path: &str) -> PathBuf {
        Path::new(&self.spec.directory).join(path)
    }

    async fn desk(&self, id: &DeedId) -> Result<Desk, StepError> {
        Desk::open(&self.spec, &self.state, &id.item).await
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

    /// The item as a session is asked about it: as it was when the session was begun, whatever has happened to the checkout since.
    async fn subject_of(&self, id: &DeedId, candidate: &Candidate) -> Result<Subject, StepError> {
        let (doing, id, candidate) = (self.clone(), id.clone(), candidate.clone());
        disk::run(move |disk| doing.subject_on(disk, &id, &candidate)).await
    }

    fn subject_on(&self, disk: &Disk, id: &DeedId, candidate: &Candidate) -> Result<Subject, StepError> {
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
        id: &DeedId,
        candidate: &Candidate,
        planning: &Planning,
        pipeline: &Pipeline,
        stop: watch::Receiver<bool>,
    ) -> Result<StepAnswer, StepError> {
        let (subject, desk) = (self.subject_of(id, candidate).await?, self.desk(id).await?);
        let area = desk.area(Work::Plan, id.number).await?;
        let design = design_path(&self.spec, &id.item, begun(pipeline, id));
        let plan = plan_path(&self.spec, &id.item);
        // Of a session that was begun nothing is changed.
        if let Some(repair) = &planning.repair
            && !self.is_known(id).await
        {
            let before = desk.area(Work::Plan, repair.planner).await?;
            for path in [&design, &plan] {
                let to = area.directory.join(path);
                disk::at(before.directory.join(path), move |disk, from| copy(disk, from, &to)).await?;
            }
        }
        let problems: Option<Vec<String>> =
            planning.repair.as_ref().map(|repair| repair.problems.lines().map(str::to_owned).collect());
        let gates = self.spec.gates();
        let agents = briefing::catalogue(&self.spec);
        let mut conventions = self.spec.conventions.clone();
        let existing = move |disk: &Disk, area: &Path| {
            conventions.retain(|path| disk.exists(&area.join(path)));
            conventions
        };
        let conventions = disk::at(&area.directory, existing).await;
        let full = |path: &str| area.directory.join(path).to_string_lossy().into_owned();
        let writes = vec![full(&plan), full(&design)];
        let (before, spec) = (planning.before.clone(), self.spec.clone());
        let prompt = move |role: &posse_agents::headless::AgentFile, report: &Path, nonce: &str| {
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
        let bounds = (planning.timeout, pipeline.left(&id.item));
        let ran = self.session(id, Work::Plan, &area.directory, writes, bounds, stop, prompt).await?;
        let (over, briefing) = match ran {
            Ran::Over(ended) => *ended,
            Ran::Held(hold) => {
                return Ok(StepAnswer::PlannerEnded { end: SessionEnd::Limited(hold), usage: Usage::none() });
            }
        };
        let end = match self.end(&over, pipeline) {
            SessionEnd::Over { denied } => {
                let report = disk::at(&briefing.report_file, read_report).await;
                let file =
                    report.as_deref().map_or(ReportFile::Missing, |text| ReportFile::Found { text, fresh: true });
                match found(file, over.facts.last_words(), planner::TASK, &briefing.nonce) {
                    Some(Report { status: Status::Suspended, question: Some(question), .. }) => {
                        SessionEnd::Asks(question)
                    }
                    Some(Report { status: Status::Failed, message, .. }) => SessionEnd::Failed(message),
                    _ => SessionEnd::Over { denied },
                }
            }
            end => end,
        };
        Ok(StepAnswer::PlannerEnded { end, usage: over.usage() })
    }

    async fn verify(
        &self,
        id: &DeedId,
        candidate: &Candidate,
        timeout: Duration,
        pipeline: &Pipeline,
        stop: watch::Receiver<bool>,
    ) -> Result<StepAnswer, StepError> {
        let (subject, desk) = (self.subject_of(id, candidate).await?, self.desk(id).await?);
        let area = desk.area(Work::Verify, id.number).await?;
        let (_, commits) = self.plan_state(id).await.unwrap_or_default();
        let diff = self.changes(&commits).await;
        let gates = self.spec.gates();
        let (item, spec) = (subject.item.clone(), self.spec.clone());
        let prompt = move |role: &posse_agents::headless::AgentFile, _: &Path, nonce: &str| {
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
        let bounds = (timeout, pipeline.left(&id.item));
        let ran = self.session(id, Work::Verify, &area.directory, Vec::new(), bounds, stop, prompt).await?;
        let (over, briefing) = match ran {
            Ran::Over(ended) => *ended,
            Ran::Held(hold) => {
                let (end, usage) = (SessionEnd::Limited(hold), Usage::none());
                return Ok(StepAnswer::VerifierEnded { end, judgement: Judgement::none(), usage });
            }
        };
        let words = over.facts.last_words().unwrap_or_default().to_owned();
        let report = found(ReportFile::Missing, Some(&words), verifier::TASK, &briefing.nonce);
        let judgement = match over.ended {
            Ended::Exited(0) => {
                verifier::judge(report.as_ref().filter(|report| report.verdict.is_some()), &words, &item)
            }
            _ => Judgement::none(),
        };
        let end = self.end(&over, pipeline);
        desk.tidy().await;
        Ok(StepAnswer::VerifierEnded { end, judgement, usage: over.usage() })
    }

    fn end(&self, over: &Over, pipeline: &Pipeline) -> SessionEnd {
        let limit = over.limit(pipeline.quota().probes(), &self.spec.config.rate_limit);
        match session_end(&over.ended, limit, over.facts.result().as_ref()) {
            SessionEnd::Failed(_) if over.spent_all() => SessionEnd::OutOfMoney,
            end => end,
        }
    }

    /// Runs a session to its end, or goes on with it.
    #[allow(clippy::too_many_arguments)] // All of it is one session.
    async fn session(
        &self,
        id: &DeedId,
        work: Work,
        area: &Path,
        writes: Vec<String>,
        (timeout, max_budget_usd): (Duration, Option<f64>),
        stop: watch::Receiver<bool>,
        prompt: impl FnOnce(&posse_agents::headless::AgentFile, &Path, &str) -> String + Send + 'static,
    ) -> Result<Ran, StepError> {
        let held = self.sessions.app.plans.services.limits.held(&self.spec.provider, crate::now());
        if let Some(hold) = held
            && !self.is_known(id).await
        {
            return Ok(Ran::Held(hold));
        }
        let (provider, texts) = self.provider().await?;
        let files = self.session_files(id)?;
        let (spec, of, area) = (self.spec.clone(), id.clone(), area.to_owned());
        let write = move |disk: &Disk| {
            let (spec, provider, id, area, files) = (&*spec, &*provider, &of, &*area, &*files);
            let setting = Setting { spec, provider, id, work, area, files, writes, max_budget_usd };
            briefing::write(disk, &setting, prompt)
        };
        let briefing = disk::run(write).await?;
        let launched = |flags| AutoEntry::Launched {
            id: id.clone(),
            agent: briefing.agent.clone(),
            profile: briefing.profile.name.clone(),
            model: briefing.model.clone(),
            attempt: None,
            flags,
        };
        let over = self.run_session(id, briefing.spawn.clone(), (texts, timeout), launched, stop).await?;
        Ok(Ran::Over(Box::new((over, briefing))))
    }
}

fn subject(candidate: &Candidate, text: String) -> Result<Subject, StepError> {
    let path = candidate.path.clone();
    let (item, _) = read(&candidate.item, candidate.kind, &path, &text)?;
    Ok(Subject { item, text, path })
}

/// A report of this session, whatever it says.
fn found(file: ReportFile<'_>, words: Option<&str>, task: &str, nonce: &str) -> Option<Report> {
    find(file, words, &task.parse().ok()?, nonce).ok()
}

fn begun(pipeline: &Pipeline, id: &DeedId) -> jiff::Timestamp {
    let memory = pipeline.carried().items.get(&id.item);
    memory.and_then(|memory| memory.begun).unwrap_or_else(crate::now).timestamp()
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
