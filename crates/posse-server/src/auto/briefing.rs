//! What planners and verifiers are told, what they may do, and the files they are given.

use std::collections::BTreeMap;
use std::path::Path;

use posse_agents::Provider;
use posse_agents::headless::agent_file::{self, AgentFile};
use posse_agents::headless::{PermissionProfile, Spawn};
use posse_api::AutoSpec;
use posse_core::auto::messages::StepId;

use super::place::Work;
use crate::disk::Disk;
use crate::plans::briefing::{self as plans, ReportPlace, SessionOutline};
use crate::run::StepError;

/// Names of everybody who ships with us.
const OURS: [&str; 3] = ["coder", "code-reviewer", "validator"];

/// A session that is ready to be started.
pub(super) struct Briefing {
    pub(super) agent: String,
    pub(super) model: Option<String>,
    pub(super) profile: PermissionProfile,
    pub(super) report: ReportPlace,
    /// `Err`: why it cannot be started.
    pub(super) spawn: Result<Spawn, StepError>,
}

/// Where a session works.
pub(super) struct Setting<'a> {
    pub(super) spec: &'a AutoSpec,
    pub(super) provider: &'a Provider,
    pub(super) id: &'a StepId,
    pub(super) work: Work,
    pub(super) area: &'a Path,
    /// The session's own directory.
    pub(super) files: &'a Path,
    /// What it has to write in its work tree, in full.
    pub(super) writes: Vec<String>,
    /// What it may spend.
    pub(super) max_budget_usd: Option<f64>,
}

fn agent_of(work: Work) -> &'static str {
    match work {
        Work::Verify => "verifier",
        Work::Plan | Work::Design => "planner",
    }
}

/// Writes down what the session is given. `prompt` makes it, knowing where the report goes.
pub(super) fn write(
    disk: &Disk,
    setting: &Setting<'_>,
    prompt: impl FnOnce(&AgentFile, &Path, &str) -> String,
) -> Result<Briefing, StepError> {
    let Setting { spec, id, work, files, .. } = setting;
    // The project's own agent of that name, else ours.
    let role = plans::agent(&spec.agents, agent_of(*work))?;
    // By the name of the work, not by what the agent's file says: a project's own planner may not do more than ours.
    let profile = spec.policy().grant_work(agent_of(*work), &role)?;
    let report = ReportPlace::make(disk, files)?;
    let session = SessionOutline {
        rules: &spec.sessions,
        program: &spec.program,
        provider: setting.provider,
        profile: &profile,
        worktree: setting.area,
        files,
        task: work.as_str(),
        item: Some(id.item.as_str()),
        model: role.model.as_deref(),
        max_budget_usd: setting.max_budget_usd,
        writes: setting.writes.clone(),
    };
    let spawn = session.spawn(disk, &report, &prompt(&role, &report.file, &report.nonce));
    Ok(Briefing { agent: role.name, model: role.model, profile, report, spawn })
}

/// Everybody who can be given a task: name and description.
pub(super) fn catalogue(spec: &AutoSpec) -> Vec<(String, String)> {
    let own = spec.agents.iter().filter_map(|(name, text)| {
        let agent = AgentFile::parse(name, text).ok()?;
        Some((name.clone(), agent.description))
    });
    let mut all: BTreeMap<String, String> = OURS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), agent_file::built_in(name)?.ok()?.description)))
        .collect();
    all.extend(own);
    for name in ["planner", "verifier", "validator"] {
        all.remove(name);
    }
    all.into_iter().collect()
}
