//! Everything a request can be answered with that is not what it asked for.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use posse_api::{Problem, ProblemKind};
use posse_core::ids::{BadName, BadRunId, BadTerminalId, TerminalId};
use posse_core::screen::BadSize;

use crate::hub::{CreateError, KeeperSilent, StoreRefusal};
use crate::pump::InputError;
use crate::run::SupervisorError;
use crate::run::journal::Failed;
use crate::store::StoreError;

/// An error that a client gets, with a stable word for programs and what to do next.
pub(crate) trait ApiProblem: std::error::Error {
    fn problem(&self) -> (ProblemKind, Option<&str>);
}

/// Hints that several errors share.
pub(crate) mod hint {
    /// About a question that is in the way, whatever kind of question it is.
    pub(crate) const ANSWERS: &str =
        "`posse show` says which of `posse approve`, `posse deny` and `posse answer` answers it";
    /// About a refusal that is due to where the request comes from.
    pub(crate) const OUTSIDE: &str = "do it in a shell outside of posse's terminals, or set `answers_from_terminals = true` under `[permissions]` in your config.toml";
    /// About a keeper that does not answer.
    pub(crate) const KEEPER_SILENT: &str =
        "it is not done later either; `posse doctor` says what is wrong with the keeper";
    pub(crate) const AGAIN: &str = "try again in a moment";
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("there is no terminal {0}")]
    NoTerminal(TerminalId),
    #[error("where terminal {0} lives cannot be reached for now")]
    OutOfReach(TerminalId),
    #[error(transparent)]
    BadId(#[from] BadTerminalId),
    #[error(transparent)]
    BadRunId(#[from] BadRunId),
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
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
    Create(#[from] CreateError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Journal(#[from] Failed),
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
    Setting(#[from] StoreRefusal),
    #[error("this holds until the daemon restarts, but cannot be remembered: {0}")]
    NotRemembered(StoreRefusal),
    #[error("cannot listen on {0}: {1}")]
    Listen(std::net::SocketAddr, String),
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        ApiError::Malformed(rejection.body_text())
    }
}

impl ApiError {
    /// The error and its hint in one text.
    pub(crate) fn in_full(&self) -> String {
        let (_, hint) = self.problem();
        hint.map_or_else(|| self.to_string(), |hint| format!("{self} ({hint})"))
    }
}

impl ApiProblem for ApiError {
    fn problem(&self) -> (ProblemKind, Option<&str>) {
        use ProblemKind as Kind;
        match self {
            Self::NoTerminal(_) => (Kind::NoTerminal, Some("`posse ls` shows those there are")),
            Self::BadId(_) => (Kind::BadId, None),
            Self::BadRunId(_) => (Kind::BadId, None),
            Self::BadName(_) => (Kind::BadName, None),
            Self::BadSize(_) => (Kind::BadSize, None),
            Self::Malformed(_) => (Kind::Malformed, None),
            Self::Invalid(_) => (Kind::Invalid, None),
            Self::TooMuchInput(_) => (Kind::TooMuchInput, Some("put it into a file and send its path")),
            Self::NoMessage => (Kind::NoMessage, Some("`full` output has everything")),
            Self::Supervisor(error) => error.problem(),
            Self::Create(error) => error.problem(),
            Self::Input(error) => error.problem(),
            Self::Journal(error) => error.problem(),
            Self::Store(error) => error.problem(),
            Self::Setting(error) | Self::NotRemembered(error) => error.problem(),
            Self::KeeperSilent(error) => error.problem(),
            Self::StartTimeout(_) => (Kind::StartTimeout, Some("`posse ls` has it; look at it with `posse attach`")),
            Self::StartUnseen(_) => (Kind::KeeperSilent, Some("`posse ls` has it; it goes on when the keeper does")),
            Self::Stopping => (Kind::Stopping, Some(hint::AGAIN)),
            Self::OutOfReach(_) => (Kind::OutOfReach, Some("`posse doctor` says what is wrong")),
            Self::NoRoute(_) => (Kind::NoRoute, None),
            Self::NoMethod(_) => (Kind::NoMethod, None),
            Self::NoSession(_) => (Kind::NoSession, Some("`posse ls` shows those there are")),
            Self::TooLarge => (Kind::TooLarge, None),
            Self::TooSlow => (Kind::TooSlow, None),
            Self::NotAWebSocket => (Kind::NotAWebSocket, None),
            Self::Unauthorized => {
                (Kind::Unauthorized, Some("send `Authorization: Bearer TOKEN`; `posse serve` says where the token is"))
            }
            Self::ForeignHost => (Kind::ForeignHost, None),
            Self::ForeignOrigin => (Kind::ForeignOrigin, None),
            Self::TooManyConnections(_) => (Kind::TooManyConnections, Some("close some connections and try again")),
            Self::FromTerminal(_) => (Kind::FromTerminal, Some(hint::OUTSIDE)),
            Self::ForeignHook(_) => (Kind::ForeignHook, None),
            Self::Listen(..) => (Kind::Listen, Some("choose another port with --listen 127.0.0.1:PORT")),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (kind, hint) = self.problem();
        let status = StatusCode::from_u16(kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(Problem { detail: self.to_string(), kind, hint: hint.map(Into::into) })).into_response()
    }
}

pub(super) async fn no_such_route(uri: Uri) -> ApiError {
    ApiError::NoRoute(uri.path().to_owned())
}

pub(super) async fn no_such_method(method: Method) -> ApiError {
    ApiError::NoMethod(method.to_string())
}
