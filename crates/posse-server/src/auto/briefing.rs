//! What planners and verifiers are told, what they may do, and the files they are given.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use posse_agents::Provider;
use posse_agents::headless::agent_file::{self, AgentFile};
use posse_agents::headless::{PermissionProfile, Spawn};
use posse_api::AutoSpec;
use posse_core::auto::messages::StepId;

use super::place::Work;
use crate::disk::Disk;
use crate::plans::briefing::{self as plans, PROMPT, Session, put};
use crate::run::StepError;

/// Names of everybody who ships with us.
const OURS: [&str; 3] = ["coder", "code-reviewer", "validator"];

/// A session that is ready to be started.
pub(super) struct Briefing {
    pub(super) agent: String,
    pub(super) model: Option<String>,
    pub(super) profile: PermissionProfile,
    pub(super) report_file: PathBuf,
    pub(super) nonce: String,
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

/// Who does it: the project's own agent of that name, else ours.
pub(super) fn role(spec: &AutoSpec, work: Work) -> Result<AgentFile, StepError> {
    plans::agent(&spec.agents, agent_of(work))
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
    let role = role(spec, *work)?;
    let policy = spec.policy();
    // By the name of the work, not by what the agent's file says: a project's own planner may not do more than ours.
    let profile = policy.grant_work(agent_of(*work), &role)?;
    let results = files.join("result");
    disk.create_private_dir(&results)?;
    let (report_file, nonce) = (results.join("result.json"), plans::nonce(disk, files)?);
    let prompt = prompt(&role, &report_file, &nonce);
    put(disk, &files.join(PROMPT), &prompt)?;
    let set = BTreeMap::from([
        ("POSSE_RUN_ID".to_owned(), nonce.clone()),
        ("POSSE_TASK_ID".to_owned(), work.as_str().to_owned()),
        ("POSSE_ITEM".to_owned(), id.item.to_string()),
        ("POSSE_RESULT_FILE".to_owned(), report_file.to_string_lossy().into_owned()),
    ]);
    let spawn = plans::command(
        disk,
        &Session {
            provider: setting.provider,
            program: &spec.program,
            config: &spec.config,
            sandbox: spec.sandbox,
            profile: &profile,
            policy: &policy,
            worktree: setting.area,
            results: &results,
            set,
            prompt: &prompt,
            model: role.model.as_deref(),
            max_budget_usd: setting.max_budget_usd,
            writes: setting.writes.clone(),
        },
    );
    Ok(Briefing { agent: role.name, model: role.model, profile, report_file, nonce, spawn })
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
