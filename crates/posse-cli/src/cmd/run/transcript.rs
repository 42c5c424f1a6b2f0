//! Actions and output of sessions, as lines.

use std::collections::HashMap;

use jiff::Timestamp;
use posse_agents::headless::Event;
use posse_agents::headless::event::End;
use posse_api::SaidLine;
use posse_core::visible::{shortened, words_of};

use crate::ui::{Colour, Ui, clock, plain, took};

/// As much of a text as a line shows (spec §4.7).
const TEXT: usize = 200;
/// The duration in seconds from which a finished tool is reported.
const LONG: i64 = 5;

/// The amount of text that is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// One line for each event.
    Lines,
    /// All texts in full.
    All,
}

/// Renders events of sessions. Remembers when tools started, and what sessions cost.
pub(super) struct SessionTranscript {
    extent: Extent,
    /// The tools that run, by session and id, with the time of their start.
    tools: HashMap<(String, String), (String, Timestamp)>,
    costs: HashMap<String, f64>,
}

impl SessionTranscript {
    pub(super) fn new(extent: Extent) -> Self {
        Self { extent, tools: HashMap::new(), costs: HashMap::new() }
    }

    /// Returns whole lines; `None` for events without text for users.
    pub(super) fn render(&mut self, session: &str, said: &SaidLine, ui: &Ui) -> Option<String> {
        let (text, colour) = self.text(session, said)?;
        let time = clock(said.at);
        let margin = match self.extent {
            Extent::Lines => format!("{time}  {session} │ "),
            Extent::All => format!("{time}  │ "),
        };
        let more = format!("{}│ ", " ".repeat(margin.chars().count() - 2));
        let lines = text.lines().map(plain).enumerate().map(|(i, line)| {
            let line = ui.paint(&line, colour);
            format!("{}{line}\n", ui.paint(if i == 0 { &margin } else { &more }, Colour::Dim))
        });
        Some(lines.collect())
    }

    fn text(&mut self, session: &str, said: &SaidLine) -> Option<(String, Option<Colour>)> {
        let at = said.at;
        let key = |id: &str| (session.to_owned(), id.to_owned());
        let yellow = |text: String| Some((text, Some(Colour::Yellow)));
        match &said.event {
            Event::Started { model, version, .. } => {
                let part = |word: &str, value: &Option<String>| value.as_ref().map(|value| format!("{word}{value}"));
                let parts: Vec<String> = [part("", model), part("version ", version)].into_iter().flatten().collect();
                Some((format!("begins: {}", parts.join(", ")), Some(Colour::Dim))).filter(|_| !parts.is_empty())
            }
            Event::Said(text) => {
                let text = text.trim();
                Some((if self.extent == Extent::All { text.to_owned() } else { first(text) }, None))
                    .filter(|_| !text.is_empty())
            }
            Event::ToolUse { id, name, summary } => {
                let what = format!("{name} {summary}").trim().to_owned();
                self.tools.insert(key(id), (what.clone(), at));
                Some((format!("⏵ {what}"), Some(Colour::Blue)))
            }
            Event::ToolDone { id, ok } => {
                let (what, begun) = self.tools.remove(&key(id))?;
                let seconds = at.duration_since(begun).as_secs();
                if !ok {
                    return yellow(format!("✗ {what}"));
                }
                (seconds >= LONG).then(|| (format!("✓ {what}  {}", took(seconds)), Some(Colour::Dim)))
            }
            Event::ToolDenied { name, summary, why } => {
                let tool = [name, summary].map(|part| part.as_deref().unwrap_or_default()).join(" ");
                // Drop the pending call: the failure is its only report.
                self.tools.retain(|(of, _), (what, _)| of != session || *what != tool);
                let what = [name, summary].into_iter().flatten().cloned().collect::<Vec<_>>().join(" ");
                let why = if what.is_empty() { why.clone() } else { format!("{what}: {}", first(why)) };
                yellow(format!("refused: {why}"))
            }
            Event::Cost(cost) => {
                self.costs.extend(cost.map(|cost| (session.to_owned(), cost)));
                None
            }
            Event::Limit(limit) => yellow(format!("out of quota: {}", limit.text.as_deref().unwrap_or("it says so"))),
            Event::Retry { attempt, of, status, .. } => {
                let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
                let counted = match (attempt, of) {
                    (Some(attempt), Some(of)) => format!(", {attempt} of {of}"),
                    _ => String::new(),
                };
                yellow(format!("the model was not reached{status}; tries again{counted}"))
            }
            Event::Warning(text) => yellow(first(text)),
            Event::Ended(end) => {
                let colour = if end.ok { Colour::Dim } else { Colour::Yellow };
                Some((self.ended(session, end), Some(colour)))
            }
            Event::Usage(_) | Event::Unknown(_) => None,
        }
    }

    /// The closing line: turns, seconds, cost.
    fn ended(&mut self, session: &str, end: &End) -> String {
        let mut parts =
            vec![if end.ok { "ended".to_owned() } else { format!("ended in an error: {}", first(&end.text)) }];
        parts.extend(end.turns.map(|turns| format!("{turns} turns")));
        parts.extend(end.duration_ms.map(|ms| took(i64::try_from(ms / 1000).unwrap_or(i64::MAX))));
        parts.push(self.costs.remove(session).map_or("cost unknown".into(), |cost| format!("{cost:.2} USD")));
        parts.join(", ")
    }
}

/// As much of it as fits into a line.
fn first(text: &str) -> String {
    shortened(&words_of(text), TEXT)
}

#[cfg(test)]
mod tests {
    use posse_agents::headless::event::Reason;

    use super::*;

    fn told(extent: Extent, events: Vec<(i64, Event)>) -> String {
        let mut transcript = SessionTranscript::new(extent);
        let lines = events.into_iter().filter_map(|(second, event)| {
            let at = Timestamp::from_second(second).unwrap();
            let told = transcript.render("1.1-1", &SaidLine { at, event }, &Ui::dull());
            // Without the time, which depends on where one is.
            told.map(|text| text.lines().map(|line| format!("{}\n", &line[8..])).collect())
        });
        lines.collect::<Vec<String>>().concat()
    }

    fn session() -> Vec<(i64, Event)> {
        let tool = |id: &str, name: &str, summary: &str| Event::ToolUse {
            id: id.into(),
            name: name.into(),
            summary: summary.into(),
        };
        let done = |id: &str, ok| Event::ToolDone { id: id.into(), ok };
        let end = End {
            ok: true,
            text: "done".into(),
            reason: Reason::Completed,
            turns: Some(3),
            duration_ms: Some(75_000),
            api_ms: None,
        };
        vec![
            (0, Event::Started { session: None, model: Some("m".into()), version: Some("1".into()) }),
            (1, Event::Said(format!("I look.\nThen I\x1b[2J write{}", " and write".repeat(30)))),
            (2, tool("a", "Read", "src/a.py")),
            (2, done("a", true)),
            (3, tool("b", "Bash", "make test")),
            (15, done("b", true)),
            (16, tool("c", "Write", "/etc/passwd")),
            (
                16,
                Event::ToolDenied {
                    name: Some("Write".into()),
                    summary: Some("/etc/passwd".into()),
                    why: "outside".into(),
                },
            ),
            (16, done("c", false)),
            (17, Event::Unknown("new".into())),
            (18, Event::Cost(Some(0.5))),
            (18, Event::Ended(end)),
        ]
    }

    #[test]
    fn one_line_for_each_thing() {
        insta::assert_snapshot!(told(Extent::Lines, session()));
    }

    #[test]
    fn everything_that_was_said() {
        insta::assert_snapshot!(told(Extent::All, session()));
    }
}
