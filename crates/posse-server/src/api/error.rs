//! Everything a request can be answered with that is not what it asked for.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use posse_agents::launch::LaunchError;
use posse_api::{Problem, ProblemKind};
use posse_core::ids::{BadName, BadRunId, BadTerminalId, TerminalId};
use posse_core::screen::BadSize;
use posse_files::confirmed_commands::ConfirmedError;
use posse_files::providers::UserFileError;
use posse_term::config_files::ConfigFileError;

use crate::hub::KeeperSilent;
use crate::store::StoreError;

/// An error that a client gets, with a stable word for programs and what to do next.
pub(crate) trait ApiProblem: std::error::Error {
    fn problem(&self) -> (ProblemKind, Option<&str>);
}

/// Hints that several errors share.
pub(crate) mod hint {
    /// Applies to any kind of pending question.
    pub(crate) const ANSWERS: &str =
        "`posse show` says which of `posse approve`, `posse deny` and `posse answer` answers it";
    /// About a refusal that is due to where the request comes from.
    pub(crate) const OUTSIDE: &str = "do it in a shell outside of posse's terminals, or set `answers_from_terminals = true` under `[permissions]` in your config.toml";
    /// About a keeper that does not answer.
    pub(crate) const KEEPER_SILENT: &str =
        "it is not done later either; `posse doctor` says what is wrong with the keeper";
    pub(crate) const AGAIN: &str = "try again in a moment";
    /// About a name that nothing has.
    pub(crate) const LIST: &str = "`posse ls` shows those there are";
}

/// The refusal of a request.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.detail)]
pub(crate) struct ApiError(pub(super) Problem);

impl ApiError {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self(Problem { detail: detail.into(), kind, hint: None })
    }

    /// Adds what to do next.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    pub(crate) fn kind(&self) -> ProblemKind {
        self.0.kind
    }

    /// The error and its hint in one text.
    pub(crate) fn in_full(&self) -> String {
        self.0.hint.as_ref().map_or_else(|| self.to_string(), |hint| format!("{self} ({hint})"))
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Invalid, detail)
    }

    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Malformed, detail)
    }

    pub(super) fn stopping() -> Self {
        Self::new(ProblemKind::Stopping, "the daemon is stopping").with_hint(hint::AGAIN)
    }

    pub(super) fn no_terminal(id: TerminalId) -> Self {
        Self::new(ProblemKind::NoTerminal, format!("there is no terminal {id}")).with_hint(hint::LIST)
    }

    pub(super) fn no_session(name: &str) -> Self {
        Self::new(ProblemKind::NoSession, format!("there is no session {name}")).with_hint(hint::LIST)
    }

    pub(super) fn too_large() -> Self {
        let detail = format!("the request is larger than {} bytes", super::MAX_BODY);
        Self::new(ProblemKind::TooLarge, detail)
    }

    /// A process in a terminal may not do this.
    pub(super) fn from_terminal(what: &str) -> Self {
        let detail = format!("a process in a terminal may not {what}");
        Self::new(ProblemKind::FromTerminal, detail).with_hint(hint::OUTSIDE)
    }
}

impl<E: ApiProblem> From<E> for ApiError {
    fn from(error: E) -> Self {
        let (kind, hint) = error.problem();
        Self(Problem { detail: error.to_string(), kind, hint: hint.map(Into::into) })
    }
}

impl From<KeeperSilent> for ApiError {
    fn from(silent: KeeperSilent) -> Self {
        Self::new(ProblemKind::KeeperSilent, format!("it was not done: {silent}")).with_hint(hint::KEEPER_SILENT)
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::malformed(rejection.body_text())
    }
}

/// Errors of a single kind, with their own hints.
macro_rules! plain_problems {
    ($($error:ty => $kind:ident),+ $(,)?) => {
        $(impl ApiProblem for $error {
            fn problem(&self) -> (ProblemKind, Option<&str>) {
                (ProblemKind::$kind, None)
            }
        })+
    };
}

plain_problems! {
    BadTerminalId => BadId,
    BadRunId => BadId,
    BadName => BadName,
    BadSize => BadSize,
    LaunchError => Invalid,
    StoreError => Store,
    UserFileError => Invalid,
    ConfigFileError => Invalid,
    ConfirmedError => Invalid,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self.0)).into_response()
    }
}

pub(super) async fn no_such_route(uri: Uri) -> ApiError {
    ApiError::new(ProblemKind::NoRoute, format!("there is nothing at {}", uri.path()))
}

pub(super) async fn no_such_method(method: Method) -> ApiError {
    ApiError::new(ProblemKind::NoMethod, format!("{method} is not for this"))
}
