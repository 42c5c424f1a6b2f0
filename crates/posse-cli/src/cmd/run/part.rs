//! `posse run why`, `answer` and `retry`: about a task of a plan, or an item of a backlog.

use posse_api::{AnswerPartIn, PartIn};

use super::find::{PartArgs, Whole, as_known, whole};
use crate::client::{Client, Repeat};
use crate::cmd::{auto, plan};
use crate::error::{Error, Exit};
use crate::ui::Ui;

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
