//! What is on a terminal, as text: all of it, the end of it, what is new.

use super::{Pump, Text};

/// What an agent showed before it was told something.
pub(super) struct Before {
    answer: Option<String>,
    rows: Vec<String>,
}

impl Pump {
    pub(super) fn text(&self, text: Text) -> Option<String> {
        let screen = self.emulator.screen();
        let rows = screen.filled_rows();
        match text {
            Text::Full => {
                let mut all: String = self.emulator.history().flat_map(|row| [row, "\n"]).collect();
                all.push_str(&screen.text());
                Some(all)
            }
            Text::Tail(lines) => Some(rows[rows.len().saturating_sub(lines)..].join("\n")),
            Text::Since(lines) => {
                let before = &self.before.as_ref()?.rows;
                let new: Vec<&str> = rows.iter().filter(|row| !before.contains(row)).map(String::as_str).collect();
                Some(new[new.len().saturating_sub(lines)..].join("\n"))
            }
            Text::Answer => {
                let before = self.before.as_ref()?;
                self.last_answer().filter(|answer| before.answer.as_ref() != Some(answer))
            }
            Text::Last => {
                if self.agent.is_some() {
                    return self.last_answer();
                }
                let text = match self.last_input {
                    Some(line) if !screen.alternate => self.emulator.text_below(line),
                    _ => screen.text(),
                };
                (!text.trim().is_empty()).then_some(text)
            }
        }
    }

    fn last_answer(&self) -> Option<String> {
        let mut lines: Vec<String> = self.emulator.history().map(str::to_owned).collect();
        lines.extend_from_slice(self.emulator.screen().filled_rows());
        self.agent.as_ref()?.last_answer(&lines).ok()
    }

    /// What is there now is not what comes of the message that is about to be delivered.
    pub(super) fn remember_before(&mut self) {
        let rows = self.emulator.screen().filled_rows().to_vec();
        self.before = Some(Before { answer: self.last_answer(), rows });
    }
}
