//! The whole command of a session: permission flags, model, limits and format. The prompt is sent on standard input.

use std::collections::BTreeMap;

use super::flags::{FlagError, READ_INSTRUCTIONS, Request, build_permission_flags};
use super::{Dialect, Sandbox};

/// The last argument of Claude Code; `JSON` is that of Codex. A flag that takes a list of values may not be last.
pub(super) const PRINT: &str = "--print";
pub(super) const JSON: &str = "--json";
/// Tells Codex to read its prompt from standard input. Claude Code does so by default.
pub(super) const FROM_STDIN: &str = "-";

/// The request to a session, and its limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    pub prompt: &'a str,
    pub model: Option<&'a str>,
    /// Claude Code only; Codex has no limit. Claude Code checks afterwards, so a little more may be spent.
    pub max_budget_usd: Option<f64>,
}

/// The process to start. The caller gives it its own process group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawn {
    pub argv: Vec<String>,
    pub directory: String,
    pub set: BTreeMap<String, String>,
    pub unset: Vec<String>,
    /// The complete standard input. It comes from a file and therefore ends. With an open pipe Codex waits forever and
    /// Claude Code three seconds; a terminal could show prompts; arguments are visible to every user of the machine.
    pub prompt: String,
}

pub fn command_line(request: &Request<'_>, asked: &Asked<'_>) -> Result<Vec<String>, FlagError> {
    if asked.prompt.trim().is_empty() {
        return Err(FlagError::NoPrompt);
    }
    let mut arguments = Vec::new();
    if request.dialect == Dialect::Codex {
        arguments.push("exec".to_owned());
    }
    arguments.extend(build_permission_flags(request)?);
    if let Some(model) = asked.model {
        if model.is_empty() || model.starts_with('-') || model.chars().any(char::is_control) {
            return Err(FlagError::Model(model.into()));
        }
        arguments.extend(["--model".into(), model.to_owned()]);
    }
    match request.dialect {
        Dialect::Claude => {
            if let Some(budget) = asked.max_budget_usd {
                arguments.extend(["--max-budget-usd".into(), budget.to_string()]);
            }
            arguments.extend(["--output-format", "stream-json", "--verbose", PRINT].map(str::to_owned));
        }
        Dialect::Codex => arguments.extend([JSON, FROM_STDIN].map(str::to_owned)),
    }
    Ok(arguments)
}

impl Spawn {
    /// Builds a session of the program at this path. `set` and `unset` are extra variables of its manifest and the
    /// plan.
    pub fn new(
        program: &str,
        request: &Request<'_>,
        asked: &Asked<'_>,
        set: BTreeMap<String, String>,
        unset: Vec<String>,
    ) -> Result<Self, FlagError> {
        let mut spawn = Self {
            argv: vec![program.to_owned()],
            directory: request.scope.directory.clone(),
            set,
            unset,
            prompt: asked.prompt.to_owned(),
        };
        spawn.argv.extend(command_line(request, asked)?);
        let keeps_out_of_tmp =
            request.dialect == Dialect::Codex && request.sandbox == Sandbox::On && request.policy.strict;
        if let Some(results) = request.scope.results.clone().filter(|_| keeps_out_of_tmp) {
            // The sandbox blocks /tmp, but compilers and tests need a temporary directory.
            spawn.set.entry("TMPDIR".into()).or_insert(results);
        }
        if request.leaves_out_settings() {
            spawn.set.insert(READ_INSTRUCTIONS.into(), "1".into());
        }
        Ok(spawn)
    }
}

#[cfg(test)]
mod tests;
