//! One answer to a question of the agent: recorded, then given, then completed with its result.

use posse_agents::Provider;
use posse_core::audit::{self, Ended, Who};
use posse_core::delivery::{Answer, AnswerEffect, Answered, Decision, Unanswered, Wish};
use posse_core::detect::Reading;
use posse_core::detect::dialog::{Dialog, Meaning};
use posse_core::keys;
use posse_core::status::Event as LifeEvent;
use posse_core::time::Mono;

use super::messages::Answerer;
use super::*;

pub(super) struct Answering {
    pub(super) decision: Decision,
    pub(super) dialog: Option<Dialog>,
    pub(super) answerer: Answerer,
    given: Option<Given>,
}

/// The answer is recorded and may be given.
struct Given {
    seq: i64,
    machine: Answer,
    typed: Vec<String>,
}

impl Answering {
    pub(super) fn new(decision: Decision, dialog: Option<&Dialog>, answerer: Answerer) -> Self {
        Self { decision, dialog: dialog.cloned(), answerer, given: None }
    }

    /// Returns the audit entry that is written before the first key.
    pub(super) fn entry(&self, reading: &Reading, tail: &[String], provider: &Provider) -> (Who, audit::Answering) {
        let machine = Answer::new(self.decision.clone(), provider.manifest.answer.clone(), Mono::default());
        let keys = machine.plan(reading).iter().map(|key| keys::name(key)).collect();
        let mut answering = audit::Answering::new(self.decision.wish, reading.dialog.as_ref(), tail.to_vec(), keys);
        if let Some(words) = &self.decision.words {
            answering.wish = "answer".into();
            answering.chosen = Some(words.text.clone());
        }
        answering.reason = self.answerer.reason.as_deref().map(audit::Answering::readable);
        (self.answerer.who.clone(), answering)
    }

    /// Returns the question, and the terminal of a process that may not answer it.
    pub(super) fn refused(&self) -> Option<(String, Option<TerminalId>)> {
        (!self.answerer.allowed).then(|| (self.decision.question.clone(), self.answerer.who.from))
    }

    pub(super) fn noted(&mut self, seq: i64, showing: Option<&Showing>, provider: &Provider, now: Mono) {
        Showing::complete(showing, &mut self.decision);
        let machine = Answer::new(self.decision.clone(), provider.manifest.answer.clone(), now);
        self.given = Some(Given { seq, machine, typed: Vec::new() });
    }

    pub(super) fn deadline(&self) -> Option<Mono> {
        self.given.as_ref()?.machine.deadline()
    }

    pub(super) fn handle(&mut self, event: Event<'_>, now: Mono) -> Vec<AnswerEffect> {
        self.given.as_mut().map_or_else(Vec::new, |given| given.machine.handle(event, now))
    }

    pub(super) fn typed(&mut self, bytes: &[u8]) {
        if let Some(given) = &mut self.given {
            given.typed.push(keys::name(bytes));
        }
    }

    /// Returns the completion of its audit entry after the end. `None` if it was never recorded.
    pub(super) fn ended(&mut self, result: Result<Answered, Unanswered>) -> Option<Ended> {
        let Given { seq, typed, .. } = self.given.take()?;
        Some(match result {
            Ok(answered) => Ended::answered(seq, answered.verified, typed),
            Err(failure) => Ended::failed(seq, failure, typed),
        })
    }

    /// Returns the wish for the log, and the event for the terminal's status if the answer was given.
    pub(super) fn described(&self) -> (String, LifeEvent) {
        match self.decision.wish {
            Wish::Accept => ("accept".into(), LifeEvent::Answered),
            Wish::Deny => ("deny".into(), LifeEvent::Denied),
            Wish::Option(at) => {
                let option = self.dialog.as_ref().and_then(|dialog| dialog.options.get(at));
                let denies = option.is_some_and(|option| option.meaning == Meaning::Deny);
                let life = if denies { LifeEvent::Denied } else { LifeEvent::Answered };
                (format!("option {}: {}", at + 1, option.map_or("?", |option| &option.label)), life)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use posse_core::delivery::{Effect, Seen};
    use posse_core::detect::Look;
    use posse_core::status::Life;
    use posse_core::time::Wall;

    use super::*;
    use crate::disk::DISK;
    use posse_files::providers::Providers;

    /// S-150: the end of the screen was unreadable. The entry records that, and the answer is given anyway.
    #[test]
    fn s_150_an_answer_without_a_tail_is_given() {
        let directory = tempfile::tempdir().unwrap();
        let provider = Providers::new(directory.path().to_owned()).load(DISK, "claude_code").unwrap();
        let screen = "────────────────────\n Something else\n\n   ls\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n \
                      Esc to cancel";
        let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
        let look = Look { rows: &rows, ..Look::default() };
        let reading = provider.detector.read(look, &mut posse_core::detect::Memo::default());
        let dialog = reading.dialog.as_ref().unwrap();
        let mut answering = Answering::new(
            Decision::new(dialog.id.clone(), Wish::Accept, audit::By::Person),
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
