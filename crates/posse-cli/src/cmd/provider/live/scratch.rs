//! Where agents are checked: a home for posse with a daemon of its own, and a home for each agent that is started.
//! All of it belongs to a value that outlives the conversations, so that an interrupted check can be cleared away too.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_api::Create;
use posse_core::ids::TerminalId;
use posse_core::screen::Size;
use posse_sim::home::{HomeOptions, Maker, ScriptedHome};
use posse_sim::{ModelServer, Scenario};
use posse_term::paths::Paths;
use tempfile::TempDir;

use super::conversation::{self, Conversation};
use super::finding::{Evidence, Expectation, Finding};
use super::stage::Stage;
use crate::client::{self, Client};
use crate::error::Error;

/// As large as most windows.
const SIZE: (u16, u16) = (40, 120);

/// Who is checked.
pub(super) struct Agent<'a> {
    pub(super) provider: &'a str,
    pub(super) maker: Maker,
    pub(super) program: &'a Path,
    pub(super) version: &'a str,
    pub(super) environment: BTreeMap<String, String>,
}

/// What is left of a conversation for those who want to look into it.
struct Played {
    name: String,
    terminal: TerminalId,
    screen: Vec<String>,
}

pub(super) struct Scratch {
    paths: Paths,
    played: Vec<Played>,
    /// Processes live in them, so they go last.
    homes: Vec<ScriptedHome>,
    home: TempDir,
}

impl Scratch {
    pub(super) fn new() -> Result<Self, Error> {
        let private = std::fs::Permissions::from_mode(0o700);
        let home = tempfile::Builder::new().prefix("posse-check-").permissions(private).tempdir();
        let home = home.map_err(Error::io("cannot make a directory"))?;
        let path = home.path().as_os_str().to_owned();
        let paths = Paths::resolve(|name| (name == "POSSE_HOME").then(|| path.clone()))?;
        paths.prepare()?;
        Ok(Self { paths, played: Vec::new(), homes: Vec::new(), home })
    }

    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The user's manifest of this provider counts here too.
    pub(super) fn lay_over(&self, provider: &str, theirs: &Path) -> Result<(), Error> {
        let name = format!("{provider}.toml");
        let (from, to) = (theirs.join(&name), self.paths.providers());
        if !from.exists() {
            return Ok(());
        }
        let copied = std::fs::create_dir_all(&to).and_then(|()| std::fs::copy(&from, to.join(&name)));
        copied.map(|_| ()).map_err(Error::io(format!("cannot use {}", from.display())))
    }

    /// Plays a conversation with an agent that is started for it.
    pub(super) async fn play(&mut self, agent: &Agent<'_>, conversation: Conversation) -> Result<Vec<Finding>, Error> {
        let scenario = Scenario::parse(conversation.script()).map_err(|error| Error::failed(error.to_string()))?;
        let server = ModelServer::start([scenario]).map_err(Error::io("cannot listen on loopback"))?;
        // Errors are to be seen soon.
        let options = HomeOptions { retries: Some(1), ..HomeOptions::default() };
        let home = agent.maker.home(agent.program, agent.version, &server, &options);
        let home = home.map_err(Error::io("cannot make a home for the agent"))?;
        let (create, directory) = (create(agent, &home)?, home.directory.clone());
        self.homes.push(home);
        let client = Client::connect_to(self.paths.clone()).await?;
        let mut stage = match Stage::open(client, create, Arc::new(server), directory).await? {
            Ok(stage) => stage,
            Err(why) => {
                let seen = format!("it could not be started: {why}");
                return Ok(vec![Finding::differs(Expectation::Starts, seen, Evidence::default())]);
            }
        };
        let findings = conversation::play(&mut stage, conversation).await?;
        let name = format!("{}-{}", agent.provider, conversation.name());
        self.played.push(Played { name, terminal: stage.id, screen: stage.screen().await });
        Ok(findings)
    }

    /// Ends everything that runs here.
    pub(super) async fn end(&self) -> Result<(), Error> {
        if self.paths.holds_terminals() {
            Client::connect_to(self.paths.clone()).await?.stop(true).await?;
        }
        // Sockets lie elsewhere than the rest.
        let removed = std::fs::remove_dir_all(&self.paths.runtime);
        removed.or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(Error::io(format!("cannot remove {}", self.paths.runtime.display()))(error)),
        })
    }

    /// Copies what was shown to a directory of the user's.
    pub(super) fn keep(&self, directory: &Path) -> Result<(), Error> {
        for played in &self.played {
            let path = |kind: &str| directory.join(format!("{}.{kind}", played.name));
            let written = std::fs::write(path("txt"), played.screen.join("\n") + "\n").and_then(|()| {
                let recording: PathBuf = self.paths.recordings().join(format!("{}.cast", played.terminal));
                std::fs::copy(recording, path("cast")).map(|_| ())
            });
            written.map_err(Error::io(format!("cannot keep {}", played.name)))?;
        }
        Ok(())
    }
}

fn create(agent: &Agent<'_>, home: &ScriptedHome) -> Result<Create, Error> {
    let mut environment = agent.environment.clone();
    environment.extend(home.env.clone());
    Ok(Create {
        provider: Some(agent.provider.to_owned()),
        wait: Some(false),
        working_directory: client::absolute(&home.directory)?,
        environment,
        size: Some(Size::clamped(SIZE.0, SIZE.1)),
        ..Create::default()
    })
}
