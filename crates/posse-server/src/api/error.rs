//! Everything a request can be answered with that is not what it asked for.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use posse_core::delivery::{Left, NotAnswered, Unanswered, Why};
use posse_core::ids::{BadName, BadRunId, BadTerminalId, TerminalId};
use posse_core::screen::BadSize;
use posse_term::wire::SpawnRefusal;

use super::types::Problem;
use crate::auto::AutoError;
use crate::hub::{CreateError, KeeperSilent, SettingError};
use crate::journal::Failed;
use crate::plans::PlanError;
use crate::pump::InputError;
use crate::runs::{ClaimError, RunError};
use crate::store::StoreError;

/// What to do about a question that is in the way, whatever kind of question it is.
const ANSWERS: &str = "`posse show` says which of `posse approve`, `posse deny` and `posse answer` answers it";

/// What to do about a refusal that is due to where the request comes from.
const OUTSIDE: &str = "do it in a shell outside of posse's terminals, or set `answers_from_terminals = true` under \
                       `[permissions]` in your config.toml";
/// What to do about a keeper that does not answer.
const KEEPER_SILENT: &str = "it is not done later either; `posse doctor` says what is wrong with the keeper";

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("there is no terminal {0}")]
    NoTerminal(TerminalId),
    #[error("where terminal {0} lives cannot be reached for now")]
    OutOfReach(TerminalId),
    #[error(transparent)]
    BadId(#[from] BadTerminalId),
    #[error(transparent)]
    BadRunId(#[from] BadRunId),
    #[error(transparent)]
    Run(RunErrorBox),
    #[error(transparent)]
    Plan(PlanErrorBox),
    #[error(transparent)]
    Auto(AutoErrorBox),
    #[error(transparent)]
    BadName(#[from] BadName),
    #[error(transparent)]
    BadSize(#[from] BadSize),
    #[error("{0}")]
    Malformed(String),
    #[error("{0}")]
    Invalid(String),
    #[error("the input has {0} bytes; at most {max} are taken at once", max = posse_term::wire::MAX_INPUT)]
    TooMuchInput(usize),
    #[error("nothing was printed since the last input")]
    NoMessage,
    #[error(transparent)]
    Create(CreateErrorBox),
    #[error(transparent)]
    Input(InputErrorBox),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the database cannot be written: {0}")]
    NotWritten(String),
    #[error("it runs, but is not ready after {} s", .0.as_secs())]
    StartTimeout(std::time::Duration),
    #[error("it was started, but is not ready yet: {0}")]
    StartUnseen(KeeperSilent),
    #[error("it was not done: {0}")]
    KeeperSilent(#[from] KeeperSilent),
    #[error("the daemon is stopping")]
    Stopping,
    #[error("there is nothing at {0}")]
    NoRoute(String),
    #[error("{0} is not for this")]
    NoMethod(String),
    #[error("there is no session {0}")]
    NoSession(String),
    #[error("the request is larger than {} bytes", super::MAX_BODY)]
    TooLarge,
    #[error("the request took too long to arrive")]
    TooSlow,
    #[error("this is a WebSocket; connect to it as one")]
    NotAWebSocket,
    #[error("a token is needed")]
    Unauthorized,
    #[error("the Host header must name this machine, like 127.0.0.1 or localhost")]
    ForeignHost,
    #[error("requests from pages of other origins are refused")]
    ForeignOrigin,
    #[error("{0} clients are connected, which is the limit")]
    TooManyConnections(usize),
    #[error("a process in a terminal may not {0}")]
    FromTerminal(&'static str),
    #[error("only a process of terminal {0} may report what its agent does")]
    ForeignHook(TerminalId),
    #[error(transparent)]
    Setting(SettingErrorBox),
    #[error("this holds until the daemon restarts, but cannot be remembered: {0}")]
    NotRemembered(SettingErrorBox),
    #[error("cannot listen on {0}: {1}")]
    Listen(std::net::SocketAddr, String),
}

/// Keeps the hub's own error type out of the public interface.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct CreateErrorBox(pub(crate) CreateError);

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct InputErrorBox(pub(crate) InputError);

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SettingErrorBox(pub(crate) SettingError);

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RunErrorBox(pub(crate) RunError);

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct PlanErrorBox(pub(crate) PlanError);

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct AutoErrorBox(pub(crate) AutoError);

impl From<Failed> for ApiError {
    fn from(error: Failed) -> Self {
        match error {
            Failed::Stopping => ApiError::Stopping,
            Failed::Disk(why) => ApiError::NotWritten(why),
            error @ Failed::NoJson(_) => ApiError::NotWritten(error.to_string()),
            Failed::Store(error) => ApiError::Store(error),
        }
    }
}

impl From<AutoError> for ApiError {
    fn from(error: AutoError) -> Self {
        match error {
            AutoError::Journal(error) => error.into(),
            AutoError::Plan(error) => error.into(),
            error => ApiError::Auto(AutoErrorBox(error)),
        }
    }
}

impl From<PlanError> for ApiError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Journal(error) => error.into(),
            error => ApiError::Plan(PlanErrorBox(error)),
        }
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Journal(error) => error.into(),
            error => ApiError::Run(RunErrorBox(error)),
        }
    }
}

impl From<CreateError> for ApiError {
    fn from(error: CreateError) -> Self {
        ApiError::Create(CreateErrorBox(error))
    }
}

impl From<SettingError> for ApiError {
    fn from(error: SettingError) -> Self {
        ApiError::Setting(SettingErrorBox(error))
    }
}

impl From<InputError> for ApiError {
    fn from(error: InputError) -> Self {
        ApiError::Input(InputErrorBox(error))
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        ApiError::Malformed(rejection.body_text())
    }
}

impl ApiError {
    /// It is done, but the next daemon will not know of it.
    pub(crate) fn not_remembered(error: SettingError) -> Self {
        ApiError::NotRemembered(SettingErrorBox(error))
    }

    /// What happened and what to do next, for where only one text goes.
    pub(crate) fn in_full(&self) -> String {
        let (_, _, hint) = self.parts();
        hint.map_or_else(|| self.to_string(), |hint| format!("{self} ({hint})"))
    }

    /// Status, a stable word for programs, and what to do next.
    fn parts(&self) -> (StatusCode, &'static str, Option<&str>) {
        use StatusCode as S;
        match self {
            Self::NoTerminal(_) => (S::NOT_FOUND, "no_terminal", Some("`posse ls` shows those there are")),
            Self::BadId(_) => (S::UNPROCESSABLE_ENTITY, "bad_id", None),
            Self::BadRunId(_) => (S::UNPROCESSABLE_ENTITY, "bad_id", None),
            Self::Run(RunErrorBox(error)) => match error {
                RunError::None(_) => (S::NOT_FOUND, "no_run", Some("`posse runs` shows those there are")),
                RunError::InUse { .. } | RunError::Shared { .. } => (S::CONFLICT, "in_use", None),
                RunError::Claimed(ClaimError::Held { .. }) => (S::CONFLICT, "locked", None),
                RunError::Claimed(ClaimError::Io { .. }) => (S::CONFLICT, "disk", Some("put that right and try again")),
                RunError::NoProgram { install, .. } => (S::BAD_REQUEST, "no_program", Some(install)),
                RunError::Over(_) => (S::CONFLICT, "over", Some("`posse run show` says how it ended")),
                RunError::Rests(_) => (S::CONFLICT, "rests", Some("`posse loop --resume` goes on with it")),
                RunError::Journal(_) => (S::INTERNAL_SERVER_ERROR, "store", None),
            },
            Self::Plan(PlanErrorBox(error)) => match error {
                PlanError::None(_) => (S::NOT_FOUND, "no_run", None),
                PlanError::Unreadable { .. } => {
                    (S::BAD_REQUEST, "no_file", Some("`posse plan init` makes a sample plan"))
                }
                PlanError::Invalid(_) => {
                    (S::BAD_REQUEST, "invalid_plan", Some("`posse plan check` shows every mistake with its place"))
                }
                PlanError::NoTask(_) => (S::NOT_FOUND, "no_task", Some("`posse plan status` shows those there are")),
                PlanError::NotAsking(_) => (S::CONFLICT, "not_asking", Some("`posse plan status` shows who asks")),
                PlanError::Unconfirmed(_) => (S::FORBIDDEN, "from_terminal", Some(OUTSIDE)),
                PlanError::Busy(_) => (S::CONFLICT, "busy", None),
                PlanError::Wrong(_) => (S::BAD_REQUEST, "invalid", None),
                PlanError::NoProgram { install, .. } => (S::BAD_REQUEST, "no_program", Some(install)),
                PlanError::Area(_) => (S::CONFLICT, "no_area", None),
                PlanError::NoJournal { .. } => (
                    S::CONFLICT,
                    "no_journal",
                    Some(
                        "the posse that wrote it may go on with it; or copy the plan to a file of another name, and run that",
                    ),
                ),
                PlanError::Over => (S::CONFLICT, "over", None),
                PlanError::NotWritten(_) => (S::CONFLICT, "not_written", None),
                PlanError::Journal(_) => (S::INTERNAL_SERVER_ERROR, "store", None),
            },
            Self::Auto(AutoErrorBox(error)) => match error {
                AutoError::None(_) | AutoError::Never(_) => (S::NOT_FOUND, "no_run", None),
                AutoError::Locked { .. } => (S::CONFLICT, "in_use", None),
                AutoError::InUse { .. } => {
                    (S::CONFLICT, "in_use", Some("`posse auto status` shows what it does, `posse auto stop` stops it"))
                }
                AutoError::NoItem(_) => (S::NOT_FOUND, "no_item", Some("`posse auto items` shows those there are")),
                AutoError::Looking(_) => (S::CONFLICT, "looking", None),
                AutoError::Over(_) => (S::CONFLICT, "over", None),
                AutoError::Wrong(_) => (S::BAD_REQUEST, "invalid", None),
                AutoError::Plan(_) | AutoError::Journal(_) => (S::INTERNAL_SERVER_ERROR, "store", None),
            },
            Self::BadName(_) => (S::BAD_REQUEST, "bad_name", None),
            Self::BadSize(_) => (S::UNPROCESSABLE_ENTITY, "bad_size", None),
            Self::Malformed(_) => (S::UNPROCESSABLE_ENTITY, "malformed", None),
            Self::Invalid(_) => (S::BAD_REQUEST, "invalid", None),
            Self::TooMuchInput(_) => {
                (S::PAYLOAD_TOO_LARGE, "too_much_input", Some("put it into a file and send its path"))
            }
            Self::NoMessage => (S::NOT_FOUND, "no_message", Some("`full` output has everything")),
            Self::Create(CreateErrorBox(error)) => match error {
                CreateError::NameTaken(_) => {
                    (S::BAD_REQUEST, "name_taken", Some("choose another, or `posse kill` the one that has it"))
                }
                CreateError::SessionTaken(_) => (S::BAD_REQUEST, "session_taken", Some("choose another name")),
                CreateError::NoSession(_) => (S::NOT_FOUND, "no_session", Some("`posse ls` shows those there are")),
                CreateError::Refused(SpawnRefusal::DirectoryMissing, _) => (S::BAD_REQUEST, "no_directory", None),
                CreateError::Refused(SpawnRefusal::ProgramMissing, _) => {
                    (S::BAD_REQUEST, "no_program", Some("is it installed, and in the PATH of this shell?"))
                }
                CreateError::Refused(SpawnRefusal::NotExecutable, _) => (S::BAD_REQUEST, "not_executable", None),
                CreateError::Refused(SpawnRefusal::LimitReached, _) => (S::SERVICE_UNAVAILABLE, "limit_reached", None),
                CreateError::Refused(..) => (S::INTERNAL_SERVER_ERROR, "start_failed", None),
                CreateError::Store(_) => {
                    (S::INSUFFICIENT_STORAGE, "disk", Some("free some space; nothing was started"))
                }
                CreateError::KeeperSilent(_) => (S::SERVICE_UNAVAILABLE, "keeper_silent", Some(KEEPER_SILENT)),
                CreateError::Ended => (S::CONFLICT, "ended", None),
                CreateError::Agent(_) => (S::BAD_REQUEST, "invalid", None),
                CreateError::NotInstalled { install, .. } => (S::BAD_REQUEST, "no_program", Some(install)),
                CreateError::Failed { .. } => (
                    S::INTERNAL_SERVER_ERROR,
                    "start_failed",
                    Some("`posse ls` has it; `posse output` shows what it said"),
                ),
                CreateError::NoKeeper(_) => (S::SERVICE_UNAVAILABLE, "no_keeper", Some("try again in a moment")),
            },
            Self::Input(InputErrorBox(error)) => match error {
                InputError::Ended => (S::CONFLICT, "ended", Some("`posse output` shows what it printed last")),
                InputError::Full => (S::CONFLICT, "not_reading", Some("look at it with `posse attach`")),
                InputError::Lost => (S::CONFLICT, "lost", None),
                InputError::KeeperSilent => (S::SERVICE_UNAVAILABLE, "keeper_silent", Some(KEEPER_SILENT)),
                InputError::Uncertain => {
                    (S::CONFLICT, "uncertain", Some("look at the terminal before typing it again"))
                }
                InputError::NotNoted => (S::INSUFFICIENT_STORAGE, "disk", Some("free some space; nothing was typed")),
                InputError::Status(_) => (S::CONFLICT, "status", Some("look again before typing")),
                InputError::MovedOn => (S::CONFLICT, "moved_on", Some("look again before typing")),
                InputError::NoQuestion => (S::CONFLICT, "no_question", Some("`posse show` says what it does")),
                InputError::NotTold => (S::GATEWAY_TIMEOUT, "not_told", Some("send it with `posse send`")),
                InputError::KeysFromTerminal => (S::FORBIDDEN, "from_terminal", Some(OUTSIDE)),
                InputError::NoAgent => (S::CONFLICT, "no_agent", Some("type into it with `posse send`")),
                InputError::Question(why) | InputError::NotAnswered(Unanswered { why, presses: 0 }) => match why {
                    NotAnswered::Changed => {
                        (S::CONFLICT, "question_changed", Some("`posse show` has the one that is open now"))
                    }
                    NotAnswered::NotPlain | NotAnswered::NoSuchOption => (
                        S::CONFLICT,
                        "waiting",
                        Some("`posse show` lists its options; `posse answer NAME --option N` chooses one"),
                    ),
                    NotAnswered::NoWords => (
                        S::CONFLICT,
                        "no_words",
                        Some("`posse show` lists its options; `posse answer NAME --option N` chooses one"),
                    ),
                    NotAnswered::NoRefusal | NotAnswered::Unclear => {
                        (S::CONFLICT, "waiting", Some("answer it in `posse attach`"))
                    }
                    NotAnswered::FromTerminal => (S::FORBIDDEN, "from_terminal", Some(OUTSIDE)),
                    NotAnswered::Vanished => (S::CONFLICT, "no_question", Some("`posse show` says what it does")),
                    NotAnswered::Widens => {
                        (S::CONFLICT, "widens", Some("if you mean it, choose it yourself in `posse attach`"))
                    }
                    NotAnswered::Unproven(_) => (
                        S::CONFLICT,
                        "unproven",
                        Some("`posse show` has the question; `posse approve` or `posse deny` answers it"),
                    ),
                    _ if matches!(error, InputError::Question(_)) => (S::CONFLICT, "waiting", Some(ANSWERS)),
                    _ => (S::CONFLICT, "not_answered", Some("look at it with `posse attach`")),
                },
                InputError::NotAnswered(_) => (S::CONFLICT, "not_answered", Some("look at it with `posse attach`")),
                InputError::NotDelivered(failure) => match (failure.why, failure.left) {
                    (_, Left::Unknown) => {
                        (S::CONFLICT, "uncertain", Some("look at the terminal before sending it again"))
                    }
                    (Why::Dialog(_), _) => (S::CONFLICT, "waiting", Some(ANSWERS)),
                    (Why::Status(_) | Why::Epoch(_), _) => (S::CONFLICT, "status", Some("look again before sending")),
                    (Why::Busy, _) => (S::CONFLICT, "busy", Some("`posse wait` for it first")),
                    (Why::Typing, _) => (S::INTERNAL_SERVER_ERROR, "not_typed", Some("look at it with `posse attach`")),
                    (Why::Gone, _) => (S::CONFLICT, "ended", Some("`posse output` shows what it printed last")),
                    (Why::Empty, _) => (S::BAD_REQUEST, "invalid", None),
                    _ => (S::CONFLICT, "not_delivered", Some("look at it with `posse attach`")),
                },
            },
            Self::Store(_) => (S::INTERNAL_SERVER_ERROR, "store", None),
            Self::NotWritten(_) => (S::INSUFFICIENT_STORAGE, "disk", Some("free some space; nothing was started")),
            Self::StartTimeout(_) => {
                (S::GATEWAY_TIMEOUT, "start_timeout", Some("`posse ls` has it; look at it with `posse attach`"))
            }
            Self::StartUnseen(_) => {
                (S::SERVICE_UNAVAILABLE, "keeper_silent", Some("`posse ls` has it; it goes on when the keeper does"))
            }
            Self::KeeperSilent(_) => (S::SERVICE_UNAVAILABLE, "keeper_silent", Some(KEEPER_SILENT)),
            Self::Stopping => (S::SERVICE_UNAVAILABLE, "stopping", Some("try again in a moment")),
            Self::OutOfReach(_) => (S::SERVICE_UNAVAILABLE, "out_of_reach", Some("`posse doctor` says what is wrong")),
            Self::NoRoute(_) => (S::NOT_FOUND, "no_route", None),
            Self::NoMethod(_) => (S::METHOD_NOT_ALLOWED, "no_method", None),
            Self::NoSession(_) => (S::NOT_FOUND, "no_session", Some("`posse ls` shows those there are")),
            Self::TooLarge => (S::PAYLOAD_TOO_LARGE, "too_large", None),
            Self::TooSlow => (S::REQUEST_TIMEOUT, "too_slow", None),
            Self::NotAWebSocket => (S::BAD_REQUEST, "not_a_websocket", None),
            Self::Unauthorized => (
                S::UNAUTHORIZED,
                "unauthorized",
                Some("send `Authorization: Bearer TOKEN`; `posse serve` says where the token is"),
            ),
            Self::ForeignHost => (S::FORBIDDEN, "foreign_host", None),
            Self::ForeignOrigin => (S::FORBIDDEN, "foreign_origin", None),
            Self::TooManyConnections(_) => {
                (S::SERVICE_UNAVAILABLE, "too_many_connections", Some("close some connections and try again"))
            }
            Self::FromTerminal(_) => (S::FORBIDDEN, "from_terminal", Some(OUTSIDE)),
            Self::ForeignHook(_) => (S::FORBIDDEN, "foreign_hook", None),
            Self::Setting(_) | Self::NotRemembered(_) => {
                (S::INSUFFICIENT_STORAGE, "disk", Some("free some space and say it again"))
            }
            Self::Listen(..) => (S::CONFLICT, "listen", Some("choose another port with --listen 127.0.0.1:PORT")),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, kind, hint) = self.parts();
        let problem = Problem { detail: self.to_string(), kind: kind.into(), hint: hint.map(Into::into) };
        (status, Json(problem)).into_response()
    }
}

pub(super) async fn no_such_route(uri: Uri) -> ApiError {
    ApiError::NoRoute(uri.path().to_owned())
}

pub(super) async fn no_such_method(method: Method) -> ApiError {
    ApiError::NoMethod(method.to_string())
}
