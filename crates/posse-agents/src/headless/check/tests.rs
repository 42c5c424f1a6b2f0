use proptest::prelude::*;

use super::*;
use crate::headless::command::{Asked, command_line};
use crate::headless::{Policy, Scope};

struct Case {
    dialect: Dialect,
    sandbox: Sandbox,
    agent: &'static str,
}

const CODER: Case = Case { dialect: Dialect::Claude, sandbox: Sandbox::On, agent: "coder" };

fn real(directory: &str) -> Option<String> {
    match directory {
        "/gone" => None,
        "/link" => Some("/elsewhere".into()),
        directory => Some(directory.into()),
    }
}

impl Case {
    fn with<T>(&self, results: &str, look: impl FnOnce(&Request<'_>, Vec<String>) -> T) -> T {
        let policy = Policy::default();
        let granted = policy.grant(self.agent, None).unwrap();
        let scope = Scope { directory: "/w".into(), results: Some(results.into()) };
        let request = Request {
            dialect: self.dialect,
            sandbox: self.sandbox,
            profile: &granted.profile,
            scope: &scope,
            policy: &policy,
        };
        let line = command_line(&request, &Asked { prompt: "go", ..Asked::default() }).unwrap();
        look(&request, line)
    }

    /// Returns the check's result for a modified command line.
    fn changed(&self, change: impl FnOnce(&mut Vec<String>)) -> Result<(), FailedCheck> {
        self.with("/r", |request, mut line| {
            change(&mut line);
            check_flags(&line, request, &[], real)
        })
    }

    fn delivers(&self, path: &str) -> Result<(), FailedCheck> {
        self.with("/r", |request, line| check_flags(&line, request, &[path.to_owned()], real))
    }
}

/// Removes a flag with this many values.
fn without(flag: &'static str, values: usize) -> impl FnOnce(&mut Vec<String>) {
    move |line| {
        let place = line.iter().position(|word| word == flag).unwrap();
        line.drain(place..=place + values);
    }
}

fn insert(place: usize, words: &'static [&'static str]) -> impl FnOnce(&mut Vec<String>) {
    move |line| drop(line.splice(place..place, words.iter().map(|&word| word.to_owned())))
}

/// T08 and related cases.
#[test]
fn an_open_approval_is_never_started() {
    let codex = Case { dialect: Dialect::Codex, ..CODER };
    let error = CODER.changed(without(PERMISSION_MODE, 1)).unwrap_err();
    assert_eq!(error, FailedCheck::NoApproval { flag: PERMISSION_MODE });
    assert!(error.to_string().contains("approval is open: --permission-mode is missing"), "{error}");
    let error = codex.changed(without(CODEX_CONFIG, 1)).unwrap_err();
    assert_eq!(error, FailedCheck::NoApproval { flag: NEVER_ASK });
    for mode in ["default", "plan", "bypassPermissions"] {
        let error = CODER.changed(|line| {
            let place = line.iter().position(|word| word == PERMISSION_MODE).unwrap();
            line[place + 1] = mode.into();
        });
        assert_eq!(error, Err(FailedCheck::BadMode { flag: PERMISSION_MODE, value: mode.into() }));
    }
    let full = codex.changed(|line| line[2] = "danger-full-access".into());
    assert!(matches!(full, Err(FailedCheck::BadMode { flag: CODEX_SANDBOX, .. })), "{full:?}");
}

#[test]
fn a_bypass_is_never_smuggled_in() {
    let both = CODER.changed(insert(0, &[CLAUDE_BYPASS]));
    assert_eq!(both, Err(FailedCheck::TwoApprovals { bypass: CLAUDE_BYPASS, flag: PERMISSION_MODE }));
    let only = CODER.changed(|line| {
        without(PERMISSION_MODE, 1)(line);
        insert(0, &[CLAUDE_BYPASS])(line);
    });
    assert_eq!(only, Err(FailedCheck::Bypass { bypass: CLAUDE_BYPASS }));
    let off = Case { sandbox: Sandbox::Off, ..CODER };
    assert_eq!(off.changed(|line| drop(line.remove(0))), Err(FailedCheck::NoBypass { bypass: CLAUDE_BYPASS }));
}

#[test]
fn a_prompt_is_never_swallowed() {
    let swallowed = |result: Result<(), FailedCheck>, by: &str| {
        assert_eq!(result, Err(FailedCheck::PromptSwallowed { flag: by.into() }));
    };
    let codex = Case { dialect: Dialect::Codex, ..CODER };
    swallowed(CODER.changed(without("--print", 0)), "--verbose");
    swallowed(CODER.changed(|line| line.push("more".into())), "--print");
    swallowed(CODER.changed(|line| line.extend(["--add-dir".into(), "/w".into()])), "--add-dir");
    swallowed(CODER.changed(insert(0, &["--", "more"])), "--print");
    swallowed(codex.changed(|line| drop(line.pop())), "--json");
    swallowed(codex.changed(|line| line.push("more".into())), "--json");
}

#[test]
fn lists_are_never_empty() {
    assert_eq!(CODER.changed(without(ALLOWED_TOOLS, 7)), Err(FailedCheck::Empty { flag: ALLOWED_TOOLS }));
    let empty = CODER.changed(|line| drop(line.drain(1..8)));
    assert_eq!(empty, Err(FailedCheck::Empty { flag: ALLOWED_TOOLS }));
    let blank = CODER.changed(|line| line[1] = String::new());
    assert_eq!(blank, Err(FailedCheck::Empty { flag: ALLOWED_TOOLS }));
}

#[test]
fn directories_are_those_of_the_scope_and_exist() {
    let gone = CODER.with("/gone", |request, line| check_flags(&line, request, &[], real));
    assert_eq!(gone, Err(FailedCheck::NoDirectory { directory: "/gone".into() }));
    let link = CODER.with("/link", |request, line| check_flags(&line, request, &[], real));
    assert_eq!(link, Err(FailedCheck::Link { directory: "/link".into(), real: "/elsewhere".into() }));
    let place = |line: &mut Vec<String>| line.iter().position(|word| word == "/r").unwrap();
    let other = CODER.changed(|line| {
        let place = place(line);
        line[place] = "/main".into();
    });
    assert_eq!(other, Err(FailedCheck::OutsideScope { directory: "/main".into() }));
    let fewer = CODER.changed(|line| {
        let place = place(line);
        line.remove(place);
    });
    assert_eq!(fewer, Err(FailedCheck::ScopeMissing { directory: "/r".into() }));
}

#[test]
fn what_is_to_be_written_can_be() {
    let undeliverable = |path: &str| Err(FailedCheck::Undeliverable { path: path.into() });
    for dialect in [Dialect::Claude, Dialect::Codex] {
        let coder = Case { dialect, ..CODER };
        let reader = Case { dialect, agent: "code-reviewer", ..CODER };
        assert_eq!(coder.delivers("/r/result.json"), Ok(()));
        assert_eq!(coder.delivers("/w/docs/design.md"), Ok(()));
        assert_eq!(coder.delivers("/main/docs/design.md"), undeliverable("/main/docs/design.md"));
        assert_eq!(reader.delivers("/r/result.json"), undeliverable("/r/result.json"));
    }
}

proptest! {
    /// Every command line that can be built passes the check, and can deliver what its profile can write.
    #[test]
    fn what_is_built_passes(
        agent in prop::sample::select(vec!["coder", "planner", "validator", "code-reviewer", "stranger"]),
        tools in prop::option::of(prop::collection::vec("Read|Write|Edit|Bash|Grep|Bash\\(ls:\\*\\)", 1..4)),
        directory in "(/[a-zA-Z0-9 ._-]{1,5}[a-z]){1,3}",
        strict: bool, off: bool, codex: bool,
    ) {
        let text = format!("---\ntools: {}\n---\nYou do it.\n", serde_json::to_string(&tools).unwrap());
        let file = crate::headless::AgentFile::parse("x", &text).unwrap();
        let policy = Policy { strict, ..Policy::default() };
        let Ok(granted) = policy.grant(agent, Some(&file)) else { return Ok(()) };
        let scope = Scope { directory: directory.clone(), results: Some(format!("{directory}-results")) };
        let request = Request {
            dialect: if codex { Dialect::Codex } else { Dialect::Claude },
            sandbox: if off { Sandbox::Off } else { Sandbox::On },
            profile: &granted.profile,
            scope: &scope,
            policy: &policy,
            };
        let line = command_line(&request, &Asked { prompt: "-c go", model: Some("m"), ..Asked::default() }).unwrap();
        let deliver = [format!("{directory}-results/result.json")];
        let by_file = granted.profile.tools.iter().any(|tool| tool == "Write") || off || (codex && granted.profile.writes());
        let files = if by_file { &deliver[..] } else { &[] };
        prop_assert_eq!(check_flags(&line, &request, files, |directory| Some(directory.into())), Ok(()));
        let refused = check_flags(&line, &request, &deliver, |directory| Some(directory.into()));
        prop_assert_eq!(refused.is_ok(), by_file);
    }
}
