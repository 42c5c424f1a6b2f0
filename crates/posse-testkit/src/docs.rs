//! Extracts the commands for users from README.md and docs/.
//!
//! A fence that begins with ```` ```sh ```` has commands, one per line, with comments. A test runs them, unless the
//! fence begins with ```` ```sh account ````: then they need a real agent or a person, and are only parsed.

use std::path::{Path, PathBuf};

/// A command in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The line in the document, counted from 1.
    pub line: usize,
    pub text: String,
    /// Whether the command cannot be run without a real agent.
    pub needs_account: bool,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the name and the text of every document.
#[allow(clippy::unwrap_used)]
pub fn files() -> Vec<(String, String)> {
    let mut names = vec!["README.md".to_owned()];
    for directory in ["docs", "docs/reference", "docs/decisions"] {
        let entries = std::fs::read_dir(root().join(directory)).unwrap().map(|entry| entry.unwrap().file_name());
        names.extend(entries.map(|name| format!("{directory}/{}", name.to_string_lossy())));
    }
    names.retain(|name| name.ends_with(".md"));
    names.sort();
    names.into_iter().map(|name| (name.clone(), text(&name))).collect()
}

#[track_caller]
pub fn text(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the commands in the fences of this text. Panics if a fence looks like commands and is not marked as such.
#[track_caller]
pub fn commands(file: &str, text: &str) -> Vec<Typed> {
    let mut commands = Vec::new();
    // The words after the opening marks, while a fence is open.
    let mut open: Option<Vec<&str>> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(info) = line.strip_prefix("```") {
            open = if open.is_some() { None } else { Some(info.split_whitespace().collect()) };
            continue;
        }
        let looks_typed = || ["posse ", "cargo ", "./"].iter().any(|word| line.starts_with(word));
        match open.as_deref() {
            Some(["sh", rest @ ..]) if rest.is_empty() || rest == ["account"] => {
                let text = scan(line).0.to_owned();
                if !text.is_empty() {
                    commands.push(Typed { line: number, text, needs_account: !rest.is_empty() });
                }
            }
            Some(["sh" | "console" | "bash" | "shell", ..]) => {
                panic!("{file}:{number}: a fence of commands begins with ```sh or ```sh account");
            }
            Some([]) if looks_typed() => panic!("{file}:{number}: a command in a fence that is not marked as ```sh"),
            _ => {}
        }
    }
    assert!(open.is_none(), "{file}: a fence is not closed");
    commands
}

/// Returns inline code that begins with `posse`.
pub fn inline(text: &str) -> Vec<String> {
    code(text).into_iter().filter(|code| code == "posse" || code.starts_with("posse ")).collect()
}

pub fn code(text: &str) -> Vec<String> {
    let mut inside_fence = false;
    // Inline code may continue on the next line.
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside_fence = !inside_fence;
        } else if !inside_fence {
            prose.push_str(line.trim());
            prose.push(' ');
        }
    }
    prose.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the words of the posse command in such a line, split like a shell does. Variables, redirections, and
/// everything after a `|`, `;` or `&&` are left out. Returns `None` for other programs.
pub fn words_of_posse(line: &str) -> Option<Vec<String>> {
    let (_, mut words) = scan(line);
    while words.first().is_some_and(|word| is_assignment(word)) {
        words.remove(0);
    }
    let end = words.iter().position(|word| ["|", ";", "&&", ">", ">>", "<"].contains(&word.as_str()));
    words.truncate(end.unwrap_or(words.len()));
    (words.first()? == "posse").then_some(words)
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name).unwrap_or_default();
    !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

/// Returns a line without its comment, and its words.
fn scan(line: &str) -> (&str, Vec<String>) {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c == '#' && word.is_none() => return (line[..at].trim_end(), words),
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (line.trim_end(), words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_with_their_lines() {
        let text = "a\n```sh\nposse ls  # all\n\n# nothing\n```\n```toml\nx = 1\n```\n   ```sh account\n   posse launch codex\n   ```\n";
        let typed = |line, text: &str, needs_account| Typed { line, text: text.into(), needs_account };
        assert_eq!(commands("f.md", text), [typed(3, "posse ls", false), typed(11, "posse launch codex", true)]);
        for bad in ["```\nposse ls\n```\n", "```console\n$ posse ls\n```\n", "```sh later\nposse ls\n```\n", "```sh\n"]
        {
            assert!(std::panic::catch_unwind(|| commands("f.md", bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_line_is_split_as_a_shell_does() {
        for (line, words) in [
            ("posse ls # all", Some(vec!["posse", "ls"])),
            ("A=1 posse send x 'a # b' > out", Some(vec!["posse", "send", "x", "a # b"])),
            ("posse kill x;", Some(vec!["posse", "kill", "x;"])),
            ("posse ls | head", Some(vec!["posse", "ls"])),
            ("tmux capture-pane -p | posse explain --screen -", None),
            ("cargo run", None),
        ] {
            let words: Option<Vec<String>> = words.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(words_of_posse(line), words, "{line}");
        }
        assert_eq!(inline("x `posse ls` y `a` `posse run\nlog X` ```"), ["posse ls", "posse run log X"]);
    }
}
