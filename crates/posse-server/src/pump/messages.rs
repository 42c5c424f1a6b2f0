use std::path::PathBuf;
use std::sync::Arc;

use posse_agents::Provider;
use posse_api::{ProblemKind, Question};
use posse_core::audit::Who;
use posse_core::delivery::{Failure, KeyId, Left, NotAnswered, Order, Unanswered, Why, Wish};
use posse_core::detect::Explanation;
use posse_core::ids::WriterId;
use posse_core::question::ReportEvent;
use posse_core::run::Shown;
use posse_core::screen::{Screen, Size};
use posse_core::status::{Claim, Exit, Source, Status, StatusKind};
use posse_term::client::KeeperLink;
use posse_term::emulator::Emulator;
use posse_term::wire::KeeperEvent;
use tokio::sync::{mpsc, oneshot, watch};

use crate::api::{ApiProblem, hint};
use crate::hub::HubEvent;
use crate::record::Record;
use crate::recording::Recorder;
use crate::store::{KnownInput, StoreHandle};
use crate::watch::Start;
use crate::watched_files::WatchedFiles;

/// The reason why input did not reach the program. No part of it did.
#[derive(Debug, thiserror::Error, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputError {
    #[error("the program has ended")]
    Ended,
    #[error("the program does not read its input, and what is waiting for it has reached 1 MiB")]
    Full,
    #[error("the keeper is gone, and the terminal with it")]
    Lost,
    #[error("nothing was typed: the keeper does not answer")]
    KeeperSilent,
    #[error("the terminal is {0} now")]
    Status(StatusKind),
    #[error("the question has changed since this was typed, so it is not passed on")]
    MovedOn,
    #[error("nobody knows whether this reached the program before posse was cut off; it is not typed again")]
    Uncertain,
    #[error("the database cannot be written, and without that nothing is typed")]
    NotNoted,
    #[error("no question is open")]
    NoQuestion,
    #[error("{0}")]
    Question(NotAnswered),
    #[error("{0}")]
    NotAnswered(Unanswered),
    #[error("{0}")]
    NotDelivered(Failure),
    #[error("no agent is in this terminal")]
    NoAgent,
    #[error("it was refused, but the agent was not ready for the reason within a minute")]
    NotTold,
    #[error("these keys come from a process in a terminal, and could answer what the agent asks")]
    KeysFromTerminal,
}

impl ApiProblem for InputError {
    fn problem(&self) -> (ProblemKind, Option<&str>) {
        use ProblemKind as Kind;
        match self {
            Self::Ended => (Kind::Ended, Some("`posse output` shows what it printed last")),
            Self::Full => (Kind::NotReading, Some("look at it with `posse attach`")),
            Self::Lost => (Kind::Lost, None),
            Self::KeeperSilent => (Kind::KeeperSilent, Some(hint::KEEPER_SILENT)),
            Self::Uncertain => (Kind::Uncertain, Some("look at the terminal before typing it again")),
            Self::NotNoted => (Kind::Disk, Some("free some space; nothing was typed")),
            Self::Status(_) => (Kind::Status, Some("look again before typing")),
            Self::MovedOn => (Kind::MovedOn, Some("look again before typing")),
            Self::NoQuestion => (Kind::NoQuestion, Some("`posse show` says what it does")),
            Self::NotTold => (Kind::NotTold, Some("send it with `posse send`")),
            Self::KeysFromTerminal => (Kind::FromTerminal, Some(hint::OUTSIDE)),
            Self::NoAgent => (Kind::NoAgent, Some("type into it with `posse send`")),
            Self::Question(why) | Self::NotAnswered(Unanswered { why, presses: 0 }) => match why {
                NotAnswered::Changed => (Kind::QuestionChanged, Some("`posse show` has the one that is open now")),
                NotAnswered::NotPlain | NotAnswered::NoSuchOption => {
                    (Kind::Waiting, Some("`posse show` lists its options; `posse answer NAME --option N` chooses one"))
                }
                NotAnswered::NoWords => {
                    (Kind::NoWords, Some("`posse show` lists its options; `posse answer NAME --option N` chooses one"))
                }
                NotAnswered::NoRefusal | NotAnswered::Unclear => (Kind::Waiting, Some("answer it in `posse attach`")),
                NotAnswered::FromTerminal => (Kind::FromTerminal, Some(hint::OUTSIDE)),
                NotAnswered::Vanished => (Kind::NoQuestion, Some("`posse show` says what it does")),
                NotAnswered::Widens => (Kind::Widens, Some("if you mean it, choose it yourself in `posse attach`")),
                NotAnswered::Unproven(_) => {
                    (Kind::Unproven, Some("`posse show` has the question; `posse approve` or `posse deny` answers it"))
                }
                _ if matches!(self, Self::Question(_)) => (Kind::Waiting, Some(hint::ANSWERS)),
                _ => (Kind::NotAnswered, Some("look at it with `posse attach`")),
            },
            Self::NotAnswered(_) => (Kind::NotAnswered, Some("look at it with `posse attach`")),
            Self::NotDelivered(failure) => match (failure.why, failure.left) {
                (_, Left::Unknown) => (Kind::Uncertain, Some("look at the terminal before sending it again")),
                (Why::Dialog(_), _) => (Kind::Waiting, Some(hint::ANSWERS)),
                (Why::Status(_) | Why::Epoch(_), _) => (Kind::Status, Some("look again before sending")),
                (Why::Busy, _) => (Kind::Busy, Some("`posse wait` for it first")),
                (Why::Typing, _) => (Kind::NotTyped, Some("look at it with `posse attach`")),
                (Why::Gone, _) => (Kind::Ended, Some("`posse output` shows what it printed last")),
                (Why::Empty, _) => (Kind::Invalid, None),
                _ => (Kind::NotDelivered, Some("look at it with `posse attach`")),
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextPart {
    /// The lines that have scrolled off, and the screen.
    Full,
    /// The output since input was last sent.
    Last,
    Tail(usize),
    /// The agent's last message, if it differs from the one before.
    Answer,
}

/// The sender of an answer, and their permission. A forbidden attempt is recorded in the audit and refused.
#[derive(Clone, Debug)]
pub(crate) struct Answerer {
    pub(crate) who: Who,
    pub(crate) allowed: bool,
    /// The reason for a refusal, for the audit.
    pub(crate) reason: Option<String>,
}

impl Answerer {
    pub(crate) fn allowed(who: Who) -> Self {
        Self { who, allowed: true, reason: None }
    }

    /// Creates a sender of text that must never become the answer to a question.
    pub(crate) fn forbidden(who: Who) -> Self {
        Self { who, allowed: false, reason: None }
    }
}

pub(crate) enum InputOrigin {
    Request(oneshot::Sender<Result<(), InputError>>),
    Watcher(u64),
    Agent(KeyId),
}

pub(crate) struct PumpInput {
    pub(crate) writer: WriterId,
    pub(crate) sequence: u64,
    pub(crate) bytes: Vec<u8>,
    /// Type nothing unless the terminal has this status.
    pub(crate) expect: Option<StatusKind>,
    /// An agent may get these keys, which could answer its question.
    pub(crate) may_answer: bool,
    pub(crate) origin: InputOrigin,
}

/// The status of a terminal and further facts for a driver, all from the same moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observation {
    pub(crate) status: Status,
    pub(crate) exit: Option<Exit>,
    /// The newest lines since the last prompt. Without new lines, the last lines if the agent failed or waits.
    pub(crate) excerpt: Option<String>,
    /// The agent has written a message since its last prompt. Computed only without other signs of work.
    pub(crate) answered: bool,
}

impl Observation {
    pub(crate) fn of(status: Status, exit: Option<Exit>) -> Self {
        Self { status, exit, excerpt: None, answered: false }
    }
}

pub(crate) enum PumpCommand {
    /// Subscribe to the observation: its current value, and each change.
    Observe(oneshot::Sender<watch::Receiver<Observation>>),
    /// Ask whether the program runs. The pump learns of the end before the hub.
    Alive(oneshot::Sender<bool>),
    Screen(oneshot::Sender<Screen>),
    Text(TextPart, oneshot::Sender<Option<String>>),
    /// Ask whether the program wants pastes to be bracketed.
    BracketedPaste(oneshot::Sender<bool>),
    Input(PumpInput),
    /// A message for the agent, or, in a terminal without one, text and Enter.
    Message {
        order: Order,
        /// The sender, in case the message is an answer.
        answerer: Answerer,
        writer: WriterId,
        sequence: u64,
        reply: oneshot::Sender<Result<(), InputError>>,
    },
    Question(oneshot::Sender<Result<Question, InputError>>),
    /// Answer the agent's question; if one is named, as in `Asked`, only that one. Returns the number of the audit
    /// entry.
    Answer {
        wish: Wish,
        question: Option<String>,
        /// Answer in these words instead of with an option.
        words: Option<String>,
        answerer: Answerer,
        reply: oneshot::Sender<Result<Option<i64>, InputError>>,
    },
    /// Ask how the screen is read now; `None` in a terminal without an agent.
    Explain(oneshot::Sender<Option<Explained>>),
    /// Ask for the traces of a message that may have arrived; `None` in a terminal without an agent.
    Traces {
        text: String,
        reply: oneshot::Sender<Option<Shown>>,
    },
    /// Add the current screen to the recording, which continues from there.
    Picture,
    /// The size of the terminal while no viewer is attached.
    Resize(Size),
    Watch {
        from: Option<u64>,
        reply: oneshot::Sender<Start>,
    },
    Unwatch(u64),
    /// A watcher has a window, and may request its size.
    View {
        watcher: u64,
        size: Option<Size>,
    },
}

/// The reading of a screen, and the agent's last claims about itself.
pub(crate) type Explained = (Explanation, Vec<(Source, Claim)>);

pub(crate) enum PumpEvent {
    Keeper(KeeperEvent),
    KeeperLost,
    Command(PumpCommand),
    Hook(serde_json::Value),
    SessionFile(serde_json::Value),
    SessionFileLocated(PathBuf),
    /// The meaning of a line in the agent's event file: for its state, and about questions.
    Said(Option<(Source, Claim)>, Option<ReportEvent>),
    /// The store has recorded that this message is about to be sent, or failed to.
    InputNoted {
        writer: WriterId,
        sequence: u64,
        written: bool,
    },
    /// The store has recorded that a question is about to be answered, under this number, or failed to.
    AnswerNoted(Option<i64>),
}

/// A handle to a terminal's pump. The pump ends with the last handle.
#[derive(Clone)]
pub(crate) struct PumpHandle {
    pub(super) events: mpsc::UnboundedSender<PumpEvent>,
}

impl PumpHandle {
    pub(crate) fn send(&self, event: PumpEvent) {
        let _ = self.events.send(event);
    }

    /// Sends a command and waits for the reply. `None` if the terminal was deleted meanwhile.
    pub(crate) async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> PumpCommand) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.send(PumpEvent::Command(command(reply)));
        answer.await.ok()
    }
}

pub(crate) struct PumpStart {
    pub(crate) record: Record,
    pub(crate) provider: Option<Arc<Provider>>,
    /// Messages with records from before this daemon started.
    pub(crate) known_inputs: Vec<KnownInput>,
    pub(crate) beginning: PumpBeginning,
}

/// The state in which a pump starts.
pub(crate) enum PumpBeginning {
    /// The program runs under the keeper. Output is read from `from` on, and commands wait until everything up to
    /// `caught_up_at` has been processed.
    ///
    /// `over`: the program has ended; the reason follows after its output.
    Live { ring: u64, from: u64, caught_up_at: u64, over: bool },
    /// The program ended before this daemon started; its last screen, if it was stored.
    Ended(Option<Box<Emulator>>, Exit),
}

pub(crate) struct PumpSettings {
    pub(crate) link: Option<KeeperLink>,
    /// The file for the last screen, written when the program ends.
    pub(crate) last_screen: PathBuf,
    pub(crate) events_file: PathBuf,
    pub(crate) files: WatchedFiles,
    pub(crate) hub: mpsc::UnboundedSender<HubEvent>,
    pub(crate) store: StoreHandle,
    pub(crate) recorder: Recorder,
}
