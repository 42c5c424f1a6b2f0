use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::config::{ConfigError, ConfigFormat, KEYS, LayerSource, check_reference, project_template, user_template};
use crate::file_problem::{FileProblem, FileProblems};

use LayerSource::{Project, User};

fn parsed(
    text: &str,
    source: LayerSource,
    format: ConfigFormat,
) -> Result<(ConfigLayer, Vec<FileProblem>), FileProblems> {
    let file = if format == ConfigFormat::Yaml { "c.yaml" } else { "config.toml" };
    ConfigLayer::read(source, format, file, text, None)
}

fn read(text: &str, source: LayerSource) -> Result<ConfigLayer, FileProblems> {
    parsed(text, source, ConfigFormat::Toml).map(|(layer, _)| layer)
}

fn resolve(user: &ConfigLayer, project: &ConfigLayer) -> ResolvedPlans {
    ResolvedPlans::new(user.clone(), project.clone(), &[])
}

fn empty(source: LayerSource) -> ConfigLayer {
    ConfigLayer::empty(source)
}

fn project(text: &str) -> PlanConfig {
    resolve(&empty(User), &read(text, Project).unwrap()).config
}

/// Returns the template with every key set.
fn every_key() -> String {
    let bare = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    project_template().lines().map(bare).collect()
}

fn every_key_of_the_user() -> String {
    format!("[plans]\n{}", every_key().replace("\n[", "\n[plans."))
}

#[test]
fn templates_set_nothing_and_show_every_key() {
    assert_eq!(project(&project_template()), PlanConfig::default());
    assert_eq!(read(&user_template(), User).unwrap(), empty(User));
    let resolved = resolve(&read(&every_key_of_the_user(), User).unwrap(), &empty(Project));
    // A window takes the budget with it.
    let unset: Vec<&str> = resolved
        .settings
        .iter()
        .filter(|setting| !matches!(setting.origin, ValueOrigin::User(_)) && !setting.key.contains(".budget."))
        .map(|setting| setting.key)
        .collect();
    assert_eq!(unset, [""; 0]);
    let config = PlanConfig {
        build_command: None,
        test_command: None,
        lint_command: None,
        e2e_command: None,
        claude: ClaudeSettings::default(),
        sandbox: PlanConfig::default().sandbox,
        pipeline: PipelineSettings { safety_scan_seconds: None, ..resolved.config.pipeline },
        ..resolved.config
    };
    assert_eq!(config, PlanConfig::default(), "the template shows the defaults");
    let paths: BTreeSet<&str> = KEYS.iter().map(|key| key.path).collect();
    assert_eq!(paths.len(), KEYS.len(), "a key is declared twice");
    let user_file: String = user_template()
        .lines()
        .map(|line| format!("{}\n", line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line)))
        .collect();
    let user = read(&user_file, User).unwrap();
    for key in KEYS.iter().filter(|key| key.user && key.plan_name().is_none()) {
        assert_eq!(
            user.get(key.path),
            Some(&crate::config::resolve(&[], |known| known.path == key.path)[0].value),
            "{}",
            key.path
        );
    }
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
    let task =
        SessionLimits { timeout: Duration::from_secs(3600), idle_timeout: Duration::from_secs(30), max_parallel: 2 };
    assert_eq!(config.task, task);
    assert_eq!(config.git.isolation, Isolation::InPlace);
    assert_eq!(config.budget.ceiling_usd, Some(5.0));
    assert_eq!((config.model("sonnet"), config.model("opus")), ("claude-sonnet-5", "opus"));
    assert_eq!(config.sandbox.agents["coder"], "read_only");
    assert_eq!((config.breaker.max_trips, config.breaker.threshold), (1, 3));
}

/// Text, position, problem and hint.
#[test]
fn mistakes_are_named_with_their_place() {
    for (text, place, words) in [
        ("buidl_command = 'x'", "1:1", "there is no `buidl_command` (did you mean `build_command`?)"),
        ("[task]\ntimeuot = 5", "2:1", "did you mean `task.timeout`?"),
        ("[tsak]\ntimeout = 5", "1:2", "did you mean `task`?"),
        ("timeout = 5", "1:1", "did you mean `task.timeout`?"),
        ("colour = 'red'", "1:1", "`posse plan config --default` shows all keys"),
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
        ("[git]\nisolation = 'inplace'", "2:13", "one of worktree, in_place"),
        ("[git]\ncommit_plan = true", "2:1", "the plan's file is written and left to you"),
        ("[notify]\ncommand = 'rm -rf /'", "1:2", "`[notifications]` in your own config.toml"),
        ("state_dir = '.claude/state'", "1:13", "must not be under .claude/"),
        ("state_dir = './.claude'", "1:13", "must not be under .claude/"),
        ("state_dir = '../elsewhere'", "1:13", "below the project"),
        ("plans_dir = '/tmp/plans'", "1:13", "below the project"),
        ("a = \"open", "1:10", "not valid TOML"),
        ("test_command = 'a'\ntest_command = 'b'", "2:1", "not valid TOML: duplicate key"),
    ] {
        let problems = read(text, Project).unwrap_err();
        let told = problems.to_string();
        assert!(told.contains(words), "{text}: {told}");
        assert_eq!(problems.problems[0].at.to_string(), place, "{text}: {told}");
    }
    // All problems at once.
    let problems = read("x1 = 1\ntest_command = 5\n[task]\nmax_parallel = 0", Project).unwrap_err();
    assert_eq!(problems.problems.len(), 3, "{problems}");
}

#[test]
fn t14_state_is_not_kept_where_agents_may_not_write() {
    let told = read("state_dir = '.claude/plans'", Project).unwrap_err().to_string();
    assert!(told.contains("config.toml:1:13") && told.contains("the default is .posse/state"), "{told}");
    assert!(read("[plans]\nstate_dir = '.claude/plans'", User).is_err());
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
        let told = read(text, Project).unwrap_err().to_string();
        assert!(told.contains("agents can write it") && told.contains(hint), "{text}: {told}");
        // The user may set the same.
        let section = text.replacen('[', "[plans.", 1);
        assert!(read(&section, User).is_ok(), "{section}");
        let yaml = "sandbox:\n  enabled: false\n";
        assert!(parsed(yaml, Project, ConfigFormat::Yaml).is_err());
    }
    // A project may narrow it.
    let config = project(
        "env_strip = ['SECRET']\n[sandbox]\nenabled = true\nstrict = true\ndeny = ['Bash(curl:*)']\n[sandbox.agents]\ncoder = 'READ_ONLY'",
    );
    assert_eq!((config.env_strip.len(), config.sandbox.deny.len(), config.sandbox.agents.len()), (1, 1, 1));
}

/// Precedence between the user and the project.
#[test]
fn the_project_over_the_user_unless_that_loosens_something() {
    let user = "[plans]\ntest_command = 'mine'\nenv_strip = ['A']\n[plans.task]\ntimeout = '1m'\nidle_timeout = '1m'\n\
                [plans.sandbox]\nenabled = false\ndeny = ['x']\nagents = { coder = 'DOCS', writer = 'WRITE' }\n[plans.budget]\nquota_ceiling_usd = 3";
    let theirs = "test_command = 'true'\nenv_strip = ['B', 'A']\n[task]\ntimeout = '2m'\n\
                  [sandbox]\nenabled = true\ndeny = ['y']\nagents = { coder = 'READ_ONLY', tester = 'READ_ONLY' }\n[budget]\nmax_quota_percent = 50";
    let (user, theirs) = (read(user, User).unwrap(), read(theirs, Project).unwrap());
    let resolved = resolve(&user, &theirs);
    let config = &resolved.config;
    assert_eq!(config.test_command.as_deref(), Some("mine"), "a check cannot be replaced");
    assert_eq!((config.task.timeout.as_secs(), config.task.idle_timeout.as_secs()), (120, 60));
    assert!(config.sandbox.enabled, "it may be narrower");
    assert_eq!(config.sandbox.deny, ["y", "x"]);
    assert_eq!(config.env_strip, ["B", "A"]);
    let agents: Vec<String> =
        config.sandbox.agents.iter().map(|(agent, profile)| format!("{agent} {profile}")).collect();
    assert_eq!(agents, ["coder DOCS", "tester READ_ONLY", "writer WRITE"]);
    assert_eq!((config.budget.ceiling_usd, config.budget.percent), (Some(3.0), Some(50.0)));
    assert_eq!(*resolved.origin("test_command"), ValueOrigin::User(2));
    assert_eq!(*resolved.origin("task.timeout"), ValueOrigin::Project(4));
    assert_eq!(*resolved.origin("sandbox.deny"), ValueOrigin::UserAndProject);
    assert_eq!(*resolved.origin("git.isolation"), ValueOrigin::Default);
}

/// Each window limits its owner's sessions, and neither limits single plans.
#[test]
fn windows_of_user_and_project_stand_beside_each_other() {
    let user = read("[plans.budget]\nquota_ceiling_usd = 100\nmax_quota_percent = 80\nwindow = '7d'", User).unwrap();
    let theirs = read("[budget]\nquota_ceiling_usd = 10\nreserved_budget_usd = 4\nwindow = '1d'", Project).unwrap();
    let config = resolve(&user, &theirs).config;
    let day = |days: u64| Duration::from_secs(days * 86_400);
    let windows = vec![
        BudgetWindow { whose: WindowOwner::User, window: day(7), limit_usd: 80.0 },
        BudgetWindow { whose: WindowOwner::Project, window: day(1), limit_usd: 6.0 },
    ];
    assert_eq!((config.windows, config.budget), (windows, BudgetMeta::default()));
    // A project's limit for plans, beside the user's window.
    let theirs = read("[budget]\nquota_ceiling_usd = 10", Project).unwrap();
    let config = resolve(&user, &theirs).config;
    assert_eq!((config.windows.len(), config.budget.ceiling_usd, config.budget.percent), (1, Some(10.0), None));
}

#[test]
fn the_file_of_the_original_is_read() {
    let yaml = "# old\nbuild_command: pnpm run build\ntest_command: \"pnpm test || echo ok\"\nagents_dir: .claude/agents/\n\
                dev_server_port: 3000\nlint_command:\n";
    let (layer, warnings) = parsed(yaml, Project, ConfigFormat::Yaml).unwrap();
    let config = resolve(&empty(User), &layer).config;
    assert_eq!(config.build_command.as_deref(), Some("pnpm run build"));
    assert_eq!((config.lint_command, config.agents_dir.as_str()), (None, ".claude/agents"));
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("3:15: this gate cannot fail"), "{told:?}");
    assert!(told[1].starts_with("5:1: there is no `dev_server_port`; it has no effect"), "{told:?}");
    for (yaml, words) in [
        ("biuld_command: x", "did you mean `build_command`?"),
        ("test_command: 5", "1:15: `test_command` should be a command line"),
        ("- a\n", "the file should be a table"),
        ("a: [1", "not valid YAML"),
    ] {
        let told = parsed(yaml, Project, ConfigFormat::Yaml).unwrap_err().to_string();
        assert!(told.contains(words), "{yaml}: {told}");
    }
    assert!(parsed("# nothing\n", Project, ConfigFormat::Yaml).is_ok());
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
fn what_changed_is_told() {
    let (was, is) = (project("test_command = 'make test'"), project("test_command = 'true'\n[task]\ntimeout = '1h'"));
    let told: Vec<String> =
        was.differences(&is).into_iter().map(|(name, was, is)| format!("{name}: {was} -> {is}")).collect();
    assert_eq!(told, ["task.timeout: 15m -> 1h", "test_command: \"make test\" -> \"true\""]);
    assert!(was.differences(&was.clone()).is_empty());
}

/// Journals keep the configuration.
#[test]
fn it_survives_being_written_down() {
    let config = resolve(&read(&every_key_of_the_user(), User).unwrap(), &empty(Project)).config;
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<PlanConfig>(&text).unwrap(), config);
}

#[test]
fn settings_show_every_key_and_its_origin() {
    let text = "[budget]\nquota_ceiling_usd = 5\nwindow = '7d'\n[sandbox.agents]\ncoder = 'READ_ONLY'\n";
    let resolved = resolve(&empty(User), &read(text, Project).unwrap());
    let shown = |name: &str| {
        let setting = resolved.settings.iter().find(|setting| setting.key == format!("plans.{name}")).unwrap();
        (shown_value(&setting.value), setting.origin.clone())
    };
    assert_eq!(shown("budget.window"), ("\"5.00 USD in 7d for this project\"".into(), ValueOrigin::Project(3)));
    assert_eq!(shown("sandbox.agents"), ("coder = \"READ_ONLY\"".into(), ValueOrigin::Project(4)));
    assert_eq!(shown("task.timeout"), ("15m".into(), ValueOrigin::Default));
    assert_eq!(shown("test_command"), ("unset".into(), ValueOrigin::Default));
    assert_eq!(resolved.settings.len(), KEYS.iter().filter(|key| key.plan_name().is_some()).count());
}

/// T04, and the precedence of option, variables and files.
#[test]
fn t04_the_sandbox_is_off_only_if_that_is_plain() {
    let off = read("[plans.sandbox]\nenabled = false", User).unwrap();
    let switch = |user: &ConfigLayer, variables: &[(&str, &str)], option: bool| {
        let look =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let environment = ConfigLayer::environment(&look, None, |key| key.plan_name().is_some())?;
        let warned = !environment.warnings.is_empty();
        let given: &[(&str, &str)] = if option { &[("plans.sandbox.enabled", "false")] } else { &[] };
        let above = [environment, ConfigLayer::flags(given)?];
        let enabled = ResolvedPlans::new(user.clone(), empty(Project), &above).config.sandbox.enabled;
        Ok::<_, ConfigError>((enabled, warned))
    };
    let (ours, legacy) = ("POSSE_SANDBOX", "ORCHESTRATOR_SANDBOX_ENABLED");
    for (user, variables, option, expected) in [
        (&empty(User), &[][..], false, (true, false)),
        (&empty(User), &[(legacy, "FALSE")], false, (false, false)),
        (&empty(User), &[(legacy, "false")], false, (false, false)),
        (&empty(User), &[(legacy, "true")], false, (true, false)),
        (&empty(User), &[(legacy, "0")], false, (true, true)),
        (&empty(User), &[(legacy, "x")], false, (true, true)),
        (&empty(User), &[(ours, "off")], false, (false, false)),
        (&empty(User), &[(ours, "0")], false, (false, false)),
        (&empty(User), &[(ours, " ON ")], false, (true, false)),
        (&empty(User), &[(ours, "")], false, (true, false)),
        (&off, &[], false, (false, false)),
        (&off, &[(ours, "on")], false, (true, false)),
        (&off, &[(legacy, "true")], false, (true, false)),
        (&off, &[(legacy, "")], false, (true, false)),
        (&empty(User), &[(ours, "on"), (legacy, "false")], false, (true, false)),
        (&empty(User), &[(ours, "on")], true, (false, false)),
    ] {
        assert_eq!(switch(user, variables, option), Ok(expected), "{variables:?} {option}");
    }
    let error = switch(&off, &[(ours, "maybe")], false).unwrap_err().to_string();
    assert!(error.starts_with("the variable POSSE_SANDBOX should be a boolean (true, yes, on, 1, "), "{error}");
    assert!(error.ends_with("this is \"maybe\""), "{error}");
}

#[test]
fn every_key_is_documented() {
    let rows = KEYS.iter().filter(|key| key.plan_name().is_some()).map(|key| format!("{}\n", key.plan_row()));
    let rows: String = rows.collect();
    let generated = format!(
        "## config.toml\n\n```toml\n{}```\n\n## .posse/config.toml\n\n| key | default | meaning |\n|---|---|---|\n{rows}",
        user_template()
    );
    check_reference("configuration.md", &generated);
}

proptest::proptest! {
    /// Any file is either read or reported, with valid positions.
    #[test]
    fn no_file_is_too_odd(from in 0_usize..4000, to in 0_usize..4000, put in ".{0,12}") {
        let text = every_key();
        let cut = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (from, to) = (cut(from.min(to)), cut(from.max(to)));
        let odd = format!("{}{put}{}", &text[..from], &text[to..]);
        for format in [ConfigFormat::Toml, ConfigFormat::Yaml, ConfigFormat::Json] {
            for source in [Project, User, LayerSource::RunFile] {
                match ConfigLayer::read(source, format, "odd", &odd, None) {
                    Ok((layer, _)) => drop(resolve(&empty(User), &layer)),
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
