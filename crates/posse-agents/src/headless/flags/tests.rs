use super::*;

fn scope() -> Scope {
    Scope { directory: "/w".into(), results: None }
}

fn flags(dialect: Dialect, sandbox: Sandbox, agent: &str, policy: &Policy, scope: &Scope) -> Vec<String> {
    let granted = policy.grant(agent, None).unwrap();
    build_permission_flags(&Request { dialect, sandbox, profile: &granted.profile, scope, policy }).unwrap()
}

fn claude_flags(agent: &str, policy: &Policy) -> Vec<String> {
    flags(Dialect::Claude, Sandbox::On, agent, policy, &scope())
}

fn lenient() -> Policy {
    Policy { strict: false, ..Policy::default() }
}

/// Seed 003 and T01.
#[test]
fn tools_directories_and_approval_in_this_order() {
    let seed = "--allowedTools Read Grep Glob Write Edit Bash NotebookEdit --add-dir /w --permission-mode acceptEdits";
    assert_eq!(claude_flags("coder", &lenient()).join(" "), seed);
    let hardened = claude_flags("coder", &Policy::default()).join(" ");
    let rest = hardened.strip_prefix(seed).unwrap();
    assert!(rest.starts_with(" --disallowedTools Bash(git push:*) Bash(sudo:*) Edit(//"), "{rest}");
    assert!(rest.ends_with(" --tools Read Grep Glob Write Edit Bash NotebookEdit"), "{rest}");
}

/// T02.
#[test]
fn who_only_reads_is_denied_everything_that_writes() {
    let flags = claude_flags("code-reviewer", &Policy::default());
    let text = flags.join(" ");
    assert!(text.starts_with("--allowedTools Read Grep Glob --add-dir /w --permission-mode"), "{text}");
    let place = |word: &str| flags.iter().position(|flag| flag == word).unwrap();
    assert_eq!(
        flags[place("--permission-mode") + 1..place("--disallowedTools")],
        ["acceptEdits", "--setting-sources", "user"]
    );
    let denied = &flags[place("--disallowedTools") + 1..place("--tools")];
    let expected = ["Write", "Edit", "NotebookEdit", "MultiEdit", "Bash(git push:*)", "Bash(sudo:*)", "Edit(//**)"];
    assert_eq!(denied, expected);
    assert_eq!(flags[place("--tools") + 1..], ["Read", "Grep", "Glob", "Bash"]);
}

/// T03.
#[test]
fn without_a_sandbox_there_is_one_flag() {
    for agent in ["coder", "code-reviewer", "stranger"] {
        for policy in [lenient(), Policy::default()] {
            let off = |dialect| flags(dialect, Sandbox::Off, agent, &policy, &scope());
            assert_eq!(off(Dialect::Claude), ["--dangerously-skip-permissions"]);
            assert_eq!(off(Dialect::Codex), ["--dangerously-bypass-approvals-and-sandbox"]);
        }
    }
}

/// T10.
#[test]
fn a_worktree_is_all_that_a_worker_gets() {
    let scope = Scope { directory: "/app/.posse/w/1".into(), results: Some("/app/.posse/runs/7".into()) };
    let flags = flags(Dialect::Claude, Sandbox::On, "coder", &lenient(), &scope);
    let place = flags.iter().position(|flag| flag == "--add-dir").unwrap();
    assert_eq!(flags[place + 1..place + 4], ["/app/.posse/w/1", "/app/.posse/runs/7", "--permission-mode"]);
}

#[test]
fn codex_has_the_same_two_axes() {
    let scope = Scope { directory: "/w".into(), results: Some("/r".into()) };
    let codex = |agent, policy: &Policy| flags(Dialect::Codex, Sandbox::On, agent, policy, &scope).join(" ");
    let write = r#"--sandbox workspace-write --add-dir /r -c approval_policy="never""#;
    assert_eq!(codex("coder", &lenient()), write);
    let strict = format!("{write} -c sandbox_workspace_write.exclude_slash_tmp=true --ignore-rules");
    assert_eq!(codex("coder", &Policy::default()), strict);
    assert_eq!(codex("validator", &lenient()), r#"--sandbox read-only -c approval_policy="never""#);
    assert_eq!(codex("stranger", &lenient()), r#"--sandbox read-only -c approval_policy="never""#);
}

#[test]
fn nothing_can_become_a_flag() {
    let policy = |deny: &str| Policy { deny: vec![deny.into()], ..Policy::default() };
    let profile = |tool: &str| PermissionProfile { name: "x".into(), tools: vec![tool.into()], bash: Bash::None };
    let built = |profile: &PermissionProfile, policy: &Policy, directory: &str| {
        let scope = Scope { directory: directory.into(), results: None };
        let (dialect, sandbox) = (Dialect::Claude, Sandbox::On);
        build_permission_flags(&Request { dialect, sandbox, profile, scope: &scope, policy })
    };
    let fine = Policy::default();
    for word in ["--dangerously-skip-permissions", "", "Bash(", "Read\n", "Read Write", "(x)"] {
        assert_eq!(built(&profile(word), &fine, "/w"), Err(FlagError::Tool(word.into())), "{word:?}");
        assert_eq!(built(&profile("Read"), &policy(word), "/w"), Err(FlagError::Tool(word.into())), "{word:?}");
    }
    for directory in ["", "/", "w", "--x", "/a/../b", "/a/./b", "/a\nb"] {
        let error = Err(FlagError::Directory(directory.into()));
        assert_eq!(built(&profile("Read"), &fine, directory), error, "{directory:?}");
    }
    let empty = PermissionProfile { tools: Vec::new(), ..profile("Read") };
    assert_eq!(built(&empty, &fine, "/w"), Err(FlagError::NoTools("x".into())));
    assert!(built(&profile("mcp__server__tool"), &fine, "/w").is_ok());
}
