//! The executor carries out the effects of one run. Each effect has a task of its own, which answers with an input.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posse_agents::Provider;
use posse_agents::headless::{Event as Said, HeadlessRules, Spawn};
use posse_core::ids::Name;
use posse_core::turn::Level;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::effects::session::{Order, Over, Sessions};
use super::{EntryOf, InputOf, StepError, Workflow, messages};
use crate::git;

/// The environment of the client that starts agents. Comes with a request, and is never stored.
#[derive(Clone)]
pub(crate) struct LaunchContext {
    pub(crate) environment: BTreeMap<String, String>,
}

/// A message from the tasks of a run to its driver.
pub(crate) enum Signal<W: Workflow> {
    Answer(Box<InputOf<W>>),
    Entry(EntryOf<W>),
    /// New output of a session, and its current activity if the output shows one.
    Activity(W::Session, Option<String>),
    Wake(W::Wake),
}

#[derive(Clone)]
pub(crate) struct Executor<W: Workflow> {
    pub(crate) spec: Arc<W::Spec>,
    pub(crate) sessions: Sessions,
    pub(crate) context: Option<LaunchContext>,
    pub(crate) state: PathBuf,
    pub(crate) signals: UnboundedSender<Signal<W>>,
    pub(crate) work: W,
}

impl<W: Workflow> Executor<W> {
    pub(crate) fn answer(&self, input: InputOf<W>) {
        let _ = self.signals.send(Signal::Answer(Box::new(input)));
    }

    pub(crate) fn record(&self, entry: EntryOf<W>) {
        let _ = self.signals.send(Signal::Entry(entry));
    }

    pub(crate) fn warn(&self, session: &W::Session, text: String) {
        self.record(W::said(Level::Warning, Some(session), text));
    }

    pub(crate) fn session_name(&self, session: &W::Session) -> Result<Name, StepError> {
        let run = W::fields(&self.spec).id;
        Ok(terminal_name(&format!("{}-{run}-{session}", W::KIND.as_str())).parse()?)
    }

    pub(crate) fn session_files(&self, session: &W::Session) -> Result<PathBuf, StepError> {
        let directory =
            W::session_directory(&session.to_string()).ok_or_else(|| StepError::because("the session has no name"))?;
        Ok(self.state.join(directory))
    }

    /// Reports whether this session was started. Then it needs no environment.
    pub(crate) async fn is_known(&self, session: &W::Session) -> bool {
        match (self.session_name(session), self.session_files(session)) {
            (Ok(name), Ok(files)) => self.sessions.is_known(&name, &files).await,
            _ => false,
        }
    }

    pub(crate) async fn provider(&self) -> Result<(Arc<Provider>, Arc<HeadlessRules>), StepError> {
        let provider = self.sessions.app.provider(W::fields(&self.spec).provider).await?;
        let texts = provider.manifest.headless.clone().ok_or_else(StepError::needs_terminal)?;
        Ok((provider, texts))
    }

    /// Runs a session to its end, or resumes the one that runs.
    pub(crate) async fn run_session(
        &self,
        session: &W::Session,
        setup: SessionSetup,
        stop: watch::Receiver<bool>,
    ) -> Result<Over, StepError> {
        let SessionSetup { spawn, texts, timeout, agent, profile, model, attempt } = setup;
        let fields = W::fields(&self.spec);
        if !self.is_known(session).await
            && let Ok(spawn) = &spawn
        {
            let flags = spawn.argv.iter().skip(1).cloned().collect();
            self.record(EntryOf::<W>::Launched { id: session.clone(), agent, profile, model, attempt, flags });
        }
        let order = Order {
            name: self.session_name(session)?,
            group: Name::session(&format!("{}-{}", W::KIND.as_str(), fields.id))?,
            spawn,
            files: self.session_files(session)?,
            texts,
            timeout,
            idle: fields.idle_timeout,
        };
        let hears = |event: &Said| {
            let _ = self.signals.send(Signal::Activity(session.clone(), messages::activity(event)));
        };
        let over = self.sessions.run(order, self.context.clone(), stop, hears).await;
        let denials = over.facts.denials().to_vec();
        if !denials.is_empty() {
            self.record(EntryOf::<W>::Refused { id: session.clone(), denials });
        }
        let changed = git::check(fields.directory.as_ref()).await.unwrap_or_else(|error| vec![error.to_string()]);
        for what in changed {
            let text =
                format!("while session {session} ran the repository was changed: {what}; posse does not use that");
            self.warn(session, text);
        }
        Ok(over)
    }
}

/// A session, as its journal has it, and what it is started with.
pub(crate) struct SessionSetup {
    /// Not needed by a session that runs already.
    pub(crate) spawn: Result<Spawn, StepError>,
    pub(crate) texts: Arc<HeadlessRules>,
    pub(crate) timeout: Duration,
    pub(crate) agent: String,
    pub(crate) profile: String,
    pub(crate) model: Option<String>,
    pub(crate) attempt: Option<u32>,
}

/// A name for a terminal. Dots, which ids have and names of terminals may not, become `_`.
fn terminal_name(name: &str) -> String {
    let name: String = name.chars().map(|c| if c == '.' { '_' } else { c }).collect();
    if name.chars().count() <= posse_core::ids::NAME_MAX {
        return name;
    }
    // Long ids differ somewhere: their fingerprint does too.
    let mark = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let head: String = name.chars().take(posse_core::ids::NAME_MAX - 17).collect();
    format!("{head}-{mark:016x}")
}
