//! The response file: completeness, content, archive name, and the instructions to the agent.
//!
//! An agent returns its answer in a file, because terminal output is drawn for people. This module performs no file
//! access.

use std::time::{Duration, SystemTime};

use minijinja::context;

use super::Look;
use crate::prompts::PromptTemplates;

/// A file that has not changed for this long is complete. Chosen: programs write an answer in one go, and two reads 50
/// ms apart detect the exception. The instructions ask slower writers to use a temporary file.
pub const SETTLED: Duration = Duration::from_millis(50);
/// Maximum length of an answer; longer ones are cut. A longer text would not fit into a prompt, and is some program's
/// output rather than an answer.
pub const LIMIT: usize = 1024 * 1024;

/// The response file's metadata at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub len: u64,
    pub modified: SystemTime,
    pub inode: u64,
    /// The last change was not a write. The kernel records a rename in a separate timestamp.
    pub renamed: bool,
}

/// Decodes the file's text and returns notes for the log. Reads at most `LIMIT` bytes; the caller supplies one more, so
/// that a longer file is noticed. A cut text says so, because other agents read it.
fn decode(bytes: &[u8]) -> (String, Vec<&'static str>) {
    let mut notes = Vec::new();
    let mut end = bytes.len();
    if bytes.len() > LIMIT {
        notes.push("the answer is longer than 1 MB and was cut");
        // Cut at a character boundary: half a character would be decoded as damage.
        let begins = |at: &usize| bytes[*at] & 0xc0 != 0x80;
        end = (LIMIT - 3..=LIMIT).rev().find(begins).unwrap_or(LIMIT);
    }
    let text = String::from_utf8_lossy(&bytes[..end]);
    if matches!(text, std::borrow::Cow::Owned(_)) {
        notes.push("the answer is not valid UTF-8; what could not be read was replaced");
    }
    let text = text.trim_start_matches('\u{feff}');
    let mut text = text.replace("\r\n", "\n").replace('\r', "\n");
    if bytes.len() > LIMIT {
        text.push_str("\n\n[cut: the answer was longer than 1 MB]");
    }
    (text, notes)
}

impl Look {
    /// Classifies the content of a settled file, with notes for the log.
    pub fn at(bytes: &[u8]) -> (Self, Vec<&'static str>) {
        let (text, notes) = decode(bytes);
        if text.trim().is_empty() { (Look::Blank, notes) } else { (Look::Ready(text), notes) }
    }
}

/// The reason an archived file is not a regular answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suffix {
    /// The file existed before the prompt was sent.
    Stale,
    /// The file came after the timeout, or while the agent was still working.
    Late,
}

/// Returns the archive name of a turn's file: `003-analyst.md`, `004-analyst-stale.md`. A taken name gets a number, so
/// no file is overwritten.
pub fn archive_name(seq: u32, key: &str, suffix: Option<Suffix>, taken: &dyn Fn(&str) -> bool) -> String {
    let suffix = match suffix {
        None => "",
        Some(Suffix::Stale) => "-stale",
        Some(Suffix::Late) => "-late",
    };
    let stem = format!("{seq:03}-{key}{suffix}");
    let numbered = |n: u32| if n == 1 { format!("{stem}.md") } else { format!("{stem}-{n}.md") };
    (1..).map(numbered).find(|name| !taken(name)).unwrap_or_default()
}

/// Returns the heredoc delimiter. The delimiter is random, because an answer with the delimiter on its own line would
/// end there.
pub fn heredoc_word(bits: u64) -> String {
    format!("ANSWER_{bits:016x}")
}

/// Quotes any text as one word for a POSIX shell.
pub fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns the part of a prompt that asks for the response file. `path` is absolute; `word` is from `heredoc_word`.
pub fn instruction(prompts: &PromptTemplates, path: &str, word: &str) -> String {
    prompts.render("response_file", &context! { path, command => command(path, word) })
}

/// Returns the reminder for an agent that became idle without writing its file.
pub fn reminder(prompts: &PromptTemplates, path: &str, word: &str) -> String {
    prompts.render("reminder", &context! { path, command => command(path, word) })
}

fn command(path: &str, word: &str) -> String {
    let (file, part) = (shell_quoted(path), shell_quoted(&format!("{path}.part")));
    format!("cat > {part} <<'{word}' && mv -f {part} {file}\n<your answer>\n{word}")
}

#[cfg(test)]
mod tests;
