//! Work trees of planners and verifiers, and the transfer of a plan and its design to the project.
//!
//! Every session has its own work tree, so its leftovers affect no other session. Only the plan and the design are
//! taken from a planner, and only if the plan is valid. The design is merged into the branch like the work of a task;
//! the plan goes to the project's plan directory.

use std::path::{Path, PathBuf};

use posse_agents::headless::agent_file;
use posse_api::AutoSpec;
use posse_core::auto::messages::PlanFound;
use posse_core::backlog::{Item, Kind, Slug, planner};
use posse_core::plan::Plan;
use posse_core::plan::file::Isolation;
use posse_core::plan::machine::{MergeResult, Part, RunId};
use posse_core::plan::names::{commit_message, plan_slug};
use posse_files::replace::replace;
use posse_term::text_file::MAX_TEXT;

use super::scan::plan_file;
use crate::backlog::archive::ItemPlace;
use crate::disk::Disk;
use crate::git::WorkTree;
use crate::plans::worktrees::{Gates, TaskWorktree, Worktrees, WorktreesParams};
use crate::quarantine::put_aside;
use crate::run::StepError;
use crate::sha256;

/// The purpose of a session, which also names its work tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Plan,
    Verify,
    /// Ours: the design, on its way into the branch.
    Design,
}

impl Work {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Plan => planner::TASK,
            Self::Verify => posse_core::backlog::verifier::TASK,
            Self::Design => "design",
        }
    }

    pub(super) fn agent(self) -> &'static str {
        match self {
            Self::Verify => "verifier",
            Self::Plan | Self::Design => "planner",
        }
    }

    /// The session of this number, as its work tree is called.
    pub(super) fn run(self, number: u32) -> Result<RunId, StepError> {
        Ok(RunId { task: self.as_str().parse()?, start: number, part: Part::Work })
    }
}

/// Without an item: only to see whether there is a repository.
pub(super) fn worktrees_params(spec: &AutoSpec, state: &Path, item: Option<&Slug>) -> WorktreesParams {
    WorktreesParams {
        directory: spec.directory.clone().into(),
        state: item.map_or_else(|| state.to_owned(), |item| of_item(state, item)),
        plan_slug: plan_slug(item.map_or("auto", Slug::as_str), spec.id.as_str()),
        branch: spec.branch.clone(),
        make_branch: true,
        // Planners and verifiers never work in the checkout, wherever tasks do.
        isolation: Isolation::Worktree,
        plan_file: None,
    }
}

pub(crate) fn of_item(state: &Path, item: &Slug) -> PathBuf {
    state.join("items").join(item.as_str())
}

/// An item in the user's checkout, and where it goes from there.
pub(super) fn item_in_project<'a>(spec: &'a AutoSpec, kind: Kind, slug: &'a Slug, source: &'a str) -> ItemPlace<'a> {
    let (project, home) = (Path::new(&spec.directory), spec.home.as_deref());
    ItemPlace { project, shelves: &spec.shelves, slug, kind, source, home }
}

/// The plan and the design of earlier planners go from their work trees. If nothing else is in one, all of it can go.
pub(super) async fn clear_planners(worktrees: &Worktrees, disk: &Disk, files: [&str; 2], before: u32) {
    for number in 1..before {
        let Ok(run) = Work::Plan.run(number) else { continue };
        let Ok(area) = worktrees.find(&run).await else { continue };
        for path in files {
            let restore = async {
                let tree = WorkTree::at(&area.directory).await?;
                if tree.holds(&["ls-files", "--error-unmatch", "--", path]).await? {
                    return Ok(tree.write_files(&["checkout", "--quiet", "--", path]).await?);
                }
                Ok::<_, StepError>(disk.remove_file(&area.directory.join(path))?)
            };
            if let Err(error) = restore.await {
                tracing::debug!("{path} stays in {}: {error}", area.directory.display());
            }
        }
    }
    remove_empty(worktrees).await;
}

/// Work trees in which nothing was left go.
pub(super) async fn remove_empty(worktrees: &Worktrees) {
    if let Err(error) = worktrees.tidy().await {
        tracing::warn!("work areas are left behind: {error}");
    }
}

/// Returns the project path for the design of an item's plan. The date is the day on which the item was begun.
pub(super) fn design_path(spec: &AutoSpec, item: &Slug, begun: jiff::Timestamp) -> String {
    format!("{}/{}-{item}-design.md", spec.config.design_dir, begun.strftime("%F"))
}

/// Returns the path of the planner's plan within its work tree.
pub(super) fn plan_path(spec: &AutoSpec, item: &Slug) -> String {
    format!("{}/{item}.yaml", spec.config.plans_dir)
}

/// Returns the facts about an item's existing plan.
pub(super) fn existing(disk: &Disk, spec: &AutoSpec, item: &Slug) -> Result<PlanFound, StepError> {
    let file = plan_file(spec, item);
    let text = match disk.read_text(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(PlanFound::Missing),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            return Ok(PlanFound::Invalid { problems: "it is no text".into() });
        }
        Err(error) => return Err(StepError::file(file)(error)),
    };
    Ok(match Plan::read(&file.to_string_lossy(), &text) {
        // Agents can write plans too, and posse runs gates outside of any sandbox.
        Ok((plan, _)) if !plan.meta.gates.is_empty() => {
            let problems = "`meta.gates` is not set by a planner: gates come from your own configuration".to_owned();
            PlanFound::Invalid { problems }
        }
        Ok(_) => PlanFound::Valid { hash: sha256(text.as_bytes()) },
        Err(problems) => PlanFound::Invalid { problems: problems.to_string() },
    })
}

/// A planner's work: which item it is for, and where things go.
pub(super) struct Draft<'a> {
    pub(super) spec: &'a AutoSpec,
    pub(super) item: &'a Item,
    pub(super) item_path: &'a str,
    pub(super) design: &'a str,
    /// The number of the planner's session.
    pub(super) number: u32,
}

impl Draft<'_> {
    /// Looks at what the planner has written. If it is good it becomes the plan of the item. Nothing is taken away from the
    /// work tree, so that all of it can be done again after a crash.
    pub(super) async fn take(&self, disk: &Disk, worktrees: &Worktrees) -> Result<PlanFound, StepError> {
        let area = worktrees.make(&Work::Plan.run(self.number)?).await?;
        let relative = plan_path(self.spec, &self.item.slug);
        let Some(text) = own_file(disk, &area.directory, &relative)? else { return Ok(PlanFound::Missing) };
        let design = own_file(disk, &area.directory, self.design)?;
        let problems = self.problems(disk, &area, &text, design.is_some());
        if !problems.is_empty() {
            return Ok(PlanFound::Invalid { problems: problems.join("\n") });
        }
        self.bring_design(disk, worktrees, &design.unwrap_or_default()).await?;
        self.place(disk, &text)?;
        Ok(PlanFound::Valid { hash: sha256(text.as_bytes()) })
    }

    fn place(&self, disk: &Disk, text: &str) -> Result<(), StepError> {
        let file = plan_file(self.spec, &self.item.slug);
        if let Some(directory) = file.parent() {
            disk.create_dir_all(directory)?;
        }
        replace(disk, &file, text).map_err(StepError::file(&file))
    }

    /// Returns what the planner has to mend.
    fn problems(&self, disk: &Disk, area: &TaskWorktree, text: &str, has_design: bool) -> Vec<String> {
        let relative = plan_path(self.spec, &self.item.slug);
        let plan = match Plan::read(&relative, text) {
            Ok((plan, _)) => plan,
            Err(problems) => return vec![problems.to_string()],
        };
        let mut problems = planner::problems(&plan, self.item, self.item_path, self.design);
        let known = |name: &str| self.spec.agents.contains_key(name) || agent_file::built_in(name).is_some();
        let project = Path::new(&self.spec.directory);
        let there = |path: &str| disk.exists(&area.directory.join(path)) || disk.exists(&project.join(path));
        // Of a planner more is asked than of a person: it can still name an agent that exists.
        let (missing, warnings) = plan.missing(known, there);
        problems.extend(missing.iter().chain(&warnings).map(|problem| problem.message.clone()));
        if !has_design {
            problems.push(format!("the design document {} is missing", self.design));
        }
        problems
    }

    /// Merges the design into the branch like the work of a task, and nothing else with it.
    async fn bring_design(&self, disk: &Disk, worktrees: &Worktrees, text: &str) -> Result<(), StepError> {
        let area = worktrees.make(&Work::Design.run(self.number)?).await?;
        let file = area.directory.join(self.design);
        if let Some(directory) = file.parent() {
            disk.create_dir_all(directory)?;
        }
        if disk.read_text(&file).ok().as_deref() != Some(text) {
            replace(disk, &file, text).map_err(StepError::file(&file))?;
        }
        let (slug, task) = (self.item.slug.to_string(), &area.run.task);
        let run = format!("{}/{slug}-{}", self.spec.id, self.number);
        let message = commit_message(&slug, (task, &format!("design for {slug}")), &run, 1);
        let not_merged = |why: &str| StepError::because(format!("the design is not merged: {why}"));
        match worktrees.merge(&area, &message, &Gates::default()).await {
            MergeResult::Merged { .. } => Ok(()),
            MergeResult::Conflict { paths } => Err(not_merged(&paths.join(", "))),
            MergeResult::RedTogether(failure) => Err(not_merged(&failure.message)),
            MergeResult::NotNow { why } => Err(not_merged(&why)),
            MergeResult::Stopped => Err(not_merged("its checks were stopped")),
        }
    }
}

/// A file that a session wrote in its work tree. A link could show anything.
fn own_file(disk: &Disk, area: &Path, relative: &str) -> Result<Option<String>, StepError> {
    let path = area.join(relative);
    let inside = |path: &Path| disk.canonicalize(path).is_ok_and(|real| real.starts_with(area));
    match disk.symlink_metadata(&path) {
        Ok(found) if found.is_file() && inside(&path) => {
            let read = disk.read_bounded(&path, MAX_TEXT);
            let bytes = read.map_err(StepError::file(&path))?;
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        }
        _ => Ok(None),
    }
}

/// Keeps the plan that is there elsewhere.
pub(super) fn set_aside(disk: &Disk, spec: &AutoSpec, item: &Slug) -> Result<(), StepError> {
    let file = plan_file(spec, item);
    if !disk.exists(&file) {
        return Ok(());
    }
    let plans = Path::new(&spec.directory).join(&spec.config.plans_dir);
    put_aside(disk, &plans, Path::new(&format!("{item}.yaml")), &plans.join("old"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use posse_api::SessionRules;
    use posse_core::auto::{Carried, Settings};
    use posse_core::ids::RunId;

    use super::*;

    use crate::disk::DISK;
    use posse_core::backlog::BacklogDirs;

    /// A session may have added them after the plan was checked.
    #[test]
    fn a_plan_with_gates_is_not_gone_on_with() {
        let project = tempfile::tempdir().unwrap();
        let spec = AutoSpec {
            id: RunId::from_random(1),
            directory: project.path().to_str().unwrap().into(),
            shelves: BacklogDirs::default(),
            sessions: SessionRules::default(),
            settings: Settings::default(),
            carried: Carried::default(),
            retry: Vec::new(),
            program: "/bin/true".into(),
            home: None,
            agents: BTreeMap::new(),
            prompts: Default::default(),
            conventions: Vec::new(),
        };
        let item: Slug = "1-more".parse().unwrap();
        let file = plan_file(&spec, &item);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let found = |meta: &str| {
            let text = format!("meta: {{name: p{meta}}}\nsections: [{{id: s, tasks: [{{id: t, name: T}}]}}]\n");
            std::fs::write(&file, text).unwrap();
            existing(DISK, &spec, &item).unwrap()
        };
        assert!(matches!(found(""), PlanFound::Valid { .. }));
        let with_gates = found(", gates: [{name: evil, cmd: touch x}]");
        let PlanFound::Invalid { problems } = with_gates else { panic!("{with_gates:?}") };
        assert!(problems.contains("gates come from your own configuration"), "{problems}");
    }
}
