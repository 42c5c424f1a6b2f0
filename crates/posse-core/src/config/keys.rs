//! The declaration of every configuration key.

use std::sync::LazyLock;

use super::kind::ValueKind;
use super::kind::ValueKind::{
    Amount, Anchor, Arguments, Bool, Clamped, Command, Directory, Duration, Name, OneOf, OptIn, OptionalText,
    ProfileOfAgent, Profiles, Provider, StateDirectory, Text, Whole, Words,
};
use super::layer::LayerSource;
use crate::review_loop::Role;

/// A configuration key: its name, type, default and sources, and the rule for projects.
#[derive(Debug)]
pub struct ConfigKey {
    /// The full name, as `posse config show` prints it and as config.toml has it: `plans.task.timeout`.
    pub path: &'static str,
    pub kind: ValueKind,
    /// A TOML literal. Empty: the key has no value unless one is set.
    pub default: &'static str,
    /// The name in the JSON file of a loop run.
    pub run: Option<&'static str>,
    /// Whether config.toml may set the key.
    pub user: bool,
    pub variable: KeyVariable,
    /// The command line option that overrides every other source.
    pub flag: Option<&'static str>,
    pub project: ProjectRule,
    pub combine: Combine,
    pub about: &'static str,
}

/// The environment variables that set a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyVariable {
    None,
    /// `POSSE_X`, else `X`: the names of the specification.
    Bare(&'static str),
    /// `POSSE_SANDBOX`, else `ORCHESTRATOR_SANDBOX_ENABLED`, which is off only if it is `false`.
    Sandbox,
    /// `POSSE_X` only. It overrides the plan's own value, so the command reads it like its option.
    Option(&'static str),
}

/// The rule for a key in a project's file. Agents can write that file, so it may only narrow the permissions of
/// sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectRule {
    Any,
    /// Never: the key selects a program or the permissions of sessions.
    Never,
    OnlyTrue,
    /// Only the narrowest permission profile.
    OnlyNarrowest,
}

/// The rule if both the user and the project set the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    Project,
    /// The user's value: a project cannot replace a user's check.
    User,
    /// Lists and tables: all entries of both. Of two entries with one name, the user's.
    Union,
}

impl ConfigKey {
    /// Returns the name of the key in files of this source, if they may contain it.
    pub fn name_in(&self, source: LayerSource) -> Option<&'static str> {
        match source {
            LayerSource::User => self.user.then_some(self.path),
            LayerSource::Project => self.plan_name(),
            LayerSource::RunFile => self.run,
            LayerSource::Environment | LayerSource::Flags => Some(self.path),
        }
    }

    /// Returns the name of a plan key in a project's file.
    pub fn plan_name(&self) -> Option<&'static str> {
        self.path.strip_prefix("plans.")
    }

    /// Returns every variable that sets the key, in the order of precedence.
    pub fn variables(&self) -> Vec<String> {
        match self.variable {
            KeyVariable::None => Vec::new(),
            KeyVariable::Bare(name) => vec![format!("POSSE_{name}"), name.to_owned()],
            KeyVariable::Sandbox => vec![SANDBOX.to_owned(), LEGACY_SANDBOX.to_owned()],
            KeyVariable::Option(name) => vec![format!("POSSE_{name}")],
        }
    }

    const fn flag(self, flag: &'static str) -> Self {
        Self { flag: Some(flag), ..self }
    }

    const fn variable(self, variable: KeyVariable) -> Self {
        Self { variable, ..self }
    }

    const fn project(self, project: ProjectRule) -> Self {
        Self { project, ..self }
    }

    const fn combine(self, combine: Combine) -> Self {
        Self { combine, ..self }
    }

    const fn in_user_file(self) -> Self {
        Self { user: true, ..self }
    }
}

/// The boolean variable that turns the sandbox on or off.
pub const SANDBOX: &str = "POSSE_SANDBOX";
/// The variable of the original tool, with its meaning there: anything but `false` means on.
pub const LEGACY_SANDBOX: &str = "ORCHESTRATOR_SANDBOX_ENABLED";
/// The key that accepts permission prompts.
pub const AUTO_ACCEPT: &str = "permissions.auto_accept";
/// The permission modes of an agent.
pub const MODES: [&str; 3] = ["ask", "edits", "bypass"];
const ROLES: [&str; 5] = ["analyst", "peer_analyst", "programmer", "peer_programmer", "tester"];

const fn key(path: &'static str, kind: ValueKind, default: &'static str, about: &'static str) -> ConfigKey {
    ConfigKey {
        path,
        kind,
        default,
        run: None,
        user: false,
        variable: KeyVariable::None,
        flag: None,
        project: ProjectRule::Never,
        combine: Combine::Project,
        about,
    }
}

/// Declares a key of config.toml.
const fn user(path: &'static str, kind: ValueKind, default: &'static str, about: &'static str) -> ConfigKey {
    key(path, kind, default, about).in_user_file()
}

/// Declares a key of loop runs. `run` is its name in the JSON file; `KEYS` completes its path.
const fn run(
    run: &'static str,
    variable: &'static str,
    kind: ValueKind,
    default: &'static str,
    about: &'static str,
) -> ConfigKey {
    let key = key(run, kind, default, about);
    // A variable called MODE or MODEL may belong to another program, and no variable may name a program to run.
    let variable = if variable.is_empty() { KeyVariable::None } else { KeyVariable::Bare(variable) };
    ConfigKey { run: Some(run), variable, ..key }
}

/// Declares a key of plans, in a project's file and under `[plans]` of config.toml. `KEYS` completes its path.
const fn plan(path: &'static str, kind: ValueKind, default: &'static str, about: &'static str) -> ConfigKey {
    key(path, kind, default, about).in_user_file().project(ProjectRule::Any)
}

pub(crate) const LONG: ValueKind = Duration { zero: false };
const LONG_OR_NONE: ValueKind = Duration { zero: true };
pub(crate) const POSITIVE: ValueKind = from(1);
pub(crate) const NUMBER: ValueKind = from(0);

const fn from(min: u32) -> ValueKind {
    Whole { min, max: u32::MAX }
}

/// All keys, in the order in which they are shown.
pub static KEYS: LazyLock<Vec<ConfigKey>> = LazyLock::new(|| {
    let below = |section: &str, name: &str| -> &'static str { format!("{section}.{name}").leak() };
    let mut keys: Vec<ConfigKey> = USER_KEYS.into();
    keys.extend(RUN_KEYS.into_iter().map(|key| match key.path {
        "handoff.auto_accept_permissions" => ConfigKey { path: AUTO_ACCEPT, ..key },
        name if name.starts_with("notifications.") => key,
        name => ConfigKey { path: below("loop", name), ..key },
    }));
    for role in Role::ALL {
        for (name, kind, about) in AGENT_KEYS {
            let path = below("loop.agents", &format!("{role}.{name}"));
            keys.push(ConfigKey { run: path.strip_prefix("loop."), ..key(path, kind, "", about) });
        }
    }
    keys.extend(PLAN_KEYS.into_iter().map(|key| ConfigKey { path: below("plans", key.path), ..key }));
    keys
});

/// The keys of each role, below `loop.agents.ROLE`. A key without a value uses that of all roles.
pub const AGENT_KEYS: [(&str, ValueKind, &str); 4] = [
    ("provider", Provider, "the agent of this role"),
    ("profile", Text, "the profile of this role"),
    ("mode", OneOf(&MODES), "how the agent of this role is started"),
    ("model", OptionalText, "the model of this role"),
];

const USER_KEYS: [ConfigKey; 2] = [
    user(
        "permissions.answers_from_terminals",
        Bool,
        "false",
        "let processes in posse's terminals, agents included, answer what agents ask",
    ),
    user(
        "audit.anchor",
        Anchor,
        r#""""#,
        r#"where the end of the audit is also recorded, so that a rewritten audit is detected: the path of a file, "syslog", or a program and its arguments, such as ["logger", "-t", "posse"], which gets it on standard input; "": nowhere"#,
    ),
];

#[rustfmt::skip]
const RUN_KEYS: [ConfigKey; 38] = [
    run("provider", "PROVIDER", Provider, r#""codex""#,
        "the agent of every role that names none; `posse provider list` shows them").in_user_file(),
    run("mode", "", OneOf(&MODES), r#""edits""#,
        "how agents are started: `ask` (they ask before they change anything), `edits` (edits in the project are \
         free, commands ask), `bypass` (they never ask)").in_user_file(),
    run("model", "", OptionalText, "", "the model of every role that names none; without one the agent decides"),
    run("wd", "WD", OptionalText, "", "the project; without one the current directory").flag("--directory"),
    run("prompt", "PROMPT", Text, r#""""#, "the prompt itself"),
    run("prompt_file", "PROMPT_FILE", OptionalText, "",
        "the file with the prompt; wins over `prompt`").flag("--prompt-file"),
    run("project_test_cmd", "PROJECT_TEST_CMD", Text, r#""""#,
        "the project's test command, for the programmer and its reviewer; without it they look in AGENTS.md"),
    run("start_agent", "START_AGENT", OneOf(&ROLES), r#""analyst""#,
        "the role that begins; those before it are skipped"),
    run("cleanup_on_exit", "CLEANUP_ON_EXIT", Bool, "false", "end the agents when the run ends; otherwise they stay"),
    run("resume", "RESUME", Bool, "false",
        "resume the run of the state file; without one that is an error").flag("--resume"),
    run("state_file", "STATE_FILE", OptionalText, "",
        "the state file, relative to the project; without one `.tmp/agnostic-3agents-loop-state.json`"),
    run("api", "API", Text, r#""http://localhost:9889""#, "kept for the state file; posse does not connect to it"),
    run("limits.max_rounds", "MAX_ROUNDS", POSITIVE, "8", "rounds until the run is a FAIL; from 1"),
    run("limits.max_review_cycles", "MAX_REVIEW_CYCLES", POSITIVE, "3",
        "reviews in a phase before the next one begins without approval; from 1"),
    run("limits.min_review_cycles_before_approval", "MIN_REVIEW_CYCLES_BEFORE_APPROVAL", POSITIVE, "2",
        "an approval before this cycle is held back; from 1"),
    run("limits.poll_seconds", "POLL_SECONDS", NUMBER, "2",
        "accepted for older files; nothing is polled, so it has no effect; from 0"),
    run("limits.require_review_evidence", "REQUIRE_REVIEW_EVIDENCE", Bool, "true",
        "an approval must show what was checked"),
    run("limits.review_evidence_min_match", "REVIEW_EVIDENCE_MIN_MATCH", Whole { min: 0, max: 4 }, "3",
        "how many of the four kinds of evidence it must show; 0 to 4"),
    run("condensation.condense_cross_phase", "CONDENSE_CROSS_PHASE", Bool, "true",
        "hand on only the sections the next role needs"),
    run("condensation.max_cross_phase_lines", "MAX_CROSS_PHASE_LINES", POSITIVE, "40", "lines of those; from 1"),
    run("condensation.condense_upstream_on_repeat", "CONDENSE_UPSTREAM_ON_REPEAT", Bool, "true",
        "refer to the analyst's handoff when the programmer has it already"),
    run("condensation.condense_explore_on_repeat", "CONDENSE_EXPLORE_ON_REPEAT", Bool, "true",
        "refer to the task when an agent has it already"),
    run("condensation.condense_review_feedback", "CONDENSE_REVIEW_FEEDBACK", Bool, "true",
        "hand on only the notes of a review and the evidence of a test"),
    run("condensation.max_feedback_lines", "MAX_FEEDBACK_LINES", POSITIVE, "30", "lines of a review; from 1"),
    run("condensation.max_test_evidence_lines", "MAX_TEST_EVIDENCE_LINES", POSITIVE, "120", "lines of a test; from 1"),
    run("handoff.strict_file_handoff", "STRICT_FILE_HANDOFF", Bool, "true",
        "an answer counts only in its file; otherwise the agent's last message will do"),
    run("handoff.idle_grace_seconds", "IDLE_GRACE_SECONDS", NUMBER, "30",
        "seconds an agent may be idle without its file; from 0"),
    run("handoff.response_timeout", "RESPONSE_TIMEOUT", POSITIVE, "1800", "seconds a turn may take; from 1"),
    run("handoff.max_file_reminders", "MAX_FILE_REMINDERS", Clamped, "0",
        "how often an agent is reminded of its file before the turn fails; less than 0 is 0"),
    run("handoff.auto_accept_permissions", "AUTO_ACCEPT_PERMISSIONS", OptIn, "false",
        "accept permission prompts of loop runs; every answer is audited").in_user_file(),
    run("handoff.waiting_timeout", "WAITING_TIMEOUT", NUMBER, "600",
        "seconds an unanswered question may hold up a turn; 0: as long as the turn may take"),
    run("notifications.ntfy_topic", "NTFY_TOPIC", Text, r#""""#,
        "topic on the ntfy server; anyone who knows its name can read it; without one no message is sent").in_user_file(),
    run("notifications.ntfy_url", "NTFY_URL", Text, r#""https://ntfy.sh""#, "the ntfy server").in_user_file(),
    run("notifications.webhook", "WEBHOOK", Text, r#""""#,
        "the address to which a JSON object is posted for each event").in_user_file(),
    run("notifications.command", "", Arguments, "[]",
        "a program and its arguments, run for each event without a shell, such as [\"notify-send\", \"posse\"]").in_user_file(),
    run("post_processing.openspec_archive", "POST_OPENSPEC_ARCHIVE", Bool, "false",
        "after a PASS, archive the OpenSpec change"),
    run("post_processing.git_commit", "POST_GIT_COMMIT", Bool, "false", "after a PASS, commit"),
    run("post_processing.git_commit_comment", "POST_GIT_COMMIT_COMMENT", Text, r#""""#,
        "the message of that commit; without one posse writes it"),
];

#[rustfmt::skip]
const PLAN_KEYS: [ConfigKey; 44] = [
    plan("build_command", Command, "",
        "a check that posse runs after every task in its work area; the exit status decides. The checks are run in \
         the order build, lint, test, e2e. What fails before the work begins does not count").combine(Combine::User),
    plan("lint_command", Command, "", "as `build_command`").combine(Combine::User),
    plan("test_command", Command, "", "as `build_command`").combine(Combine::User),
    plan("e2e_command", Command, "", "as `build_command`").combine(Combine::User),
    plan("agents_dir", Directory, r#"".claude/agents""#, "the project's agents, one `NAME.md` each"),
    plan("plans_dir", Directory, r#"".posse/plans""#, "where `posse auto` puts plans"),
    plan("design_dir", Directory, r#""docs/plans""#, "where `posse auto` puts design documents"),
    plan("state_dir", StateDirectory, r#"".posse/state""#,
        "where the stop file is looked for, and nothing else: runs keep their state in posse's own home. Not under \
         `.claude/`, which Claude Code guards").flag("--state"),
    plan("env_strip", Words, "[]",
        "variables that sessions do not get, besides those that would confuse their tool (`CLAUDECODE`, …)").combine(Combine::Union),
    plan("claude.binary", Name, "",
        "the program; without one `claude`, as found in your PATH").project(ProjectRule::Never).combine(Combine::Union),
    plan("claude.models.haiku", Name, "", "the model that `haiku` stands for"),
    plan("claude.models.sonnet", Name, "", "the model that `sonnet` stands for"),
    plan("claude.models.opus", Name, "", "the model that `opus` stands for"),
    plan("sandbox.enabled", Bool, "true",
        "whether sessions are confined").project(ProjectRule::OnlyTrue).variable(KeyVariable::Sandbox).flag("--no-sandbox"),
    plan("sandbox.strict", Bool, "true",
        "whether they are confined as tightly as possible; off: only with the flags without which nothing works").project(ProjectRule::OnlyTrue),
    plan("sandbox.profiles", Profiles, "",
        "permission profiles of your own, each with `tools` and `bash` (`none`, `read_only`, `full`, or a list of \
         rules)").project(ProjectRule::Never).combine(Combine::Union),
    plan("sandbox.agents", ProfileOfAgent, "",
        "the permission profile of an agent; a project may give `READ_ONLY` only, and an agent that you have given \
         one keeps it").project(ProjectRule::OnlyNarrowest).combine(Combine::Union),
    plan("sandbox.deny", Words, "[]",
        "rules that no session gets around, besides pushing and sudo").combine(Combine::Union),
    plan("task.timeout", LONG, r#""15m""#, "how long a session may take, if neither the task nor its plan says"),
    plan("task.idle_timeout", LONG, r#""10m""#, "a session that is silent for so long is ended"),
    plan("task.max_parallel", POSITIVE, "4",
        "sessions at once, where a plan may run in parallel and does not say how many").flag("--parallel"),
    plan("breaker.threshold", POSITIVE, "3", "after so many failures in a row nothing is started for a while"),
    plan("breaker.reset", LONG, r#""5m""#, "for how long"),
    plan("breaker.max_trips", POSITIVE, "2", "at this trip of the breaker the run ends"),
    plan("rate_limit.buffer", LONG_OR_NONE, r#""30s""#, "how long after the reset of a used-up quota to resume"),
    plan("rate_limit.max_wait", LONG, r#""8d""#, "the longest wait for a quota"),
    plan("rate_limit.probe", LONG, r#""5m""#, "the first retry if the time of the reset is not known"),
    plan("git.isolation", OneOf(&["worktree", "in_place"]), r#""worktree""#,
        "`worktree`: a work tree for each task; `in_place`: your checkout, one task after the other"),
    plan("git.keep_failed", LONG_OR_NONE, r#""7d""#, "how long work that was not merged is kept"),
    plan("budget.quota_ceiling_usd", Amount, "",
        "US dollars that a plan may spend if it says nothing itself, as the tools estimate them at API prices; 0 is \
         no limit").variable(KeyVariable::Option("QUOTA_CEILING")).flag("--quota-ceiling"),
    plan("budget.max_quota_percent", Amount, "",
        "the share of the ceiling that may be spent").variable(KeyVariable::Option("MAX_BUDGET_PCT")).flag("--max-budget-pct"),
    plan("budget.reserved_budget_usd", Amount, "",
        "US dollars of the ceiling that must stay").variable(KeyVariable::Option("RESERVED_BUDGET")).flag("--reserved-budget"),
    plan("budget.window", LONG, "",
        "with it the budget is one for the whole project (in config.toml: for all projects) within this time"),
    plan("backlog.defects", Directory, r#""docs/defect-backlog""#, "where `posse auto` finds defects"),
    plan("backlog.features", Directory, r#""docs/feature-backlog""#, "where `posse auto` finds features"),
    plan("backlog.completed", Directory, r#""docs/completed-backlog""#, "where completed items go"),
    plan("backlog.failed", Directory, r#""docs/failed-backlog""#, "where failed items go"),
    plan("pipeline.max_parallel_items", POSITIVE, "1", "items at once; more than one needs work trees"),
    plan("pipeline.max_verification_cycles", POSITIVE, "3", "how often an item is verified"),
    plan("pipeline.max_item_attempts", POSITIVE, "2", "how often an item is tried"),
    plan("pipeline.safety_scan_seconds", POSITIVE, "",
        "how often the backlog is read although the kernel reports no change; without a value every 60 s, and only \
         where the kernel cannot report changes"),
    plan("pipeline.plan_timeout", LONG, r#""10m""#, "how long a planner may take"),
    plan("limits.max_item_starts_per_hour", POSITIVE, "6", "if an item is started more often, `posse auto` stops"),
    plan("limits.items_per_hour", POSITIVE, "30", "if more items are started, `posse auto` stops"),
];

/// Names from files of other tools, and their replacement.
pub(super) const ELSEWHERE: [(&str, &str); 5] = [
    (
        "notify",
        "notifications are yours alone to set: `[notifications]` in your own config.toml (docs/configuration.md)",
    ),
    ("inbound", "there are no channels on which items come in; put files into the backlog"),
    ("git.commit_plan", "the plan's file is written and left to you; commit it as you like"),
    ("budget.ceiling_usd", "the name is `quota_ceiling_usd`"),
    ("sandbox.permission_mode", "permission modes follow from the profile; `posse plan flags AGENT` shows them"),
];
