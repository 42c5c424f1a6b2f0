use posse_core::config::{ConfigFormat, ConfigLayer, LayerSource};
use posse_core::plan::config::ResolvedPlans;

use super::*;

fn file(fields: &str) -> AgentFile {
    AgentFile::parse("any", &format!("---\nname: any\n{fields}\n---\nYou do it.\n")).unwrap()
}

fn granted(agent: &str, fields: Option<&str>) -> (String, String, Because) {
    let file = fields.map(file);
    let granted = Policy::default().grant(agent, file.as_ref()).unwrap();
    (granted.profile.name, granted.profile.tools.join(" "), granted.because)
}

#[test]
fn who_gets_what() {
    let write = "Read Grep Glob Write Edit Bash NotebookEdit";
    let read = "Read Grep Glob Bash";
    for (agent, fields, profile, tools, because) in [
        ("coder", None, "WRITE", write, Because::Known),
        ("frontend-coder", None, "WRITE", write, Because::Known),
        ("code-reviewer", None, "READ_ONLY", read, Because::Known),
        ("qa-auditor", None, "READ_ONLY", read, Because::Known),
        ("issue-verifier", None, "VERIFICATION", read, Because::Known),
        ("planner", None, "DESIGN", "Read Grep Glob Write Bash", Because::Known),
        // The agent's own file cannot widen its known profile.
        ("code-reviewer", Some("profile: WRITE"), "READ_ONLY", read, Because::Known),
        // T05.
        ("stranger", None, "READ_ONLY", read, Because::Unknown),
        ("stranger", Some("description: x"), "READ_ONLY", read, Because::Unknown),
        ("stranger", Some("profile: design"), "DESIGN", "Read Grep Glob Write Bash", Because::Named),
        ("stranger", Some("tools: Read, Grep"), "READ_ONLY", "Read Grep", Because::Covers),
        ("stranger", Some("tools: Read, Write"), "DESIGN", "Read Write", Because::Covers),
        ("stranger", Some("tools: Edit, Bash(cargo doc:*)"), "WRITE", "Edit Bash", Because::Covers),
        ("stranger", Some("tools: Read, WebFetch"), "READ_ONLY", "Read", Because::Unknown),
        // T12.
        ("coder", Some("tools: Read, Grep"), "WRITE", "Read Grep", Because::Known),
        ("coder", Some("tools: '*'"), "WRITE", write, Because::Known),
    ] {
        let expected = (profile.to_owned(), tools.to_owned(), because);
        assert_eq!(granted(agent, fields), expected, "{agent} {fields:?}");
    }
}

/// T06.
#[test]
fn a_profile_that_does_not_exist_is_an_error() {
    let error = Policy::default().profile("admin").unwrap_err().to_string();
    assert!(error.contains("\"admin\"") && error.contains("READ_ONLY") && error.contains("verifier"), "{error}");
    let named = Policy::default().grant("stranger", Some(&file("profile: ADMIN")));
    assert!(matches!(named, Err(FlagError::UnknownProfile { .. })), "{named:?}");
    let nothing = Policy::default().grant("code-reviewer", Some(&file("tools: Write, WebFetch")));
    assert!(matches!(nothing, Err(FlagError::NothingLeft { .. })), "{nothing:?}");
}

/// T06, T12, for the two agents of the pipeline: a project's files cannot widen them.
#[test]
fn planners_and_verifiers_get_the_profile_of_their_work_and_no_more() {
    let ours = Policy::default();
    let user = Policy { agents: [("verifier".to_owned(), READ_ONLY.to_owned())].into(), ..Policy::default() };
    for (policy, work, fields, profile, tools) in [
        (&ours, "planner", "profile: WRITE", "planner", "Read Grep Glob Write Bash"),
        (&ours, "planner", "tools: Read, Write, Edit, WebFetch", "planner", "Read Write"),
        (&ours, "verifier", "tools: '*'", "verifier", "Read Grep Glob Bash"),
        (&ours, "verifier", "profile: WRITE\ntools: Read, Write, Bash", "verifier", "Read Bash"),
        (&user, "verifier", "profile: WRITE", READ_ONLY, "Read Grep Glob Bash"),
    ] {
        let granted = policy.grant_work(work, &file(fields)).unwrap();
        assert_eq!((granted.name.as_str(), granted.tools.join(" ").as_str()), (profile, tools), "{work} {fields}");
    }
    assert!(matches!(ours.grant_work("archiver", &file("profile: WRITE")), Err(FlagError::UnknownProfile { .. })));
    assert!(matches!(ours.grant_work("verifier", &file("tools: Write")), Err(FlagError::NothingLeft { .. })));
}

#[test]
fn the_user_comes_first() {
    let user = r#"
        [plans.sandbox]
        agents = { stranger = "docs" }
        deny = ["WebFetch"]
        [plans.sandbox.profiles.docs]
        tools = ["Read", "Write"]
        [plans.sandbox.profiles.READ_ONLY]
        tools = ["Read"]
    "#;
    let policy = configured(user, "");
    assert!(policy.strict, "unless said otherwise");
    let granted = policy.grant("stranger", Some(&file("profile: WRITE"))).unwrap();
    assert_eq!((granted.profile.name.as_str(), granted.because), ("docs", Because::Configured));
    assert_eq!(policy.grant("code-reviewer", None).unwrap().profile.tools, ["Read"]);
}

#[test]
fn reading_needs_no_rule_and_no_profile_of_ours_has_one() {
    for profile in built_in() {
        let rules: &[&str] = if profile.name == "WRITE" { &["Bash"] } else { &[] };
        assert_eq!(profile.command_rules(), rules, "{}", profile.name);
    }
}

#[test]
fn single_commands_stay_if_the_profile_has_them() {
    let mut policy = Policy::default();
    let docs =
        SandboxProfile { tools: vec!["Read".into(), BASH.into()], bash: Bash::Rules(vec!["Bash(make doc)".into()]) };
    policy.profiles.insert("DOCS".into(), docs);
    let narrowed = |profile: &str, tools: &[&str]| {
        let tools: Vec<String> = tools.iter().map(|&tool| tool.to_owned()).collect();
        policy.narrowed(&policy.profile(profile).unwrap(), &tools).bash
    };
    let rule = |rule: &str| Bash::Rules(vec![rule.into()]);
    assert_eq!(narrowed("WRITE", &["Read", "Bash(git log:*)"]), rule("Bash(git log:*)"));
    assert_eq!(narrowed("READ_ONLY", &["Read", "Bash(git log:*)", "Bash(rm:*)"]), Bash::ReadOnly);
    assert_eq!(narrowed("READ_ONLY", &["Read", "Bash"]), Bash::ReadOnly);
    assert_eq!(narrowed("READ_ONLY", &["Read"]), Bash::None);
    assert_eq!(narrowed("DOCS", &["Bash(make doc)", "Bash(rm:*)"]), rule("Bash(make doc)"));
    assert_eq!(narrowed("DOCS", &["Bash(rm:*)"]), Bash::None);
}

fn configured(user: &str, project: &str) -> Policy {
    let read = |text: &str, source| ConfigLayer::read(source, ConfigFormat::Toml, "c", text, None).unwrap().0;
    let (user, project) = (read(user, LayerSource::User), read(project, LayerSource::Project));
    let config = ResolvedPlans::new(user, project, &[]).config;
    Policy::configured(&config.sandbox)
}

#[test]
fn what_is_configured_holds_for_sessions() {
    let user = "[plans.sandbox]\nstrict = false\nprofiles.DOCS = { tools = ['Read', 'Write', 'Bash'], bash = 'read_only' }\nagents = { writer = 'DOCS' }";
    let policy = configured(user, "[sandbox]\ndeny = ['Bash(curl:*)']\n[sandbox.agents]\ncoder = 'READ_ONLY'");
    assert!(!policy.strict);
    assert_eq!(policy.deny, ["Bash(curl:*)"]);
    let writer = policy.grant("writer", None).unwrap().profile;
    assert_eq!((writer.name.as_str(), &writer.bash), ("DOCS", &Bash::ReadOnly));
    assert!(!policy.grant("coder", None).unwrap().profile.writes(), "a project may narrow");
    assert!(configured("", "").grant("coder", None).unwrap().profile.writes());
    assert_eq!(configured("", ""), Policy::default());
}

/// Every word that the reader accepts is known here.
#[test]
fn every_policy_is_understood() {
    for (word, expected) in [("none", Bash::None), ("read_only", Bash::ReadOnly), ("full", Bash::Full)] {
        let user = format!("[plans.sandbox.profiles.X]\ntools = ['Bash']\nbash = '{word}'");
        assert_eq!(configured(&user, "").profile("x").unwrap().bash, expected);
    }
    let rules = configured("[plans.sandbox.profiles.X]\ntools = ['Bash']\nbash = ['Bash(ls:*)']", "");
    assert_eq!(rules.profile("X").unwrap().bash, Bash::Rules(vec!["Bash(ls:*)".into()]));
}
