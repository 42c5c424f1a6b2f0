//! Assigns tools to sessions: profiles, and the agents that use them.
//!
//! Anything unknown gets the narrowest profile or an error, never a wider one.

use std::collections::BTreeMap;

use posse_core::plan::config::{Bash, SandboxProfile, SandboxSettings};

use super::agent_file::AgentFile;
use super::flags::FlagError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionProfile {
    pub name: String,
    /// In output order. `Bash` stands for the commands that `bash` allows.
    pub tools: Vec<String>,
    pub bash: Bash,
}

/// The tools that change files. Current versions no longer have `MultiEdit`, but naming it is harmless.
pub(super) const WRITE_TOOLS: [&str; 4] = ["Write", "Edit", "NotebookEdit", "MultiEdit"];
pub(super) const BASH: &str = "Bash";

pub const READ_ONLY: &str = "READ_ONLY";

/// Returns the built-in profiles. `planner` and `verifier` are the pipeline's own two.
fn built_in() -> [PermissionProfile; 6] {
    let profile = |name: &str, tools: &str, bash| PermissionProfile {
        name: name.into(),
        tools: tools.split(' ').map(str::to_owned).collect(),
        bash,
    };
    [
        profile(READ_ONLY, "Read Grep Glob Bash", Bash::ReadOnly),
        profile("VERIFICATION", "Read Grep Glob Bash", Bash::ReadOnly),
        profile("DESIGN", "Read Grep Glob Write Bash", Bash::ReadOnly),
        profile("WRITE", "Read Grep Glob Write Edit Bash NotebookEdit", Bash::Full),
        profile("planner", "Read Grep Glob Write Bash", Bash::ReadOnly),
        profile("verifier", "Read Grep Glob Bash", Bash::ReadOnly),
    ]
}

/// From narrow to wide. An agent that only lists its tools gets the first profile that has them all.
const BY_WIDTH: [&str; 4] = [READ_ONLY, "VERIFICATION", "DESIGN", "WRITE"];

/// Agents and their profiles: those of the original tool, and posse's.
const AGENTS: [(&str, &str); 4] = [
    (
        READ_ONLY,
        "code-reviewer systems-designer ux-reviewer spec-verifier e2e-analyzer qa-auditor code-explorer code-architect",
    ),
    ("WRITE", "coder frontend-coder"),
    ("VERIFICATION", "validator issue-verifier verifier"),
    ("DESIGN", "ux-designer ux-implementer planner"),
];

/// The permissions in the user's configuration. The project cannot set them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether the flags are hardened beyond what a session needs to work.
    pub strict: bool,
    /// Additional profiles, and replacements for built-in ones.
    pub profiles: BTreeMap<String, SandboxProfile>,
    /// Agent → profile, before the built-in map.
    pub agents: BTreeMap<String, String>,
    /// Denials that apply to every session.
    pub deny: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { strict: true, profiles: BTreeMap::new(), agents: BTreeMap::new(), deny: Vec::new() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    pub profile: PermissionProfile,
    pub because: Because,
    /// The agent's own list of tools removed some.
    pub narrowed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Because {
    #[error("your configuration says so")]
    Configured,
    #[error("posse knows this agent")]
    Known,
    #[error("its file names it")]
    Named,
    #[error("the smallest that has the tools its file lists")]
    Covers,
    /// Commands warn the user.
    #[error("nothing is known about this agent; name a `profile` in its file, or map it in [sandbox.agents]")]
    Unknown,
}

impl Policy {
    /// Returns the policy of the user's configuration, narrowed by the project's.
    pub fn configured(sandbox: &SandboxSettings) -> Self {
        let SandboxSettings { strict, profiles, agents, deny, .. } = sandbox.clone();
        Self { strict, profiles, agents, deny }
    }

    /// Returns a profile by its name, in any case.
    pub fn profile(&self, name: &str) -> Result<PermissionProfile, FlagError> {
        let same = |known: &str| known.eq_ignore_ascii_case(name);
        if let Some((known, profile)) = self.profiles.iter().find(|(known, _)| same(known)) {
            let SandboxProfile { tools, bash } = profile.clone();
            return Ok(PermissionProfile { name: known.clone(), tools, bash });
        }
        built_in()
            .into_iter()
            .find(|profile| same(&profile.name))
            .ok_or_else(|| FlagError::UnknownProfile { name: name.into(), known: self.names().join(", ") })
    }

    fn names(&self) -> Vec<String> {
        let ours = built_in().into_iter().map(|profile| profile.name);
        let mut names: Vec<String> = ours.chain(self.profiles.keys().cloned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns the grant of an agent. The agent's own file can narrow a profile from the maps, and chooses one only if
    /// the maps have none.
    pub fn grant(&self, agent: &str, file: Option<&AgentFile>) -> Result<Granted, FlagError> {
        let known = AGENTS
            .iter()
            .find(|(_, agents)| agents.split(' ').any(|known| known == agent))
            .map(|(profile, _)| *profile);
        let listed = file.and_then(|file| file.tools.as_deref());
        let (profile, because) = if let Some(name) = self.agents.get(agent) {
            (self.profile(name)?, Because::Configured)
        } else if let Some(name) = known {
            (self.profile(name)?, Because::Known)
        } else if let Some(name) = file.and_then(|file| file.profile.as_deref()) {
            (self.profile(name)?, Because::Named)
        } else if let Some(profile) = listed.and_then(|tools| self.covering(tools)) {
            (profile, Because::Covers)
        } else {
            (self.profile(READ_ONLY)?, Because::Unknown)
        };
        let narrow = self.as_listed(agent, &profile, listed)?;
        Ok(Granted { narrowed: narrow != profile, profile: narrow, because })
    }

    /// Returns the permissions of a pipeline session: the profile of its work, unless the user has assigned another to
    /// its agent. The agent's file, possibly the project's own, can only narrow it.
    pub fn grant_work(&self, work: &str, file: &AgentFile) -> Result<PermissionProfile, FlagError> {
        let profile = self.profile(self.agents.get(work).map_or(work, String::as_str))?;
        self.as_listed(work, &profile, file.tools.as_deref())
    }

    fn as_listed(
        &self,
        agent: &str,
        profile: &PermissionProfile,
        listed: Option<&[String]>,
    ) -> Result<PermissionProfile, FlagError> {
        let narrow = listed.map_or_else(|| profile.clone(), |tools| self.narrowed(profile, tools));
        if narrow.tools.is_empty() {
            return Err(FlagError::NothingLeft { agent: agent.into(), profile: profile.name.clone() });
        }
        Ok(narrow)
    }

    fn covering(&self, tools: &[String]) -> Option<PermissionProfile> {
        let mut profiles = BY_WIDTH.iter().filter_map(|name| self.profile(name).ok());
        profiles.find(|profile| tools.iter().all(|tool| profile.tools.iter().any(|known| known == tool_name(tool))))
    }

    /// Returns a profile with at most these tools. Rules for single commands stay if the profile allows them.
    pub fn narrowed(&self, profile: &PermissionProfile, tools: &[String]) -> PermissionProfile {
        let listed = |tool: &str| tools.iter().any(|one| one == tool);
        let commands: Vec<String> =
            tools.iter().filter(|tool| tool_name(tool) == BASH && *tool != BASH).cloned().collect();
        let bash = match &profile.bash {
            bash if listed(BASH) => bash.clone(),
            _ if commands.is_empty() => Bash::None,
            Bash::None => Bash::None,
            // Commands named by a rule are allowed only as read-only commands.
            Bash::ReadOnly => Bash::ReadOnly,
            Bash::Full => Bash::Rules(commands),
            Bash::Rules(allowed) => Bash::Rules(commands.into_iter().filter(|rule| allowed.contains(rule)).collect()),
        };
        let bash = if bash == Bash::Rules(Vec::new()) { Bash::None } else { bash };
        let keeps = |tool: &str| if tool == BASH { bash != Bash::None } else { listed(tool) };
        let tools = profile.tools.iter().filter(|tool| keeps(tool)).cloned().collect();
        PermissionProfile { name: profile.name.clone(), tools, bash }
    }
}

impl PermissionProfile {
    /// Returns the rules for commands in Claude Code's format. Read-only commands need none.
    pub(super) fn command_rules(&self) -> Vec<String> {
        match &self.bash {
            Bash::None | Bash::ReadOnly => Vec::new(),
            Bash::Full => vec![BASH.into()],
            Bash::Rules(rules) => rules.clone(),
        }
    }

    pub fn writes(&self) -> bool {
        self.tools.iter().any(|tool| WRITE_TOOLS.contains(&tool.as_str()))
    }
}

/// Returns `Bash` for `Bash(git diff:*)`.
pub(super) fn tool_name(rule: &str) -> &str {
    rule.split_once('(').map_or(rule, |(name, _)| name)
}

#[cfg(test)]
mod tests;
