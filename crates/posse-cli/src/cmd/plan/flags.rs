//! `posse plan flags`: what sessions of an agent may do.

use std::path::Path;

use posse_agents::headless::agent_file::{self, AgentFile};
use posse_agents::headless::{Dialect, Policy, Request, Scope, build_permission_flags, explain_flags};
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
    let failed = |error: &dyn std::fmt::Display| Error::failed(error.to_string());
    let loaded = configuration::load(Path::new("."))?;
    let config = loaded.config();
    let sandbox = loaded.sandbox(args.no_sandbox, ui)?;
    let policy = Policy::configured(&config.sandbox);
    let file = agent(Path::new("."), &args.agent, config)?;
    let granted = policy.grant(&args.agent, file.as_ref()).map_err(|error| failed(&error))?;
    let scope = Scope { directory: client::absolute(Path::new("."))?, results: None };
    let request = Request {
        dialect: if args.codex { Dialect::Codex } else { Dialect::Claude },
        sandbox,
        profile: &granted.profile,
        scope: &scope,
        policy: &policy,
    };
    let flags = build_permission_flags(&request).map_err(|error| failed(&error))?;
    let text = explain_flags(&args.agent, &granted, &request).map_err(|error| failed(&error))?;
    ui.answer(&json!({ "agent": args.agent, "profile": granted.profile.name, "flags": flags }), || text);
    Ok(Exit::Ok)
}

/// Reads the file of an agent: the project's, else ours.
pub(super) fn agent(project: &Path, name: &str, config: &PlanConfig) -> Result<Option<AgentFile>, Error> {
    let path = project.join(&config.agents_dir).join(format!("{name}.md"));
    let parsed = match text_file::read(&path) {
        Ok(text) => Some(AgentFile::parse(name, &text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => agent_file::built_in(name),
        Err(error) => return Err(Error::usage(format!("cannot read {}: {error}", path.display()))),
    };
    parsed.transpose().map_err(|error| Error::failed(format!("{}: {error}", path.display())))
}
