//! The text of a terminal: the whole, the end, and the new part.

use posse_core::status::StatusKind;

use super::*;

/// Lines of an excerpt, which a driver searches for the text of a failure.
const EXCERPT: usize = 20;

/// The screen of an agent before it got a message.
pub(super) struct Before {
    answer: Option<String>,
    rows: Vec<String>,
}

impl Pump {
    pub(super) fn text(&self, text: TextPart) -> Option<String> {
        let screen = self.emulator.screen();
        let rows = screen.filled_rows();
        match text {
            TextPart::Full => {
                let mut all: String = self.emulator.history().flat_map(|row| [row, "\n"]).collect();
                all.push_str(&screen.text());
                Some(all)
            }
            TextPart::Tail(lines) => Some(rows[rows.len().saturating_sub(lines)..].join("\n")),
            TextPart::Answer => {
                let before = self.before.as_ref()?;
                self.last_answer().filter(|answer| before.answer.as_ref() != Some(answer))
            }
            TextPart::Last => {
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

    /// Returns whether the screen is behind the agent's reports: an agent reports the end of a turn before it draws it.
    pub(super) fn is_drawing(&self) -> bool {
        let status = self.life.status();
        let quiet = matches!(status.kind, StatusKind::Idle | StatusKind::Completed) && !status.awaiting_reaction;
        let behind = self.agent.as_ref().is_some_and(|agent| agent.reads() == Some(StatusKind::Processing));
        self.agent.is_some() && self.link.is_some() && (self.frames.deadline().is_some() || (quiet && behind))
    }

    /// Answers the callers that wait for the last answer, once it is visible or overdue.
    pub(super) fn tell_last_answer(&mut self) {
        let (drawing, now) = (self.is_drawing(), Instant::now());
        for (reply, until) in std::mem::take(&mut self.last_wanted) {
            if drawing && now < until {
                self.last_wanted.push((reply, until));
            } else {
                let _ = reply.send(self.text(TextPart::Last));
            }
        }
    }

    pub(super) fn observe(&self) -> Observation {
        let mut observation = Observation::of(self.life.status().clone(), self.exit);
        let status = &observation.status;
        if status.is_busy() {
            return observation;
        }
        // A failed service may be reported in any state (LOOP-46).
        let new = self.new_lines().filter(|new| !new.is_empty());
        observation.answered = status.unproven && self.text(TextPart::Answer).is_some();
        observation.excerpt = match status.kind {
            StatusKind::Error | StatusKind::WaitingUserAnswer => new.or_else(|| self.text(TextPart::Tail(EXCERPT))),
            _ => new,
        };
        observation
    }

    /// Pushes a changed observation to drivers. The hub is notified first, so that a driver's journal entry follows the
    /// event of the terminal. `ended` does the same for the end.
    pub(super) fn push_observation(&self) {
        if self.exit.is_none() && self.observed.receiver_count() > 0 {
            let now = self.observe();
            self.observed.send_if_modified(|last| std::mem::replace(last, now.clone()) != now);
        }
    }

    /// Returns the last filled rows that were not there before the last prompt.
    fn new_lines(&self) -> Option<String> {
        let before = &self.before.as_ref()?.rows;
        let screen = self.emulator.screen();
        let new: Vec<&String> = screen.filled_rows().iter().filter(|row| !before.contains(row)).collect();
        let last: Vec<&str> = new[new.len().saturating_sub(EXCERPT)..].iter().map(|row| row.as_str()).collect();
        Some(last.join("\n"))
    }

    fn last_answer(&self) -> Option<String> {
        let mut lines: Vec<String> = self.emulator.history().map(str::to_owned).collect();
        lines.extend_from_slice(self.emulator.screen().filled_rows());
        self.agent.as_ref()?.last_answer(&lines)
    }

    pub(super) fn remember_before(&mut self) {
        let rows = self.emulator.screen().filled_rows().to_vec();
        self.before = Some(Before { answer: self.last_answer(), rows });
    }
}
