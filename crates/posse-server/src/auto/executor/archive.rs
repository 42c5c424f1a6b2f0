//! The way of an item to the archive: what proves that it is done, and its last step.

use std::path::Path;

use posse_core::auto::Memory;
use posse_core::auto::evidence::{Evidence, Finding, Place};
use posse_core::auto::messages::{Candidate, StepId};
use posse_core::backlog::edit::OutcomeBlock;
use posse_core::backlog::queue::Shelf;
use posse_core::backlog::report::{self, ItemReport, TaskRow, markdown};
use posse_core::backlog::{Item, ItemOutcome, Slug};
use posse_core::plan::budget::Line;
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
    pub(super) async fn plan_state(&self, id: &StepId) -> Result<(Vec<TaskRow>, Vec<String>), StepError> {
        let file = plan_file(&self.spec, &id.item);
        let (plan, state) = self.sessions.app.plans.state_of_plan(&file.to_string_lossy()).await?;
        let rows: Vec<TaskRow> = plan
            .tasks()
            .map(|task| {
                let record = state.get(&task.id).cloned().unwrap_or_default();
                TaskRow {
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
            Ok((rows, commits)) => {
                (Finding::Found(rows.into_iter().map(|row| (row.id, row.status)).collect()), commits)
            }
            Err(error) => (Finding::Unknown { why: error.to_string() }, Vec::new()),
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
        let unreachable = match self.unreachable(id, &commits).await {
            Ok(missing) => Finding::Found(missing),
            Err(error) => Finding::Unknown { why: error.to_string() },
        };
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

    /// Every session that worked on an item, as the ledger has them.
    async fn lines_of(&self, item: &Slug) -> Vec<Line> {
        let (project, item) = (Some(self.spec.directory.clone()), Some(item.to_string()));
        let lines = self.sessions.app.plans.usage(UsageOf { project, item, ..UsageOf::default() }).await;
        lines.inspect_err(|error| tracing::warn!("what was spent cannot be read: {error}")).unwrap_or_default()
    }

    /// Where it is now, and what is told of it to who is not looking.
    pub(super) async fn retire(
        &self,
        disk: &Disk,
        id: &StepId,
        candidate: &Candidate,
        memory: &Memory,
        (outcome, reason, after): (ItemOutcome, String, u32),
    ) -> Result<(String, String), ArchiveError> {
        let (rows, commits) = self.plan_state(id).await.unwrap_or_default();
        let sessions = self.lines_of(&id.item).await;
        let plan = disk.exists(&plan_file(&self.spec, &id.item)).then(|| plan_path(&self.spec, &id.item));
        #[allow(clippy::cast_precision_loss)] // Seconds for people.
        let seconds = (crate::now().0 - memory.begun.unwrap_or_else(crate::now).0) as f64 / 1000.0;
        let told_by = StepId { item: id.item.clone(), number: after };
        let block = OutcomeBlock {
            outcome,
            run: format!("{}-{told_by}", self.spec.id),
            reason: (!outcome.is_success()).then_some(reason),
            finished: crate::now().timestamp().to_zoned(jiff::tz::TimeZone::system()).strftime("%F %H:%M").to_string(),
            cost: memory.spent.cost(),
            duration: report::lasted(seconds),
            commits,
            plan,
        };
        let report = |item: &Item| {
            let warnings = if outcome == ItemOutcome::CompletedWithWarnings {
                vec!["validators or verifiers had remarks; see the log of the item".to_owned()]
            } else {
                Vec::new()
            };
            markdown(&ItemReport { item, block: &block, tasks: &rows, sessions: &sessions, warnings: &warnings })
        };
        let place = item_in_project(&self.spec, candidate.kind, &id.item, &candidate.path);
        let done = archive(disk, &ArchiveRequest { place, block: &block, report: &report }).await?;
        let archived = self.subject(disk, &Candidate { path: done.path.clone(), ..candidate.clone() });
        let message = archived.map_or_else(|_| String::new(), |archived| report::message(&archived.item, &block));
        for warning in done.warnings {
            self.warn(id, warning);
        }
        if let Ok(worktrees) = self.worktrees(id).await {
            remove_empty(&worktrees).await;
        }
        Ok((done.path, message))
    }
}
