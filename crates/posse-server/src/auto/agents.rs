//! The agents that can be given a task, as listed for planners.

use std::collections::BTreeMap;

use posse_agents::headless::agent_file::{self, AgentFile};
use posse_api::AutoSpec;

/// Returns the name and description of every agent that can be given a task.
pub(super) fn catalogue(spec: &AutoSpec) -> Vec<(String, String)> {
    let own = spec.agents.iter().filter_map(|(name, text)| {
        let agent = AgentFile::parse(name, text).ok()?;
        Some((name.clone(), agent.description))
    });
    let ours = ["coder", "code-reviewer"]
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), agent_file::built_in(name)?.ok()?.description)));
    let mut all: BTreeMap<String, String> = ours.chain(own).collect();
    for name in ["planner", "verifier", "validator"] {
        all.remove(name);
    }
    all.into_iter().collect()
}
