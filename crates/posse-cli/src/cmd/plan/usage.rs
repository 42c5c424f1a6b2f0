//! `posse plan usage`: what sessions of plans have used.

use std::path::{Path, PathBuf};

use jiff::{Timestamp, Zoned};
use posse_core::plan::usage::{COSTS, Sum, Summary};

use crate::client::{self, Client};
use crate::cmd::audit::{encoded, when};
use crate::error::{Error, Exit};
use crate::ui::{Cell, Ui};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only of this plan [default: all plans of the project here]
    file: Option<PathBuf>,
    /// Only since then: a time ago (90s, 10m, 2h, 3d), a time of today (14:30), a date, or both (2026-11-16T14:30)
    #[arg(long, value_name = "WHEN", value_parser = |text: &str| when(text, &Zoned::now()))]
    since: Option<Timestamp>,
    /// Of all projects
    #[arg(long, conflicts_with = "file")]
    all: bool,
}

pub(super) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let real = |path: &Path| client::absolute(&client::real(path)?);
    let of = match &args.file {
        Some(file) => Some(format!("file={}", encoded(&real(file)?))),
        None if args.all => None,
        None => Some(format!("directory={}", encoded(&real(Path::new("."))?))),
    };
    let since = args.since.map(|since| format!("since={}", encoded(&since.to_string())));
    let query: Vec<String> = [of, since].into_iter().flatten().collect();
    let summary: Summary = Client::connect().await?.get(&format!("/runs/usage?{}", query.join("&"))).await?;
    ui.answer(&summary, || shown(&summary, args.file.is_some(), ui));
    if summary.total.sessions > 0 {
        ui.say(COSTS);
    }
    Ok(Exit::Ok)
}

fn shown(summary: &Summary, of_one: bool, ui: &Ui) -> String {
    if summary.total.sessions == 0 {
        return "no session has used anything\n".into();
    }
    let row = |name: &str, sum: &Sum| {
        let cost = match (sum.cost_usd, sum.cost_unknown) {
            (None, _) => "unknown".to_owned(),
            (Some(cost), 0) => format!("{cost:.2} USD"),
            (Some(cost), unknown) => format!("{cost:.2} USD and {unknown} of unknown cost"),
        };
        let tokens = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
        let cached = sum.cache_hit_rate.map(|rate| format!("{:.0}%", rate * 100.0)).unwrap_or_default();
        let counts = [sum.sessions.to_string(), cost, tokens(sum.input_tokens), tokens(sum.output_tokens), cached];
        std::iter::once(name.to_owned()).chain(counts).map(Cell::from).collect()
    };
    let (what, parts) = if of_one { ("TASK", &summary.tasks) } else { ("PLAN", &summary.plans) };
    let rows = parts.iter().chain(&summary.models).map(|(name, sum)| row(name, sum));
    let total = std::iter::once(row("in all", &summary.total));
    let header = format!("{what} OR MODEL");
    ui.table(&[&header, "SESSIONS", "COST", "TOKENS IN", "OUT", "CACHED"], rows.chain(total))
}
