//! What a configuration file means, and what is wrong with one.

use std::collections::BTreeSet;
use std::time::Duration;

use super::keys::KEYS;
use super::*;
use crate::file_problem::FileProblems;

fn read(text: &str, whose: Whose) -> Result<Layer, FileProblems> {
    Layer::read("config.toml", text, Format::Toml, whose).map(|(layer, _)| layer)
}

#[track_caller]
fn project(text: &str) -> Config {
    resolve(&Layer::default(), &read(text, Whose::Project).unwrap()).config
}

/// The default file with every key said.
fn every_key() -> String {
    let bare = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    DEFAULT_FILE.lines().map(bare).collect()
}

#[test]
fn the_default_file_says_nothing_and_shows_every_key() {
    assert_eq!(project(DEFAULT_FILE), Config::default());
    // Whatever the user may say: all of it is there, and what has a default is shown with it.
    let text = every_key();
    let user = format!("[plans]\n{}", text.replace("\n[", "\n[plans."));
    let layer = read(&user, Whose::User).unwrap();
    let resolved = resolve(&layer, &Layer::default());
    let silent: Vec<&str> =
        resolved.origins.iter().filter(|(_, origin)| *origin != Origin::User).map(|(path, _)| *path).collect();
    assert_eq!(silent, [""; 0]);
    let config = Config {
        build_command: None,
        test_command: None,
        lint_command: None,
        e2e_command: None,
        env_strip: Vec::new(),
        claude: Claude::default(),
        sandbox: Sandbox::default(),
        pipeline: Pipeline { safety_scan_seconds: None, ..resolved.config.pipeline },
        ..resolved.config
    };
    assert_eq!(config, Config::default());
    let paths: BTreeSet<&str> = KEYS.iter().map(|key| key.path).collect();
    assert_eq!(paths.len(), KEYS.len(), "a key is there twice");
}

#[test]
fn what_a_project_says_holds() {
    let config = project(
        "test_command = 'make test'\nlint_command = 'make lint'\nagents_dir = './agents/'\n\
         task = { timeout = '1h', idle_timeout = 30, max_parallel = 2 }\n\
         [git]\nisolation = 'in_place'\n[budget]\nquota_ceiling_usd = 5\n[claude.models]\nsonnet = 'claude-sonnet-5'\n\
         [sandbox.agents]\ncoder = 'read_only'\n[breaker]\nmax_trips = 1\n",
    );
    let names: Vec<String> =
        config.checks().into_iter().map(|gate| format!("{}: {}", gate.name, gate.command)).collect();
    assert_eq!(names, ["lint: make lint", "test: make test"]);
    assert_eq!(config.agents_dir, "agents");
    let task = Task { timeout: Duration::from_secs(3600), idle_timeout: Duration::from_secs(30), max_parallel: 2 };
    assert_eq!(config.task, task);
    assert_eq!(config.git.isolation, Isolation::InPlace);
    assert_eq!(config.budget.ceiling_usd, Some(5.0));
    assert_eq!((config.model("sonnet"), config.model("opus")), ("claude-sonnet-5", "opus"));
    assert_eq!(config.sandbox.agents["coder"], "read_only");
    assert_eq!((config.breaker.max_trips, config.breaker.threshold), (1, 3));
}

/// Text, place, words of the problem and its hint.
#[test]
fn mistakes_are_named_with_their_place() {
    for (text, place, words) in [
        ("buidl_command = 'x'", "1:1", "there is no `buidl_command` (did you mean `build_command`?)"),
        ("[task]\ntimeuot = 5", "2:1", "did you mean `task.timeout`?"),
        ("[tsak]\ntimeout = 5", "1:2", "did you mean `task`?"),
        ("timeout = 5", "1:1", "did you mean `task.timeout`?"),
        ("colour = 'red'", "1:1", "`posse plan config --default` shows all there are"),
        ("task = 5", "1:8", "`task` should be a table, this is 5"),
        ("[task]\ntimeout = 'soon'", "2:11", "should be a duration such as \"90s\", \"15m\" or \"7d\""),
        ("[task]\ntimeout = 0", "2:11", "this is 0"),
        ("[task]\nmax_parallel = 0", "2:16", "a whole number, 1 or more"),
        ("[task]\nmax_parallel = '4'", "2:16", "this is the text \"4\""),
        ("test_command = 5", "1:16", "a command line in quotes, this is 5"),
        ("test_command = ' '", "1:16", "a command line in quotes"),
        ("[sandbox]\nenabled = 'true'", "2:11", "true or false, without quotes"),
        ("[sandbox]\ndeny = 'x'", "2:8", "a list of words"),
        ("[sandbox]\ndeny = ['x', 1]", "2:14", "a list of words, this is 1"),
        ("[budget]\nquota_ceiling_usd = -1", "2:21", "a number, 0 or more"),
        ("[budget]\nceiling_usd = 1", "2:1", "the name is `quota_ceiling_usd`"),
        ("[budget]\nwindow = '7d'", "2:1", "`budget.window` limits nothing without a ceiling"),
        ("[git]\nisolation = 'inplace'", "2:13", "\"worktree\" or \"in_place\""),
        ("[git]\ncommit_plan = true", "2:1", "the plan's file is written and left to you"),
        ("[notify]\ncommand = 'rm -rf /'", "1:2", "`[notifications]` in your own config.toml"),
        ("state_dir = '.claude/state'", "1:13", "must not be under .claude/"),
        ("state_dir = './.claude'", "1:13", "must not be under .claude/"),
        ("state_dir = '../elsewhere'", "1:13", "below the project"),
        ("plans_dir = '/tmp/plans'", "1:13", "below the project"),
        ("a = \"open", "1:10", "not valid TOML"),
        ("test_command = 'a'\ntest_command = 'b'", "2:1", "not valid TOML: duplicate key"),
    ] {
        let problems = read(text, Whose::Project).unwrap_err();
        let told = problems.to_string();
        assert!(told.contains(words), "{text}: {told}");
        assert_eq!(problems.problems[0].at.to_string(), place, "{text}: {told}");
    }
    // All of them at once.
    let problems = read("x1 = 1\ntest_command = 5\n[task]\nmax_parallel = 0", Whose::Project).unwrap_err();
    assert_eq!(problems.problems.len(), 3, "{problems}");
}

#[test]
fn t14_state_is_not_kept_where_agents_may_not_write() {
    let told = read("state_dir = '.claude/plans'", Whose::Project).unwrap_err().to_string();
    assert!(told.contains("config.toml:1:13") && told.contains("the default is .posse/state"), "{told}");
    assert!(read("[plans]\nstate_dir = '.claude/plans'", Whose::User).is_err());
}

#[test]
fn a_project_cannot_loosen_what_agents_are_held_by() {
    for (text, hint) in [
        ("[sandbox]\nenabled = false", "as `enabled` in [plans.sandbox], or with `--no-sandbox`"),
        ("[sandbox]\nstrict = false", "as `strict` in [plans.sandbox]"),
        ("[sandbox.agents]\ncoder = 'WRITE'", "as `agents` in [plans.sandbox]"),
        ("[sandbox.profiles.READ_ONLY]\ntools = ['Write']\nbash = 'full'", "as `profiles` in [plans.sandbox]"),
        ("[claude]\nbinary = './claude'", "as `binary` in [plans.claude]"),
    ] {
        let told = read(text, Whose::Project).unwrap_err().to_string();
        assert!(told.contains("agents can write it") && told.contains(hint), "{text}: {told}");
        // The same is fine from the user.
        let section = text.replacen('[', "[plans.", 1);
        assert!(read(&section, Whose::User).is_ok(), "{section}");
        let yaml = "sandbox:\n  enabled: false\n";
        assert!(Layer::read("c.yaml", yaml, Format::Yaml, Whose::Project).is_err());
    }
    // Narrowing is.
    let config = project(
        "env_strip = ['SECRET']\n[sandbox]\nenabled = true\nstrict = true\ndeny = ['Bash(curl:*)']\n[sandbox.agents]\ncoder = 'READ_ONLY'",
    );
    assert_eq!((config.env_strip.len(), config.sandbox.deny.len(), config.sandbox.agents.len()), (1, 1, 1));
}

/// Who is heard if both say something.
#[test]
fn the_project_over_the_user_unless_that_loosens_something() {
    let user = "[plans]\ntest_command = 'mine'\nenv_strip = ['A']\n[plans.task]\ntimeout = '1m'\nidle_timeout = '1m'\n\
                [plans.sandbox]\nenabled = false\ndeny = ['x']\nagents = { coder = 'DOCS', writer = 'WRITE' }\n[plans.budget]\nquota_ceiling_usd = 3";
    let theirs = "test_command = 'true'\nenv_strip = ['B', 'A']\n[task]\ntimeout = '2m'\n\
                  [sandbox]\nenabled = true\ndeny = ['y']\nagents = { coder = 'READ_ONLY', tester = 'READ_ONLY' }\n[budget]\nmax_quota_percent = 50";
    let (user, theirs) = (read(user, Whose::User).unwrap(), read(theirs, Whose::Project).unwrap());
    let Resolved { config, origins } = resolve(&user, &theirs);
    assert_eq!(config.test_command.as_deref(), Some("mine"), "a check cannot be replaced");
    assert_eq!((config.task.timeout.as_secs(), config.task.idle_timeout.as_secs()), (120, 60));
    assert!(config.sandbox.enabled, "it may be narrower");
    assert_eq!(config.sandbox.deny, ["y", "x"]);
    assert_eq!(config.env_strip, ["B", "A"]);
    let agents: Vec<String> =
        config.sandbox.agents.iter().map(|(agent, profile)| format!("{agent} {profile}")).collect();
    assert_eq!(agents, ["coder DOCS", "tester READ_ONLY", "writer WRITE"]);
    assert_eq!((config.budget.ceiling_usd, config.budget.percent), (Some(3.0), Some(50.0)));
    let origin = |path: &str| origins.iter().find(|(known, _)| *known == path).map(|(_, origin)| *origin);
    assert_eq!(origin("test_command"), Some(Origin::User));
    assert_eq!(origin("task.timeout"), Some(Origin::Project));
    assert_eq!(origin("sandbox.deny"), Some(Origin::Both));
    assert_eq!(origin("git.isolation"), Some(Origin::Default));
}

/// Each limits what is its own, and neither is a limit of single plans.
#[test]
fn windows_of_user_and_project_stand_beside_each_other() {
    let user =
        read("[plans.budget]\nquota_ceiling_usd = 100\nmax_quota_percent = 80\nwindow = '7d'", Whose::User).unwrap();
    let theirs =
        read("[budget]\nquota_ceiling_usd = 10\nreserved_budget_usd = 4\nwindow = '1d'", Whose::Project).unwrap();
    let config = resolve(&user, &theirs).config;
    let day = |days: u64| Duration::from_secs(days * 86_400);
    let windows = vec![
        Window { whose: Whose::User, window: day(7), limit_usd: 80.0 },
        Window { whose: Whose::Project, window: day(1), limit_usd: 6.0 },
    ];
    assert_eq!((config.windows, config.budget), (windows, BudgetMeta::default()));
    // A project's limit for plans, beside the user's window.
    let theirs = read("[budget]\nquota_ceiling_usd = 10", Whose::Project).unwrap();
    let config = resolve(&user, &theirs).config;
    assert_eq!((config.windows.len(), config.budget.ceiling_usd, config.budget.percent), (1, Some(10.0), None));
}

#[test]
fn the_file_of_the_original_is_read() {
    let yaml = "# old\nbuild_command: pnpm run build\ntest_command: \"pnpm test || echo ok\"\nagents_dir: .claude/agents/\n\
                dev_server_port: 3000\nlint_command:\n";
    let (layer, warnings) = Layer::read("orchestrator-config.yaml", yaml, Format::Yaml, Whose::Project).unwrap();
    let config = resolve(&Layer::default(), &layer).config;
    assert_eq!(config.build_command.as_deref(), Some("pnpm run build"));
    assert_eq!((config.lint_command, config.agents_dir.as_str()), (None, ".claude/agents"));
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("3:15: this gate cannot fail"), "{told:?}");
    assert!(told[1].starts_with("5:1: there is no `dev_server_port`; it has no effect"), "{told:?}");
    for (yaml, words) in [
        ("biuld_command: x", "did you mean `build_command`?"),
        ("test_command: 5", "1:15: `test_command` should be a command line"),
        ("- a\n", "this should be a table"),
        ("a: [1", "not valid YAML"),
    ] {
        let told = Layer::read("c.yaml", yaml, Format::Yaml, Whose::Project).unwrap_err().to_string();
        assert!(told.contains(words), "{yaml}: {told}");
    }
    assert!(Layer::read("c.yaml", "# nothing\n", Format::Yaml, Whose::Project).is_ok());
}

#[test]
fn checks_of_the_project_hold_for_every_plan() {
    let text = "meta: {gates: [{cmd: make test}, {name: more, cmd: make more}]}\nsections: [{id: s, tasks: [{id: t, name: T}]}]";
    let (plan, _) = Plan::read("p", text).unwrap();
    let gates = project("test_command = 'make test'\nbuild_command = 'make'").gates(&plan);
    let names: Vec<&str> = gates.iter().map(|gate| gate.name.as_str()).collect();
    assert_eq!(names, ["build", "test", "more"], "the same command is run once");
}

#[test]
fn t51_a_gate_that_cannot_fail_is_warned_of() {
    let text = "test_command = 'pytest || echo ok'";
    let (_, warnings) = Layer::read("config.toml", text, Format::Toml, Whose::Project).unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].to_string().starts_with("1:16: this gate cannot fail"), "{}", warnings[0]);
}

#[test]
fn what_changed_is_told() {
    let (was, is) = (project("test_command = 'make test'"), project("test_command = 'true'\n[task]\ntimeout = '1h'"));
    let told: Vec<String> =
        was.differences(&is).into_iter().map(|(name, was, is)| format!("{name}: {was} -> {is}")).collect();
    assert_eq!(told, ["task.timeout: 15m -> 1h", "test_command: \"make test\" -> \"true\""]);
    assert!(was.differences(&was.clone()).is_empty());
}

/// It is kept in journals.
#[test]
fn it_survives_being_written_down() {
    let user = format!("[plans]\n{}", every_key().replace("\n[", "\n[plans."));
    let config = resolve(&read(&user, Whose::User).unwrap(), &Layer::default()).config;
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config);
    assert_eq!(serde_json::from_str::<Config>("{}").unwrap(), Config::default(), "journals from before");
}

#[test]
fn rows_show_every_key_and_who_says_it() {
    let text = "[budget]\nquota_ceiling_usd = 5\nwindow = '7d'\n[sandbox.agents]\ncoder = 'READ_ONLY'\n";
    let rows = resolve(&Layer::default(), &read(text, Whose::Project).unwrap()).rows();
    let row = |path: &str| rows.iter().find(|(known, ..)| *known == path).map(|(_, text, _)| text.as_str());
    assert_eq!(row("budget.window"), Some("5.00 USD in 7d for this project"));
    assert_eq!(row("sandbox.agents"), Some("coder = \"READ_ONLY\""));
    assert_eq!(row("task.timeout"), Some("15m"));
    assert_eq!(row("test_command"), Some("unset"));
    assert_eq!(rows.len(), KEYS.len());
}

#[test]
fn every_key_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    for key in KEYS {
        let named = format!("`{}`", key.path);
        assert!(rows.iter().any(|row| row.contains(&named)), "{} is not in docs/configuration.md", key.path);
    }
}

proptest::proptest! {
    /// Whatever is in a file, it is read or its mistakes are told, each at a place that is there.
    #[test]
    fn no_file_is_too_odd(from in 0_usize..4000, to in 0_usize..4000, put in ".{0,12}") {
        let text = every_key();
        let cut = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (from, to) = (cut(from.min(to)), cut(from.max(to)));
        let odd = format!("{}{put}{}", &text[..from], &text[to..]);
        for format in [Format::Toml, Format::Yaml] {
            for whose in [Whose::Project, Whose::User] {
                match Layer::read("odd", &odd, format, whose) {
                    Ok((layer, _)) => drop(resolve(&Layer::default(), &layer)),
                    Err(problems) => {
                        for problem in &problems.problems {
                            assert!(problem.at.start <= odd.len() && problem.at.line > 0, "{problem}");
                        }
                    }
                }
            }
        }
    }
}
