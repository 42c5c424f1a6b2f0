//! The sender of a request: a process at the other end of the private socket, or a client over TCP.

use std::collections::BTreeSet;

use axum::extract::FromRequestParts;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::http::request::Parts;
use axum::serve::IncomingStream;
use posse_agents::headless::Sandbox;
use posse_api::SessionRules;
use posse_core::audit::{By, Who};
use posse_core::peer::{Ancestor, Whereabouts};
use posse_core::review_loop::config::Notifications;
use posse_files::confirmed_commands::{ConfirmedCommands, named_commands};
use posse_files::operator::Operator;
use posse_term::lineage::lineage;

use super::terminals::directory;
use super::*;
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

#[derive(Clone, Copy, Debug)]
pub(super) struct OverTcp;

#[derive(Clone, Copy, Debug)]
pub(super) enum Requester {
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
        let household = app.ask(HubCommand::Household).await?;
        Ok(Requester::Process(household.place(&lineage)))
    }
}

impl Requester {
    /// Refuses a process in a terminal, unless the operator has allowed such processes to answer.
    pub(super) async fn may(self, app: &App, what: &'static str) -> Result<(), ApiError> {
        if self.may_type(app).await { Ok(()) } else { Err(ApiError::from_terminal(what)) }
    }

    /// Refuses a process in a terminal that begins a run without its sandbox (`unconfined`) or with its own
    /// configuration: the daemon reads the files itself and compares. Returns the resolved project path, and the
    /// commands to which such a process is limited; `None` if the requester may bring any.
    pub(super) async fn may_begin(
        self,
        app: &App,
        unconfined: &'static str,
        project: &str,
        brought: &SessionRules,
    ) -> Result<(String, Option<BTreeSet<String>>), ApiError> {
        if brought.sandbox == Sandbox::Off {
            self.may(app, unconfined).await?;
        }
        let not_text = |_| ApiError::invalid(format!("the name of {project} is not valid UTF-8"));
        let directory = directory(project).await?.into_os_string().into_string().map_err(not_text)?;
        if self.may_type(app).await {
            return Ok((directory, None));
        }
        self.may_be_notified(app, &brought.notifications).await?;
        let (paths, project) = (app.paths.clone(), PathBuf::from(&directory));
        let load =
            move |disk: &Disk| (disk.plan_layers(&paths, &project), ConfirmedCommands::load(disk, &paths, &project));
        let (found, confirmed) = disk::run(load).await;
        let mut found = found?.resolve(&[]);
        // `state_dir` locates the stop file, and there is a flag for it.
        found.config.state_dir.clone_from(&brought.config.state_dir);
        if found.config != brought.config {
            return Err(ApiError::from_terminal("begin a run with another configuration than that of its files"));
        }
        let confirmed = confirmed?;
        if named_commands(&found, "", None).iter().any(|named| !confirmed.contains(&named.command)) {
            return Err(ApiError::from_terminal("begin a run with commands that you have not confirmed"));
        }
        Ok((directory, Some(confirmed.and_those_of(&found.config))))
    }

    /// Refuses a process in a terminal that wants a command run at each event, unless it is the user's own.
    pub(super) async fn may_be_notified(self, app: &App, wanted: &Notifications) -> Result<(), ApiError> {
        if wanted.command.is_empty() || self.may_type(app).await {
            return Ok(());
        }
        let users = operator(app).await.notification_command;
        if users == wanted.command { Ok(()) } else { Err(ApiError::from_terminal("have a command run at each event")) }
    }

    /// Returns whether keys of this requester may reach an agent.
    pub(super) async fn may_type(self, app: &App) -> bool {
        let is_held = matches!(self, Requester::Process(whereabouts) if whereabouts != Whereabouts::Outside);
        !is_held || operator(app).await.answers_from_terminals
    }

    /// Returns whether the requester certainly is a process of this terminal.
    pub(super) fn belongs_to(self, id: TerminalId) -> bool {
        matches!(self, Requester::Process(Whereabouts::Terminal(terminal)) if terminal == id)
    }

    /// Returns the requester as the sender of an answer in this terminal.
    pub(super) async fn answerer(self, app: &App, id: TerminalId) -> Answerer {
        let (by, from) = match self {
            Requester::Client => (By::Client, None),
            Requester::Process(Whereabouts::Outside) => (By::Person, None),
            Requester::Process(whereabouts) => (By::Terminal, whereabouts.terminal()),
        };
        let (run, role) = app.loops.of_terminal(id).await.unzip();
        let who = Who { by, from, run: run.map(|run| run.to_string()), role: role.flatten(), turn: None, count: None };
        Answerer { who, allowed: self.may_type(app).await, reason: None }
    }
}

/// Shows where the requesting process runs. Only on the private socket.
pub(super) async fn show(State(app): State<App>, requester: Requester) -> Json<posse_api::RequesterView> {
    let terminal = match requester {
        Requester::Client => None,
        Requester::Process(whereabouts) => whereabouts.terminal(),
    };
    Json(posse_api::RequesterView { may_answer: requester.may_type(&app).await, terminal })
}

async fn operator(app: &App) -> Operator {
    let paths = app.paths.clone();
    disk::run(move |disk| Operator::load_or_deny(disk, &paths)).await
}
