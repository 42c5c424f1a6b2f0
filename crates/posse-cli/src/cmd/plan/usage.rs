//! `posse plan usage`: what sessions of plans have used.

use std::path::{Path, PathBuf};

use jiff::{Timestamp, Zoned};
use posse_core::plan::usage::{COSTS, Sum, Summary};

use crate::client::{self, Client};
use crate::cmd::audit::{encoded, when};
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui, plain};

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
    let mut text = String::new();
    let by_part = if of_one { ("task", &summary.tasks) } else { ("plan", &summary.plans) };
    for (name, sums) in [by_part, ("model", &summary.models)] {
        text.push_str(&format!("{}\n", ui.paint(name, Colour::Bold)));
        let wide = sums.keys().map(|key| plain(key).chars().count()).max().unwrap_or(0);
        for (key, sum) in sums {
            text.push_str(&format!("  {:<wide$}  {}\n", plain(key), line(sum)));
        }
    }
    text.push_str(&format!("{}  {}\n", ui.paint("in all", Colour::Bold), line(&summary.total)));
    text
}

fn line(sum: &Sum) -> String {
    let cost = match (sum.cost_usd, sum.cost_unknown) {
        (None, _) => "cost unknown".to_owned(),
        (Some(cost), 0) => format!("{cost:.2} USD"),
        (Some(cost), unknown) => format!("{cost:.2} USD and {unknown} of unknown cost"),
    };
    let tokens = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
    let mut text = format!(
        "{} {}, {cost}, {} tokens in, {} out",
        sum.sessions,
        if sum.sessions == 1 { "session" } else { "sessions" },
        tokens(sum.input_tokens),
        tokens(sum.output_tokens),
    );
    if let Some(rate) = sum.cache_hit_rate.filter(|rate| *rate > 0.0) {
        text.push_str(&format!(", {:.0}% from the cache", rate * 100.0));
    }
    if sum.partial > 0 {
        text.push_str(&format!(", {} cut short", sum.partial));
    }
    text
}
