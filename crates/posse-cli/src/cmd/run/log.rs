//! `posse run log`: events of runs, with actions and output of sessions.

use posse_api::{RunView, SessionFiles, SessionLines};
use posse_core::ids::RunId;
use serde_json::json;

use super::find::{RunArg, Whole, runs, whole};
use super::follow::is_over;
use super::render::{RunRenderer, details};
use super::tail::{RunTail, TailItem, TailNews};
use super::transcript::Extent;
use crate::client::Client;
use crate::cmd::auto;
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui, date, plain};

/// Show what happened in a run, with what its sessions did and said
///
/// Each session in short; of one task or item everything, in all runs that know it: what was asked, said and done, the report, what
/// checks printed. Tokens of well-known shapes are masked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse run log                      the run of this project
  posse run log 1a2b -f              go on with what happens from now on
  posse run log plan.yaml 2.1        one task, with its prompts and all that was said
  posse run log . 7-empty-export     one item of the backlog here, in all runs
  posse run log plan.yaml 2.1 --raw  the stream as the agent printed it
  posse run log 1a2b --json          for programs: one value a line")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,
    /// One task or item, with everything
    part: Option<String>,
    /// The lines as the agent printed them
    #[arg(long)]
    raw: bool,
    /// Print new entries as they come, until the run is over
    #[arg(long, short)]
    follow: bool,
}

/// Prints the log. Ends early if standard output has no reader.
pub(super) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let (runs, part) = match &args.part {
        None => (vec![args.run.find(&mut client).await?.id], None),
        Some(part) => {
            let (runs, part) = args.knowing(part, &mut client).await?;
            (runs, Some(part))
        }
    };
    client.only_running();
    let extent = if part.is_some() { Extent::All } else { Extent::Lines };
    let nothing =
        part.as_ref().map(|part| format!("nothing has been done for {part} yet; `posse run why` says how it stands"));
    let renderer = RunRenderer::new(extent);
    let log = RunLog { client, runs, part, raw: args.raw, follow: args.follow, renderer, day: String::new(), ui };
    let printed = tokio::select! {
        printed = log.print() => printed?,
        () = ui.unread() => true,
    };
    if let Some(nothing) = nothing.filter(|_| !printed) {
        ui.say(&nothing);
    }
    Ok(Exit::Ok)
}

impl Args {
    /// The runs that know a task or an item, oldest first: it may have been done long before the newest.
    async fn knowing(&self, part: &str, client: &mut Client) -> Result<(Vec<RunId>, String), Error> {
        let name = &self.run.run;
        let (kind, backlog, part) = match whole(name).await? {
            Whole::Plan(_) => ("plan", None, part.to_owned()),
            Whole::Backlog(project) => ("backlog", Some(project), auto::slug(part)?.to_string()),
        };
        let mut runs = runs(client, name, &format!("&kind={kind}")).await?;
        let knows = |run: &RunView| match run {
            RunView::Loop(_) => false,
            RunView::Plan(plan) => plan.tasks.iter().any(|task| task.id.as_str() == part),
            RunView::Backlog(backlog) => backlog.items.iter().any(|item| item.item.as_str() == part),
        };
        let follows = |run: &RunView| backlog.is_some() && self.follow && run.is_active();
        runs.retain(|run| knows(run) || follows(run));
        match &backlog {
            Some(project) if runs.is_empty() => auto::require_item(&part, project)?,
            None if runs.is_empty() => {
                return Err(Error::failed(format!("there is no task {part:?} in any run of {name}"))
                    .with_hint("`posse run show` and `posse plan status` show the tasks"));
            }
            _ => {}
        }
        Ok((runs.iter().rev().map(|run| run.id).collect(), part))
    }
}

struct RunLog<'a> {
    client: Client,
    /// In this order; the newest, which may be followed, is the last.
    runs: Vec<RunId>,
    /// One task or item, with everything that is known about it.
    part: Option<String>,
    raw: bool,
    follow: bool,
    renderer: RunRenderer,
    /// The day of the last line. Lines only have the time.
    day: String,
    ui: &'a Ui,
}

impl RunLog<'_> {
    async fn print(mut self) -> Result<bool, Error> {
        let mut printed = false;
        let runs = self.runs.clone();
        for run in &runs {
            let follow = self.follow && Some(run) == runs.last();
            printed |= self.print_run(*run, follow).await?;
        }
        Ok(printed)
    }

    async fn print_run(&mut self, run: RunId, follow: bool) -> Result<bool, Error> {
        let mut tail = RunTail::new(run, true, self.part.clone());
        let mut printed = false;
        // Subscribed before reading, so that no change is missed.
        let mut events = self.client.listen(None).await?;
        let mut event = None;
        loop {
            // In this order, so that nothing of a run that is over is missed.
            let view: RunView = self.client.get(&format!("/runs/{run}?tasks=false")).await?;
            // Without the environment a run of the loop stops; others wait for it.
            let rests = matches!(view, RunView::Loop(_)) && view.waits;
            let is_over = rests || is_over(&view);
            let items = tail.next(event.as_ref().filter(|_| !is_over), &mut self.client).await?;
            printed |= !items.is_empty();
            for item in &items {
                self.item(item).await?;
            }
            if !follow || is_over {
                return Ok(printed);
            }
            event = events.until(|event| tail.concerns(event)).await?;
        }
    }

    async fn item(&mut self, item: &TailItem) -> Result<(), Error> {
        if self.raw {
            return match item.session() {
                Some((path, _)) => self.stream(&path).await,
                None => Ok(()),
            };
        }
        let ui = self.ui;
        if ui.json() {
            ui.line(&serde_json::to_string(item).unwrap_or_default());
        } else if let Some(lines) = self.renderer.render(item, ui) {
            let day = date(item.at());
            if day != self.day {
                ui.line(&ui.paint(&day, Colour::Bold));
                self.day = day;
            }
            ui.print(&lines);
        }
        // The details of an item's plan are in the log of that plan.
        let (Some(_), None, TailNews::Entry(entry)) = (&self.part, item.plan_run, &item.news) else {
            return Ok(());
        };
        if !ui.json() {
            ui.print(&indented(&details(&entry.entry), ui));
        }
        match item.session() {
            Some((path, session)) => self.files(&path, &session).await,
            None => Ok(()),
        }
    }

    /// Prints the stream of the session at this path of the API.
    async fn stream(&mut self, path: &str) -> Result<(), Error> {
        let mut next = 0;
        loop {
            let found: SessionLines = self.client.get(&format!("{path}/log?raw=true&after={next}")).await?;
            if found.lines.is_empty() {
                return Ok(());
            }
            next = found.next;
            found.lines.iter().for_each(|line| self.ui.line(&plain(line)));
        }
    }

    /// Prints the prompt of the session at this path of the API, and the files it left behind.
    async fn files(&mut self, path: &str, session: &str) -> Result<(), Error> {
        let files: SessionFiles = self.client.get(path).await?;
        if self.ui.json() {
            self.ui.item(&json!({ "session": session, "files": files }), String::new);
            return Ok(());
        }
        let Some(prompt) = &files.prompt else {
            self.ui
                .print(&indented("its files are gone: posse keeps them for 30 days, and a gigabyte of them", self.ui));
            return Ok(());
        };
        let parts = [
            ("asked:", prompt.as_str()),
            ("reported:", files.report.as_deref().unwrap_or_default()),
            ("standard error:", &files.stderr),
        ];
        let mut text = format!("files: {}", files.directory);
        for (title, part) in parts.into_iter().filter(|(title, part)| *title == "asked:" || !part.trim().is_empty()) {
            let part: Vec<String> = part.trim_end().lines().map(|line| format!("  {line}")).collect();
            text.push_str(&format!("\n{title}\n{}", part.join("\n")));
        }
        self.ui.print(&indented(&text, self.ui));
        Ok(())
    }
}

fn indented(text: &str, ui: &Ui) -> String {
    text.lines().map(|line| format!("          {}\n", ui.paint(&plain(line), Colour::Dim))).collect()
}
