use super::*;
use crate::headless::{Policy, Scope};

fn with_request<T>(dialect: Dialect, sandbox: Sandbox, look: impl FnOnce(&Request<'_>) -> T) -> T {
    let policy = Policy::default();
    let granted = policy.grant("coder", None).unwrap();
    let scope = Scope { directory: "/w".into(), results: Some("/r".into()) };
    let profile = &granted.profile;
    look(&Request { dialect, sandbox, profile, scope: &scope, policy: &policy })
}

fn line(dialect: Dialect, asked: &Asked<'_>) -> Result<Vec<String>, FlagError> {
    with_request(dialect, Sandbox::On, |request| command_line(request, asked))
}

#[test]
fn the_prompt_is_not_among_the_arguments() {
    let asked = Asked { prompt: "--help me", model: Some("opus"), max_budget_usd: Some(0.5) };
    let claude = line(Dialect::Claude, &asked).unwrap();
    let end = "--model opus --max-budget-usd 0.5 --output-format stream-json --verbose --print";
    assert!(claude.join(" ").ends_with(end), "{claude:?}");
    assert_eq!(claude[0], "--allowedTools");
    let codex = line(Dialect::Codex, &asked).unwrap();
    assert_eq!(codex[..3], ["exec", "--sandbox", "workspace-write"]);
    assert_eq!(codex[codex.len() - 4..], ["--model", "opus", "--json", "-"]);
    let spawn = with_request(Dialect::Claude, Sandbox::On, |request| {
        Spawn::new("/bin/agent", request, &asked, BTreeMap::new(), Vec::new()).unwrap()
    });
    assert!(spawn.prompt == "--help me" && !spawn.argv.iter().any(|word| word.contains("--help me")));
}

#[test]
fn what_cannot_be_said_is_an_error() {
    let asked = |prompt, model| Asked { prompt, model, ..Asked::default() };
    for dialect in [Dialect::Claude, Dialect::Codex] {
        assert_eq!(line(dialect, &asked(" \n", None)), Err(FlagError::NoPrompt));
        assert_eq!(line(dialect, &asked("go", Some("--x"))), Err(FlagError::Model("--x".into())));
    }
}

/// T07, as far as it is decided here.
#[test]
fn a_session_reads_its_prompt_and_has_a_place_for_temporary_files() {
    let asked = Asked { prompt: "go", ..Asked::default() };
    let set = BTreeMap::from([("POSSE_RUN_ID".to_owned(), "7".to_owned())]);
    let spawn = |dialect, sandbox| {
        with_request(dialect, sandbox, |request| {
            Spawn::new("/bin/agent", request, &asked, set.clone(), vec!["CLAUDECODE".into()]).unwrap()
        })
    };
    let claude = spawn(Dialect::Claude, Sandbox::On);
    assert_eq!((claude.prompt.as_str(), claude.directory.as_str()), ("go", "/w"));
    assert_eq!((claude.set.len(), claude.unset.as_slice()), (1, ["CLAUDECODE".to_owned()].as_slice()));
    assert_eq!(claude.argv[0], "/bin/agent");
    assert_eq!(spawn(Dialect::Codex, Sandbox::On).set.get("TMPDIR").map(String::as_str), Some("/r"));
    assert_eq!(spawn(Dialect::Codex, Sandbox::Off).set.get("TMPDIR"), None);
}
