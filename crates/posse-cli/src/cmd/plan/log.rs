//! `posse plan log`: what the sessions of a plan were asked, did and said, and what came of it.

use std::path::{Path, PathBuf};

use posse_api::{PlanEntry, PlanJournalView, PlanRunStatus, PlanView, SessionFiles, SessionLines};
use posse_core::ids::RunId;
use posse_core::plan::TaskId;
use posse_core::plan::budget::Total;
use posse_core::plan::machine::{Event, GateFailure, MergeResult};
use posse_core::plan::outcome::Outcome;
use serde_json::json;
use tokio::time::sleep;

use super::news::{Item, News, Sessions, task_of};
use super::said::{Extent, Teller};
use super::words;
use crate::client::{self, Client};
use crate::error::{Error, Exit};
use crate::event_stream::AGAIN;
use crate::ui::{Colour, Ui, plain};

/// What the sessions of a plan were asked, did and said
///
/// Of the newest run, each session in short; of one task everything, in all runs of which there still are files: the prompt, what
/// was said and done, the report, what checks printed. Tokens of well-known shapes are masked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse plan log plan.yaml              the newest run
  posse plan log plan.yaml 2.1          one task, with its prompts and all that was said
  posse plan log plan.yaml -f           go on with what happens from now on
  posse plan log plan.yaml 2.1 --raw    the stream as the agent printed it
  posse plan log plan.yaml --json       for programs: one value a line")]
pub(crate) struct Args {
    /// The plan
    file: PathBuf,
    /// One task, with everything
    task: Option<String>,
    /// The lines as the agent printed them
    #[arg(long)]
    raw: bool,
    /// Go on with what happens from now on, until the run is over
    #[arg(long, short)]
    follow: bool,
}

pub(super) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let mut runs = runs_of(&mut client, &args.file).await?;
    let shown = args.file.display();
    let Some(newest) = runs.first().cloned() else {
        return Err(Error::Failed {
            message: format!("no run of {shown} is known here"),
            hint: Some(format!("`posse plan run {shown}` begins one")),
        });
    };
    let task = args.task.as_ref().map(|task| find(&runs, task, &args.file)).transpose()?;
    // Of one task all runs count, in their order; it may have been done long before the newest.
    runs.reverse();
    if task.is_none() {
        runs = vec![newest.clone()];
    }
    client.only_running();
    let follow = args.follow && newest.status == PlanRunStatus::Running;
    let log = Log { client, task, raw: args.raw, used: Total::default(), ui };
    tokio::select! {
        told = log.tell(&runs, follow.then_some(newest.id)) => told.map(|()| Exit::Ok),
        () = ui.unread() => Ok(Exit::Ok),
    }
}

/// The runs of a plan, newest first.
async fn runs_of(client: &mut Client, file: &Path) -> Result<Vec<PlanView>, Error> {
    // The plan itself may be gone; its runs are not.
    let real = match std::fs::canonicalize(file) {
        Ok(real) => client::absolute(&real)?,
        Err(_) => client::absolute(file)?,
    };
    let runs: Vec<PlanView> = client.get("/plans?limit=10000").await?;
    Ok(runs.into_iter().filter(|run| run.file == real).collect())
}

fn find(runs: &[PlanView], task: &str, file: &Path) -> Result<TaskId, Error> {
    let mut tasks = runs.iter().flat_map(|run| &run.tasks);
    let found = tasks.find(|one| one.id.as_str() == task).map(|one| one.id.clone());
    found.ok_or_else(|| Error::Failed {
        message: format!("there is no task {task:?} in any run of this plan"),
        hint: Some(format!("`posse plan status {}` shows those there are", file.display())),
    })
}

struct Log<'a> {
    client: Client,
    task: Option<TaskId>,
    raw: bool,
    /// What the sessions that were shown have used.
    used: Total,
    ui: &'a Ui,
}

impl Log<'_> {
    async fn tell(mut self, runs: &[PlanView], follow: Option<RunId>) -> Result<(), Error> {
        let mut told = false;
        for run in runs {
            let sessions = self.task.clone().map_or(Sessions::All, Sessions::Of);
            let mut news = News::new(run.id, sessions);
            let mut teller = Teller::new(if self.task.is_some() { Extent::All } else { Extent::Lines });
            loop {
                // Listening before looking: what changes in between is heard.
                let mut events = self.client.listen(None).await?;
                let mut event = None;
                let over = loop {
                    // In this order: of a run that is seen to have ended, everything is seen.
                    let view: PlanView = self.client.get(&format!("/plans/{}", run.id)).await?;
                    let event_now = event.as_ref().filter(|_| view.status == PlanRunStatus::Running);
                    let items = news.next(event_now, &mut self.client).await?;
                    for item in &items {
                        if !self.concerns(item) {
                            continue;
                        }
                        told = true;
                        self.item(run.id, item, &mut teller).await?;
                    }
                    if follow != Some(run.id) || view.status == PlanRunStatus::Over {
                        break true;
                    }
                    event = events.until(|event| news.concerns(event)).await;
                    if event.is_none() {
                        break false;
                    }
                };
                if over {
                    break;
                }
                sleep(AGAIN).await;
            }
        }
        if let (false, Some(task)) = (told, &self.task) {
            self.ui.say(&format!("task {task} has not been worked on yet"));
        }
        Ok(())
    }

    /// Of one task, only what is about it; of raw streams, only where they begin.
    fn concerns(&self, item: &Item) -> bool {
        match item {
            Item::Said(_) => !self.raw,
            Item::Entry(entry) if self.raw => {
                matches!(&entry.entry, PlanEntry::Launched { run, .. } if self.task.as_ref().is_none_or(|task| *task == run.task))
            }
            Item::Entry(entry) => self.task.as_ref().is_none_or(|task| task_of(&entry.entry) == Some(task)),
        }
    }

    async fn item(&mut self, run: RunId, item: &Item, teller: &mut Teller) -> Result<(), Error> {
        let ui = self.ui;
        let entry = match item {
            Item::Said(said) => {
                match ui.json() {
                    true => ui.item(said, String::new),
                    false => ui.print(&teller.tell(&said.session, &said.line, ui).unwrap_or_default()),
                }
                return Ok(());
            }
            Item::Entry(entry) => entry,
        };
        let launched = match &entry.entry {
            PlanEntry::Launched { run, .. } => Some(run.to_string()),
            _ => None,
        };
        if let (true, Some(session)) = (self.raw, &launched) {
            return stream(&mut self.client, &format!("/plans/{run}/sessions/{session}"), ui).await;
        }
        if ui.json() {
            ui.item(entry, String::new);
        } else {
            ui.print(&words::line(entry, &mut self.used, ui).unwrap_or_default());
            if self.task.is_some() {
                ui.print(&indented(&details(entry), ui));
            }
        }
        if let (true, Some(session)) = (self.task.is_some(), &launched) {
            files(&mut self.client, &format!("/plans/{run}/sessions/{session}"), session, ui).await?;
        }
        Ok(())
    }
}

/// The stream of the session at this path of the API, as it was printed.
pub(in crate::cmd) async fn stream(client: &mut Client, path: &str, ui: &Ui) -> Result<(), Error> {
    let mut next = 0;
    loop {
        let found: SessionLines = client.get(&format!("{path}/log?raw=true&after={next}")).await?;
        if found.lines.is_empty() {
            return Ok(());
        }
        next = found.next;
        // One line of it is one line: JSON has no other control characters.
        found.lines.iter().for_each(|line| ui.line(&plain(line)));
    }
}

/// What the session at this path of the API was asked, and what it left behind.
pub(in crate::cmd) async fn files(client: &mut Client, path: &str, session: &str, ui: &Ui) -> Result<(), Error> {
    let files: SessionFiles = client.get(path).await?;
    if ui.json() {
        ui.item(&json!({ "session": session, "files": files }), String::new);
        return Ok(());
    }
    let Some(prompt) = &files.prompt else {
        ui.print(&indented("its files are gone: posse keeps them for 30 days, and a gigabyte of them", ui));
        return Ok(());
    };
    let mut text = format!("files: {}\nasked:\n{}", files.directory, inner(prompt));
    for (title, part) in [("reported:", files.report.as_deref()), ("standard error:", Some(files.stderr.as_str()))] {
        if let Some(part) = part.filter(|part| !part.trim().is_empty()) {
            text.push_str(&format!("\n{title}\n{}", inner(part)));
        }
    }
    ui.print(&indented(&text, ui));
    Ok(())
}

fn inner(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

pub(in crate::cmd) fn indented(text: &str, ui: &Ui) -> String {
    text.lines().map(|line| format!("          {}\n", ui.paint(&plain(line), Colour::Dim))).collect()
}

/// What an entry knows beyond its line.
fn details(entry: &PlanJournalView) -> String {
    let output = |gate: &GateFailure| gate.output.trim_end().to_owned();
    match &entry.entry {
        PlanEntry::Launched { flags, agent, .. } => format!("flags: {}", words::flags(flags, agent)),
        PlanEntry::Happened { event } => match &**event {
            Event::SessionEnded { outcome: Outcome::Failed(failure) | Outcome::Infra(failure), .. } => {
                failure.output.clone().unwrap_or_default()
            }
            Event::ValidatorEnded { judgement, .. } => judgement.findings.join("\n"),
            Event::GatesEnded { failed: Some(gate), .. } => output(gate),
            Event::MergeEnded { result: MergeResult::RedTogether(gate), .. } => output(gate),
            Event::MergeEnded { result: MergeResult::Merged { commits }, .. } => commits.join("\n"),
            _ => String::new(),
        },
        _ => String::new(),
    }
}
