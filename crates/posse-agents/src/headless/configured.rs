//! What the configuration says about permissions, as a policy.

use posse_core::plan::config;

use super::permission::{Bash, PermissionProfile, Policy};

impl Policy {
    /// The policy of the user's configuration, narrowed by the project's.
    pub fn configured(sandbox: &config::SandboxSettings) -> Self {
        let profile = |(name, profile): (&String, &config::SandboxProfile)| {
            let profile =
                PermissionProfile { name: name.clone(), tools: profile.tools.clone(), bash: bash(&profile.bash) };
            (name.clone(), profile)
        };
        Self {
            strict: sandbox.strict,
            profiles: sandbox.profiles.iter().map(profile).collect(),
            agents: sandbox.agents.clone(),
            deny: sandbox.deny.clone(),
        }
    }
}

/// What is not known allows nothing.
fn bash(bash: &config::ProfileCommands) -> Bash {
    match bash {
        config::ProfileCommands::Rules(rules) => Bash::Rules(rules.clone()),
        config::ProfileCommands::Policy(name) => match name.as_str() {
            "read_only" => Bash::ReadOnly,
            "full" => Bash::Full,
            _ => Bash::None,
        },
    }
}

#[cfg(test)]
mod tests {
    use posse_core::config::{ConfigFormat, ConfigLayer, LayerSource};
    use posse_core::plan::config::ResolvedPlans;

    use super::*;

    fn policy(user: &str, project: &str) -> Policy {
        let read = |text: &str, source| ConfigLayer::read(source, ConfigFormat::Toml, "c", text, None).unwrap().0;
        let (user, project) = (read(user, LayerSource::User), read(project, LayerSource::Project));
        let config = ResolvedPlans::new(user, project, &[]).config;
        Policy::configured(&config.sandbox)
    }

    #[test]
    fn what_is_configured_holds_for_sessions() {
        let user = "[plans.sandbox]\nstrict = false\nprofiles.DOCS = { tools = ['Read', 'Write', 'Bash'], bash = 'read_only' }\nagents = { writer = 'DOCS' }";
        let configured = policy(user, "[sandbox]\ndeny = ['Bash(curl:*)']\n[sandbox.agents]\ncoder = 'READ_ONLY'");
        assert!(!configured.strict);
        assert_eq!(configured.deny, ["Bash(curl:*)"]);
        let writer = configured.grant("writer", None).unwrap().profile;
        assert_eq!((writer.name.as_str(), &writer.bash), ("DOCS", &Bash::ReadOnly));
        assert!(!configured.grant("coder", None).unwrap().profile.writes(), "a project may narrow");
        assert!(policy("", "").grant("coder", None).unwrap().profile.writes());
        assert_eq!(policy("", ""), Policy::default());
    }

    /// Every word that the reader takes is known here.
    #[test]
    fn every_policy_is_understood() {
        for (word, expected) in [("none", Bash::None), ("read_only", Bash::ReadOnly), ("full", Bash::Full)] {
            let user = format!("[plans.sandbox.profiles.X]\ntools = ['Bash']\nbash = '{word}'");
            assert_eq!(policy(&user, "").profile("x").unwrap().bash, expected);
        }
        let rules = policy("[plans.sandbox.profiles.X]\ntools = ['Bash']\nbash = ['Bash(ls:*)']", "");
        assert_eq!(rules.profile("X").unwrap().bash, Bash::Rules(vec!["Bash(ls:*)".into()]));
    }
}
