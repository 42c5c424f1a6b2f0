//! `posse launch`: start an agent, or any program, in a terminal of its own.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use posse_agents::launch::Mode;
use posse_agents::profile::Profile;
use posse_agents::start::If;
use posse_api::{Create, Terminal};
use posse_core::screen::Size;
use posse_core::status::StatusKind;
use posse_files::disk::Disk;
use posse_files::providers::Providers;
use posse_term::text_file;

use super::tmux::{ShownTerminals, Tmux};
use crate::client::{self, Client, Repeat};
use crate::error::{BadArgument, Error, Exit};
use crate::ui::{Ui, plain, trusts};

/// Start an agent, or any program, in a terminal of its own
///
/// It is started directly, without a shell, with the environment of this shell and in this directory. It goes on when
/// you close your window. Prints the new terminal's id, for an agent when it is ready.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse launch claude_code                     an agent that asks before it changes anything
  posse launch codex --mode edits --trust      edits here are free, commands ask
  posse launch claude_code -- --resume ID      more arguments for the agent
  posse launch claude_code --tmux              show it in a window of your tmux
  posse launch -- htop                         any program")]
pub(crate) struct Args {
    /// The agent; `posse provider list` shows those there are
    provider: Option<String>,
    /// What it may do without asking: `ask`, `edits` or `bypass`
    #[arg(long, value_name = "MODE", requires = "provider")]
    mode: Option<Mode>,
    /// It never asks: the same as `--mode bypass --trust`
    #[arg(long, requires = "provider", conflicts_with = "mode")]
    yolo: bool,
    /// You trust this directory: the agent may read, run and obey what is in it
    #[arg(long, requires = "provider")]
    trust: bool,
    /// The model it uses
    #[arg(long, requires = "provider")]
    model: Option<String>,
    /// Its role: a name, or a Markdown file
    #[arg(long, value_name = "PROFILE", requires = "provider")]
    profile: Option<String>,
    /// Do not wait until it is ready
    #[arg(long, requires = "provider")]
    no_wait: bool,
    /// A name for the terminal; one is made up otherwise
    #[arg(long)]
    name: Option<String>,
    /// The session (a named group of terminals) it belongs to; a new one otherwise
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Where to start it [default: here]
    #[arg(long, short = 'C', value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// Its size, as COLUMNSxROWS
    #[arg(long, value_name = "SIZE", default_value_t = Size::DEFAULT)]
    size: Size,
    /// An additional variable for its environment
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<(String, String)>,
    /// Attach to it at once; it takes the size of this window while you are attached
    #[arg(long, short)]
    attach: bool,
    /// Show it in a tmux window: in your tmux, or in a tmux session called `posse`; see `posse tmux --help`
    #[arg(long, conflicts_with = "attach")]
    tmux: bool,
    /// The program and its arguments; after an agent, more arguments for it
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn variable(text: &str) -> Result<(String, String), BadArgument> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(BadArgument::Variable),
    }
}

pub(crate) async fn run(mut args: Args, ui: &Ui) -> Result<Exit, Error> {
    if args.provider.is_none() && args.command.is_empty() {
        return Err(Error::usage("there is nothing to launch")
            .with_hint("name an agent, like `posse launch claude_code`, or a program, like `posse launch -- bash`"));
    }
    if args.yolo {
        (args.mode, args.trust) = (Some(Mode::Bypass), true);
    }
    let mut create = args.create()?;
    if args.mode == Some(Mode::Bypass) {
        ui.warn("It will not ask before it acts: whatever it decides to do here, it does.");
    }
    if let Some(provider) = args.provider.as_ref().filter(|_| !args.trust)
        && asks_for_trust(provider)?
    {
        let directory = &create.working_directory;
        if !ui.interactive() || !std::io::stdin().is_terminal() {
            return Err(Error::usage(format!(
                "{provider} would ask whether it may trust {directory}, and nobody is here to answer"
            ))
            .with_hint("look at what is in there, and give --trust"));
        }
        let question = format!("May {provider} read, run and obey what is in {directory}?");
        create.trusted = trusts(question).await?;
    }
    let tmux = if args.tmux { Some(Tmux::find(false).await?) } else { None };
    let mut client = Client::connect().await?;
    let terminal: Terminal = launch(&mut client, create).await?;
    if args.attach {
        return super::attach::attach(client, &terminal, ui).await;
    }
    let shown = match &tmux {
        Some(tmux) => Some(tmux.show(std::slice::from_ref(&terminal)).await),
        None => None,
    };
    let launched = Launched { terminal: &terminal, tmux: shown.as_ref().and_then(|shown| shown.as_ref().ok()) };
    ui.answer(&launched, || format!("{}\n", terminal.id));
    match shown {
        Some(Ok(shown)) => ui.say(&shown.summary()),
        Some(Err(error)) => return Err(error),
        None => {}
    }
    if terminal.status.status == StatusKind::WaitingUserAnswer {
        let question = terminal.status.dialog.as_ref().map_or("something", |dialog| &dialog.title);
        let answers = super::ls::answers_to(&terminal, terminal.name.as_str());
        ui.say(&format!("{} asks: {}; {answers} answers it", terminal.name, plain(question)));
    } else if ui.interactive() && !args.tmux {
        ui.say(&format!("{} runs; look at it with `posse attach {}`", terminal.name, terminal.name));
    }
    Ok(Exit::Ok)
}

/// The answer of `posse launch --json`.
#[derive(serde::Serialize)]
struct Launched<'a> {
    #[serde(flatten)]
    terminal: &'a Terminal,
    #[serde(skip_serializing_if = "Option::is_none")]
    tmux: Option<&'a ShownTerminals>,
}

/// Returns whether this agent asks for trust in a directory that it does not know. One that cannot be
/// loaded is refused by the daemon, with the reason.
fn asks_for_trust(provider: &str) -> Result<bool, Error> {
    let loaded = Providers::new(client::paths()?.providers()).load(&Disk::of_this_thread(), provider);
    let start = loaded.ok().and_then(|provider| provider.manifest.start.clone());
    Ok(start.is_some_and(|start| start.answers.iter().any(|answer| answer.condition == If::Trusted)))
}

pub(crate) async fn launch(client: &mut Client, create: Create) -> Result<Terminal, Error> {
    client.post("/terminals", &create, Repeat::Never).await
}

impl Args {
    fn create(&self) -> Result<Create, Error> {
        let is_file = |text: &&str| text.ends_with(".md");
        let directory = self.directory.clone().unwrap_or_else(|| PathBuf::from("."));
        let mut environment = environment();
        environment.extend(self.environment.iter().cloned());
        Ok(Create {
            provider: self.provider.clone(),
            mode: self.mode,
            model: self.model.clone(),
            profile: self.profile.as_deref().filter(is_file).map(profile).transpose()?,
            agent_profile: self.profile.clone().filter(|text| !is_file(&text.as_str())),
            trusted: self.trust,
            wait: Some(!self.no_wait),
            command: self.command.clone(),
            name: self.name.clone(),
            session_name: self.session.clone(),
            working_directory: client::absolute(&directory)?,
            environment,
            size: Some(self.size),
            ring_bytes: None,
        })
    }
}

/// A profile from a file of its own.
fn profile(path: &str) -> Result<Profile, Error> {
    let text = text_file::read_argument(Path::new(path))
        .map_err(|error| Error::usage(format!("cannot read {path}: {error}")))?;
    Profile::parse(&text).map_err(|error| Error::usage(format!("{path}: {error}")))
}

/// This shell's environment. What is not UTF-8 cannot be sent and is left out.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
