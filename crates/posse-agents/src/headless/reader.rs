//! Converts a session's bytes into events. The events do not depend on how the bytes are split.

use std::sync::Arc;

use super::event::Event;
use super::texts::HeadlessRules;
use super::{Dialect, claude, codex};

/// Maximum length of a stored line; a line may hold a whole file.
const LONGEST_LINE: usize = 16 << 20;

pub struct Reader {
    texts: Arc<HeadlessRules>,
    stdout: Lines,
    stderr: Lines,
    state: SessionStream,
}

enum SessionStream {
    Claude(claude::ClaudeStream),
    Codex(codex::CodexStream),
}

impl Reader {
    pub fn new(texts: Arc<HeadlessRules>) -> Self {
        let state = match texts.dialect {
            Dialect::Claude => SessionStream::Claude(claude::ClaudeStream::default()),
            Dialect::Codex => SessionStream::Codex(codex::CodexStream::default()),
        };
        Self { texts, stdout: Lines::default(), stderr: Lines::default(), state }
    }

    pub fn stdout(&mut self, bytes: &[u8]) -> Vec<Event> {
        let lines = self.stdout.push(bytes);
        lines.iter().flat_map(|line| self.line(line)).collect()
    }

    /// Reads bytes from standard error, where some tools report denied permissions.
    pub fn stderr(&mut self, bytes: &[u8]) -> Vec<Event> {
        let lines = self.stderr.push(bytes);
        lines.iter().filter_map(|line| self.complaint(line)).collect()
    }

    pub fn finish(&mut self) -> Vec<Event> {
        let (line, complaint) = (self.stdout.rest(), self.stderr.rest());
        let mut events: Vec<Event> = line.iter().flat_map(|line| self.line(line)).collect();
        events.extend(complaint.iter().filter_map(|line| self.complaint(line)));
        events
    }

    fn line(&mut self, line: &[u8]) -> Vec<Event> {
        if line.trim_ascii().is_empty() {
            return Vec::new();
        }
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(line) else {
            return vec![Event::Unknown("no JSON".into())];
        };
        match &mut self.state {
            SessionStream::Claude(stream) => stream.line(&value, &self.texts),
            SessionStream::Codex(stream) => stream.line(&value, &self.texts),
        }
    }

    fn complaint(&self, line: &[u8]) -> Option<Event> {
        let why = self.texts.denied_on_stderr(&String::from_utf8_lossy(line))?;
        Some(Event::ToolDenied { name: None, summary: None, why })
    }
}

#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
    /// The line exceeds the maximum length.
    too_long: bool,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, ends) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            self.too_long |= self.begun.len() + text.len() > LONGEST_LINE;
            if self.too_long {
                self.begun.clear();
            } else {
                self.begun.extend_from_slice(text);
            }
            if ends {
                lines.extend(self.rest());
            }
        }
        lines
    }

    /// Returns the unfinished line, or `None` if it was too long.
    fn rest(&mut self) -> Option<Vec<u8>> {
        let too_long = std::mem::take(&mut self.too_long);
        let line = std::mem::take(&mut self.begun);
        (!too_long && !line.is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_takes_no_memory_without_end() {
        let mut lines = Lines::default();
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..40 {
            assert!(lines.push(&piece).is_empty());
            assert!(lines.begun.len() <= LONGEST_LINE);
        }
        assert_eq!(lines.push(b"\nnext\n"), [b"next".to_vec()]);
    }
}
