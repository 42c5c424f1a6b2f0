use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::keys::{AGENT_KEYS, KEYS, Kind};
use super::*;
use crate::rounds::Prompt;

const PROVIDERS: [&str; 3] = ["claude_code", "codex", "kiro_cli"];

fn resolve_with(json: &str, env: &[(&str, &str)], user: &UserDefaults) -> Result<Resolved, String> {
    let env: BTreeMap<&str, &str> = env.iter().copied().collect();
    let json = Some(json).filter(|json| !json.is_empty());
    let look = |name: &str| env.get(name).map(|value| (*value).to_owned());
    Resolved::new(json, &look, user, &PROVIDERS).map_err(|error| error.to_string())
}

fn resolve(json: &str, env: &[(&str, &str)]) -> Result<Resolved, String> {
    resolve_with(json, env, &UserDefaults::default())
}

#[track_caller]
fn good(json: &str, env: &[(&str, &str)]) -> Resolved {
    resolve(json, env).unwrap()
}

/// What stands at a path of the configuration.
fn at(config: &Config, path: &str) -> Value {
    let whole = serde_json::to_value(config).unwrap();
    path.split('.').fold(whole, |value, name| value[name].clone())
}

/// The object that has this value at this path and nothing else.
fn only(path: &str, value: &Value) -> String {
    path.rsplit('.').fold(value.clone(), |value, name| json!({ name: value })).to_string()
}

/// Two values of a kind that are no default of any key, as JSON and as a variable has them.
fn samples(key: &keys::Key) -> [(Value, &'static str); 2] {
    let not_the_default = !at(&Config::default(), key.path).as_bool().unwrap_or(false);
    match key.kind {
        Kind::Bool | Kind::OptIn if not_the_default => [(json!(true), "1"), (json!(true), "1")],
        Kind::Bool | Kind::OptIn => [(json!(false), "0"), (json!(false), "0")],
        Kind::Whole { max: 4, .. } => [(json!(1), "1"), (json!(2), "2")],
        Kind::Whole { .. } | Kind::WholeOrNone => [(json!(77), "77"), (json!(78), " 78 ")],
        Kind::Role => [(json!("tester"), "tester"), (json!("programmer"), "programmer")],
        Kind::Provider => [(json!("claude_code"), "claude_code"), (json!("kiro_cli"), "kiro_cli")],
        Kind::Mode => [(json!("ask"), "ask"), (json!("bypass"), "bypass")],
        Kind::Words => [(json!(["notify-send", "posse"]), ""), (json!(["x"]), "")],
        Kind::Text | Kind::Path => [(json!("/a b"), "/a b"), (json!("c"), "c")],
    }
}

#[test]
fn the_defaults_are_those_that_are_documented() {
    let config = good("", &[]).config;
    for (path, expected) in [
        ("api", json!("http://localhost:9889")),
        ("provider", json!("codex")),
        ("mode", json!("edits")),
        ("model", Value::Null),
        ("wd", Value::Null),
        ("prompt", json!("")),
        ("prompt_file", Value::Null),
        ("project_test_cmd", json!("")),
        ("start_agent", json!("analyst")),
        ("cleanup_on_exit", json!(false)),
        ("resume", json!(false)),
        ("state_file", Value::Null),
        ("limits.max_rounds", json!(8)),
        ("limits.max_review_cycles", json!(3)),
        ("limits.min_review_cycles_before_approval", json!(2)),
        ("limits.poll_seconds", json!(2)),
        ("limits.require_review_evidence", json!(true)),
        ("limits.review_evidence_min_match", json!(3)),
        ("condensation.condense_cross_phase", json!(true)),
        ("condensation.max_cross_phase_lines", json!(40)),
        ("condensation.condense_upstream_on_repeat", json!(true)),
        ("condensation.condense_explore_on_repeat", json!(true)),
        ("condensation.condense_review_feedback", json!(true)),
        ("condensation.max_feedback_lines", json!(30)),
        ("condensation.max_test_evidence_lines", json!(120)),
        ("handoff.strict_file_handoff", json!(true)),
        ("handoff.idle_grace_seconds", json!(30)),
        ("handoff.response_timeout", json!(1800)),
        ("handoff.max_file_reminders", json!(0)),
        ("handoff.auto_accept_permissions", json!(false)),
        ("handoff.waiting_timeout", json!(600)),
        ("notifications.ntfy_topic", json!("")),
        ("notifications.ntfy_url", json!("https://ntfy.sh")),
        ("notifications.webhook", json!("")),
        ("notifications.command", json!([])),
        ("post_processing.openspec_archive", json!(false)),
        ("post_processing.git_commit", json!(false)),
        ("post_processing.git_commit_comment", json!("")),
    ] {
        assert_eq!(at(&config, path), expected, "{path}");
        assert!(KEYS.iter().any(|key| key.path == path), "{path} is no key");
    }
    for role in Role::ALL {
        let agent = &config.agents[&role];
        assert_eq!((agent.provider.as_str(), agent.profile.as_str()), ("codex", role.profile()));
        assert_eq!((agent.mode.as_deref(), agent.model.as_deref()), (Some("edits"), None));
    }
    let kept: Config = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
    assert_eq!(kept, config);
}

#[test]
fn every_key_can_be_set_by_json_and_by_its_variable() {
    for key in KEYS {
        let [(first, _), (second, text)] = samples(key);
        let json = only(key.path, &first);
        let by_json = good(&json, &[]);
        assert_eq!(at(&by_json.config, key.path), first, "{}", key.path);
        assert_eq!(by_json.origins[key.path], Origin::Json);
        let Some(bare) = key.variable else { continue };
        let prefixed = format!("POSSE_{bare}");
        for name in [bare, &prefixed] {
            let by_variable = good(&json, &[(name, text)]);
            assert_eq!(at(&by_variable.config, key.path), second, "{name}");
            assert_eq!(by_variable.origins[key.path], Origin::Environment);
        }
        // An empty variable, and null in JSON, say nothing.
        let untouched = good(&only(key.path, &Value::Null), &[(bare, ""), (&prefixed, "")]);
        assert_eq!(at(&untouched.config, key.path), at(&Config::default(), key.path), "{}", key.path);
        assert_eq!(untouched.origins[key.path], Origin::Default);
    }
    let both = good("", &[("MAX_ROUNDS", "3"), ("POSSE_MAX_ROUNDS", "4")]).config;
    assert_eq!(both.limits.max_rounds, 4, "ours is looked at first");
    let fallen_back = good("", &[("MAX_ROUNDS", "3"), ("POSSE_MAX_ROUNDS", "")]).config;
    assert_eq!(fallen_back.limits.max_rounds, 3);
}

#[test]
fn no_variable_sets_what_runs_programs_or_may_be_somebody_elses() {
    let names = ["COMMAND", "NOTIFICATIONS_COMMAND", "MODE", "MODEL", "AGENTS"];
    let env: Vec<(String, &str)> =
        names.iter().flat_map(|name| [(*name).to_owned(), format!("POSSE_{name}")]).map(|name| (name, "x")).collect();
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(good("", &env), good("", &[]));
}

#[test]
fn boolean_variables_accept_eight_words_and_reject_everything_else() {
    let booleans = KEYS.iter().filter(|key| matches!(key.kind, Kind::Bool));
    let names: Vec<(&str, &str)> = booleans.filter_map(|key| Some((key.path, key.variable?))).collect();
    assert!(names.contains(&("handoff.strict_file_handoff", "STRICT_FILE_HANDOFF")), "{names:?}");
    for (path, name) in names {
        for (words, expected) in [(["true", "YES", "on", "1"], true), (["0", "False", "no", "off"], false)] {
            for word in words {
                let config = good(&only(path, &json!(!expected)), &[(name, word)]).config;
                assert_eq!(at(&config, path), json!(expected), "{name}={word}");
            }
        }
        for wrong in ["2", "strict", "y", "truee"] {
            let error = resolve("", &[(name, wrong)]).unwrap_err();
            let expected =
                format!("the variable {name}: {wrong:?} is not a boolean; use true, yes, on, 1, false, no, off or 0");
            assert_eq!(error, expected);
        }
    }
}

#[test]
fn s_147_to_149_auto_accept_variable_is_on_only_if_it_is_1() {
    let on = r#"{"handoff": {"auto_accept_permissions": true}}"#;
    for (value, expected, warned) in [
        ("1", true, false),
        ("0", false, false), // S-149
        ("off", false, false),
        ("", true, false),     // S-148
        ("true", false, true), // S-147
        ("yes", false, true),
        ("1 ", false, true),
        ("01", false, true),
    ] {
        let resolved = good(on, &[("AUTO_ACCEPT_PERMISSIONS", value)]);
        assert_eq!(resolved.config.handoff.auto_accept_permissions, expected, "{value:?}");
        assert_eq!(resolved.warnings.len(), usize::from(warned), "{value:?}: {:?}", resolved.warnings);
        assert!(resolved.warnings.iter().all(|warning| warning.contains("AUTO_ACCEPT_PERMISSIONS")));
    }
}

#[test]
fn what_the_user_has_written_down_lies_under_the_file() {
    let user = UserDefaults {
        auto_accept_permissions: Some(true),
        notifications: Some(Notifications {
            ntfy_topic: "night".into(),
            command: vec!["n".into()],
            ..Default::default()
        }),
        mode: Some("ask".into()),
        provider: Some("claude_code".into()),
    };
    let Resolved { config, origins, .. } = resolve_with("", &[], &user).unwrap();
    assert!(config.handoff.auto_accept_permissions);
    assert_eq!((config.provider.as_str(), config.mode.as_deref()), ("claude_code", Some("ask")));
    assert_eq!((config.notifications.ntfy_topic.as_str(), config.notifications.command.len()), ("night", 1));
    let tester = &config.agents[&Role::Tester];
    assert_eq!((tester.provider.as_str(), tester.mode.as_deref()), ("claude_code", Some("ask")));
    assert_eq!((origins["provider"], origins["agents.tester.mode"]), (Origin::User, Origin::User));
    assert_eq!(
        (origins["notifications.ntfy_url"], origins["agents.tester.profile"]),
        (Origin::Default, Origin::Default)
    );

    let json = r#"{"provider": "codex", "handoff": {"auto_accept_permissions": false}, "notifications": {"ntfy_topic": "day"}}"#;
    let Resolved { config, origins, .. } = resolve_with(json, &[("NTFY_TOPIC", "now")], &user).unwrap();
    assert!(!config.handoff.auto_accept_permissions);
    assert_eq!((config.provider.as_str(), config.notifications.ntfy_topic.as_str()), ("codex", "now"));
    assert_eq!((origins["provider"], origins["notifications.ntfy_topic"]), (Origin::Json, Origin::Environment));
    assert_eq!(config.notifications.command.len(), 1, "key by key");

    let wrong = UserDefaults { mode: Some("yolo".into()), ..user };
    let error = resolve_with("", &[], &wrong).unwrap_err();
    assert!(error.contains("`mode` in your config.toml") && error.contains("ask, edits, bypass"), "{error}");
}

#[test]
fn a_role_is_as_all_of_them_unless_it_says_otherwise() {
    let json = r#"{"provider": "claude_code", "model": "big", "mode": "ask",
        "agents": {"tester": {"provider": "codex", "model": null}, "programmer": {"profile": "mine", "mode": "bypass", "model": "bigger"}, "analyst": null}}"#;
    let config = good(json, &[("PROVIDER", "kiro_cli")]).config;
    let agent = |role: Role| {
        let agent = &config.agents[&role];
        [&agent.provider, &agent.profile, agent.mode.as_ref().unwrap(), agent.model.as_ref().unwrap()]
            .map(String::as_str)
    };
    assert_eq!(agent(Role::Analyst), ["kiro_cli", "system_analyst", "ask", "big"]);
    assert_eq!(agent(Role::Tester), ["codex", "tester", "ask", "big"]);
    assert_eq!(agent(Role::Programmer), ["kiro_cli", "mine", "bypass", "bigger"]);
    assert_eq!(AGENT_KEYS.len(), 4);
}

#[test]
fn s_202_unknown_keys_are_named_all_of_them() {
    for (json, message) in [
        (r#"{"providr": "codex"}"#, "unknown key: `providr` (did you mean `provider`?)"),
        (r#"{"zebra": 1, "apple": 2}"#, "unknown keys: `apple`, `zebra`"),
        (r#"{"limits": {"max_round": 3}}"#, "unknown key: `limits.max_round` (did you mean `limits.max_rounds`?)"),
        (r#"{"max_rounds": 3}"#, "unknown key: `max_rounds` (did you mean `limits.max_rounds`?)"),
        (
            r#"{"agents": {"tester": {"providers": "codex"}}}"#,
            "unknown key: `agents.tester.providers` (did you mean `agents.tester.provider`?)",
        ),
        (
            r#"{"agents": {"testr": {}}}"#,
            "unknown role under `agents`: `testr` (did you mean `tester`?); the roles are analyst, peer_analyst, programmer, peer_programmer, tester",
        ),
    ] {
        assert_eq!(resolve(json, &[]).unwrap_err(), message);
    }
}

#[test]
fn s_203_what_is_wrong_is_named() {
    for (json, env, message) in [
        ("{", &[][..], "the configuration is not valid JSON: EOF while parsing an object, at line 1, column 1"),
        ("{\n \"wd\": 1,\n}", &[], "the configuration is not valid JSON: trailing comma, at line 3, column 1"),
        ("[]", &[], "the configuration must be a JSON object, and it is a list"),
        (r#"{"limits": {"max_review_cycles": 0}}"#, &[], "`limits.max_review_cycles`: 0 is out of range: at least 1"),
        (r#"{"limits": {"max_rounds": -1}}"#, &[], "`limits.max_rounds`: -1 is out of range: at least 1"),
        (
            r#"{"limits": {"max_rounds": 99999999999}}"#,
            &[],
            "`limits.max_rounds`: 99999999999 is out of range: at least 1",
        ),
        (
            r#"{"limits": {"review_evidence_min_match": 5}}"#,
            &[],
            "`limits.review_evidence_min_match`: 5 is out of range: 0 to 4",
        ),
        (
            r#"{"limits": {"max_rounds": "3"}}"#,
            &[],
            "`limits.max_rounds`: it must be a whole number, and it is a string",
        ),
        (
            r#"{"limits": {"max_rounds": 1.5}}"#,
            &[],
            "`limits.max_rounds`: it must be a whole number, and it is a fraction",
        ),
        (r#"{"resume": "false"}"#, &[], "`resume`: it must be true or false, and it is a string"),
        (r#"{"wd": 7}"#, &[], "`wd`: it must be a string, and it is a number"),
        (r#"{"limits": []}"#, &[], "`limits`: it must be an object, and it is a list"),
        (r#"{"agents": {"tester": "codex"}}"#, &[], "`agents.tester`: it must be an object, and it is a string"),
        (
            r#"{"notifications": {"command": "x y"}}"#,
            &[],
            "`notifications.command`: it must be a list of strings: a program and its arguments, and it is a string",
        ),
        (
            r#"{"provider": "gpt"}"#,
            &[],
            "`provider`: there is no provider \"gpt\"; there are claude_code, codex, kiro_cli",
        ),
        (
            "",
            &[("PROVIDER", "gpt")],
            "the variable PROVIDER: there is no provider \"gpt\"; there are claude_code, codex, kiro_cli",
        ),
        (
            r#"{"agents": {"tester": {"provider": "gpt"}}}"#,
            &[],
            "`agents.tester.provider`: there is no provider \"gpt\"; there are claude_code, codex, kiro_cli",
        ),
        (
            r#"{"agents": {"tester": {"mode": "yolo"}}}"#,
            &[],
            "`agents.tester.mode`: there is no mode \"yolo\"; the modes are ask, edits, bypass",
        ),
        (
            r#"{"start_agent": "boss"}"#,
            &[],
            "`start_agent`: there is no role \"boss\"; the roles are analyst, peer_analyst, programmer, peer_programmer, tester",
        ),
        ("", &[("POSSE_MAX_ROUNDS", "many")], "the variable POSSE_MAX_ROUNDS: \"many\" is not a whole number"),
        ("", &[("RESPONSE_TIMEOUT", "0")], "the variable RESPONSE_TIMEOUT: 0 is out of range: at least 1"),
    ] {
        assert_eq!(resolve(json, env).unwrap_err(), message, "{json}");
    }
}

#[test]
fn s_139_fewer_reminders_than_none_are_none() {
    let json = r#"{"handoff": {"max_file_reminders": -3}}"#;
    assert_eq!(good(json, &[]).config.handoff.max_file_reminders, 0);
    assert_eq!(good(json, &[("MAX_FILE_REMINDERS", "-1")]).config.handoff.max_file_reminders, 0);
}

#[test]
fn s_131_the_file_decides_the_response_timeout() {
    assert_eq!(good(r#"{"handoff": {"response_timeout": 60}}"#, &[]).config.handoff.response_timeout, 60);
}

#[test]
fn a_gate_that_never_opens_is_warned_of() {
    let resolved = good(r#"{"limits": {"max_review_cycles": 1}}"#, &[]);
    assert!(resolved.warnings[0].contains("no review can be approved"), "{:?}", resolved.warnings);
    let (config, warnings) = Config::resolve(None, &|_| None, &UserDefaults::default(), &PROVIDERS).unwrap();
    assert_eq!((config, warnings), (good("", &[]).config, vec![]));
}

#[test]
fn a_blank_path_is_none() {
    let config = good(r#"{"wd": "", "prompt_file": " ", "state_file": "", "model": ""}"#, &[]).config;
    assert_eq!((config.wd, config.prompt_file, config.state_file, config.model), (None, None, None, None));
}

#[test]
fn the_examples_are_sound() {
    let fresh = good(include_str!("../../../../../examples/loop/fresh.json"), &[]);
    let incremental = good(include_str!("../../../../../examples/loop/incremental.json"), &[]);
    let resume = good(include_str!("../../../../../examples/loop/resume.json"), &[]);
    for resolved in [&fresh, &incremental, &resume] {
        assert_eq!(resolved.warnings, Vec::<String>::new());
        assert!(!resolved.config.handoff.auto_accept_permissions, "an example does not loosen anything");
    }
    let mixed: std::collections::BTreeSet<&str> =
        fresh.config.agents.values().map(|agent| agent.provider.as_str()).collect();
    assert_eq!(mixed.len(), 2, "{mixed:?}");
    assert_eq!(fresh.config.prompt_file.as_deref(), Some("prompt.md"));
    assert!(resume.config.resume);
    let Prompt { explore, scenario } = Prompt::parse(include_str!("../../../../../examples/loop/prompt.md")).unwrap();
    for part in ["Goal", "Present behavior", "Gap", "Direction", "Constraints", "Non-goals", "Scope", "Quality bar"] {
        assert!(explore.contains(&format!("{part}:")), "{part}");
    }
    for part in ["Environment", "Real input", "Steps", "Expected result", "Checks", "PASS if", "FAIL if"] {
        assert!(scenario.contains(&format!("{part}:")), "{part}");
    }
    assert!(!explore.contains("sent to nobody"));
    assert!(Prompt::parse(&incremental.config.prompt).unwrap().scenario.contains("--format csv"));
}

#[test]
fn every_key_is_documented() {
    let text = include_str!("../../../../../docs/loop-configuration.md");
    let documented = text.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(documented, KEYS.len());
    for key in KEYS {
        let variable = key.variable.map(|name| format!("`{name}` ")).unwrap_or_default();
        let row = format!("| `{}` | {variable}| `{}` |", key.path, at(&Config::default(), key.path));
        assert!(text.contains(&row), "docs/loop-configuration.md has no row {row}");
    }
}
