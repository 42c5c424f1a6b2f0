//! The start of a pipeline: the request, and checks before anything is written.

use std::path::Path;
use std::time::Duration;

use posse_api::{AutoSpec, BacklogIn};
use posse_core::auto::Settings;
use posse_core::backlog::BacklogDirs;
use posse_core::backlog::Slug;
use posse_core::ids::RunId;
use posse_core::plan::budget::{BacklogCap, backlog_levels};
use posse_core::plan::file::Isolation;
use posse_term::lock::{Lock, LockError};

use super::AutoLedger;
use super::place::worktrees_params;
use crate::api::App;
use crate::disk::{self, Disk};
use crate::environment::Environment;
use crate::git::{self, WorkTree};
use crate::plans::begin::{agents, program};
use crate::plans::briefing;
use crate::plans::worktrees::{WorktreeError, Worktrees};
use crate::project_files::{make_directory, real_path};
use crate::run::LaunchContext;
use crate::run::SupervisorError;
use posse_files::providers::prompt_templates;

/// The time a previous daemon may take to exit completely.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn project(directory: &Path) -> Result<String, SupervisorError> {
    disk::at(directory, real_path).await.map_err(SupervisorError::wrong)
}

/// Everything the pipeline goes by. `last` is the one before in this project.
pub(super) fn spec(
    disk: &Disk,
    app: &App,
    request: BacklogIn,
    directory: String,
    last: Option<&AutoLedger>,
    context: &LaunchContext,
) -> Result<AutoSpec, SupervisorError> {
    let settings = settings(&request)?;
    let retry = request.retry.iter().map(slug).collect::<Result<_, _>>()?;
    let sessions = request.sessions;
    let config = &sessions.config;
    let shelves = request.shelves.unwrap_or_else(|| config.backlog.clone());
    let BacklogDirs { defects, features, completed, failed } = &shelves;
    for path in [&config.plans_dir, &config.design_dir, defects, features, completed, failed] {
        inside(path)?;
    }
    if settings.pipeline.max_parallel_items > 1 && config.git.isolation == Isolation::InPlace {
        let text = "several items at once need work trees of their own; set `git.isolation` to \"worktree\", or \
                    `pipeline.max_parallel_items` to 1";
        return Err(SupervisorError::Wrong(text.into()));
    }
    let agents = agents(disk, &Path::new(&directory).join(&config.agents_dir))?;
    let (program, _) = program(disk, app, &sessions, context)?;
    let prompts = prompt_templates(&app.paths.prompts()).map_err(SupervisorError::wrong)?;
    for name in ["planner", "verifier"] {
        briefing::agent(&agents, name).map_err(SupervisorError::wrong)?;
    }
    Ok(AutoSpec {
        id: RunId::from_random(crate::random() as u32),
        shelves,
        sessions,
        settings,
        carried: last.map(|last| last.machine.carried().for_the_next()).unwrap_or_default(),
        program,
        home: None,
        agents,
        prompts,
        conventions: request.conventions,
        retry,
        directory,
    })
}

fn slug(name: &String) -> Result<Slug, SupervisorError> {
    name.parse().map_err(|error| SupervisorError::Wrong(format!("{name:?}: {error}")))
}

fn settings(request: &BacklogIn) -> Result<Settings, SupervisorError> {
    let config = &request.sessions.config;
    let cap = request.cap_usd.map(|limit_usd| BacklogCap { limit_usd, since: crate::now() });
    Ok(Settings {
        mode: request.mode,
        item: request.item.as_ref().map(slug).transpose()?,
        max_items: request.max_items,
        pipeline: config.pipeline,
        limits: config.limits,
        no_wait: request.no_wait,
        branch: None,
        levels: backlog_levels(config, cap),
    })
}

/// Directories are the project's own.
fn inside(path: &str) -> Result<(), SupervisorError> {
    let plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    match !path.is_empty() && Path::new(path).components().all(plain) {
        true => Ok(()),
        false => {
            Err(SupervisorError::Wrong(format!("{path:?} should be a directory within the project, without `..`")))
        }
    }
}

/// Sets the branch that gathers results and the branch of the backlog. Both stay the same for the whole pipeline, even
/// if another branch is checked out.
pub(super) async fn branches(spec: &mut AutoSpec, state: &Path) -> Result<(), SupervisorError> {
    git::begin(&Environment::default(), spec.directory.as_ref()).await.map_err(SupervisorError::wrong)?;
    let worktrees = Worktrees::open(worktrees_params(spec, state, None)).await?;
    if worktrees.root() != Path::new(&spec.directory) {
        let text = format!("a pipeline works in the root of a repository; run it in {}", worktrees.root().display());
        return Err(SupervisorError::Wrong(text));
    }
    spec.sessions.branch = Some(worktrees.branch().to_owned());
    spec.settings.branch.clone_from(&spec.sessions.branch);
    let checked_out = match WorkTree::find(worktrees.root()).await.map_err(SupervisorError::wrong)? {
        Some(tree) => tree.branch().await.map_err(SupervisorError::wrong)?,
        None => None,
    };
    spec.home = Some(checked_out.ok_or_else(|| WorktreeError::Detached(worktrees.root().to_owned()))?);
    Ok(())
}

/// An exclusive lock on the project, also across homes, held until dropped.
pub(super) async fn lock(directory: &str, state: &str, home: &Path) -> Result<Lock, SupervisorError> {
    let (directory, state) = (directory.to_owned(), state.to_owned());
    let purpose = format!("a pipeline of the posse in {}", home.display());
    let locked = disk::run(move |disk| {
        make_directory(disk, Path::new(&directory), Path::new(&state)).map_err(SupervisorError::wrong)?;
        let state = Path::new(&directory).join(state);
        match disk.lock(&purpose, &state.join("auto.lock"), LOCK_PATIENCE) {
            Ok(lock) => Ok(lock),
            Err(LockError::Held(holder)) => Err(SupervisorError::Locked {
                by: holder.and_then(|holder| holder.purpose).unwrap_or_else(|| "somebody else".into()),
                directory,
            }),
            Err(error) => Err(SupervisorError::wrong(error)),
        }
    });
    locked.await
}
