//! The conversations of a live check. The model server and files show what really happened; posse's statuses are compared
//! with that.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posse_api::{AnswerIn, Create, EventBody, ExplanationView, Input, Output, Question, StatusView, Success, Terminal};
use posse_core::ids::TerminalId;
use posse_core::screen::{Screen, Size};
use posse_core::status::{StatusKind, WaitingKind};
use posse_core::words;
use posse_sim::ModelServer;
use posse_sim::home::ScriptedHome;
use posse_sim::model::ModelLog;
use tokio::time::{Instant, timeout_at};

use super::{LiveDifference, LiveFinding};
use crate::client::{self, Client, Repeat};
use crate::error::Error;
use crate::event_stream::EventStream;

/// The time an agent has to start and to call its model. The largest takes 15 s with cold caches, and in a new home
/// some of them unpack files.
const START: Duration = Duration::from_secs(60);
/// The time an agent has to continue its turn, to run a small command, or to exit.
const CONTINUE: Duration = Duration::from_secs(20);
/// The time between a cause and its status. A quiet screen settles for a second or two.
const SOON: Duration = Duration::from_secs(5);
/// Longer than a screen without a sign of work stands until it is believed.
const WHILE: Duration = Duration::from_millis(1800);
/// The number of rows that a report shows: a dialog and what is above it.
const ROWS: usize = 14;

const PROMPT: &str = "Please do what the script says.";
const ANSWER: &str = "Good morning to everyone who reads this.";
/// The file that the command creates in the project.
const MADE: &str = "made.txt";

words! {
    /// A conversation that the manifest promises to get right.
    pub(super) enum LiveConversation ("conversation") {
        Answer = "answer",
        Permission = "permission",
        Denial = "denial",
        Failure = "failure",
    }
}

impl LiveConversation {
    pub(super) fn script(self) -> &'static str {
        match self {
            Self::Answer => {
                "[[turn]]\nsteps = [{ think = {} }, { think = { text = 'A greeting, then.' } }, { wait_for = 'thought' }, \
                 { say = 'Good morning to everyone' }, { wait_for = 'half' }, { say = ' who reads this.' }]"
            }
            Self::Permission => {
                "[[turn]]\nsteps = [{ say = 'I make it.' }, { run = { command = 'echo made > made.txt', escalated = true } }]\n\
                 [[turn]]\nsteps = [{ say = 'It is made.' }]"
            }
            Self::Denial => {
                "[[turn]]\nsteps = [{ say = 'I make it.' }, { run = { command = 'echo made > made.txt', escalated = true } }]"
            }
            Self::Failure => "[[turn]]\nsteps = [{ fail = '401' }]",
        }
    }
}

/// The reason why a conversation ended early.
enum StepFailure {
    Differs(String),
    Broken(Error),
}

impl From<Error> for StepFailure {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(problem) => Self::Differs(format!("posse refused: {}", problem.detail)),
            error => Self::Broken(error),
        }
    }
}

type StepResult = Result<(), StepFailure>;

fn differs(seen: impl Into<String>) -> StepResult {
    Err(StepFailure::Differs(seen.into()))
}

/// One agent in a terminal, its model, and what posse reports about it.
pub(super) struct LiveStage {
    client: Client,
    events: EventStream,
    server: Arc<ModelServer>,
    id: TerminalId,
    /// The project of the agent.
    directory: PathBuf,
    now: StatusView,
    /// The expectation that is checked now.
    expected: &'static str,
}

impl LiveStage {
    /// Starts the agent and does not wait for it.
    pub(super) async fn open(
        mut client: Client,
        provider: &str,
        environment: BTreeMap<String, String>,
        home: &ScriptedHome,
        server: ModelServer,
    ) -> Result<Self, Error> {
        let create = Create {
            provider: Some(provider.to_owned()),
            wait: Some(false),
            working_directory: client::absolute(&home.directory)?,
            environment,
            size: Some(Size::clamped(40, 120)),
            ..Create::default()
        };
        // Subscribed before the start, so that no status is missed.
        let events = client.listen(None).await?;
        let started: Terminal = client.post("/terminals", &create, Repeat::Never).await?;
        Ok(Self {
            client,
            events,
            server: Arc::new(server),
            id: started.id,
            directory: home.directory.clone(),
            now: started.status,
            expected: "",
        })
    }

    /// Plays a conversation until its end or the first step that differs.
    pub(super) async fn play(mut self, conversation: LiveConversation) -> Result<LiveFinding, Error> {
        let seen = match self.steps(conversation).await {
            Ok(()) => return Ok(LiveFinding { conversation: conversation.as_str(), difference: None }),
            Err(StepFailure::Differs(seen)) => seen,
            Err(StepFailure::Broken(error)) => return Err(error),
        };
        // Takes the statuses that no step waited for. What cannot be read is left out: the agent may have exited.
        let _ = self.status_within(Duration::ZERO, |_| false).await;
        let explained = self.client.get::<ExplanationView>(&self.path("/explain")).await.ok();
        let rows = self.client.get::<Screen>(&self.path("/screen")).await.map(|screen| screen.rows).unwrap_or_default();
        let rows = rows.iter().map(|row| row.trim_end().to_owned()).filter(|row| !row.is_empty());
        let mut screen: Vec<String> = rows.collect();
        screen.drain(..screen.len().saturating_sub(ROWS));
        let difference = LiveDifference {
            expected: self.expected,
            seen,
            status: Some(said(&self.now)),
            rule: explained.map(|view| view.explanation.reading.rule),
            screen,
        };
        Ok(LiveFinding { conversation: conversation.as_str(), difference: Some(difference) })
    }

    async fn steps(&mut self, conversation: LiveConversation) -> StepResult {
        self.starts().await?;
        self.takes_prompt().await?;
        match conversation {
            LiveConversation::Answer => {
                self.works_at("thought").await?;
                self.works_at("half").await?;
                self.completes(0).await?;
                self.answer_is_read().await?;
                self.exits().await
            }
            LiveConversation::Permission => {
                self.asks().await?;
                self.expected = "approve allows the command, and the command runs";
                self.answer("approve").await?;
                self.model_comes(CONTINUE, |log| log.turns().count() > 1).await?;
                if !self.made() {
                    return differs("the command did not run");
                }
                self.completes(1).await
            }
            LiveConversation::Denial => {
                self.asks().await?;
                self.expected = "deny refuses the command: it does not run, and the agent waits for a prompt";
                self.answer("deny").await?;
                self.becomes(SOON, &[StatusKind::Completed, StatusKind::Idle]).await?;
                if self.made() { differs("the command ran") } else { Ok(()) }
            }
            LiveConversation::Failure => {
                self.expected = "error when the model refuses the request";
                // The agent retries before it shows anything.
                self.becomes(CONTINUE, &[StatusKind::Error]).await
            }
        }
    }

    /// Works while the model waits at this gate, which is released then.
    async fn works_at(&mut self, gate: &'static str) -> StepResult {
        self.expected = "processing while its model thinks or an answer stalls";
        self.model_comes(CONTINUE, move |log| log.waits_at(gate)).await?;
        self.becomes(SOON, &[StatusKind::Processing]).await?;
        if let Some(other) = self.status_within(WHILE, |now| now.status != StatusKind::Processing).await? {
            return differs(format!("{} in the middle of the turn", said(&other)));
        }
        self.server.release(gate);
        Ok(())
    }

    /// Ends after this request to the model.
    async fn completes(&mut self, request: usize) -> StepResult {
        self.expected = "completed when the answer has ended";
        self.model_comes(CONTINUE, move |log| log.ended(request)).await?;
        self.becomes(SOON, &[StatusKind::Completed]).await
    }

    async fn answer_is_read(&mut self) -> StepResult {
        self.expected = "its last answer can be read from the screen";
        let read: Output = self.client.get(&self.path("/output?mode=last")).await?;
        if read.output.split_whitespace().eq(ANSWER.split_whitespace()) {
            return Ok(());
        }
        differs(format!("the model said {ANSWER:?}, posse read {:?}", read.output))
    }

    async fn starts(&mut self) -> StepResult {
        self.expected = "it starts, and is idle when it takes prompts";
        let settled = self.status_within(START, |now| now.status != StatusKind::Processing).await?;
        match settled {
            Some(now) if now.status == StatusKind::Idle => Ok(()),
            Some(StatusView { dialog: Some(dialog), .. }) => differs(format!("it asks at the start: {}", dialog.title)),
            _ => differs(format!("{} after {} s", said(&self.now), START.as_secs())),
        }
    }

    async fn takes_prompt(&mut self) -> StepResult {
        self.expected = "a prompt reaches its model word for word";
        let input = Input { message: PROMPT.into(), ..Input::default() };
        let _: Success = self.client.post(&self.path("/input"), &input, Repeat::Never).await?;
        self.model_comes(START, |log| log.turns().next().is_some()).await?;
        let asked = self.server.log().turns().next().map(|(_, request)| request.user_text.clone()).unwrap_or_default();
        if asked == PROMPT { Ok(()) } else { differs(format!("its model got {asked:?}")) }
    }

    async fn asks(&mut self) -> StepResult {
        self.expected = "waiting_user_answer when it asks for a permission";
        self.model_comes(CONTINUE, |log| log.ended(0)).await?;
        // Other sources announce a question before it is on the screen, and the screen is what is checked here.
        let is_drawn = |now: &StatusView| now.dialog.is_some() || now.reason.starts_with("rule ");
        let asks = |now: &StatusView| now.status == StatusKind::WaitingUserAnswer && is_drawn(now);
        match self.status_within(CONTINUE, asks).await? {
            Some(now) if now.waiting_kind == Some(WaitingKind::Permission) => Ok(()),
            Some(now) => differs(format!("{}, taken for another kind of question", said(&now))),
            None if self.server.log().turns().count() > 1 => differs("it did not ask, and the command ran"),
            None => {
                differs(format!("{} {} s after the model asked for a command", said(&self.now), CONTINUE.as_secs()))
            }
        }
    }

    /// Answers the open question: `approve` or `deny`.
    async fn answer(&mut self, verb: &str) -> StepResult {
        if self.now.dialog.as_ref().is_none_or(|dialog| dialog.options.is_empty()) {
            return differs("posse cannot read this agent's options, so it answers none of its questions");
        }
        let question: Question = self.client.get(&self.path("/question")).await?;
        let answer = AnswerIn { dialog: question.id, ..AnswerIn::default() };
        let _: Success = self.client.post(&self.path(&format!("/{verb}")), &answer, Repeat::Never).await?;
        Ok(())
    }

    async fn exits(&mut self) -> StepResult {
        self.expected = "it exits when it is asked to";
        let _: Success = self.client.post(&self.path("/exit"), &(), Repeat::Safe).await?;
        let end = Instant::now() + CONTINUE;
        while self.client.get::<Terminal>(&self.path("")).await?.exit.is_none() {
            match timeout_at(end, self.events.next()).await {
                Ok(Some(_)) => {}
                Ok(None) => return Err(lost().into()),
                Err(_) => return differs(format!("it still ran after {} s", CONTINUE.as_secs())),
            }
        }
        Ok(())
    }

    fn made(&self) -> bool {
        self.directory.join(MADE).exists()
    }

    async fn becomes(&mut self, time: Duration, wanted: &[StatusKind]) -> StepResult {
        match self.status_within(time, |now| wanted.contains(&now.status)).await? {
            Some(_) => Ok(()),
            None => differs(format!("{} after {} s", said(&self.now), time.as_secs())),
        }
    }

    /// Waits for a status that fits; the current one counts.
    async fn status_within(
        &mut self,
        time: Duration,
        fits: impl Fn(&StatusView) -> bool,
    ) -> Result<Option<StatusView>, Error> {
        let end = Instant::now() + time;
        loop {
            if fits(&self.now) {
                return Ok(Some(self.now.clone()));
            }
            let Ok(event) = timeout_at(end, self.events.next()).await else { return Ok(None) };
            let event = event.ok_or_else(lost)?;
            if let (Some(id), EventBody::StatusChanged(status)) = (event.terminal, event.body)
                && id == self.id
            {
                self.now = status;
            }
        }
    }

    /// Waits until the model has seen this.
    async fn model_comes(&self, time: Duration, fits: impl Fn(&ModelLog) -> bool + Send + 'static) -> StepResult {
        let server = Arc::clone(&self.server);
        let came = tokio::task::spawn_blocking(move || server.comes_within(time, fits)).await.unwrap_or(false);
        if came { Ok(()) } else { differs(format!("its model got no such request within {} s", time.as_secs())) }
    }

    fn path(&self, rest: &str) -> String {
        format!("/terminals/{}{rest}", self.id)
    }
}

fn said(status: &StatusView) -> String {
    format!("{} ({})", status.status, status.reason)
}

fn lost() -> Error {
    Error::Lost("the events ended".into())
}
