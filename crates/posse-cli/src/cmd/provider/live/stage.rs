//! One agent in one conversation: its terminal in a daemon of our own, its model, and what posse tells of it.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posse_api::{AnswerIn, Create, EventBody, ExplanationView, Input, Output, Question, StatusView, Success, Terminal};
use posse_core::detect::Dialog;
use posse_core::ids::TerminalId;
use posse_core::screen::Screen;
use posse_core::status::{StatusKind, WaitingKind};
use posse_sim::ModelServer;
use posse_sim::model::ModelLog;
use tokio::time::{Instant, timeout_at};

use super::finding::Evidence;
use crate::client::{Client, Repeat};
use crate::error::Error;
use crate::event_stream::EventStream;

/// So many rows of a screen are evidence: a dialog and what is above it.
const ROWS: usize = 14;

/// A status, as it was told.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) status: StatusKind,
    pub(super) reason: String,
    pub(super) waiting_kind: Option<WaitingKind>,
    pub(super) dialog: Option<Dialog>,
}

impl Told {
    /// Whether the question is on the screen, as a rule says; otherwise it is only announced.
    pub(super) fn is_drawn(&self) -> bool {
        self.dialog.is_some() || self.reason.starts_with("rule ")
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.status, self.reason)
    }
}

pub(super) struct Stage {
    client: Client,
    events: EventStream,
    server: Arc<ModelServer>,
    pub(super) id: TerminalId,
    /// The project in which the agent works.
    pub(super) directory: PathBuf,
    told: VecDeque<Told>,
}

/// What a request was refused for, in words, or what it answered.
type Asked<T> = Result<Result<T, String>, Error>;

fn refused<T>(answer: Result<T, Error>) -> Asked<T> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(Error::Refused(problem)) => Ok(Err(problem.detail)),
        Err(error) => Err(error),
    }
}

impl Stage {
    /// Starts the agent and does not wait for it.
    pub(super) async fn open(
        mut client: Client,
        create: Create,
        server: Arc<ModelServer>,
        directory: PathBuf,
    ) -> Asked<Self> {
        // Listening before starting: nothing that is told is missed.
        let events = client.listen(None).await?;
        let started = refused(client.post::<_, Terminal>("/terminals", &create, Repeat::Never).await)?;
        let stage = |started: Terminal| Self {
            client,
            events,
            server,
            id: started.id,
            directory,
            told: VecDeque::from([Told {
                status: started.status.status,
                reason: started.status.reason,
                waiting_kind: None,
                dialog: None,
            }]),
        };
        Ok(started.map(stage))
    }

    /// What was told last, in words.
    pub(super) fn now(&self) -> String {
        self.told.back().map(Told::to_string).unwrap_or_default()
    }

    /// The first status that fits: the one there is, or one that is told within this time.
    pub(super) async fn status_within(
        &mut self,
        time: Duration,
        fits: impl Fn(&Told) -> bool,
    ) -> Result<Option<Told>, Error> {
        let end = Instant::now() + time;
        loop {
            if let Some(told) = self.told.back().filter(|told| fits(told)) {
                return Ok(Some(told.clone()));
            }
            let Ok(event) = timeout_at(end, self.events.next()).await else { return Ok(None) };
            let event = event.ok_or_else(|| Error::Lost("the events ended".into()))?;
            if event.terminal == Some(self.id)
                && let EventBody::StatusChanged(StatusView { status, reason, waiting_kind, dialog, .. }) = event.body
            {
                self.told.push_back(Told { status, reason, waiting_kind, dialog });
            }
        }
    }

    pub(super) fn log(&self) -> ModelLog {
        self.server.log()
    }

    pub(super) fn release(&self, gate: &str) {
        self.server.release(gate);
    }

    /// Waits until the model has seen this.
    pub(super) async fn model_comes(&self, fits: impl Fn(&ModelLog) -> bool + Send + 'static) -> bool {
        self.model_comes_within(super::GOES_ON, fits).await
    }

    pub(super) async fn model_comes_within(
        &self,
        time: Duration,
        fits: impl Fn(&ModelLog) -> bool + Send + 'static,
    ) -> bool {
        let server = Arc::clone(&self.server);
        let waits = tokio::task::spawn_blocking(move || server.comes_within(time, fits));
        waits.await.unwrap_or(false)
    }

    pub(super) async fn send(&mut self, text: &str) -> Asked<Success> {
        let input = Input { message: text.into(), ..Input::default() };
        refused(self.client.post(&self.path("/input"), &input, Repeat::Never).await)
    }

    /// Whether what it asks has options that can be chosen.
    pub(super) fn can_answer(&self) -> bool {
        let dialog = self.told.back().and_then(|told| told.dialog.as_ref());
        dialog.is_some_and(|dialog| !dialog.options.is_empty())
    }

    /// `approve` or `deny`.
    pub(super) async fn answer(&mut self, verb: &str) -> Asked<Success> {
        let asked = match refused(self.client.get::<Question>(&self.path("/question")).await)? {
            Ok(asked) => asked,
            Err(why) => return Ok(Err(why)),
        };
        let answer = AnswerIn { dialog: asked.id, option: None, text: None, reason: None };
        refused(self.client.post(&self.path(&format!("/{verb}")), &answer, Repeat::Never).await)
    }

    pub(super) async fn last_answer(&mut self) -> Result<String, Error> {
        let output = refused(self.client.get::<Output>(&self.path("/output?mode=last")).await)?;
        Ok(output.map_or_else(|why| format!("({why})"), |output| output.output))
    }

    /// Asks it to leave; what is wrong if it does not.
    pub(super) async fn leaves(&mut self) -> Result<Option<String>, Error> {
        if let Err(why) = refused(self.client.post::<_, Success>(&self.path("/exit"), &(), Repeat::Safe).await)? {
            return Ok(Some(format!("it could not be asked: {why}")));
        }
        let end = Instant::now() + super::GOES_ON;
        loop {
            let terminal: Terminal = self.client.get(&self.path("")).await?;
            if terminal.exit.is_some() {
                return Ok(None);
            }
            match timeout_at(end, self.events.next()).await {
                Ok(Some(_)) => {}
                Ok(None) => return Err(Error::Lost("the events ended".into())),
                Err(_) => return Ok(Some(format!("it still ran after {} s", super::GOES_ON.as_secs()))),
            }
        }
    }

    /// What there is to be seen now. What cannot be had is left out: the agent may be gone.
    pub(super) async fn evidence(&mut self) -> Evidence {
        // What was told meanwhile and nobody waited for.
        let _ = self.status_within(Duration::ZERO, |_| false).await;
        let mut evidence = Evidence { told: self.told.iter().map(Told::to_string).collect(), ..Evidence::default() };
        if let Ok(view) = self.client.get::<ExplanationView>(&self.path("/explain")).await {
            let reading = view.explanation.reading;
            evidence.rule = Some(reading.rule);
            evidence.matched = reading.evidence.map(|evidence| evidence.text);
            evidence.title = Some(view.title);
            evidence.signals = view.signals.iter().map(|said| format!("{}: {}", said.source, said.said)).collect();
        }
        evidence.screen = self.screen().await;
        let surplus = evidence.screen.len().saturating_sub(ROWS);
        evidence.screen.drain(..surplus);
        evidence
    }

    /// The rows of its screen that are not empty.
    pub(super) async fn screen(&mut self) -> Vec<String> {
        let Ok(screen) = self.client.get::<Screen>(&self.path("/screen")).await else { return Vec::new() };
        screen.rows.iter().map(|row| row.trim_end().to_owned()).filter(|row| !row.is_empty()).collect()
    }

    fn path(&self, rest: &str) -> String {
        format!("/terminals/{}{rest}", self.id)
    }
}
