//! Who asks: the process at the other end of the private socket, or a client over TCP.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::http::request::Parts;
use axum::serve::IncomingStream;
use posse_core::audit::{By, Who};
use posse_core::ids::TerminalId;
use posse_core::peer::{Ancestor, Whereabouts};
use posse_term::lineage::lineage;
use tokio::net::UnixStream;

use super::{ApiError, App, OwnerOnly};
use crate::hub::Command;
use crate::operator::Operator;
use crate::pump::Answerer;

/// The process that connected and its ancestors, read when the connection was accepted. Empty if it was gone by then.
#[derive(Clone, Debug)]
pub(super) struct PeerProcess(Arc<[Ancestor]>);

impl PeerProcess {
    pub(super) fn of(stream: &UnixStream) -> Self {
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid()).filter(|pid| *pid > 0);
        Self(pid.map(lineage).unwrap_or_default().into())
    }
}

impl Connected<IncomingStream<'_, OwnerOnly>> for PeerProcess {
    fn connect_info(stream: IncomingStream<'_, OwnerOnly>) -> Self {
        stream.remote_addr().clone()
    }
}

/// Marks requests that came over TCP.
#[derive(Clone, Copy, Debug)]
pub(super) struct OverTcp;

/// Who sent a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Requester {
    /// A program that came over TCP.
    Client,
    Process(Whereabouts),
}

impl FromRequestParts<App> for Requester {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        if parts.extensions.get::<OverTcp>().is_some() {
            return Ok(Requester::Client);
        }
        let Some(ConnectInfo(PeerProcess(lineage))) = parts.extensions.get::<ConnectInfo<PeerProcess>>() else {
            return Ok(Requester::Process(Whereabouts::Unknown));
        };
        let lineage = lineage.clone();
        let household = app.ask(Command::Household).await?;
        Ok(Requester::Process(household.place(&lineage)))
    }
}

impl Requester {
    /// Whether the requester is a process that may answer only if the operator has allowed it.
    fn is_held(self) -> bool {
        matches!(self, Requester::Process(whereabouts) if !whereabouts.is_outside())
    }

    /// Refuses a process in a terminal, unless the operator has allowed such processes to answer.
    pub(super) fn may(self, app: &App, what: &'static str) -> Result<(), ApiError> {
        if self.is_held() && !allowed(app) { Err(ApiError::FromTerminal(what)) } else { Ok(()) }
    }

    /// Whether keys of this requester may reach an agent.
    pub(super) fn may_type(self, app: &App) -> bool {
        !self.is_held() || allowed(app)
    }

    /// Whether the requester certainly is a process of this terminal.
    pub(super) fn belongs_to(self, id: TerminalId) -> bool {
        matches!(self, Requester::Process(Whereabouts::Terminal(terminal)) if terminal == id)
    }

    /// Who answers a question in this terminal, and whether they may.
    pub(super) async fn answerer(self, app: &App, id: TerminalId) -> Answerer {
        let (by, from) = match self {
            Requester::Client => (By::Client, None),
            Requester::Process(Whereabouts::Outside) => (By::Person, None),
            Requester::Process(whereabouts) => (By::Terminal, whereabouts.terminal()),
        };
        let (run, role) = app.runs.of_terminal(id).await.unzip();
        let who = Who { by, from, run: run.map(|run| run.to_string()), role: role.flatten(), turn: None, count: None };
        Answerer { who, allowed: self.may_type(app), reason: None }
    }
}

fn allowed(app: &App) -> bool {
    Operator::load_or_deny(&app.places).permissions.answers_from_terminals
}
