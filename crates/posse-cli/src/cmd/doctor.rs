//! `posse doctor`: what of this machine posse can use, and what to do about the rest.

mod agents;
mod daemon;
mod line;
mod machine;
mod repair;

use serde_json::json;

use self::line::{ReportLine, ReportVerdict, line};
use super::launch;
use crate::client;
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui};

/// Look over this machine: agents, accounts, programs, directories, limits, the daemon
///
/// Every line says whether something is in order (`ok`), worth a look (`warn`) or in the way (`bad`), and what to do about
/// it. Without --repair nothing is started, changed or sent anywhere; of accounts only signs are looked for (a file that is there, a variable
/// that is set), never what is in them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse doctor              everything
  posse doctor --quiet      only what is not in order
  posse doctor --json       for programs
  posse doctor --repair     set a damaged database aside, then look at everything

Exit codes: 0 nothing is in the way, 1 something is `bad`.")]
pub(crate) struct Args {
    /// Set a damaged database aside and go on with a new one; running terminals are kept
    #[arg(long)]
    repair: bool,
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    if args.repair {
        repair::repair(ui).await?;
    }
    let mut lines = look_over().await;
    let verdict = lines.iter().map(|line| line.verdict).max().unwrap_or(ReportVerdict::Ok);
    if ui.quiet() {
        lines.retain(|line| line.verdict != ReportVerdict::Ok);
    }
    ui.answer(&json!({ "verdict": verdict, "lines": lines }), || text(&lines, verdict, ui));
    Ok(if verdict == ReportVerdict::Bad { Exit::Failed } else { Exit::Ok })
}

/// Runs all checks. Changes nothing.
async fn look_over() -> Vec<ReportLine> {
    let paths = match client::paths() {
        Ok(paths) => paths,
        Err(error) => {
            let home = line("home", error.to_string()).bad("set POSSE_HOME to a directory of your own");
            return vec![ReportLine { area: "files", ..home }];
        }
    };
    let environment = launch::environment();
    let agents = agents::installed_agents(&paths, &environment);
    let (agents, git, daemon) = tokio::join!(agents, machine::git_version(&environment), daemon::lines(&paths));
    let areas = [
        ("posse", [vec![line("version", posse_api::VERSION)], daemon].concat()),
        ("agents", agents::lines(&agents)),
        ("programs", vec![machine::git(git.as_deref())]),
        ("terminal", vec![machine::characters(&environment)]),
        ("files", machine::files(&paths)),
        ("limits", machine::limits()),
        ("disk", machine::disk(&paths)),
    ];
    let in_area =
        |(area, lines): (&'static str, Vec<ReportLine>)| lines.into_iter().map(move |line| ReportLine { area, ..line });
    areas.into_iter().flat_map(in_area).collect()
}

fn text(lines: &[ReportLine], verdict: ReportVerdict, ui: &Ui) -> String {
    let mut text = String::new();
    let widest = lines.iter().map(|line| line.what.chars().count()).max().unwrap_or_default();
    let mut area = "";
    for line in lines {
        if line.area != area {
            area = line.area;
            text += &format!("{}\n", ui.paint(area, Colour::Bold));
        }
        let (word, colour) = line.verdict.shown();
        let verdict = ui.paint(&format!("{word:<4}"), colour);
        let what = crate::ui::plain(&line.what);
        let padding = " ".repeat(widest.saturating_sub(what.chars().count()));
        text += &format!("  {verdict}  {what}{padding}  {}\n", crate::ui::plain(&line.says));
        if let Some(advice) = &line.advice {
            text += &format!("  {}{}\n", " ".repeat(widest + 8), ui.paint(&format!("→ {advice}"), Colour::Dim));
        }
    }
    let count = |wanted| lines.iter().filter(|line| line.verdict == wanted).count();
    let ending = match verdict {
        ReportVerdict::Ok => "all is well".to_owned(),
        ReportVerdict::Warn => format!("nothing is in the way; worth a look: {}", count(ReportVerdict::Warn)),
        ReportVerdict::Bad => {
            format!("in the way: {}; worth a look: {}", count(ReportVerdict::Bad), count(ReportVerdict::Warn))
        }
    };
    if !(ui.quiet() && lines.is_empty()) {
        text += &format!("\n{}\n", ui.paint(&ending, verdict.shown().1));
    }
    text
}
