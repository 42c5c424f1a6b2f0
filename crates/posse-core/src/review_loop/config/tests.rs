use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::config::{ConfigKey, KEYS, ValueKind, check_reference};
use crate::review_loop::Prompt;

const PROVIDERS: [&str; 3] = ["claude_code", "codex", "kiro_cli"];

fn user(toml: &str) -> ConfigLayer {
    ConfigLayer::read(LayerSource::User, ConfigFormat::Toml, "config.toml", toml, Some(&PROVIDERS)).unwrap().0
}

fn resolve_with(json: &str, env: &[(&str, &str)], user: &ConfigLayer) -> Result<ResolvedRun, String> {
    let env: BTreeMap<&str, &str> = env.iter().copied().collect();
    let json = Some(("loop.json", json)).filter(|(_, json)| !json.is_empty());
    let look = |name: &str| env.get(name).map(|value| (*value).to_owned());
    ResolvedRun::new(json, &look, user, &PROVIDERS).map_err(|error| error.to_string())
}

fn resolve(json: &str, env: &[(&str, &str)]) -> Result<ResolvedRun, String> {
    resolve_with(json, env, &user(""))
}

#[track_caller]
fn good(json: &str, env: &[(&str, &str)]) -> ResolvedRun {
    resolve(json, env).unwrap()
}

fn run_keys() -> impl Iterator<Item = (&'static str, &'static ConfigKey)> {
    KEYS.iter().filter(|key| !key.path.contains(".agents.")).filter_map(|key| Some((key.run?, key)))
}

/// Returns the value at a path of the configuration.
fn at(config: &LoopConfig, path: &str) -> Value {
    let whole = serde_json::to_value(config).unwrap();
    path.split('.').fold(whole, |value, name| value[name].clone())
}

fn origin(resolved: &ResolvedRun, path: &str) -> ValueOrigin {
    let of_key = |setting: &&Setting| KEYS.iter().any(|key| key.path == setting.key && key.run == Some(path));
    resolved.settings.iter().find(of_key).unwrap().origin.clone()
}

/// Returns the object with this value at this path and nothing else.
fn only(path: &str, value: &Value) -> String {
    path.rsplit('.').fold(value.clone(), |value, name| json!({ name: value })).to_string()
}

/// Returns two non-default values of a key, as JSON and as a variable.
fn samples(path: &str, key: &ConfigKey) -> [(Value, &'static str); 2] {
    let not_the_default = !at(&LoopConfig::default(), path).as_bool().unwrap_or(false);
    match key.kind {
        ValueKind::Bool | ValueKind::OptIn if not_the_default => [(json!(true), "1"), (json!(true), "1")],
        ValueKind::Bool | ValueKind::OptIn => [(json!(false), "0"), (json!(false), "0")],
        ValueKind::Whole { max: 4, .. } => [(json!(1), "1"), (json!(2), "2")],
        ValueKind::Whole { .. } | ValueKind::Clamped => [(json!(77), "77"), (json!(78), " 78 ")],
        ValueKind::OneOf(names) if names.contains(&"tester") => {
            [(json!("tester"), "tester"), (json!("programmer"), "programmer")]
        }
        ValueKind::OneOf(_) => [(json!("ask"), "ask"), (json!("bypass"), "bypass")],
        ValueKind::Provider => [(json!("claude_code"), "claude_code"), (json!("kiro_cli"), "kiro_cli")],
        ValueKind::Arguments => [(json!(["notify-send", "posse"]), ""), (json!(["x"]), "")],
        _ => [(json!("/a b"), "/a b"), (json!("c"), "c")],
    }
}

#[test]
fn without_configuration_every_role_has_the_default_agent() {
    let config = good("", &[]).config;
    for role in Role::ALL {
        let agent = &config.agents[&role];
        assert_eq!((agent.provider.as_str(), agent.profile.as_str()), ("codex", role.profile()));
        assert_eq!((agent.mode.as_deref(), agent.model.as_deref()), (Some("edits"), None));
    }
    let kept: LoopConfig = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
    assert_eq!(kept, config);
}

#[test]
fn every_key_can_be_set_by_json_and_by_its_variable() {
    for (path, key) in run_keys() {
        let [(first, _), (second, text)] = samples(path, key);
        let json = only(path, &first);
        let by_json = good(&json, &[]);
        assert_eq!(at(&by_json.config, path), first, "{path}");
        assert_eq!(origin(&by_json, path), ValueOrigin::RunFile(1));
        for name in key.variables() {
            let by_variable = good(&json, &[(&name, text)]);
            assert_eq!(at(&by_variable.config, path), second, "{name}");
            assert_eq!(origin(&by_variable, path), ValueOrigin::Variable(name.clone()));
            // An empty variable, and null in JSON, set nothing.
            let untouched = good(&only(path, &Value::Null), &[(&name, "")]);
            assert_eq!(at(&untouched.config, path), at(&LoopConfig::default(), path), "{path}");
            assert_eq!(origin(&untouched, path), ValueOrigin::Default);
        }
    }
    let both = good("", &[("MAX_ROUNDS", "3"), ("POSSE_MAX_ROUNDS", "4")]).config;
    assert_eq!(both.limits.max_rounds, 4, "POSSE_ goes first");
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
fn the_users_file_lies_under_the_runs_file() {
    let mine = user(
        "[permissions]\nauto_accept = true\n[notifications]\nntfy_topic = 'night'\ncommand = ['n']\n\
         [loop]\nmode = 'ask'\nprovider = 'claude_code'",
    );
    let resolved = resolve_with("", &[], &mine).unwrap();
    let config = &resolved.config;
    assert!(config.handoff.auto_accept_permissions);
    assert_eq!((config.provider.as_str(), config.mode.as_deref()), ("claude_code", Some("ask")));
    assert_eq!((config.notifications.ntfy_topic.as_str(), config.notifications.command.len()), ("night", 1));
    let tester = &config.agents[&Role::Tester];
    assert_eq!((tester.provider.as_str(), tester.mode.as_deref()), ("claude_code", Some("ask")));
    assert_eq!(origin(&resolved, "provider"), ValueOrigin::User(8));
    assert_eq!(origin(&resolved, "agents.tester.mode"), ValueOrigin::User(7));
    for path in ["notifications.ntfy_url", "agents.tester.profile"] {
        assert_eq!(origin(&resolved, path), ValueOrigin::Default, "{path}");
    }

    let json = r#"{"provider": "codex", "handoff": {"auto_accept_permissions": false}, "notifications": {"ntfy_topic": "day"}}"#;
    let resolved = resolve_with(json, &[("NTFY_TOPIC", "now")], &mine).unwrap();
    let config = &resolved.config;
    assert!(!config.handoff.auto_accept_permissions);
    assert_eq!((config.provider.as_str(), config.notifications.ntfy_topic.as_str()), ("codex", "now"));
    assert_eq!(origin(&resolved, "provider"), ValueOrigin::RunFile(1));
    assert_eq!(origin(&resolved, "notifications.ntfy_topic"), ValueOrigin::Variable("NTFY_TOPIC".into()));
    assert_eq!(config.notifications.command.len(), 1, "key by key");
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

/// Each row of a table is `file => message` or `VARIABLE=value => message`, on one line or two.
#[track_caller]
fn check_errors(table: &str, fits: fn(&str, &str) -> bool) {
    let table = table.replace("\n            =>", " =>");
    for row in table.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let (given, message) = row.split_once(" => ").unwrap();
        let error = match given.split_once('=') {
            Some((name, value)) => resolve("", &[(name, value)]),
            None => resolve(&given.replace("\\n", "\n"), &[]),
        };
        let error = error.unwrap_err();
        assert!(fits(&error, message), "{given}: {error}");
    }
}

#[test]
fn s_202_unknown_keys_are_named_all_of_them() {
    check_errors(
        r#"
        {"providr": "codex"} => loop.json:1:3: there is no `providr` (did you mean `provider`?)
        {"zebra": 1} => loop.json:1:3: there is no `zebra` (docs/reference/loop-configuration.md lists all keys)
        {"limits": {"max_round": 3}}
            => loop.json:1:14: there is no `limits.max_round` (did you mean `limits.max_rounds`?)
        {"max_rounds": 3} => loop.json:1:3: there is no `max_rounds` (did you mean `limits.max_rounds`?)
        {"agents": {"tester": {"providers": "codex"}}}
            => loop.json:1:25: there is no `agents.tester.providers` (did you mean `agents.tester.provider`?)
        {"agents": {"testr": {}}} => loop.json:1:14: there is no `agents.testr` (did you mean `agents.tester`?)
        {"agents": {"cook": {}}}
            => loop.json:1:14: there is no `agents.cook` (the names here are analyst, peer_analyst, peer_programmer, programmer, tester)
        "#,
        |error, message| error == message,
    );
    let both = resolve(r#"{"zebra": 1, "apple": 2}"#, &[]).unwrap_err();
    let places: Vec<&str> = both.lines().filter_map(|line| line.split(" (").next()).collect();
    assert_eq!(places, ["loop.json:1:15: there is no `apple`", "loop.json:1:3: there is no `zebra`"]);
}

#[test]
fn s_203_what_is_wrong_is_named() {
    check_errors(
        r#"
        { => loop.json:1:1: not valid JSON: EOF while parsing an object
        {\n "wd": 1,\n} => loop.json:3:1: not valid JSON: trailing comma
        [] => loop.json:1:1: the file should be a table, this is a list
        {"limits": {"max_review_cycles": 0}}
            => loop.json:1:34: `limits.max_review_cycles` should be a whole number, 1 or more, this is 0
        {"limits": {"max_rounds": -1}} => 1 or more, this is -1
        {"limits": {"max_rounds": 99999999999}} => 1 or more, this is 99999999999
        {"limits": {"max_rounds": 99999999999999999999}} => this is
        {"limits": {"review_evidence_min_match": 5}} => a whole number, 0 to 4, this is 5
        {"limits": {"max_rounds": "3"}} => this is the text "3"
        {"limits": {"max_rounds": 1.5}} => this is 1.5
        {"resume": "false"} => `resume` should be true or false, without quotes
        {"wd": 7} => `wd` should be a text, this is 7
        {"limits": []} => `limits` should be a table, this is a list
        {"agents": {"tester": "codex"}} => `agents.tester` should be a table
        {"notifications": {"command": "x y"}} => a list of texts: a program and its arguments
        {"provider": "gpt"} => `provider` should be one of claude_code, codex, kiro_cli, this is the text "gpt"
        PROVIDER=gpt => the variable PROVIDER should be one of claude_code, codex, kiro_cli, this is the text "gpt"
        {"agents": {"tester": {"provider": "gpt"}}}
            => `agents.tester.provider` should be one of claude_code, codex, kiro_cli
        {"agents": {"tester": {"mode": "yolo"}}} => `agents.tester.mode` should be one of ask, edits, bypass
        {"start_agent": "boss"}
            => `start_agent` should be one of analyst, peer_analyst, programmer, peer_programmer, tester
        POSSE_MAX_ROUNDS=many
            => the variable POSSE_MAX_ROUNDS should be a whole number, 1 or more, this is the text "many"
        RESPONSE_TIMEOUT=0 => the variable RESPONSE_TIMEOUT should be a whole number, 1 or more, this is 0
        "#,
        |error, message| error.contains(message),
    );
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
    assert!(!explore.contains("does not send this"));
    assert!(Prompt::parse(&incremental.config.prompt).unwrap().scenario.contains("--format csv"));
}

#[test]
fn every_key_is_documented() {
    let rows: String = run_keys().map(|(_, key)| format!("{}\n", key.run_row())).collect();
    let generated = format!("| key | variable | default | meaning |\n|---|---|---|---|\n{rows}");
    check_reference("loop-configuration.md", &generated);
}
