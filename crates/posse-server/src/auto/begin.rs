//! How a pipeline begins: what was asked for, made sure of before anything is written.

use std::path::{Path, PathBuf};

use posse_agents::headless::Sandbox;
use posse_core::auto::Settings;
use posse_core::backlog::Slug;
use posse_core::ids::RunId;
use posse_core::rounds::config::Notifications;

use super::AutoError;
use super::entry::{GateSpec, Spec};
use super::ledger::Ledger;
use super::place::ground_of;
use crate::api::App;
use crate::backlog::Shelves;
use crate::plans::areas::Areas;
use crate::plans::begin::{agents, program};
use crate::plans::briefing;
use crate::runs::Means;

/// A pipeline that somebody wants.
pub(crate) struct Wanted {
    /// The project. Absolute.
    pub(crate) directory: PathBuf,
    pub(crate) shelves: Shelves,
    pub(crate) plans: String,
    pub(crate) designs: String,
    pub(crate) settings: Settings,
    /// Items to be taken up again, whatever became of them.
    pub(crate) retry: Vec<Slug>,
    pub(crate) provider: String,
    pub(crate) sandbox: Sandbox,
    pub(crate) branch: Option<String>,
    pub(crate) gates: Vec<GateSpec>,
    pub(crate) conventions: Vec<String>,
    pub(crate) notifications: Notifications,
}

/// The project itself, whatever links lead to it: one project, one name.
pub(super) fn project(directory: &Path) -> Result<String, AutoError> {
    let wrong = |why: String| AutoError::Wrong(format!("{}: {why}", directory.display()));
    let real = std::fs::canonicalize(directory).map_err(|error| wrong(error.to_string()))?;
    real.into_os_string().into_string().map_err(|_| wrong("its name is not valid UTF-8".into()))
}

/// Everything the pipeline goes by. `last` is the one before in this project.
pub(super) fn spec(
    app: &App,
    wanted: Wanted,
    directory: String,
    last: Option<&Ledger>,
    means: &Means,
) -> Result<Spec, AutoError> {
    for path in [&wanted.plans, &wanted.designs] {
        inside(path)?;
    }
    for shelf in [&wanted.shelves.defects, &wanted.shelves.features, &wanted.shelves.completed, &wanted.shelves.failed]
    {
        inside(shelf)?;
    }
    let agents = agents(Path::new(&directory))?;
    for name in ["planner", "verifier"] {
        briefing::agent(&agents, name).map_err(AutoError::Wrong)?;
    }
    Ok(Spec {
        id: RunId::from_random(crate::random() as u32),
        shelves: wanted.shelves,
        plans: wanted.plans,
        designs: wanted.designs,
        settings: wanted.settings,
        carried: last.map(|last| last.pipeline.carried().clone()).unwrap_or_default(),
        program: program(app, &wanted.provider, means)?,
        provider: wanted.provider,
        sandbox: wanted.sandbox,
        branch: wanted.branch,
        agents,
        gates: wanted.gates,
        conventions: wanted.conventions,
        notifications: wanted.notifications,
        directory,
    })
}

/// Directories are the project's own.
fn inside(path: &str) -> Result<(), AutoError> {
    let plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    match !path.is_empty() && Path::new(path).components().all(plain) {
        true => Ok(()),
        false => Err(AutoError::Wrong(format!("{path:?} should be a directory within the project, without `..`"))),
    }
}

/// Whether there is a repository in which results can be gathered.
pub(super) async fn ground(spec: &Spec, state: &Path) -> Result<(), AutoError> {
    Areas::open(ground_of(spec, state, None)).await?;
    Ok(())
}
