//! Profiles: roles, written as Markdown with a few fields on top. The text is the agent's role prompt.

use serde::{Deserialize, Serialize};

use crate::front_matter::{self, BadFrontMatter};

/// A role. Profiles in files have the names of the fields that the original tool uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Profile {
    pub name: String,
    pub description: String,
    pub model: Option<String>,
    #[serde(alias = "mcpServers")]
    pub mcp_servers: Option<serde_json::Value>,
    #[serde(default, alias = "prompt")]
    pub text: String,
}

/// The built-in profiles, as written: the five roles of the loop.
pub const BUILT_IN_PROFILES: &[(&str, &str)] = &[
    ("system_analyst", include_str!("../profiles/system_analyst.md")),
    ("peer_system_analyst", include_str!("../profiles/peer_system_analyst.md")),
    ("programmer", include_str!("../profiles/programmer.md")),
    ("peer_programmer", include_str!("../profiles/peer_programmer.md")),
    ("tester", include_str!("../profiles/tester.md")),
];

impl Profile {
    /// Creates a role whose text the agent itself has.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), description: String::new(), model: None, mcp_servers: None, text: String::new() }
    }

    pub fn parse(text: &str) -> Result<Self, BadFrontMatter> {
        let (mut profile, body): (Self, String) = front_matter::read(text)?;
        if !body.is_empty() {
            profile.text = body;
        }
        Ok(profile)
    }

    /// Returns the servers in the tools' format, each with the terminal that it works for.
    pub fn mcp_config(&self, terminal: &str) -> Option<String> {
        let mut servers = self.mcp_servers.clone()?;
        for server in servers.as_object_mut()?.values_mut() {
            let Some(server) = server.as_object_mut() else { continue };
            let environment = server.entry("env").or_insert_with(|| serde_json::json!({}));
            if let Some(environment) = environment.as_object_mut() {
                for name in ["CAO_TERMINAL_ID", "POSSE_TERMINAL_ID"] {
                    environment.entry(name).or_insert_with(|| terminal.into());
                }
            }
        }
        Some(serde_json::json!({ "mcpServers": servers }).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_markdown_with_fields() {
        let text = "---\nname: tester\ndescription: tests\nmodel: big\nmcpServers:\n  lab:\n    command: lab\n    env: {CAO_TERMINAL_ID: mine}\ntools: ['*']\n---\n\nYou test.\n\n- all of it\n";
        let profile = Profile::parse(text).unwrap();
        assert_eq!((profile.name.as_str(), profile.model.as_deref()), ("tester", Some("big")));
        assert_eq!(profile.text, "You test.\n\n- all of it");
        let config = r#"{"mcpServers":{"lab":{"command":"lab","env":{"CAO_TERMINAL_ID":"mine","POSSE_TERMINAL_ID":"0000000a"}}}}"#;
        assert_eq!(profile.mcp_config("0000000a").as_deref(), Some(config));
    }

    #[test]
    fn every_role_of_the_loop_has_a_profile() {
        for (name, text) in BUILT_IN_PROFILES {
            let profile = Profile::parse(text).unwrap();
            assert_eq!(profile.name, *name);
            assert!(profile.model.is_none() && profile.mcp_servers.is_none());
            assert!(profile.description.len() > 20 && profile.text.len() > 500, "{name}");
            assert!(!profile.text.contains("opsx"), "{name}: most projects have no OpenSpec");
        }
        let names: Vec<&str> = BUILT_IN_PROFILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, posse_core::review_loop::Role::ALL.map(posse_core::review_loop::Role::profile));
    }

    #[test]
    fn what_is_no_profile_says_why() {
        for (text, why) in
            [("", "does not begin"), ("# Title", "does not begin"), ("---\nname: x\n---\n", "description")]
        {
            let error = Profile::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
