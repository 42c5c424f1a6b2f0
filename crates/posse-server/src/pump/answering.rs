//! One answer to a question of the agent: written down, then given, then completed with what became of it.

use posse_agents::Provider;
use posse_core::audit::{self, Ended, Who};
use posse_core::delivery::{Answer, AnswerEffect, Answered, Decision, Event, Showing, Unanswered, Wish};
use posse_core::detect::Reading;
use posse_core::detect::dialog::{Dialog, Meaning};
use posse_core::ids::TerminalId;
use posse_core::keys;
use posse_core::status::Event as LifeEvent;
use posse_core::time::Mono;

use super::messages::Answerer;

pub(super) struct Answering {
    decision: Decision,
    meaning: Meaning,
    /// For the log.
    wish: String,
    dialog: Option<Dialog>,
    answerer: Answerer,
    /// The number of the agent's report of this question.
    report: Option<u64>,
    given: Option<Given>,
}

/// It is written down, and may be given.
struct Given {
    /// Its entry in the audit.
    seq: i64,
    machine: Answer,
    typed: Vec<String>,
}

/// What is known of an answer that is over.
pub(super) struct AnswerOver {
    pub(super) decision: Decision,
    /// For the log.
    pub(super) wish: String,
    pub(super) dialog: Option<Dialog>,
    pub(super) who: Who,
    pub(super) ended: Ended,
    /// The number of the agent's report of this question.
    pub(super) report: Option<u64>,
    /// What it means for the terminal's life if it was given.
    pub(super) life: LifeEvent,
}

impl Answering {
    pub(super) fn new(decision: Decision, dialog: Option<&Dialog>, answerer: Answerer) -> Self {
        let meaning = meaning(decision.wish, dialog);
        let report = dialog.and_then(|dialog| dialog.report.as_ref()).map(|report| report.number);
        let wish = described(decision.wish, dialog);
        Self { decision, meaning, wish, dialog: dialog.cloned(), answerer, report, given: None }
    }

    /// What is to be written down before the first key.
    pub(super) fn entry(&self, reading: &Reading, tail: &[String], provider: &Provider) -> (Who, audit::Answering) {
        let machine = Answer::new(self.decision.clone(), provider.keys.clone(), Mono::default());
        let keys = machine.plan(reading).iter().map(|key| keys::name(key)).collect();
        let mut answering = audit::Answering::new(self.decision.wish, reading.dialog.as_ref(), tail.to_vec(), keys);
        if let Some(words) = &self.decision.words {
            answering.wish = "answer".into();
            answering.chosen = Some(words.text.clone());
        }
        answering.reason = self.answerer.reason.as_deref().map(audit::Answering::readable);
        (self.answerer.who.clone(), answering)
    }

    /// The question and the terminal of a process that may not answer it.
    pub(super) fn refused(&self) -> Option<(String, Option<TerminalId>)> {
        (!self.answerer.allowed).then(|| (self.decision.question.clone(), self.answerer.who.from))
    }

    /// It is written down under this number.
    pub(super) fn noted(&mut self, seq: i64, showing: Option<&Showing>, provider: &Provider, now: Mono) {
        Showing::complete(showing, &mut self.decision);
        let machine = Answer::new(self.decision.clone(), provider.keys.clone(), now);
        self.given = Some(Given { seq, machine, typed: Vec::new() });
    }

    pub(super) fn deadline(&self) -> Option<Mono> {
        self.given.as_ref()?.machine.deadline()
    }

    pub(super) fn handle(&mut self, event: Event<'_>, now: Mono) -> Vec<AnswerEffect> {
        self.given.as_mut().map_or_else(Vec::new, |given| given.machine.handle(event, now))
    }

    /// This is being typed.
    pub(super) fn typed(&mut self, bytes: &[u8]) {
        if let Some(given) = &mut self.given {
            given.typed.push(keys::name(bytes));
        }
    }

    /// It is over. `None` if it was never written down.
    pub(super) fn over(self, result: Result<Answered, Unanswered>) -> Option<AnswerOver> {
        let Self { decision, meaning, wish, dialog, answerer: Answerer { who, .. }, report, given } = self;
        let Given { seq, typed, .. } = given?;
        let ended = match result {
            Ok(answered) => Ended::answered(seq, answered.verified, typed),
            Err(failure) => Ended::failed(seq, failure, typed),
        };
        let life = if meaning == Meaning::Deny { LifeEvent::Denied } else { LifeEvent::Answered };
        Some(AnswerOver { decision, wish, dialog, who, ended, report, life })
    }
}

/// For the log.
fn described(wish: Wish, dialog: Option<&Dialog>) -> String {
    match wish {
        Wish::Accept => "accept".into(),
        Wish::Deny => "deny".into(),
        Wish::Option(at) => {
            let label = dialog.and_then(|dialog| dialog.options.get(at)).map(|option| option.label.as_str());
            format!("option {}: {}", at + 1, label.unwrap_or("?"))
        }
    }
}

fn meaning(wish: Wish, dialog: Option<&Dialog>) -> Meaning {
    match wish {
        Wish::Accept => Meaning::Accept,
        Wish::Deny => Meaning::Deny,
        Wish::Option(at) => dialog.and_then(|dialog| dialog.options.get(at)).map_or(Meaning::Other, |one| one.meaning),
    }
}

#[cfg(test)]
mod tests {
    use posse_core::delivery::{Effect, Seen};
    use posse_core::detect::Look;
    use posse_core::status::Life;
    use posse_core::time::Wall;

    use super::*;
    use posse_files::providers::Providers;

    /// S-150: nothing could be read of the screen's end. The entry says so, and the answer is given all the same.
    #[test]
    fn s_150_an_answer_without_a_tail_is_given() {
        let directory = tempfile::tempdir().unwrap();
        let provider = Providers::new(directory.path().to_owned()).load("claude_code").unwrap();
        let screen = "────────────────────\n Something else\n\n   ls\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n \
                      Esc to cancel";
        let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
        let look = Look { rows: &rows, ..Look::default() };
        let reading = provider.detector.read(look, &mut posse_core::detect::Memo::default());
        let dialog = reading.dialog.as_ref().unwrap();
        let mut answering = Answering::new(
            Decision::new(dialog.id.clone(), Wish::Accept),
            Some(dialog),
            Answerer::allowed(Who::person()),
        );
        let (who, entry) = answering.entry(&reading, &[], &provider);
        let note = audit::Note {
            at: Wall(0),
            terminal: posse_core::ids::TerminalId::from_random(1),
            name: None,
            who,
            step: audit::Step::Answering(Box::new(entry)),
        };
        let said = audit::Entry { seq: 1, note }.to_string();
        assert!(said.contains("accept with 1") && said.ends_with("(nothing is on the screen)"), "{said}");

        answering.noted(1, None, &provider, Mono::default());
        let life = Life::starting(Wall(0));
        let seen = || Seen {
            reading: &reading,
            status: life.status(),
            about_to_ask: false,
            echo: None,
            cursor_row: None,
            plain: false,
            printed: 0,
        };
        assert_eq!(answering.handle(Event::Read(seen()), Mono::default()), [], "a dialog is given a moment");
        let typed = answering.handle(Event::Read(seen()), Mono(std::time::Duration::from_secs(1)));
        assert!(matches!(&typed[..], [Effect::Type { bytes, .. }] if bytes == b"1"), "{typed:?}");
    }
}
