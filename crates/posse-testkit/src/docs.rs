//! What people are told to type: the commands in README.md and docs/.
//!
//! A fence that begins with ```` ```sh ```` has commands, one a line, with comments. They are run by a test, unless the
//! fence says ```` ```sh account ````: then they need a real agent, or a person, and are only parsed.

use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub file: String,
    /// The line of its fence, counted from 1.
    pub line: usize,
    /// It cannot be run without a real agent.
    pub needs_account: bool,
    pub commands: Vec<Typed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    pub line: usize,
    pub text: String,
}

enum Fence {
    Commands(Block),
    Unmarked,
    Other,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[allow(clippy::unwrap_used)]
pub fn files() -> Vec<(String, String)> {
    let documents = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = documents.map(|name| format!("docs/{}", name.to_string_lossy())).collect();
    names.retain(|name| name.ends_with(".md"));
    names.push("README.md".to_owned());
    names.sort();
    names.into_iter().map(|name| (name.clone(), std::fs::read_to_string(root().join(name)).unwrap())).collect()
}

#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}: {why}")]
pub struct BadFence {
    file: String,
    line: usize,
    why: &'static str,
}

/// Every fence with commands in this text. What looks like commands and is not marked as such is an error.
pub fn blocks(file: &str, text: &str) -> Result<Vec<Block>, BadFence> {
    let bad = |line, why| BadFence { file: file.into(), line, why };
    let mut blocks = Vec::new();
    let mut open: Option<Fence> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        match (line.strip_prefix("```"), open.take()) {
            (Some(info), None) => {
                let words: Vec<&str> = info.split_whitespace().collect();
                let commands = |needs_account| {
                    Fence::Commands(Block { file: file.into(), line: number, needs_account, commands: vec![] })
                };
                open = Some(match words[..] {
                    ["sh"] => commands(false),
                    ["sh", "account"] => commands(true),
                    ["sh" | "console" | "bash" | "shell", ..] => {
                        return Err(bad(number, "a fence of commands begins with ```sh or ```sh account"));
                    }
                    [] => Fence::Unmarked,
                    _ => Fence::Other,
                });
            }
            (Some(_), Some(fence)) => {
                if let Fence::Commands(block) = fence {
                    blocks.push(block);
                }
            }
            (None, Some(Fence::Commands(mut block))) => {
                let (text, _) = scan(line);
                if !text.is_empty() {
                    block.commands.push(Typed { line: number, text: text.to_owned() });
                }
                open = Some(Fence::Commands(block));
            }
            (None, Some(Fence::Unmarked)) if ["posse ", "cargo ", "./"].iter().any(|word| line.starts_with(word)) => {
                return Err(bad(number, "a command in a fence that is not marked as ```sh"));
            }
            (None, other) => open = other,
        }
    }
    if open.is_some() { Err(bad(text.lines().count(), "a fence is not closed")) } else { Ok(blocks) }
}

/// Code within the text that begins with `posse`.
pub fn inline(text: &str) -> Vec<String> {
    code(text).into_iter().filter(|code| code == "posse" || code.starts_with("posse ")).collect()
}

pub fn code(text: &str) -> Vec<String> {
    let mut inside_fence = false;
    // A piece of code may go on in the next line.
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

/// The words of the command of posse's in such a line, as a shell would split them: without variables before it, what is
/// redirected, and what stands behind a `|`, `;` or `&&`. `None` if it is another program's.
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

/// A line without its comment, and its words.
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
        let blocks = blocks("f.md", text).unwrap();
        let typed = |line, text: &str| Typed { line, text: text.into() };
        let file = || "f.md".to_owned();
        assert_eq!(
            blocks,
            [
                Block { file: file(), line: 2, needs_account: false, commands: vec![typed(3, "posse ls")] },
                Block { file: file(), line: 10, needs_account: true, commands: vec![typed(11, "posse launch codex")] },
            ]
        );
        for bad in [
            "```\nposse ls\n```\n",
            "```console\n$ posse ls\n```\n",
            "```sh later\nposse ls\n```\n",
            "```sh\nposse ls\n",
        ] {
            assert!(super::blocks("f.md", bad).is_err(), "{bad}");
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
