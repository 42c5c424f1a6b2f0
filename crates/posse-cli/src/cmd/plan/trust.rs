//! `posse plan trust`: commands that a project's files name are run only if the user has confirmed them
//! (`posse_files::confirmed_commands`).

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use posse_api::RequesterView;
use posse_files::confirmed_commands::{ConfirmedCommands, NamedCommand, named_commands};
use posse_files::disk::Disk;
use serde_json::json;

use super::CheckedPlan;
use super::configuration::{self, Loaded};
use crate::client::{self, Client};
use crate::daemon;
use crate::error::{Error, Exit};
use crate::ui::{Ui, plain};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The plan whose gates are confirmed too
    file: Option<PathBuf>,
    /// The project [default: here]
    #[arg(long, short = 'C', value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
}

fn of_project(loaded: &Loaded, plan: Option<&Path>, directory: &Path) -> Result<(PathBuf, Vec<NamedCommand>), Error> {
    let project = client::real(directory)?;
    let file = loaded.file.as_ref().map_or("", |file| &file.path);
    let plan = plan.map(CheckedPlan::read).transpose()?;
    if let Some(CheckedPlan { name, plan: None, .. }) = &plan {
        let hint = format!("`posse plan check {name}` shows what is wrong with it");
        return Err(Error::usage(format!("{name} is not valid")).with_hint(hint));
    }
    let plan = plan.as_ref().and_then(|read| Some((read.name.as_str(), read.plan.as_ref()?)));
    Ok((project, named_commands(&loaded.resolved, file, plan)))
}

/// Makes sure that the user has confirmed the commands that a run would start: asks, or refuses if standard input is not a terminal.
pub(crate) async fn ensure(loaded: &Loaded, plan: Option<&Path>, directory: &Path, ui: &Ui) -> Result<(), Error> {
    let (project, named) = of_project(loaded, plan, directory)?;
    let mut confirmed = confirmed(&project)?;
    let open: Vec<&NamedCommand> = named.iter().filter(|named| !confirmed.contains(&named.command)).collect();
    if open.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> =
        open.iter().map(|named| format!("  {}   ({})", plain(&named.command), named.place)).collect();
    let list = lines.join("\n");
    if !std::io::stdin().is_terminal() || ui.json() {
        let plan = plan.map(|plan| format!(" {}", plan.display())).unwrap_or_default();
        return Err(Error::failed(format!("the project names commands that you have not confirmed:\n{list}")).with_hint(format!(
                "posse runs them as you, outside of any sandbox, and agents can write these files: read them, then run `posse plan trust{plan}`"
            )));
    }
    let question = format!(
        "The project names commands that you have not confirmed. posse runs them as you, outside of any sandbox:\n{list}\nRun them?"
    );
    may_confirm().await?;
    crate::ui::trusts(question).await?;
    confirmed.confirm(&Disk::of_this_thread(), open).map_err(|error| Error::failed(error.to_string()))
}

fn confirmed(project: &Path) -> Result<ConfirmedCommands, Error> {
    ConfirmedCommands::load(&Disk::of_this_thread(), &client::paths()?, project)
        .map_err(|error| Error::failed(error.to_string()))
}

/// Ensures that a person confirms, and not a process in one of posse's terminals or a session of a plan. The daemon
/// decides, from the kernel's data about this process. Without a daemon and a keeper there are no such processes.
async fn may_confirm() -> Result<(), Error> {
    let outside = || {
        Error::failed("a process in a terminal of posse, or a session of a plan, may not confirm commands")
            .with_hint("do it in a shell outside of posse's terminals")
    };
    if std::env::var_os("POSSE_TASK_ID").is_some() {
        return Err(outside());
    }
    let paths = client::paths()?;
    if !paths.holds_terminals() && !paths.daemon_socket().exists() {
        return Ok(());
    }
    let requester: RequesterView = Client::connect().await?.get("/requester").await?;
    if requester.may_answer { Ok(()) } else { Err(outside()) }
}

pub(super) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    may_confirm().await?;
    let loaded = configuration::load(&args.directory)?;
    let (project, named) = of_project(&loaded, args.file.as_deref(), &args.directory)?;
    confirmed(&project)?.confirm(&Disk::of_this_thread(), &named).map_err(|error| Error::failed(error.to_string()))?;
    let repository = (daemon::functions().confirm_repository)(&client::paths()?, &project);
    repository.map_err(|error| Error::failed(format!("the repository in {}: {error}", project.display())))?;
    ui.answer(&json!({ "project": project, "commands": named }), || {
        let line = |named: &NamedCommand| format!("confirmed: {}   ({})\n", plain(&named.command), named.place);
        if named.is_empty() {
            return "the project names no commands of its own\n".to_owned();
        }
        named.iter().map(line).collect()
    });
    Ok(Exit::Ok)
}
