//! The agent in a terminal: reads its screen, processes its reports, delivers messages and answers its questions. The
//! decisions are in `posse-core`; this module passes events to them and executes their effects.

use std::sync::Arc;

use posse_agents::Provider;
use posse_agents::start::Confirmed;
use posse_api::{EventBody, Question};
use posse_core::audit::{self, Who};
use posse_core::delivery::{
    self, Answered, Decision, Effect, Event, Meant, NotAnswered, Order, Prompt, Recognised, Seen, Showing, Unanswered,
    Verified, Wish, identity, question, translate,
};
use posse_core::detect::dialog::Dialog;
use posse_core::detect::{Detector, Explanation, Look, Memo, Reading};
use posse_core::question::{QuestionEvidence, QuestionReports, ReportEvent};
use posse_core::run::Shown;
use posse_core::screen::{Painted, Screen};
use posse_core::status::{Claim, Event as LifeEvent, Life, Source, Status, StatusKind, WaitingKind};
use posse_core::time::Mono;

use super::answering::Answering;
use super::jobs::{By, Do, Over, Queued, Wanted};
use super::*;

/// The maximum number of answers to a repeated startup question. After that a person has to look.
const START_ANSWERS: usize = 3;

/// The time for which an automatic answer waits for the agent's report of a question. Claude Code reports a question
/// before it draws it; on a busy machine the process that brings the report may take a second.
const REPORT_PATIENCE: Duration = Duration::from_secs(3);

/// The interval at which a job that waits for a question is checked, because the announcement of a question expires.
const HOLD: Duration = Duration::from_millis(250);

struct Work {
    machine: Machine,
    by: By,
}

enum Machine {
    Prompt { prompt: Box<Prompt>, characters: usize },
    Answer(Box<Answering>),
}

pub(super) struct Agent {
    pub(super) provider: Arc<Provider>,
    detector: Arc<Detector>,
    confirmed: Confirmed,
    memo: Memo,
    reading: Option<Reading>,
    /// The last rows of the screen while a question is open.
    tail: Vec<String>,
    cursor_row: Option<String>,
    /// The input field, if there is one, is only a row of text.
    plain: bool,
    /// The known facts about the question on the screen.
    pub(super) showing: Option<Showing>,
    reports: QuestionReports,
    work: Option<Work>,
    queue: VecDeque<Queued>,
    start_answers: usize,
    /// The last question that a process in a terminal tried to answer, and that terminal. The attempt is recorded once.
    refused: Option<(String, Option<TerminalId>)>,
    /// The next job waits for a question to be drawn; the time of the next check.
    pub(super) held: Option<Mono>,
}

impl Agent {
    pub(super) fn new(provider: Arc<Provider>, profile: Option<&str>, confirmed: Confirmed) -> Self {
        // If the rules for a profile fail, the general ones apply.
        let detector = provider.for_profile(profile).unwrap_or_else(|_| provider.detector.clone());
        let reports = QuestionReports::new(provider.manifest.signals.reporting());
        Self {
            provider,
            detector,
            confirmed,
            memo: Memo::default(),
            reading: None,
            tail: Vec::new(),
            cursor_row: None,
            plain: false,
            showing: None,
            reports,
            work: None,
            queue: VecDeque::new(),
            start_answers: 0,
            refused: None,
            held: None,
        }
    }

    /// Continues after another daemon. Its reports are lost, except for that of the open question; an agent that was
    /// started with means to report counts as reporting.
    pub(super) fn restore(&mut self, status: &Status) {
        let hooks = self.provider.manifest.launch.as_ref().and_then(|launch| launch.hooks.as_ref());
        let reports =
            hooks.is_some_and(|hooks| !hooks.events.is_empty()) || !self.provider.manifest.signals.events.is_empty();
        self.reports.restore(status.dialog.as_ref(), reports);
    }

    /// Reads the screen and returns the event for the terminal's status.
    pub(super) fn look(&mut self, screen: &Screen, colours: &dyn Painted, now: Mono) -> LifeEvent {
        let look = Look { rows: &screen.rows, title: Some(&screen.title), foreground: None, colours: Some(colours) };
        let mut reading = self.detector.read(look, &mut self.memo);
        if let Some(dialog) = &mut reading.dialog {
            self.reports.attach(dialog);
        }
        let plain = screen.cursor.filter(|_| reading.draft.is_none() && is_ready(reading.status));
        let plain = plain.and_then(|(row, _)| self.detector.plain_draft(&screen.rows, usize::from(row)));
        self.plain = plain.is_some();
        reading.draft = reading.draft.or(plain);
        self.cursor_row = screen.cursor.and_then(|(row, _)| screen.rows.get(usize::from(row)).cloned());
        Showing::follow(&mut self.showing, &reading, now);
        self.tail = if question(&reading).is_some() { audit::tail(&screen.rows) } else { Vec::new() };
        LifeEvent::Read(reading)
    }

    pub(super) fn looked(&mut self, event: LifeEvent) {
        if let LifeEvent::Read(reading) = event {
            self.reading = Some(reading);
        }
    }

    pub(super) fn reads(&self) -> Option<StatusKind> {
        self.reading.as_ref()?.status
    }

    /// Processes a claim of the agent. Returns whether the screen has to be read again.
    pub(super) fn heard(&mut self, source: Source, claim: &Claim) -> bool {
        self.reports.hear(source, claim);
        self.showing.is_some() && matches!(source, Source::Osc | Source::Hook | Source::SessionFile)
    }

    /// Processes a report of a question. Returns whether the screen has to be read again.
    pub(super) fn reported(&mut self, event: ReportEvent) -> bool {
        let showing = self.showing.is_some();
        self.reports.take(event, showing);
        showing
    }

    /// Returns the traces on the screen of a prompt that may have arrived.
    pub(super) fn traces(&self, text: &str, printed: u64) -> Shown {
        let text = Recognised::new(text, self.provider.manifest.submit.pasted.clone());
        let draft = self.reading.as_ref().and_then(|reading| reading.draft.as_deref());
        let echo = self.detector.last_prompt(&self.memo);
        // The label of a paste does not identify the paste.
        let is_last_prompt = echo.filter(|echo| !text.is_label(echo)).map(|echo| text.echoed_by(&echo));
        Shown { in_composer: draft.is_some_and(|draft| text.shown_by(draft)), is_last_prompt, printed }
    }

    pub(super) fn explain(&self, screen: &Screen, colours: &dyn Painted) -> Explanation {
        let look = Look { rows: &screen.rows, title: Some(&screen.title), foreground: None, colours: Some(colours) };
        self.detector.explain(look, &mut Memo::default())
    }

    pub(super) fn last_answer(&self, lines: &[String]) -> Option<String> {
        self.detector.last_answer(lines)
    }

    pub(super) fn deadline(&self) -> Option<Mono> {
        match self.work.as_ref().map(|work| &work.machine) {
            Some(Machine::Prompt { prompt, .. }) => prompt.deadline(),
            Some(Machine::Answer(answer)) => answer.deadline(),
            None => self.held,
        }
    }

    pub(super) fn works(&self) -> bool {
        self.work.is_some()
    }

    /// Returns a job for a startup question that the operator has answered in advance.
    pub(super) fn start_answer(&mut self) -> Option<Queued> {
        let dialog = self.reading.as_ref()?.dialog.as_ref()?;
        let startup = dialog.kind == WaitingKind::Startup && self.work.is_none() && self.queue.is_empty();
        let option = self.provider.manifest.start.as_ref()?.answer(dialog, self.confirmed)?;
        if !startup || self.start_answers >= START_ANSWERS {
            return None;
        }
        self.start_answers += 1;
        let (wish, question) = (Wish::Option(option), Some(dialog.id.clone()));
        let answerer = Answerer::allowed(Who::startup());
        Some(Queued::Job(Box::new(Wanted::Answer { wish, question, words: None, answerer }), By::Ourselves))
    }

    /// Queues a job. Jobs run one after the other, and wait for an announced question.
    pub(super) fn enqueue(&mut self, queued: Queued, bracketed: bool, life: &Life, now: Mono) -> Vec<Do> {
        self.queue.push_back(queued);
        self.next(bracketed, life, now)
    }

    fn identity(&self) -> Option<String> {
        identity(self.reading.as_ref()?, &self.tail)
    }

    fn asked(&self) -> Result<Question, InputError> {
        let reading = self.reading.as_ref().ok_or(InputError::NoQuestion)?;
        let (id, found) = self.identity().zip(question(reading)).ok_or(InputError::NoQuestion)?;
        let row = || self.tail.iter().find(|row| row.contains(&found)).map_or(found.as_str(), |row| row.trim());
        let text = reading.dialog.as_ref().map_or_else(|| row().to_owned(), Dialog::about);
        let full = reading.dialog.as_ref().map(Dialog::in_full).unwrap_or_default();
        Ok(Question { id, waiting_kind: reading.waiting_kind, text, full })
    }

    pub(super) fn next(&mut self, bracketed: bool, life: &Life, now: Mono) -> Vec<Do> {
        let mut acts = Vec::new();
        self.held = None;
        while self.work.is_none()
            && let Some(queued) = self.queue.pop_front()
        {
            // A question was announced and will be drawn in a moment.
            let is_drawn = self.reading.as_ref().is_some_and(|reading| question(reading).is_some());
            let unseen = self.reading.is_none();
            let unreported = self.waits_for_report(&queued, now);
            if queued.is_about_a_question() && (unseen || unreported || (!is_drawn && life.about_to_ask(now))) {
                self.queue.push_front(queued);
                self.held = Some(now + HOLD);
                acts.extend(unseen.then_some(Do::Look));
                break;
            }
            let (wanted, by) = match queued {
                Queued::Job(wanted, by) => (*wanted, by),
                Queued::Look(reply) => {
                    let _ = reply.send(self.asked());
                    continue;
                }
            };
            match self.begin(wanted, bracketed, now) {
                Ok((machine, act)) => {
                    self.work = Some(Work { machine, by });
                    acts.push(act);
                }
                Err(error) => acts.push(Do::refused(by, error)),
            }
        }
        acts
    }

    /// Returns whether the report or the text of this job's question may still arrive. An automatic yes needs the
    /// report; a person should read it and name the question by it.
    fn waits_for_report(&self, queued: &Queued, now: Mono) -> bool {
        let evidence = self.evidence();
        let dialog = self.reading.as_ref().and_then(|reading| reading.dialog.as_ref());
        let half_drawn = dialog.is_some_and(Dialog::is_half_drawn);
        let may_improve = half_drawn || evidence.may_improve();
        let waits = match queued {
            Queued::Job(wanted, _) => match &**wanted {
                Wanted::Answer { wish, answerer, .. } => {
                    *wish == Wish::Accept && answerer.who.by == audit::By::Run && may_improve
                }
                Wanted::Message(order, _) => order.text.trim() == "y" && may_improve,
            },
            Queued::Look(_) => half_drawn || matches!(evidence, QuestionEvidence::Silent(_)),
        };
        waits && self.showing.as_ref().is_some_and(|showing| now < showing.since + REPORT_PATIENCE)
    }

    fn evidence(&self) -> QuestionEvidence {
        let Some(reading) = self.reading.as_ref().filter(|reading| question(reading).is_some()) else {
            return QuestionEvidence::default();
        };
        let kind = reading.waiting_kind.unwrap_or(WaitingKind::Question);
        reading.dialog.as_ref().map_or_else(|| self.reports.without_dialog(kind), |dialog| dialog.evidence)
    }

    pub(super) fn refuse_all(&mut self, why: InputError) -> Vec<Do> {
        self.held = None;
        self.queue.drain(..).filter_map(|queued| queued.refused(why)).collect()
    }

    fn begin(&self, wanted: Wanted, bracketed: bool, now: Mono) -> Result<(Machine, Do), InputError> {
        let reading = self.reading.as_ref();
        let (decision, answerer) = match wanted {
            Wanted::Answer { wish, question: named, words, answerer } => {
                let open = reading.and_then(question);
                // A name other than that of the open question is kept, and refused later.
                let other = named.filter(|named| self.identity().as_ref() != Some(named));
                let question = other.or(open).ok_or(InputError::NoQuestion)?;
                let decision = Decision::new(question, wish, answerer.who.by);
                let in_words = |words: String| {
                    let reading = reading.ok_or(NotAnswered::Vanished)?;
                    decision.clone().in_words(&words, reading, &self.provider.manifest.answer)
                };
                match words.map(in_words) {
                    Some(decision) => (decision.map_err(InputError::Question)?, answerer),
                    None => (decision, answerer),
                }
            }
            Wanted::Message(order, answerer) => match reading.map(|reading| translate(&order.text, reading)) {
                Some(Meant::Refused(why)) => return Err(InputError::Question(why)),
                Some(Meant::Answer(decision)) => (decision, answerer),
                Some(Meant::Prompt) | None => {
                    return Ok((self.prompt(order, bracketed, now), Do::Look));
                }
            },
        };
        let reading = reading.ok_or(InputError::NoQuestion)?;
        decision.check(reading).map_err(InputError::Question)?;
        decision.check_evidence(self.evidence()).map_err(InputError::Question)?;
        let dialog = reading.dialog.as_ref();
        let mut decision = decision;
        Showing::complete(self.showing.as_ref(), &mut decision);
        if !answerer.allowed && self.refused.as_ref() == Some(&(decision.question.clone(), answerer.who.from)) {
            return Err(InputError::Question(NotAnswered::FromTerminal));
        }
        let answering = Answering::new(decision, dialog, answerer);
        let (who, entry) = answering.entry(reading, &self.tail, &self.provider);
        Ok((Machine::Answer(Box::new(answering)), Do::Note(who, Box::new(entry))))
    }

    /// Handles the number of the stored audit entry of an answer, or the failure to store it. Returns the next actions.
    pub(super) fn noted(&mut self, seq: Option<i64>, alive: bool, now: Mono) -> Vec<Do> {
        let Some(Work { machine: Machine::Answer(answering), .. }) = &mut self.work else { return Vec::new() };
        match seq {
            Some(seq) => {
                answering.noted(seq, self.showing.as_ref(), &self.provider, now);
                let refused = answering.refused();
                let why = match refused {
                    Some(_) => NotAnswered::FromTerminal,
                    None if alive => return vec![Do::Look],
                    None => NotAnswered::Gone,
                };
                self.refused = refused.or(self.refused.take());
                self.answered(Err(Unanswered { why, presses: 0 })).into_iter().collect()
            }
            None => {
                let by = self.work.take().map(|work| work.by);
                by.map(|by| Do::refused(by, InputError::NotNoted)).into_iter().collect()
            }
        }
    }

    fn prompt(&self, order: Order, bracketed: bool, now: Mono) -> Machine {
        let characters = order.text.chars().count();
        let prompt = if self.detector.has_composer() {
            // A program without the agent's current layout reports itself whether it supports bracketed paste.
            Prompt::new(order, self.provider.manifest.submit.clone(), !self.plain || bracketed, now)
        } else {
            Prompt::raw(&order.text, bracketed, now)
        };
        Machine::Prompt { prompt: Box::new(prompt), characters }
    }

    /// Passes an event, or else the last reading, to the current machine.
    pub(super) fn drive(&mut self, event: Option<Event<'_>>, life: &Life, printed: u64, now: Mono) -> Vec<Do> {
        let Some(work) = &mut self.work else { return Vec::new() };
        let echo;
        let event = match (event, &self.reading) {
            (Some(event), _) => event,
            (None, None) => return Vec::new(),
            (None, Some(reading)) => {
                echo = self.detector.last_prompt(&self.memo);
                Event::Read(Seen {
                    reading,
                    status: life.status(),
                    about_to_ask: life.about_to_ask(now),
                    echo: echo.as_deref(),
                    cursor_row: self.cursor_row.as_deref(),
                    plain: self.plain,
                    printed,
                })
            }
        };
        match &mut work.machine {
            Machine::Prompt { prompt, .. } => {
                let effects = prompt.handle(event, now);
                effects.into_iter().filter_map(|effect| self.prompt_effect(effect)).collect()
            }
            Machine::Answer(answer) => {
                let effects = answer.handle(event, now);
                effects.into_iter().filter_map(|effect| self.answer_effect(effect)).collect()
            }
        }
    }

    fn prompt_effect(&mut self, effect: delivery::PromptEffect) -> Option<Do> {
        let result = match effect {
            Effect::Type { id, bytes } => return Some(Do::Type(id, bytes)),
            Effect::Look => return Some(Do::Look),
            Effect::Over(result) => result.map_err(InputError::NotDelivered),
        };
        let Work { by, machine: Machine::Prompt { prompt, characters } } = self.work.take()? else { return None };
        let prompted = if prompt.is_command() { LifeEvent::Commanded } else { LifeEvent::Prompted };
        let life = result.is_ok().then_some(prompted);
        let log = EventBody::PromptDelivered { characters, result: described(&result) };
        Some(Do::Over(Box::new(Over { by, result, log: Some(Box::new(log)), life, ended: None })))
    }

    fn answer_effect(&mut self, effect: delivery::AnswerEffect) -> Option<Do> {
        match effect {
            Effect::Type { id, bytes } => {
                if let Some(Work { machine: Machine::Answer(answering), .. }) = &mut self.work {
                    answering.typed(&bytes);
                }
                Some(Do::Type(id, bytes))
            }
            Effect::Look => Some(Do::Look),
            Effect::Over(result) => self.answered(result),
        }
    }

    fn answered(&mut self, result: Result<Answered, Unanswered>) -> Option<Do> {
        let Work { machine: Machine::Answer(mut answering), by } = self.work.take()? else { return None };
        let ended = answering.ended(result)?;
        let (wish, life) = answering.described();
        let Answering { decision, dialog, answerer, .. } = *answering;
        let presses = result.map_or_else(|failure| failure.presses, |answered| answered.presses);
        let another = matches!(&result, Ok(answered) if answered.verified == Verified::Another);
        let again = another && self.reading.as_ref().and_then(question).as_ref() == Some(&decision.question);
        if !again {
            Showing::answered(&mut self.showing, &decision, presses);
        }
        if let Some(report) = dialog.as_ref().and_then(|dialog| dialog.report.as_ref()).filter(|_| result.is_ok()) {
            self.reports.answered(report.number);
        }
        let result = result.map(|_| ()).map_err(InputError::NotAnswered);
        let log = EventBody::QuestionAnswered { wish, dialog, audit: ended.of, result: described(&result) };
        let life = result.is_ok().then_some(if again { LifeEvent::AskedAgain } else { life });
        Some(Do::Over(Box::new(Over {
            by,
            result,
            log: Some(Box::new(log)),
            life,
            ended: Some((answerer.who, ended)),
        })))
    }
}

fn is_ready(status: Option<StatusKind>) -> bool {
    matches!(status, Some(StatusKind::Idle | StatusKind::Completed))
}

fn described(result: &Result<(), InputError>) -> String {
    result.as_ref().map_or_else(ToString::to_string, |()| "done".into())
}
