//! Connects the pump with its agent: looks, claims, jobs.

use posse_core::audit::{Ended, Note, Step, Who};
use posse_core::delivery::{Failure, KeyId, Left};
use posse_core::question::ReportEvent;
use posse_core::signal::rules::SignalRules;
use posse_core::status::{Claim, Event as LifeEvent, Source};
use serde_json::Value;

use super::agent::Agent;
use super::jobs::{By, Do, Over, Queued, Wanted};
use super::*;
use crate::store::{Change, WriteResult};

impl Pump {
    pub(super) fn read_screen(&mut self) {
        if self.catching_up() {
            return;
        }
        let Some(agent) = &mut self.agent else { return };
        let event = agent.look(&self.emulator.screen(), &self.emulator, crate::mono());
        self.live(&event);
        if let Some(agent) = &mut self.agent {
            agent.looked(event);
        }
        self.drive(None);
        self.next_job_if_held();
        if let Some(answer) = self.agent.as_mut().and_then(Agent::start_answer) {
            self.enqueue(answer);
        }
    }

    /// Applies an event to the status, and publishes the status if it changed.
    pub(super) fn live(&mut self, event: &LifeEvent) {
        if event.is_beyond_output() {
            self.tape.evidence(event);
        }
        let change = self.life.handle(event, crate::mono(), crate::now()).cloned();
        self.tell_status(change);
    }

    pub(super) fn signals(&self) -> Option<&SignalRules> {
        self.agent.as_ref().map(|agent| &agent.provider.manifest.signals)
    }

    /// Processes a signal of replayed output: the agent's last claim counts, but is not new.
    pub(super) fn recall(&mut self, signal: &Signal) {
        if let Some((source, claim)) = self.signals().and_then(|signals| signals.hear(signal)) {
            self.live(&LifeEvent::Recalled(source, claim));
        }
    }

    pub(super) fn hook(&mut self, payload: &Value) {
        let (Some(event), Some(signals)) = (payload["hook_event_name"].as_str(), self.signals()) else { return };
        let (said, report) = signals.hook(event, payload);
        self.reported(report);
        self.said(said);
    }

    /// Processes a report about questions, which may change the identity of the one on the screen.
    pub(super) fn reported(&mut self, event: Option<ReportEvent>) {
        let Some((agent, event)) = self.agent.as_mut().zip(event) else { return };
        if agent.reported(event) && !self.emulator.in_frame() {
            self.read_screen();
        }
    }

    pub(super) fn said(&mut self, said: Option<(Source, Claim)>) {
        let Some((source, claim)) = said else { return };
        let open = self.agent.as_mut().is_some_and(|agent| agent.heard(source, &claim));
        self.live(&LifeEvent::Said(source, claim.clone()));
        self.drive(Some(Event::Said(&claim)));
        // The claim may be about the question on the screen.
        if open && !self.emulator.in_frame() {
            self.read_screen();
        }
    }

    pub(super) fn agent_time(&mut self) {
        self.live(&LifeEvent::Time);
        self.drive(Some(Event::Time));
        self.next_job_if_held();
    }

    fn next_job_if_held(&mut self) {
        if self.agent.as_ref().is_some_and(|agent| agent.held.is_some()) {
            self.next_job();
        }
    }

    /// Types the input that was held back during a delivery. It was meant for the screen of that time: at another
    /// question it could choose an option that was not visible then.
    fn let_others_type(&mut self) {
        while !self.agent.as_ref().is_some_and(Agent::works)
            && let Some((input, at)) = self.held_back.pop_front()
        {
            if self.link.is_some() && self.has_moved_on(at.as_ref()) {
                self.answer(input.sequence, input.origin, Err(InputError::MovedOn));
            } else {
                self.input(input);
            }
        }
    }

    /// Returns whether another question than this one is open or announced. A question whose answer failed counts as
    /// another: the key may still be unread, and later keys would reach the next question.
    fn has_moved_on(&self, at: Option<&Showing>) -> bool {
        let showing = self.agent.as_ref().and_then(|agent| agent.showing.as_ref());
        showing != at || (at.is_none() && self.life.about_to_ask(crate::mono()))
    }

    pub(super) fn next_job(&mut self) {
        let bracketed = self.emulator.bracketed_paste();
        let (life, no_reader) = (&self.life, self.link.is_none().then(|| self.no_reader()));
        let acts = self.agent.as_mut().map(|agent| match no_reader {
            Some(why) => agent.refuse_all(why),
            None => agent.next(bracketed, life, crate::mono()),
        });
        self.obey(acts.unwrap_or_default());
    }

    pub(super) fn enqueue(&mut self, queued: Queued) {
        let bracketed = self.emulator.bracketed_paste();
        let acts = match &mut self.agent {
            Some(agent) if self.link.is_some() => agent.enqueue(queued, bracketed, &self.life, crate::mono()),
            Some(_) => queued.refused(self.no_reader()).into_iter().collect(),
            None => queued.refused(InputError::NoAgent).into_iter().collect(),
        };
        self.obey(acts);
    }

    /// Delivers a numbered message, so that an uncertain client can repeat it. The message is recorded before anything
    /// is typed: the next daemon must not type it again.
    pub(super) fn deliver(
        &mut self,
        order: Order,
        answerer: Answerer,
        writer: WriterId,
        sequence: u64,
        origin: InputOrigin,
    ) {
        match self.known_input(writer, sequence) {
            Some(true) => return self.answer(sequence, origin, Ok(())),
            Some(false) => return self.answer(sequence, origin, Err(InputError::Uncertain)),
            // Nothing is recorded after the end: the hub no longer knows this pump.
            None if self.link.is_none() => return self.answer(sequence, origin, Err(self.no_reader())),
            None => {}
        }
        let key = (writer, sequence);
        // A repeat waits together with the first one until that is done.
        if !self.inputs.contains_key(&key) {
            self.undelivered.insert(key, (order, answerer));
            let tell = self.tell_later();
            let noted = move |result: WriteResult| {
                tell(PumpEvent::InputNoted { writer, sequence, written: result.is_ok() });
            };
            self.store.write(vec![Change::Ahead { terminal: self.id, writer, sequence }], noted);
        }
        self.inputs.entry(key).or_default().push(origin);
    }

    pub(super) fn delivery_noted(&mut self, writer: WriterId, sequence: u64, written: bool) {
        let Some((order, answerer)) = self.undelivered.remove(&(writer, sequence)) else { return };
        if written {
            self.remember_before();
            let message = Wanted::Message(order, answerer);
            self.enqueue(Queued::Job(Box::new(message), By::Noted { writer, sequence }));
        } else {
            self.answer_all(writer, sequence, Err(InputError::NotNoted));
        }
    }

    pub(super) fn drive(&mut self, event: Option<Event<'_>>) {
        let printed = self.emulator.offset();
        let Some(agent) = &mut self.agent else { return };
        let acts = agent.drive(event, &self.life, printed, crate::mono());
        self.obey(acts);
    }

    fn obey(&mut self, acts: Vec<Do>) {
        let mut look = false;
        for act in acts {
            match act {
                Do::Type(key, bytes) => self.type_key(key, bytes),
                Do::Look => look = true,
                Do::Note(who, answering) => {
                    let note = self.note(who, Step::Answering(answering));
                    let tell = self.tell_later();
                    self.store.write_audit(note, false, move |seq| tell(PumpEvent::AnswerNoted(seq)));
                }
                Do::Over(over) => {
                    let Over { by, result, log, life, ended } = *over;
                    // First of all: the entry must be complete when others learn of the end.
                    let waiting = self.complete(by, result, ended);
                    if let Some(event) = log {
                        self.tell_hub(PumpReport::Event(event));
                    }
                    if let Some(event) = life {
                        self.live(&event);
                    }
                    if let Some(by) = waiting {
                        self.job_over(by, result);
                    }
                    self.next_job();
                    self.let_others_type();
                }
            }
        }
        if look {
            if self.emulator.in_frame() {
                // The look follows at the end of the frame.
                self.frames.printed(false, tokio::time::Instant::now());
            } else {
                self.read_screen();
            }
        }
    }

    fn note(&self, who: Who, step: Step) -> Note {
        Note { at: crate::now(), terminal: self.id, name: Some(self.name.clone()), who, step }
    }

    pub(super) fn answer_noted(&mut self, seq: Option<i64>) {
        let alive = self.link.is_some();
        let acts = self.agent.as_mut().map(|agent| agent.noted(seq, alive, crate::mono()));
        self.obey(acts.unwrap_or_default());
    }

    /// Completes the entry of an answer. Returns the origin that still needs a reply.
    fn complete(&self, by: By, result: Result<(), InputError>, ended: Option<(Who, Ended)>) -> Option<By> {
        let Some((who, ended)) = ended else { return Some(by) };
        let seq = ended.of;
        let note = self.note(who, Step::Outcome(ended));
        // Kept until the disk takes it, because the keys were typed.
        match by {
            // The caller is answered when the entry is written, and may look it up at once.
            By::Request(reply) => {
                self.store.write_audit(note, true, move |_| {
                    let _ = reply.send(result.map(|()| Some(seq)));
                });
                None
            }
            by => {
                self.store.write_audit(note, true, |_| ());
                Some(by)
            }
        }
    }

    fn job_over(&mut self, by: By, result: Result<(), InputError>) {
        match by {
            By::Request(reply) => {
                let _ = reply.send(result.map(|()| None));
            }
            By::Noted { writer, sequence } => {
                match result {
                    // The result will never be known.
                    Err(InputError::NotDelivered(Failure { left: Left::Unknown, .. })) => {
                        self.known_inputs.push(KnownInput { writer, sequence, arrived: false });
                    }
                    _ => self.settle(writer, sequence, result.is_ok()),
                }
                self.answer_all(writer, sequence, result);
            }
            By::Ourselves => {
                if let Err(error) = result {
                    tracing::warn!(terminal = %self.id, "a question of the start was not answered: {error}");
                }
            }
        }
    }

    fn type_key(&mut self, key: KeyId, bytes: Vec<u8>) {
        self.typed += 1;
        let (writer, sequence) = (self.writer, self.typed);
        self.input(PumpInput {
            writer,
            sequence,
            bytes,
            expect: None,
            may_answer: true,
            origin: InputOrigin::Agent(key),
        });
    }
}
