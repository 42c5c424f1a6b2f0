//! `posse plan flags`: what sessions of an agent may do.

use std::path::Path;

use posse_agents::headless::agent_file::{self, AgentFile};
use posse_agents::headless::{
    Dialect, FlagError, Policy, Request, Sandbox, Scope, build_permission_flags, explain_flags,
};
use posse_core::plan::config::PlanConfig;
use posse_term::text_file;
use serde_json::json;

use super::configuration;
use crate::client;
use crate::error::{Error, Exit};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The agent: a file in .claude/agents, or one of ours
    agent: String,
    /// For `codex exec` instead of `claude -p`
    #[arg(long)]
    codex: bool,
    /// As if sessions were not confined
    #[arg(long)]
    no_sandbox: bool,
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    let loaded = configuration::load(Path::new("."))?;
    let sandbox = loaded.sandbox(args.no_sandbox, ui)?;
    let dialect = if args.codex { Dialect::Codex } else { Dialect::Claude };
    let AgentRights { profile, flags, text, .. } =
        AgentRights::of(&args.agent, Path::new("."), loaded.config(), dialect, sandbox)?;
    ui.answer(&json!({ "agent": args.agent, "profile": profile, "flags": flags }), || text);
    Ok(Exit::Ok)
}

/// Permissions of an agent's sessions.
pub(super) struct AgentRights {
    pub(super) profile: String,
    pub(super) flags: Vec<String>,
    /// The model that its file names.
    pub(super) model: Option<String>,
    /// The explanation for people.
    text: String,
}

impl AgentRights {
    pub(super) fn of(
        name: &str,
        project: &Path,
        config: &PlanConfig,
        dialect: Dialect,
        sandbox: Sandbox,
    ) -> Result<Self, Error> {
        let failed = |error: FlagError| Error::failed(error.to_string());
        let policy = Policy::configured(&config.sandbox);
        let file = agent(project, name, config)?;
        let granted = policy.grant(name, file.as_ref()).map_err(failed)?;
        let scope = Scope { directory: client::absolute(project)?, results: None };
        let request = Request { dialect, sandbox, profile: &granted.profile, scope: &scope, policy: &policy };
        Ok(Self {
            flags: build_permission_flags(&request).map_err(failed)?,
            text: explain_flags(name, &granted, &request).map_err(failed)?,
            profile: granted.profile.name.clone(),
            model: file.and_then(|file| file.model),
        })
    }
}

/// Reads the file of an agent: the project's, else ours.
fn agent(project: &Path, name: &str, config: &PlanConfig) -> Result<Option<AgentFile>, Error> {
    let path = project.join(&config.agents_dir).join(format!("{name}.md"));
    let parsed = match text_file::read(&path) {
        Ok(text) => Some(AgentFile::parse(name, &text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => agent_file::built_in(name),
        Err(error) => return Err(Error::usage(format!("cannot read {}: {error}", path.display()))),
    };
    parsed.transpose().map_err(|error| Error::failed(format!("{}: {error}", path.display())))
}
