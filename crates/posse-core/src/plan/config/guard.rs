//! What a project may not say. Agents write in projects; they must not be able to loosen their own guards.

use serde_json::Value as Json;

use super::keys::{Key, Who};
use super::tree::Node;
use crate::file_problem::FileProblem;

/// The profile that every other one is wider than.
const NARROWEST: &str = "READ_ONLY";

/// Why this may not stand in a project's file, if so.
pub(super) fn refused(key: &Key, value: &Json, node: &Node) -> Option<FileProblem> {
    let loosens = |what: &str| {
        let problem =
            FileProblem::new(node.at, format!("{what}: a project's file cannot say that, agents can write it"));
        let (section, name) = key.path.rsplit_once('.').map_or(("", key.path), |(section, name)| (section, name));
        let dot = if section.is_empty() { "" } else { "." };
        let hint = format!("say it in your own config.toml, as `{name}` in [plans{dot}{section}]");
        Some(problem.hint(match key.path {
            "sandbox.enabled" => format!("{hint}, or with `--no-sandbox`"),
            _ => hint,
        }))
    };
    match key.who {
        Who::Anyone => None,
        Who::User => loosens(&format!("`{}` decides what is run, or what it may do", key.path)),
        Who::OnlyOn if *value == Json::Bool(true) => None,
        Who::OnlyOn => loosens(&format!("`{}` off loosens what sessions are held by", key.path)),
        Who::OnlyNarrowest => {
            let wider = |profile: &Json| !profile.as_str().is_some_and(|name| name.eq_ignore_ascii_case(NARROWEST));
            let wider = value.as_object()?.values().any(wider);
            if wider { loosens(&format!("only {NARROWEST} can be given to an agent here")) } else { None }
        }
    }
}
