//! What the hub hears and answers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use posse_agents::Provider;
use posse_agents::launch::LaunchError;
use posse_agents::profile::Profile;
use posse_agents::start::Confirmed;
use posse_agents::version::Version;
use posse_api::{EventBody, LogEvent, ProblemKind, StatusView, Terminal};
use posse_core::audit::Note;
use posse_core::ids::{Name, TerminalId, WriterId};
use posse_core::peer::Household;
use posse_core::screen::Size;
use posse_core::signal::Signal;
use posse_core::status::{Exit, Status};
use posse_term::client::{KeeperLink, Untaken};
use posse_term::wire::{SpawnRefusal, TerminalSummary};
use tokio::sync::oneshot;

use crate::api::{ApiProblem, hint};
use crate::pump::Handle;
use crate::record::Record;
use crate::store::{JournalEntry, Outcome};

pub(crate) enum Message {
    Command(Command),
    /// A change of a terminal, and up to where its output had been read by then.
    Change(TerminalId, Option<u64>, Change),
    Keeper(KeeperReport),
    /// What became of an answer; to be followed by this when it is written, or cannot be for now. Also from the pump of a
    /// terminal that is gone meanwhile.
    AnswerOver(Box<Note>, Box<dyn FnOnce() + Send>),
    /// The store has dealt with an event.
    Stored(LogEvent, Outcome),
    /// The store has dealt with our last event, and everyone was told.
    FarewellTold,
    /// There are more recordings than before.
    RecordingsGrown,
    /// The store has dealt with the record of a terminal to be started.
    CreationStored(TerminalId, LogEvent, Outcome),
}

/// What a pump has to say.
pub(crate) enum Change {
    Status(Box<Status>),
    Title(String),
    Size(Size),
    Signal(Signal),
    /// Something for the log.
    Event(Box<EventBody>),
    /// Whether somebody is attached.
    Watched(bool),
    /// This input is to be written down before it is sent.
    InputAhead {
        writer: WriterId,
        sequence: u64,
    },
    /// It has arrived, or certainly has not.
    InputSettled {
        writer: WriterId,
        sequence: u64,
        arrived: bool,
    },
    /// A question is about to be answered. Nothing is typed before this is written down.
    Answering(Box<Note>),
    Ended {
        exit: Exit,
        /// Its last status, if that is another one.
        status: Option<Box<Status>>,
        screen_saved: bool,
        /// Who still knows how it ended, and may forget it when that is written down.
        known_to: Option<KeeperLink>,
    },
}

/// A report of the connection to the keeper.
pub(crate) enum KeeperReport {
    /// It is connected, and this is what it has.
    Up(KeeperLink, Vec<TerminalSummary>),
    Spawned {
        id: TerminalId,
        pid: u32,
    },
    SpawnFailed {
        id: TerminalId,
        why: SpawnRefusal,
        message: String,
    },
    Ended {
        id: TerminalId,
        left: u32,
    },
    /// It will not start us again when we go.
    Resting,
    /// It cannot be reached for now. The connection is tried again.
    Unreachable(String),
    Lost(String),
    /// The keeper did not take this request in time, for this reason, and will not carry it out.
    Untaken(Untaken, String),
    /// Why the keeper does not answer; `None`: it does again.
    Silent(Option<String>),
}

/// Which session a new terminal belongs to.
pub(crate) enum SessionChoice {
    /// One that must not exist yet; without a name one is made up.
    New(Option<Name>),
    /// One that must exist.
    Existing(Name),
    /// This one, whether it exists or not.
    Any(Name),
}

/// What to start.
pub(crate) enum What {
    /// A program and its arguments, under the provider of this name.
    Command(&'static str, Vec<String>),
    Agent(Box<AgentStart>),
}

/// An agent to start.
pub(crate) struct AgentStart {
    pub(crate) provider: Arc<Provider>,
    pub(crate) confirmed: Confirmed,
    pub(crate) model: Option<String>,
    pub(crate) profile: Option<Profile>,
    /// More arguments for it, as they are.
    pub(crate) more: Vec<String>,
    /// The version that is installed, where that decides how it is started and is known.
    pub(crate) version: Option<Version>,
    /// Where the files of its hooks lie, if it has any and they could be written.
    pub(crate) hook_files: Option<String>,
}

/// A terminal to start, checked as far as that can be done without starting it.
pub(crate) struct Creation {
    pub(crate) what: What,
    pub(crate) agent_profile: Option<String>,
    pub(crate) name: Option<Name>,
    pub(crate) session: SessionChoice,
    pub(crate) directory: PathBuf,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) size: Size,
    pub(crate) ring: u32,
    /// Answer when it is written down, without waiting for the program to run.
    pub(crate) at_once: bool,
}

pub(crate) enum Command {
    Create(Box<Creation>, oneshot::Sender<Result<View, CreateError>>),
    List(oneshot::Sender<Vec<View>>),
    Show(TerminalId, oneshot::Sender<Option<View>>),
    /// The processes that are ours.
    Household(oneshot::Sender<Household>),
    /// The pump of a terminal.
    Find(TerminalId, oneshot::Sender<Option<Handle>>),
    Resize(TerminalId, Size),
    Touch(TerminalId),
    HangUp(TerminalId, oneshot::Sender<Result<(), KeeperSilent>>),
    /// Whether the keeper answers.
    ProbeKeeper(oneshot::Sender<Result<(), KeeperSilent>>),
    Delete {
        id: TerminalId,
        grace_ms: u32,
        reply: DeleteReply,
    },
    Stop {
        all: bool,
        reply: oneshot::Sender<Result<Stopped, KeeperSilent>>,
    },
    /// Remember a setting, or forget it. Answered when that is written.
    Set {
        name: &'static str,
        value: Option<String>,
        reply: oneshot::Sender<Result<(), SettingError>>,
    },
    /// Record what terminals print from now on, or do not.
    Record(bool),
    Health(oneshot::Sender<Health>),
    /// An entry of a run's journal. Answered when it is written, or cannot be.
    Journal {
        entry: Box<JournalEntry>,
        reply: oneshot::Sender<Result<(), String>>,
    },
}

/// A terminal as the world sees it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) record: Record,
    pub(crate) title: String,
    pub(crate) size: Size,
    /// Somebody is attached.
    pub(crate) watched: bool,
}

impl From<View> for Terminal {
    fn from(View { record, title, size, .. }: View) -> Self {
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
    #[error("the database cannot be written: {0}")]
    Store(String),
    #[error("no keeper is running to start it: {0}")]
    NoKeeper(String),
    #[error("nothing was started: {0}")]
    KeeperSilent(#[from] KeeperSilent),
    #[error("it was ended before it had started")]
    Ended,
    #[error("{0}")]
    Agent(#[from] LaunchError),
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
            Self::Agent(_) => (Kind::Invalid, None),
            Self::NotInstalled { install, .. } => (Kind::NoProgram, Some(install)),
            Self::Failed { .. } => (Kind::StartFailed, Some("`posse ls` has it; `posse output` shows what it said")),
            Self::NoKeeper(_) => (Kind::NoKeeper, Some("try again in a moment")),
        }
    }
}

/// A setting could not be stored.
#[derive(Debug, thiserror::Error)]
#[error("the database cannot be written: {0}")]
pub(crate) struct SettingError(pub(crate) String);

impl ApiProblem for SettingError {
    fn problem(&self) -> (ProblemKind, Option<&str>) {
        (ProblemKind::Disk, Some("free some space and say it again"))
    }
}

/// Why the keeper did not take a request. The request is not carried out later either.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct KeeperSilent(pub(crate) String);

impl ApiProblem for KeeperSilent {
    fn problem(&self) -> (ProblemKind, Option<&str>) {
        (ProblemKind::KeeperSilent, Some(hint::KEEPER_SILENT))
    }
}

/// How a deletion is answered; `None` if there is no such terminal.
pub(crate) type DeleteReply = oneshot::Sender<Result<Option<Deleted>, KeeperSilent>>;

#[derive(Debug)]
pub(crate) struct Deleted {
    /// Processes that could not be ended.
    pub(crate) left: u32,
}

/// What goes on when the daemon stops.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) running: Vec<View>,
    /// The keeper did not answer when it was told that the daemon leaves.
    pub(crate) keeper_silent: Option<KeeperSilent>,
}

#[derive(Debug, Clone)]
pub(crate) struct Health {
    /// What keeps the daemon from working as it should, in words.
    pub(crate) problem: Option<String>,
}
