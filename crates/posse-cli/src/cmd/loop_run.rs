//! `posse loop`: five agents, from a task to PASS.

mod existing;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use posse_api::{LoopIn, LoopView, ProblemKind, RunIn, RunView};
use posse_core::ids::RunId;
use posse_core::review_loop::config::{AgentChoice, LoopConfig, ResolvedRun};
use posse_core::review_loop::{Final, Prompt, Role};
use posse_files::disk::Disk;
use posse_files::providers::{self, Providers};
use posse_term::{config_files, text_file};

use super::run::follow::{Follower, OnSignal};
use super::run::render;
use super::run::send_resume;
use super::run::sessions::print_end;
use super::tmux::{RunWindows, Tmux};
use super::{Signals, launch};
use crate::client::{self, Client, Repeat};
use crate::config;
use crate::error::{Error, Exit};
use crate::ui::{Ui, trusts};
pub(super) use existing::DEFAULT as STATE_FILE;

/// Let five agents work on a task until its test passes
///
/// An analyst, a programmer and a tester, and a reviewer for each of the first two. They hand their work over in files
/// below .tmp/ of the project; rounds go on until the tester says PASS. The run lives in the daemon: this command only
/// follows it, and a run that was cut off goes on where it was.
///
/// Ctrl-C stops the run; `posse loop --resume` goes on with it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse loop --template > task.md                   what a task looks like; fill it in
  posse loop --prompt-file task.md --trust          with codex in all five roles, in this directory
  posse loop loop.json                              as this file says; see examples/loop/
  AUTO_ACCEPT_PERMISSIONS=1 posse loop loop.json    accept what agents ask for; every accept is audited
  posse loop --detach loop.json                     do not follow it; `posse run ls` shows it
  posse loop --tmux loop.json                       with a tmux window for each agent
  posse loop --resume                               go on with the run of this directory
  posse loop --resume 1a2b3c4d                      go on with this run

Exit codes: 0 PASS; 1 FAIL, a stop or an error; 6 another run is in the way, or the one here is not as wanted; 64 wrong \
use; 69 an agent or tmux is not installed; 129 the window was closed, the run goes on; 130 Ctrl-C; 143 SIGTERM.")]
pub(crate) struct Args {
    /// The configuration, as JSON; environment variables win over it
    #[arg(value_name = "CONFIG.json")]
    config: Option<PathBuf>,
    /// The task, and how to test it; see --template
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// Print an empty task and exit
    #[arg(long, conflicts_with_all = ["config", "prompt_file", "resume", "detach"])]
    template: bool,
    /// Resume a run that stopped: this one, or the one of this directory
    #[arg(long, value_name = "RUN", num_args = 0..=1)]
    resume: Option<Option<RunId>>,
    /// You trust the project: the agents may read, run and obey what is in it
    #[arg(long)]
    trust: bool,
    /// Begin it, print its id, and do not follow it
    #[arg(long, short)]
    detach: bool,
    /// Show each agent in a tmux window as it starts: in your tmux, or in a tmux session called `posse`; `posse tmux RUN` does
    /// so later
    #[arg(long, conflicts_with_all = ["detach", "template"])]
    tmux: bool,
    /// The project [default: `wd` of the configuration, else here]
    #[arg(long, short = 'C', value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

/// A run that the user wants, checked before anything is started.
struct WantedRun {
    resolved: ResolvedRun,
    config_hash: Option<String>,
    directory: PathBuf,
    state_file: PathBuf,
    /// `None`: from the state file.
    prompt: Option<Prompt>,
}

/// The request that the command line and the state file ask for; `Break` if there is nothing to follow.
type Course = ControlFlow<Exit, LoopRequest>;

enum LoopRequest {
    Begin(Box<LoopIn>),
    Resume(RunId),
}

impl LoopRequest {
    async fn send(self) -> Result<(Client, RunView), Error> {
        let mut client = Client::connect().await?;
        let view = match self {
            Self::Begin(body) => client.post("/runs", &RunIn::Loop(body), Repeat::Never).await?,
            Self::Resume(id) => send_resume(&mut client, id, false).await?,
        };
        Ok((client, view))
    }
}

/// A task to be filled in.
const TEMPLATE: &str = include_str!("../../../../examples/loop/prompt.md");

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    if args.template {
        ui.answer(&serde_json::json!({ "text": TEMPLATE }), || TEMPLATE.to_owned());
        return Ok(Exit::Ok);
    }
    let tmux = if args.tmux { Some(Tmux::find(false).await?) } else { None };
    let mut signals = Signals::listen();
    // Before the daemon is asked, a signal changes nothing (LOOP-54).
    let course = tokio::select! {
        course = course(&args, ui) => course?,
        signal = signals.next() => return Err(signal),
    };
    let request = match course {
        Course::Break(exit) => return Ok(exit),
        Course::Continue(request) => request,
    };
    let mut answer = std::pin::pin!(request.send());
    let signal = tokio::select! {
        begun = &mut answer => return finish(begun?, &args, tmux, ui).await,
        signal = signals.next() => signal,
    };
    // The run may have begun, and only the answer says which one is to be stopped.
    ui.say(
        "the daemon was asked for it already: it is stopped as soon as it has begun; Ctrl-C again leaves it alone …",
    );
    let begun = tokio::select! {
        begun = answer => begun,
        _ = signals.next() => {
            ui.say("it may go on: `posse run ls` shows it");
            return Err(signal);
        }
    };
    let (client, view) = match begun {
        Err(Error::Refused(_)) => return Err(signal),
        begun => begun?,
    };
    print_end(&Follower::alone(client, &view, OnSignal::Stop, ui).end(signal, signals).await?, ui)
}

async fn course(args: &Args, ui: &Ui) -> Result<Course, Error> {
    if let Some(Some(id)) = args.resume {
        let mut client = Client::connect().await?;
        let view = loop_with_id(&mut client, id).await?;
        if view.status.is_over() {
            return over(&view, ui).map(Course::Break);
        }
        if args.config.is_some() || args.prompt_file.is_some() {
            existing::refuse(&mut client, &view, &args.wanted(ui)?, ui).await?;
        }
        return Ok(Course::Continue(LoopRequest::Resume(id)));
    }
    let wanted = args.wanted(ui)?;
    let resume_wanted = args.resume.is_some() || wanted.resolved.config.resume;
    let Some(found) = existing::look(&wanted.state_file, resume_wanted)? else {
        let prompt = wanted.prompt.clone().ok_or_else(no_prompt)?;
        return begin(args, wanted, prompt, None, ui).await;
    };
    if let Some(verdict) = found.verdict() {
        return Ok(ended(&wanted.state_file, verdict, ui));
    }
    let mut client = Client::connect().await?;
    let known = match found.run {
        Some(id) => match loop_with_id(&mut client, id).await {
            Err(Error::Refused(problem)) if problem.kind == ProblemKind::NoRun => None,
            known => Some(known?),
        },
        None => None,
    };
    let Some(view) = known else {
        // Begun by another posse, or by another program: its file is all there is.
        if let Some(verdict) = found.taken_up(&wanted.resolved.config, &wanted.directory, ui) {
            ui.say(&format!("to begin a new run, move {} away", wanted.state_file.display()));
            return Ok(ended(&wanted.state_file, verdict, ui));
        }
        let of_file = found.state.prompt;
        if wanted.prompt.as_ref().is_some_and(|given| *given != of_file) {
            ui.warn("warning: the prompt given is not the one in the state file; the one given is used");
        }
        let prompt = wanted.prompt.clone().unwrap_or(of_file);
        return begin(args, wanted, prompt, Some(found.text), ui).await;
    };
    if view.status.is_over() {
        return over(&view, ui).map(Course::Break);
    }
    existing::refuse(&mut client, &view, &wanted, ui).await?;
    if !resume_wanted {
        ui.say(&format!("going on with run {}: {} says it is not over", view.id, wanted.state_file.display()));
    }
    Ok(Course::Continue(LoopRequest::Resume(view.id)))
}

/// Reports the verdict of a run that has ended, from its state file.
fn ended(state_file: &Path, verdict: Final, ui: &Ui) -> Course {
    let (exit, word) = match verdict {
        Final::Pass => (Exit::Ok, "PASS"),
        Final::Fail => (Exit::Failed, "FAIL"),
    };
    ui.answer(&serde_json::json!({ "state_file": state_file, "verdict": word }), || {
        format!("{} says that this run is over: {word}\n", state_file.display())
    });
    Course::Break(exit)
}

async fn begin(
    args: &Args,
    wanted: WantedRun,
    prompt: Prompt,
    state: Option<String>,
    ui: &Ui,
) -> Result<Course, Error> {
    let directory = client::absolute(&wanted.directory)?;
    let mut trusted = args.trust;
    if !trusted && ui.interactive() && !args.detach {
        trusted = trusts(format!("May the agents read, run and obey what is in {directory}?")).await?;
    }
    let body = LoopIn {
        config: wanted.resolved.config,
        prompt,
        directory,
        stamp: jiff::Zoned::now().strftime("%Y-%m-%dT%H-%M-%S").to_string(),
        state_file: client::absolute(&wanted.state_file)?,
        trusted,
        zone: jiff::tz::TimeZone::system().iana_name().map(str::to_owned),
        config_hash: wanted.config_hash,
        state,
        environment: launch::environment(),
    };
    Ok(Course::Continue(LoopRequest::Begin(Box::new(body))))
}

async fn loop_with_id(client: &mut Client, id: RunId) -> Result<LoopView, Error> {
    match client.get(&format!("/runs/{id}")).await? {
        RunView::Loop(view) => Ok(view),
        view => Err(Error::usage(format!("run {id} is a run of a {}", view.kind()))
            .with_hint(format!("`posse run resume {id}` continues it"))),
    }
}

/// Follows the run to its end, or detaches.
async fn finish((client, view): (Client, RunView), args: &Args, tmux: Option<Tmux>, ui: &Ui) -> Result<Exit, Error> {
    if args.detach {
        ui.answer(&view, || format!("{}\n", view.id));
        return Ok(Exit::Ok);
    }
    let windows = match tmux {
        Some(tmux) => Some(RunWindows::new(tmux).await?),
        None => None,
    };
    let follower = Follower::new(client, &view, OnSignal::Stop, windows, ui);
    print_end(&follower.until_over_or_signal().await?, ui)
}

/// Prints how a run of the loop ended, and returns the exit code.
pub(super) fn over(view: &LoopView, ui: &Ui) -> Result<Exit, Error> {
    use posse_core::run::RunStatus;
    if ui.json() {
        ui.item(&RunView::Loop(view.clone()), String::new);
    } else if view.turns > 0 {
        ui.line(&render::ending(view));
    }
    match (view.status, &view.reason) {
        (RunStatus::Passed, _) => Ok(Exit::Ok),
        (RunStatus::Failed, Some(why)) => Err(Error::failed(why.clone())),
        (RunStatus::Failed, None) => Ok(Exit::Failed),
        (_, Some(why)) => {
            Err(Error::failed(why.clone()).with_hint(format!("`posse loop --resume {}` goes on with it", view.id)))
        }
        _ => Ok(Exit::Failed),
    }
}

fn no_prompt() -> Error {
    Error::failed("no task is given")
        .with_hint("`posse loop --template > task.md` makes one to fill in; then name it with --prompt-file")
}

impl Args {
    /// Resolves and checks the configuration and the task, and starts nothing.
    fn wanted(&self, ui: &Ui) -> Result<WantedRun, Error> {
        let text = self.config.as_deref().map(read_config).transpose()?;
        let listed = Providers::new(client::paths()?.providers()).list(&Disk::of_this_thread());
        let known: Vec<&str> = listed.iter().map(|listed| listed.id.as_str()).collect();
        let user = config_files::user(&client::paths()?, Some(&known))?;
        let name = self.config.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let file = text.as_deref().map(|text| (name.as_str(), text));
        let resolved = ResolvedRun::new(file, &config::variable, &user, &known);
        let resolved = resolved.map_err(|error| Error::failed(error.report()))?;
        for (role, choice) in &resolved.config.agents {
            self.find_profile(*role, choice)?;
        }
        for warning in &resolved.warnings {
            ui.warn(&format!("warning: {warning}"));
        }
        let config = &resolved.config;
        let directory = match (&self.directory, &config.wd) {
            (Some(directory), _) => directory.clone(),
            (None, Some(wd)) => PathBuf::from(wd),
            (None, None) => PathBuf::from("."),
        };
        if !directory.is_dir() {
            return Err(Error::failed(format!("{} is not a directory", directory.display())));
        }
        let directory = client::real(&directory)?;
        let state_file = match &config.state_file {
            Some(path) => directory.join(path),
            None => directory.join(STATE_FILE),
        };
        let prompt = self.prompt(config)?;
        if prompt.is_some() && prompt == Prompt::parse(TEMPLATE).ok() {
            ui.warn("warning: the task is the template as it was printed; nobody has filled it in");
        }
        let config_hash = text.as_deref().map(|text| posse_core::audit::Hash::of_text(text).to_string());
        Ok(WantedRun { resolved, config_hash, directory, state_file, prompt })
    }

    /// Checks before any agent is started that the role's profile exists, or that the agent has it built in.
    fn find_profile(&self, role: Role, choice: &AgentChoice) -> Result<(), Error> {
        let paths = client::paths()?;
        let disk = &Disk::of_this_thread();
        let provider = Providers::new(paths.providers()).load(disk, &choice.provider);
        let launch = provider.ok().and_then(|provider| provider.manifest.launch.clone());
        if launch.is_some_and(|launch| launch.knows_profiles()) {
            return Ok(());
        }
        let found = providers::profile(disk, &paths.profiles(), &choice.profile);
        let file = self.config.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default();
        found.map(drop).map_err(|error| Error::failed(format!("{file}`agents.{role}.profile`: {error}")))
    }

    /// The prompt that was given; a file wins over text.
    fn prompt(&self, config: &LoopConfig) -> Result<Option<Prompt>, Error> {
        let file = self.prompt_file.clone().or_else(|| config.prompt_file.as_ref().map(PathBuf::from));
        let (text, place) = match file {
            Some(file) => {
                // Relative to here, then to the configuration (AMB-41).
                let beside = self.config.as_deref().and_then(Path::parent).map(|parent| parent.join(&file));
                let path =
                    if file.exists() { file.clone() } else { beside.filter(|path| path.exists()).unwrap_or(file) };
                let text = text_file::read_argument(&path)
                    .map_err(|error| Error::failed(format!("the prompt file {}: {error}", path.display())))?;
                (text, format!("the prompt file {}", path.display()))
            }
            None if config.prompt.trim().is_empty() => return Ok(None),
            None => (config.prompt.clone(), "the prompt".to_owned()),
        };
        Prompt::parse(&text).map(Some).map_err(|error| {
            Error::failed(format!("{place}: {error}")).with_hint("`posse loop --template` shows its form")
        })
    }
}

fn read_config(path: &Path) -> Result<String, Error> {
    text_file::read_argument(path)
        .map_err(|error| Error::failed(format!("the configuration {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use posse_testkit::docs;

    use super::*;

    fn codes(text: &str) -> BTreeSet<u8> {
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
    }

    #[test]
    fn the_help_has_the_exit_codes_of_the_guide() {
        let help = <Args as clap::Args>::augment_args(clap::Command::new("loop")).get_after_help().unwrap().to_string();
        let (_, help) = help.split_once("Exit codes:").unwrap();
        let guide = docs::text("docs/loop.md");
        let guide = guide.split_once("## Exit codes\n").unwrap().1.split("\n## ").next().unwrap().to_owned();
        assert_eq!(codes(help), codes(&guide));
        assert_eq!(codes(help), BTreeSet::from([0, 1, 6, 64, 69, 129, 130, 143]));
    }
}
