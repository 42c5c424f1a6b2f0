//! One answer to a question of the agent: written down, then given, then completed with what became of it.

use posse_agents::Provider;
use posse_core::audit::{self, Ended, Who};
use posse_core::delivery::{Answer, AnswerEffect, Answered, Decision, Event, Showing, Unanswered, Wish};
use posse_core::detect::Reading;
use posse_core::detect::dialog::{Dialog, Meaning};
use posse_core::keys;
use posse_core::status::Event as LifeEvent;
use posse_core::time::Mono;
use serde_json::{Value, json};

pub(super) struct Answering {
    decision: Decision,
    meaning: Meaning,
    who: Who,
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
    pub(super) who: Who,
    pub(super) ended: Ended,
    /// What it means for the terminal's life if it was given.
    pub(super) life: LifeEvent,
}

impl Answering {
    pub(super) fn new(decision: Decision, dialog: Option<&Dialog>, who: Who) -> Self {
        let meaning = meaning(decision.wish, dialog);
        Self { decision, meaning, who, given: None }
    }

    /// What is to be written down before the first key.
    pub(super) fn entry(&self, reading: &Reading, tail: &[String], provider: &Provider) -> (Who, audit::Answering) {
        let machine = Answer::new(self.decision.clone(), provider.keys.clone(), Mono::default());
        let keys = machine.plan(reading).iter().map(|key| keys::name(key)).collect();
        let answering = audit::Answering::new(self.decision.wish, reading.dialog.as_ref(), tail.to_vec(), keys);
        (self.who.clone(), answering)
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
        let Self { decision, meaning, who, given } = self;
        let Given { seq, typed, .. } = given?;
        let ended = match result {
            Ok(answered) => Ended::answered(seq, answered.verified, typed),
            Err(failure) => Ended::failed(seq, failure, typed),
        };
        let life = if meaning == Meaning::Deny { LifeEvent::Denied } else { LifeEvent::Answered };
        Some(AnswerOver { decision, who, ended, life })
    }
}

/// For the log.
pub(super) fn described(wish: Wish, dialog: Option<&Dialog>) -> Value {
    let word = match wish {
        Wish::Accept => "accept".into(),
        Wish::Deny => "deny".into(),
        Wish::Option(at) => {
            let label = dialog.and_then(|dialog| dialog.options.get(at)).map(|option| option.label.as_str());
            format!("option {}: {}", at + 1, label.unwrap_or("?"))
        }
    };
    json!({ "wish": word, "dialog": dialog })
}

fn meaning(wish: Wish, dialog: Option<&Dialog>) -> Meaning {
    match wish {
        Wish::Accept => Meaning::Accept,
        Wish::Deny => Meaning::Deny,
        Wish::Option(at) => dialog.and_then(|dialog| dialog.options.get(at)).map_or(Meaning::Other, |one| one.meaning),
    }
}
