//! Builds all permission flags.
//!
//! Claude Code has one flag per question: `--allowedTools` (which tools may be used) and `--permission-mode` (what
//! happens if an approval is needed). Codex has a sandbox for the first and an approval policy for the second. Measured
//! on Claude Code 2.1.197 and 2.1.325 and on Codex 0.145.0 and 0.166.0: docs/decisions/0007-headless.md.

use posse_core::plan::config::Bash;

use super::outside::deny_edits_outside;
use super::permission::{BASH, PermissionProfile, Policy, WRITE_TOOLS};
use super::{Dialect, Sandbox, permission};

pub(super) const ALLOWED_TOOLS: &str = "--allowedTools";
pub(super) const DISALLOWED_TOOLS: &str = "--disallowedTools";
pub(super) const TOOLS: &str = "--tools";
pub(super) const ADD_DIR: &str = "--add-dir";
pub(super) const PERMISSION_MODE: &str = "--permission-mode";
pub(super) const ACCEPT_EDITS: &str = "acceptEdits";
const SETTING_SOURCES: &str = "--setting-sources";
/// Makes Claude Code read the instructions (`CLAUDE.md`, `.claude/rules`) in the directories of `--add-dir`. Without
/// the project's settings it would skip the project's instructions.
pub(super) const READ_INSTRUCTIONS: &str = "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD";
pub(super) const CLAUDE_BYPASS: &str = "--dangerously-skip-permissions";

pub(super) const CODEX_SANDBOX: &str = "--sandbox";
pub(super) const READ_ONLY_SANDBOX: &str = "read-only";
pub(super) const WRITE_SANDBOX: &str = "workspace-write";
pub(super) const CODEX_CONFIG: &str = "-c";
/// `codex exec` has only this setting, and no flag.
pub(super) const NEVER_ASK: &str = r#"approval_policy="never""#;
const NOT_ALL_OF_TMP: &str = "sandbox_workspace_write.exclude_slash_tmp=true";
const IGNORE_RULES: &str = "--ignore-rules";
pub(super) const CODEX_BYPASS: &str = "--dangerously-bypass-approvals-and-sandbox";

/// Commands denied to every session.
const NEVER: [&str; 2] = ["Bash(git push:*)", "Bash(sudo:*)"];

/// The directories of a session: real paths without symbolic links. Claude Code resolves links, and would treat every
/// linked path as outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The working directory: the worktree, never the original checkout.
    pub directory: String,
    /// The directory of the session's result.
    pub results: Option<String>,
}

impl Scope {
    pub fn directories(&self) -> impl Iterator<Item = &str> {
        [Some(self.directory.as_str()), self.results.as_deref()].into_iter().flatten()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub dialect: Dialect,
    pub sandbox: Sandbox,
    pub profile: &'a PermissionProfile,
    pub scope: &'a Scope,
    pub policy: &'a Policy,
}

impl Request<'_> {
    /// Returns whether the session runs without the project's settings. With the sandbox off, or if every command is
    /// allowed, those settings could not allow more.
    pub(super) fn leaves_out_settings(&self) -> bool {
        let confined = self.sandbox == Sandbox::On && self.policy.strict;
        self.dialect == Dialect::Claude && confined && self.profile.bash != Bash::Full
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    #[error("there is no permission profile {name:?}; there are {known}")]
    UnknownProfile { name: String, known: String },
    #[error("nothing of what agent {agent} lists as its tools is in profile {profile}; correct `tools` in its file")]
    NothingLeft { agent: String, profile: String },
    #[error("permission profile {0} has no tools; a session without tools can do nothing")]
    NoTools(String),
    #[error("{0:?} is no name or rule of a tool; correct it in [sandbox]")]
    Tool(String),
    #[error("{0:?} cannot be the directory of a session; it must be an absolute path below /")]
    Directory(String),
    #[error("{0:?} is no name of a model")]
    Model(String),
    #[error("the prompt is empty")]
    NoPrompt,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flag {
    pub(super) words: Vec<String>,
    pub(super) why: &'static str,
}

fn flag<S: Into<String>>(name: &str, values: impl IntoIterator<Item = S>, why: &'static str) -> Flag {
    let words = std::iter::once(name.to_owned()).chain(values.into_iter().map(Into::into)).collect();
    Flag { words, why }
}

/// Returns the permission flags of a session. With the sandbox off the result is one flag that allows everything; with
/// the sandbox on that flag never appears.
pub fn build_permission_flags(request: &Request<'_>) -> Result<Vec<String>, FlagError> {
    Ok(explained(request)?.into_iter().flat_map(|flag| flag.words).collect())
}

pub(super) fn explained(request: &Request<'_>) -> Result<Vec<Flag>, FlagError> {
    match (request.sandbox, request.dialect) {
        (Sandbox::Off, Dialect::Claude) => Ok(vec![flag(CLAUDE_BYPASS, [""; 0], OFF)]),
        (Sandbox::Off, Dialect::Codex) => Ok(vec![flag(CODEX_BYPASS, [""; 0], OFF)]),
        (Sandbox::On, dialect) => {
            check_words(request)?;
            Ok(match dialect {
                Dialect::Claude => claude(request),
                Dialect::Codex => codex(request),
            })
        }
    }
}

const OFF: &str = "the sandbox is off: everything is allowed, nothing is asked";

/// Rejects values that would be parsed as flags.
fn check_words(request: &Request<'_>) -> Result<(), FlagError> {
    let Request { profile, scope, policy, .. } = request;
    if profile.tools.is_empty() {
        return Err(FlagError::NoTools(profile.name.clone()));
    }
    let rules = profile.command_rules();
    for word in profile.tools.iter().chain(&policy.deny).chain(&rules) {
        let name = permission::tool_name(word);
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
            && name.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_rule = name.len() == word.len() || word.ends_with(')');
        if !is_name || !is_rule || word.chars().any(char::is_control) {
            return Err(FlagError::Tool(word.clone()));
        }
    }
    for directory in scope.directories() {
        let names = || directory.split('/').filter(|name| !name.is_empty());
        let is_plain = directory.starts_with('/') && !names().any(|name| name == "." || name == "..");
        if !is_plain || names().next().is_none() || directory.chars().any(char::is_control) {
            return Err(FlagError::Directory(directory.into()));
        }
    }
    Ok(())
}

fn claude(request: &Request<'_>) -> Vec<Flag> {
    let Request { profile, scope, policy, .. } = *request;
    let commands = profile.command_rules();
    let mut usable = Vec::new();
    for tool in &profile.tools {
        if tool == BASH {
            usable.extend(commands.iter().cloned());
        } else {
            usable.push(tool.clone());
        }
    }
    if usable.is_empty() {
        // Only read-only commands are left. The list may not be empty, so it allows reading.
        usable.push("Read".into());
    }
    let mut flags = vec![
        flag(ALLOWED_TOOLS, usable, "may be used without approval"),
        flag(ADD_DIR, scope.directories(), "where it works: its directory and that of its result"),
        flag(
            PERMISSION_MODE,
            [ACCEPT_EDITS],
            "nobody is there to approve edits, so those in these directories are accepted",
        ),
    ];
    if policy.strict {
        if request.leaves_out_settings() {
            flags.push(flag(
                SETTING_SOURCES,
                ["user"],
                "settings of the project could allow commands and start programs; its CLAUDE.md is read all the same",
            ));
        }
        let mut denied: Vec<String> = Vec::new();
        if !profile.writes() {
            denied.extend(WRITE_TOOLS.map(str::to_owned));
        }
        denied.extend(NEVER.map(str::to_owned));
        denied.extend(policy.deny.iter().cloned());
        // A profile without writes gets no writable directory: the mode would otherwise accept `touch` and `>`.
        let places = scope.directories().filter(|_| profile.writes());
        denied.extend(deny_edits_outside(places));
        flags.push(flag(DISALLOWED_TOOLS, denied, "never, whatever else allows it; the paths are all those outside"));
        let has = |tool: &&String| *tool != BASH || profile.bash != Bash::None;
        flags.push(flag(TOOLS, profile.tools.iter().filter(has).cloned(), "no other tools exist"));
    }
    flags
}

fn codex(request: &Request<'_>) -> Vec<Flag> {
    let Request { profile, scope, policy, .. } = *request;
    let mut flags = Vec::new();
    if profile.writes() {
        flags.push(flag(CODEX_SANDBOX, [WRITE_SANDBOX], "it may write in its directory, and nowhere else"));
        for directory in scope.directories().skip(1) {
            flags.push(flag(ADD_DIR, [directory], "and where its result goes"));
        }
    } else {
        flags.push(flag(
            CODEX_SANDBOX,
            [READ_ONLY_SANDBOX],
            "its profile writes nothing; there are no finer sandboxes",
        ));
    }
    flags.push(flag(CODEX_CONFIG, [NEVER_ASK], "nobody is there to approve anything: what the sandbox stops fails"));
    if policy.strict {
        if profile.writes() {
            flags.push(flag(CODEX_CONFIG, [NOT_ALL_OF_TMP], "/tmp belongs to everybody"));
        }
        flags.push(flag(IGNORE_RULES, [""; 0], "rules of the project could let commands out of the sandbox"));
    }
    flags
}

#[cfg(test)]
mod tests;
