//! Events, commands and effects of the hub.

use std::collections::BTreeSet;
use std::sync::Arc;

use posse_agents::Provider;
use posse_api::{EventBody, LogEvent, ProblemKind, StatusView, Terminal};
use posse_core::ids::{Name, TerminalId};
use posse_core::peer::Household;
use posse_core::screen::Size;
use posse_core::signal::Signal;
use posse_core::status::{Exit, Status};
use posse_core::time::{Mono, Wall};
use posse_term::client::{KeeperLink, Untaken};
use posse_term::emulator::Emulator;
use posse_term::wire::{KeeperEvent, KeeperRequest, ProgramSpec, SpawnRefusal, TerminalSummary};
use tokio::sync::oneshot;

use crate::api::{ApiProblem, hint};
use crate::pump::{self, PumpHandle, PumpStart};
use crate::record::Record;
pub(crate) use crate::store::StoreRefusal;
use crate::store::{self, WriteResult};

use super::machine::HubMachine;

pub(crate) enum HubEvent {
    Command(HubCommand),
    /// A report of a terminal's pump, with the output offset up to which it has read.
    Pump(TerminalId, Option<u64>, PumpReport),
    Keeper(KeeperReport),
    Stored(AfterWrite, WriteResult),
    RecordingsGrown,
    TerminalLoaded {
        id: TerminalId,
        load: u64,
        provider: Option<Arc<Provider>>,
        emulator: Option<Box<Emulator>>,
    },
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HubTime {
    pub(crate) wall: Wall,
    pub(crate) mono: Mono,
}

pub(crate) type ReplyThunk = Box<dyn FnOnce() + Send>;

/// An action of the hub. Actions are carried out in order.
pub(crate) enum HubEffect {
    Write {
        changes: Vec<store::Change>,
        /// Keep the batch if the disk refuses it, and try again until it is written.
        retry: bool,
        then: AfterWrite,
        forget: Option<TerminalId>,
    },
    Publish(Box<LogEvent>),
    Reply(ReplyThunk),
    Keeper(Box<KeeperRequest>),
    Reconnect,
    /// Hang up a terminal, or only ask the keeper for a sign of life.
    Confirm(Option<TerminalId>, KeeperReply),
    Health(HubProblems, oneshot::Sender<Option<String>>),
    LoadTerminal(LoadTerminal),
    StartPump(Box<PumpStart>),
    ToPump(TerminalId, Box<pump::PumpEvent>),
    DropPump(TerminalId),
    Find(TerminalId, oneshot::Sender<Option<PumpHandle>>),
    Record(bool),
    RemoveEventsFile(TerminalId),
    RemoveFiles(TerminalId),
    Tidy(TidyRequest),
}

/// The machine's next step after the store has written or refused a batch.
pub(crate) type AfterWrite = Box<dyn FnOnce(&mut HubMachine, WriteResult) + Send>;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LoadTerminal {
    pub(crate) id: TerminalId,
    /// Distinguishes this load from another one of the same terminal.
    pub(crate) number: u64,
    pub(crate) provider: Option<String>,
    pub(crate) screen: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TidyRequest {
    pub(crate) scope: TidyScope,
    pub(crate) known: BTreeSet<TerminalId>,
    pub(crate) running: BTreeSet<TerminalId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TidyScope {
    Recordings,
    /// Also the last screens and the log.
    Everything,
}

pub(crate) enum PumpReport {
    Status(Box<Status>),
    Title(String),
    Size(Size),
    Signal(Signal),
    Event(Box<EventBody>),
    Watched(bool),
    Ended {
        exit: Exit,
        /// The last status, if it differs from the one before.
        status: Option<Box<Status>>,
        screen_saved: bool,
        /// The keeper knows how the program ended. It may forget that once it is recorded.
        keeper_knows: bool,
    },
}

pub(crate) enum KeeperReport {
    Up {
        link: KeeperLink,
        held: Vec<TerminalSummary>,
        /// The terminals among them whose last screen is in a file.
        saved_screens: BTreeSet<TerminalId>,
    },
    Event(KeeperEvent),
    /// The keeper cannot be reached for now. The connection is retried.
    Unreachable(String),
    Lost(String),
    /// The keeper did not take this request in time, for this reason, and will not execute it.
    Untaken(Untaken, String),
    /// The reason why the keeper does not answer; `None` if it answers again.
    Silent(Option<String>),
}

/// The required state of a new terminal's session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SessionChoice {
    New,
    Existing,
    Any,
}

/// A terminal to start, checked as far as possible without starting it.
pub(crate) struct NewTerminal {
    pub(crate) record: Record,
    /// The caller chose the name, so it must be free. Random names may repeat.
    pub(crate) named: bool,
    pub(crate) choice: SessionChoice,
    pub(crate) program: ProgramSpec,
    /// `None` for a plain command.
    pub(crate) provider: Option<Arc<Provider>>,
    /// Reply when the record is written, without waiting for the program.
    pub(crate) at_once: bool,
}

pub(crate) type CreateReply = oneshot::Sender<Result<TerminalSnapshot, CreateError>>;

pub(crate) enum HubCommand {
    Create(Box<NewTerminal>, CreateReply),
    List(oneshot::Sender<Vec<TerminalSnapshot>>),
    Show(TerminalId, oneshot::Sender<Option<TerminalSnapshot>>),
    /// The processes of the daemon, the keeper and the terminals.
    Household(oneshot::Sender<Household>),
    Find(TerminalId, oneshot::Sender<Option<PumpHandle>>),
    Resize(TerminalId, Size),
    Touch(TerminalId),
    HangUp(TerminalId, KeeperReply),
    ProbeKeeper(KeeperReply),
    Delete {
        id: TerminalId,
        grace_ms: u32,
        reply: DeleteReply,
    },
    Stop {
        all: bool,
        reply: StopReply,
    },
    Record(bool),
    Health(oneshot::Sender<Option<String>>),
    /// Write a change and events together, and publish the events. Answered when everything is written, or cannot be.
    Commit {
        change: Box<store::Change>,
        events: Vec<EventBody>,
        reply: oneshot::Sender<Result<(), StoreRefusal>>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct TerminalSnapshot {
    pub(crate) record: Record,
    pub(crate) title: String,
    pub(crate) size: Size,
    pub(crate) watched: bool,
}

impl TerminalSnapshot {
    pub(crate) fn new(record: Record) -> Self {
        Self { title: String::new(), size: record.size, watched: false, record }
    }
}

impl From<TerminalSnapshot> for Terminal {
    fn from(TerminalSnapshot { record, title, size, .. }: TerminalSnapshot) -> Self {
        Self {
            id: record.id,
            name: record.name,
            session_name: record.session,
            provider: record.provider,
            agent_profile: record.agent_profile,
            mode: record.confirmed.map(|confirmed| confirmed.mode),
            status: StatusView::from(&record.status),
            title,
            working_directory: record.directory,
            command: record.command,
            size,
            pid: record.pid.filter(|_| record.exit.is_none()),
            exit: record.exit,
            created_at: record.created.timestamp(),
            last_active: record.last_active.timestamp(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CreateError {
    #[error("the name {0} is taken")]
    NameTaken(Name),
    #[error("there is a session {0} already")]
    SessionTaken(Name),
    #[error("there is no session {0}")]
    NoSession(Name),
    #[error("{1}")]
    Refused(SpawnRefusal, String),
    #[error(transparent)]
    Store(StoreRefusal),
    #[error("no keeper is running to start it: {0}")]
    NoKeeper(String),
    #[error("nothing was started: {0}")]
    KeeperSilent(#[from] KeeperSilent),
    #[error("it was ended before it had started")]
    Ended,
    #[error("{program} is not installed, or not in PATH")]
    NotInstalled { program: String, install: String },
    #[error("it ended while it was starting: {reason}")]
    Failed { terminal: TerminalId, reason: String },
}

impl ApiProblem for CreateError {
    fn problem(&self) -> (ProblemKind, Option<&str>) {
        use ProblemKind as Kind;
        match self {
            Self::NameTaken(_) => (Kind::NameTaken, Some("choose another, or `posse kill` the one that has it")),
            Self::SessionTaken(_) => (Kind::SessionTaken, Some("choose another name")),
            Self::NoSession(_) => (Kind::NoSession, Some("`posse ls` shows those there are")),
            Self::Refused(SpawnRefusal::DirectoryMissing, _) => (Kind::NoDirectory, None),
            Self::Refused(SpawnRefusal::ProgramMissing, _) => {
                (Kind::NoProgram, Some("is it installed, and in the PATH of this shell?"))
            }
            Self::Refused(SpawnRefusal::NotExecutable, _) => (Kind::NotExecutable, None),
            Self::Refused(SpawnRefusal::LimitReached, _) => (Kind::LimitReached, None),
            Self::Refused(..) => (Kind::StartFailed, None),
            Self::Store(_) => (Kind::Disk, Some("free some space; nothing was started")),
            Self::KeeperSilent(_) => (Kind::KeeperSilent, Some(hint::KEEPER_SILENT)),
            Self::Ended => (Kind::Ended, None),
            Self::NotInstalled { install, .. } => (Kind::NoProgram, Some(install)),
            Self::Failed { .. } => (Kind::StartFailed, Some("`posse ls` has it; `posse output` shows what it said")),
            Self::NoKeeper(_) => (Kind::NoKeeper, Some("try again in a moment")),
        }
    }
}

/// The reason why the keeper did not take a request, which it will not execute later either.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct KeeperSilent(pub(crate) String);

pub(crate) type KeeperReply = oneshot::Sender<Result<(), KeeperSilent>>;

/// Answers a deletion with the number of processes that could not be ended; `None` if there is no such terminal.
pub(crate) type DeleteReply = oneshot::Sender<Result<Option<u32>, KeeperSilent>>;

pub(crate) type StopReply = oneshot::Sender<Result<StoppedDaemon, KeeperSilent>>;

#[derive(Debug)]
pub(crate) struct StoppedDaemon {
    pub(crate) running: Vec<TerminalSnapshot>,
    pub(crate) keeper_silent: Option<KeeperSilent>,
    pub(crate) unsaved: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct HubProblems {
    /// The reason why the connected keeper does not answer.
    pub(crate) keeper_silent: Option<String>,
    /// The reason why there is no keeper and none can be started.
    pub(crate) no_keeper: Option<String>,
    pub(crate) disk: Option<StoreRefusal>,
}
