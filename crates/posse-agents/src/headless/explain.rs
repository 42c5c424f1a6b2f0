//! Explains an agent's permissions for people: its flags, one per line, with the reason for each.

use std::fmt::Write;

use super::flags::{Flag, FlagError, Request, explained};
use super::permission::Granted;
use super::{Dialect, Sandbox};

pub fn explain_flags(agent: &str, granted: &Granted, request: &Request<'_>) -> Result<String, FlagError> {
    let mut text = format!("{agent}\n  profile {}: {}\n", granted.profile.name, granted.because);
    if granted.narrowed {
        text.push_str("  narrowed to the tools that its file lists\n");
    }
    if request.dialect == Dialect::Codex && request.sandbox == Sandbox::On {
        text.push_str("  Codex has no list of tools: of a profile it knows only whether it writes\n");
    }
    for Flag { words, why } in explained(request)? {
        // A single rule for all paths is shown; the many rules for the paths outside are only counted.
        let (paths, others): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| word.contains("(//"));
        let hidden = paths.len() > 1;
        let seen = others.into_iter().chain(paths.iter().copied().filter(|_| !hidden));
        text.push_str(&seen.map(|word| shown(word)).collect::<Vec<_>>().join(" "));
        if hidden {
            let _ = write!(text, " … and {} rules for the paths outside", paths.len());
        }
        let _ = writeln!(text, "\n    {why}");
    }
    Ok(text)
}

/// Quotes a word for a shell.
fn shown(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::super::{Policy, Scope};
    use super::*;

    #[test]
    fn every_flag_says_why() {
        let policy = Policy::default();
        let granted = policy.grant("coder", None).unwrap();
        let scope = Scope { directory: "/w".into(), results: Some("/r".into()) };
        let request =
            |dialect, sandbox| Request { dialect, sandbox, profile: &granted.profile, scope: &scope, policy: &policy };
        let text = explain_flags("coder", &granted, &request(Dialect::Codex, Sandbox::On)).unwrap();
        let expected = r#"coder
  profile WRITE: posse knows this agent
  Codex has no list of tools: of a profile it knows only whether it writes
--sandbox workspace-write
    it may write in its directory, and nowhere else
--add-dir /r
    and where its result goes
-c 'approval_policy="never"'
    nobody is there to approve anything: what the sandbox stops fails
-c sandbox_workspace_write.exclude_slash_tmp=true
    /tmp belongs to everybody
--ignore-rules
    rules of the project could let commands out of the sandbox
"#;
        assert_eq!(text, expected);
        let text = explain_flags("coder", &granted, &request(Dialect::Claude, Sandbox::On)).unwrap();
        assert!(text.contains("--allowedTools Read Grep Glob Write Edit Bash NotebookEdit\n    may be"), "{text}");
        assert!(text.contains("--disallowedTools 'Bash(git push:*)' 'Bash(sudo:*)' … and 3 rules for the"), "{text}");
        assert!(!text.contains('\u{1}'), "{text:?}");
        let text = explain_flags("coder", &granted, &request(Dialect::Claude, Sandbox::Off)).unwrap();
        assert!(text.ends_with("everything is allowed, nothing is asked\n"), "{text}");
    }
}
