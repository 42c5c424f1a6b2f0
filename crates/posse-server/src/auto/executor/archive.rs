//! The way of an item to the archive: what proves that it is done, and its last step.

use std::path::Path;

use posse_core::auto::Memory;
use posse_core::auto::evidence::{Evidence, Place};
use posse_core::auto::messages::{Candidate, StepId};
use posse_core::backlog::edit::OutcomeBlock;
use posse_core::backlog::queue::Shelf;
use posse_core::backlog::report::{ItemReport, ReportedTask, markdown};
use posse_core::backlog::{Item, ItemOutcome, message};
use posse_core::visible::lasted;
use posse_files::backlog::scan;

use super::BacklogWork;
use crate::auto::place::{item_in_project, plan_path, remove_empty};
use crate::auto::scan::plan_file;
use crate::backlog::archive::{ArchiveError, ArchiveRequest, archive};
use crate::disk::Disk;
use crate::git::WorkTree;
use crate::run::{Executor, StepError};
use crate::store::UsageOf;

impl Executor<BacklogWork> {
    /// The tasks of the plan of an item, and their commits.
    pub(super) async fn plan_state(&self, id: &StepId) -> Result<(Vec<ReportedTask>, Vec<String>), StepError> {
        let file = plan_file(&self.spec, &id.item);
        let (plan, state) = self.sessions.app.plans.state_of_plan(&file.to_string_lossy()).await?;
        let rows: Vec<ReportedTask> = plan
            .tasks()
            .map(|task| {
                let record = state.get(&task.id).cloned().unwrap_or_default();
                ReportedTask {
                    id: task.id.to_string(),
                    name: task.name.clone(),
                    status: record.status,
                    attempts: record.attempts,
                    commits: record.commits,
                }
            })
            .collect();
        let commits = rows.iter().flat_map(|row| row.commits.clone()).collect();
        Ok((rows, commits))
    }

    pub(super) async fn changes(&self, commits: &[String]) -> String {
        if commits.is_empty() {
            return "nothing".into();
        }
        let mut arguments = vec!["show", "--no-ext-diff", "--no-color", "--stat=100", "--format=%h %s"];
        arguments.extend(commits.iter().map(String::as_str));
        arguments.push("--");
        let said = async { WorkTree::at(&self.spec.directory).await?.hear(&arguments).await }.await;
        said.map(|said| String::from_utf8_lossy(&said).into_owned()).unwrap_or_else(|error| error.to_string())
    }

    pub(super) async fn gather(&self, disk: &Disk, id: &StepId, candidate: &Candidate) -> Evidence {
        let (plan, commits) = match self.plan_state(id).await {
            Ok((rows, commits)) => (Ok(rows.into_iter().map(|row| (row.id, row.status)).collect()), commits),
            Err(error) => (Err(error.to_string()), Vec::new()),
        };
        let item = if !disk.exists(&self.project(&candidate.path)) {
            Place::Gone
        } else {
            let found = scan(disk, Path::new(&self.spec.directory), &self.spec.shelves);
            let there = |archived: &posse_core::backlog::queue::Archived| {
                archived.slug == id.item && archived.shelf == Shelf::Completed
            };
            if found.archived.iter().any(there) { Place::Archived } else { Place::InBacklog }
        };
        let unreachable = self.unreachable(id, &commits).await.map_err(|error| error.to_string());
        Evidence { plan, commits, unreachable, item }
    }

    async fn unreachable(&self, id: &StepId, commits: &[String]) -> Result<Vec<String>, StepError> {
        let tip = self.worktrees(id).await?.tip().await?;
        let tree = WorkTree::at(&self.spec.directory).await?;
        let mut missing = Vec::new();
        for commit in commits {
            let known = tree.holds(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).await;
            let reached = known? && tree.holds(&["merge-base", "--is-ancestor", commit, &tip]).await?;
            if !reached {
                missing.push(commit.clone());
            }
        }
        Ok(missing)
    }

    /// Returns the item's new location, and the text of its notification.
    pub(super) async fn retire(
        &self,
        disk: &Disk,
        id: &StepId,
        candidate: &Candidate,
        memory: &Memory,
        (outcome, reason, after): (ItemOutcome, String, u32),
    ) -> Result<(String, String), ArchiveError> {
        let (rows, commits) = self.plan_state(id).await.unwrap_or_default();
        let (project, item) = (Some(self.spec.directory.clone()), Some(id.item.to_string()));
        let sessions = self.sessions.app.plans.usage(UsageOf { project, item, ..UsageOf::default() }).await;
        let sessions = sessions.inspect_err(|error| tracing::warn!("what was spent cannot be read: {error}"));
        let sessions = sessions.unwrap_or_default();
        let plan = disk.exists(&plan_file(&self.spec, &id.item)).then(|| plan_path(&self.spec, &id.item));
        let now = crate::now();
        let told_by = StepId { item: id.item.clone(), number: after };
        let block = OutcomeBlock {
            outcome,
            run: format!("{}-{told_by}", self.spec.id),
            reason: (!outcome.is_success()).then_some(reason),
            finished: now.timestamp().to_zoned(jiff::tz::TimeZone::system()).strftime("%F %H:%M").to_string(),
            cost: memory.spent.cost(),
            duration: lasted(now.since(memory.begun.unwrap_or(now))),
            commits,
            plan,
        };
        let report = |item: &Item| markdown(&ItemReport { item, block: &block, tasks: &rows, sessions: &sessions });
        let place = item_in_project(&self.spec, candidate.kind, &id.item, &candidate.path);
        let done = archive(disk, &ArchiveRequest { place, block: &block, report: &report }).await?;
        let archived = self.subject(disk, &Candidate { path: done.path.clone(), ..candidate.clone() });
        let message = archived.map_or_else(|_| String::new(), |archived| message::message(&archived.item, &block));
        for warning in done.warnings {
            self.warn(id, warning);
        }
        if let Ok(worktrees) = self.worktrees(id).await {
            remove_empty(&worktrees).await;
        }
        Ok((done.path, message))
    }
}
