//! Finds the run, the plan or the backlog that a person means; and `posse run why`, `answer` and `retry`, which are about a
//! part of one.

use std::path::{Path, PathBuf};

use posse_api::{AnswerPartIn, PartIn, RunView};

use crate::client::{self, Client, Repeat};
use crate::cmd::audit::encoded;
use crate::cmd::{auto, plan};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// The run that a command is about.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunArg {
    /// The run: its id or the beginning of it; or a plan's file or a project, which mean their newest run [default: here]
    #[arg(default_value = ".", hide_default_value = true)]
    pub(super) run: String,
}

/// A task of a plan, or an item of a backlog.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PartArgs {
    /// The plan's file; or the project whose backlog has the item; or a run of one of them
    pub(super) run: String,
    /// The id of the task; or the item, by name or file
    pub(super) part: String,
}

/// What tasks and items are parts of.
pub(super) enum Whole {
    Plan(PathBuf),
    /// The project of a backlog.
    Backlog(PathBuf),
}

/// The path that was given in the place of a run. Ids of runs have neither slashes nor dots.
fn path_of(name: &str) -> Option<&Path> {
    name.contains(['/', '.']).then(|| Path::new(name))
}

/// The path as runs know it. The plan itself may be gone; its runs are not.
pub(super) fn as_known(path: &Path) -> Result<String, Error> {
    client::absolute(&std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
}

/// The runs of a plan or in a project, newest first; `query` narrows them down.
pub(in crate::cmd) async fn runs_of(client: &mut Client, path: &Path, query: &str) -> Result<Vec<RunView>, Error> {
    let of = encoded(&as_known(path)?);
    client.get(&format!("/runs?limit=10000&of={of}{query}")).await
}

/// The runs that a name fits, newest first.
pub(super) async fn runs(client: &mut Client, name: &str, query: &str) -> Result<Vec<RunView>, Error> {
    match path_of(name) {
        Some(path) => runs_of(client, path, query).await,
        None => client.get(&format!("/runs?limit=10000&id={}{query}", encoded(name))).await,
    }
}

impl RunArg {
    /// Finds the run. Of the runs in a project those that are active come first, and plans of backlog items do not count.
    pub(super) async fn find(&self, client: &mut Client) -> Result<RunView, Error> {
        let name = &self.run;
        let mut fits = runs(client, name, "&tasks=false").await?;
        let Some(path) = path_of(name) else {
            return match fits.len() {
                1 => Ok(fits.remove(0)),
                0 => Err(Error::failed(format!("there is no run {name:?}"))
                    .with_hint("`posse run ls` shows those there are")),
                _ => Err(Error::usage(format!("{name:?} fits several runs; give more of the id"))),
            };
        };
        if path.is_dir() {
            fits.retain(|run| !matches!(run, RunView::Plan(plan) if plan.item.is_some()));
        }
        let newest = fits.iter().position(|run| run.is_active() || run.waits).unwrap_or(0);
        if fits.is_empty() {
            let hint = match path.is_dir() {
                true => "`posse run ls` shows the runs of all projects".to_owned(),
                false => format!("`posse plan run {name}` begins one"),
            };
            return Err(Error::failed(format!("no run of {} is known", as_known(path)?)).with_hint(hint));
        }
        Ok(fits.remove(newest))
    }
}

/// Finds the plan or the backlog. Without a run its path is enough.
pub(super) async fn whole(name: &str) -> Result<Whole, Error> {
    if let Some(path) = path_of(name) {
        return Ok(if path.is_dir() { Whole::Backlog(path.to_owned()) } else { Whole::Plan(path.to_owned()) });
    }
    let mut client = Client::connect().await?;
    match (RunArg { run: name.to_owned() }).find(&mut client).await? {
        RunView::Plan(plan) => Ok(Whole::Plan(plan.file.into())),
        RunView::Backlog(backlog) => Ok(Whole::Backlog(backlog.run.directory.into())),
        RunView::Loop(_) => Err(Error::usage("a run of the loop has no tasks and no items")
            .with_hint("`posse ls` shows whose question is open, `posse run show` why the run stopped")),
    }
}

/// An answer to a task, or about an item.
#[derive(Debug, clap::Args)]
pub(crate) struct AnswerPartArgs {
    #[command(flatten)]
    part: PartArgs,
    /// The answer
    #[arg(required = true)]
    text: Vec<String>,
}

pub(super) async fn why(args: PartArgs, ui: &Ui) -> Result<Exit, Error> {
    match whole(&args.run).await? {
        Whole::Plan(file) => plan::why(&file, &args.part, ui).await,
        Whole::Backlog(project) => auto::why::run(&project, &args.part, ui).await,
    }
}

pub(in crate::cmd) async fn answer(args: AnswerPartArgs, ui: &Ui) -> Result<Exit, Error> {
    let (part, answer) = (args.part.part.clone(), args.text.join(" "));
    match whole(&args.part.run).await? {
        Whole::Plan(file) => {
            let body = AnswerPartIn { of: as_known(&file)?, part, answer };
            Client::connect().await?.act("/runs/answer", &body, Repeat::Never, ui).await?;
            plan::say_how_to_go_on(&file, ui).await
        }
        Whole::Backlog(project) => auto::write::answer(&project, &part, &answer, ui),
    }
}

pub(in crate::cmd) async fn retry(args: PartArgs, ui: &Ui) -> Result<Exit, Error> {
    let (of, part) = match whole(&args.run).await? {
        Whole::Plan(file) => (file, args.part),
        Whole::Backlog(project) => (project, auto::slug(&args.part)?.to_string()),
    };
    let body = PartIn { of: as_known(&of)?, part };
    Client::connect().await?.act("/runs/retry", &body, Repeat::Safe, ui).await?;
    if of.is_dir() { Ok(Exit::Ok) } else { plan::say_how_to_go_on(&of, ui).await }
}
