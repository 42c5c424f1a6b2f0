//! The response file: when it is complete, what is in it, what it is called later, and what the agent is told about it.
//!
//! An agent hands its answer over in a file, because what a terminal shows is drawn for people. Nothing here touches one.

use std::time::{Duration, SystemTime};

use minijinja::context;

use super::Look;
use crate::prompts::PromptTemplates;

/// A file that has not changed for this long is complete. Chosen: a program that writes an answer writes it in one go; two
/// looks 50 ms apart see whether it does not. Whoever needs longer between two writes writes a temporary file, as told.
pub const SETTLED: Duration = Duration::from_millis(50);
/// Longer answers are cut. A prompt with more would not fit into an agent; this is a program's output, not an answer.
pub const LIMIT: usize = 1024 * 1024;

/// What the file system says about the response file at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub len: u64,
    pub modified: SystemTime,
    pub inode: u64,
    /// Something other than a write came last. The kernel notes that time apart when a file is renamed.
    pub renamed: bool,
}

/// The text of a file, and what had to be done to get it, for the log. Reads at most `LIMIT` bytes; the caller reads one more
/// from the file, so that a longer one is noticed. The answer goes on to other agents, so it says itself that it was cut.
fn decode(bytes: &[u8]) -> (String, Vec<&'static str>) {
    let mut notes = Vec::new();
    let mut end = bytes.len();
    if bytes.len() > LIMIT {
        notes.push("the answer is longer than 1 MB and was cut");
        // Not through a character: half of one would be read as damage.
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
    /// What a settled file holds, and notes for the log.
    pub fn at(bytes: &[u8]) -> (Self, Vec<&'static str>) {
        let (text, notes) = decode(bytes);
        if text.trim().is_empty() { (Look::Blank, notes) } else { (Look::Ready(text), notes) }
    }
}

/// What is special about an archived file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suffix {
    /// It was there before the prompt was sent.
    Stale,
    /// It came too late, or while the agent was still at work.
    Late,
}

/// Under which name the file of a turn is archived: `003-analyst.md`, `004-analyst-stale.md`. A name that is taken gets a
/// number: nothing is overwritten.
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

/// The word that ends the heredoc. Random, because an answer that holds it on a line of its own would end there.
pub fn heredoc_word(bits: u64) -> String {
    format!("ANSWER_{bits:016x}")
}

/// For a POSIX shell, as one word, whatever is in it.
pub fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The part of a prompt that asks for the response file. `path` is absolute; `word` is from `heredoc_word`.
pub fn instruction(prompts: &PromptTemplates, path: &str, word: &str) -> String {
    prompts.render("response_file", &context! { path, command => command(path, word) })
}

/// The text for an agent that became idle without having written its file.
pub fn reminder(prompts: &PromptTemplates, path: &str, word: &str) -> String {
    prompts.render("reminder", &context! { path, command => command(path, word) })
}

fn command(path: &str, word: &str) -> String {
    let (file, part) = (shell_quoted(path), shell_quoted(&format!("{path}.part")));
    format!("cat > {part} <<'{word}' && mv -f {part} {file}\n<your answer>\n{word}")
}

#[cfg(test)]
mod tests;
