//! The log of runs: `posse run logs`, `posse plan log` and `posse auto log`.

use posse_api::{SessionFiles, SessionLines};
use posse_core::ids::RunId;
use serde_json::json;
use tokio::time::sleep;

use super::kind::{AnyRun, RunKind, RunProgress};
use super::render::{RunRenderer, details};
use super::tail::{RunTail, TailItem, TailNews};
use super::transcript::Extent;
use crate::client::Client;
use crate::error::Error;
use crate::event_stream::AGAIN;
use crate::ui::{Colour, Ui, date, plain};

/// Options of commands that print the log of sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// The lines as the agent printed them
    #[arg(long)]
    pub(super) raw: bool,
    /// Print new entries as they come, until the run is over
    #[arg(long, short)]
    pub(in crate::cmd) follow: bool,
}

/// The entries to print.
pub(in crate::cmd) struct LogRequest {
    pub(in crate::cmd) kind: RunKind,
    /// In this order; the newest, which may be followed, is the last.
    pub(in crate::cmd) runs: Vec<RunId>,
    /// One task or item, with everything that is known about it.
    pub(in crate::cmd) about: Option<String>,
    pub(in crate::cmd) log: LogArgs,
}

/// Prints the log, and returns whether there was something to print. Ends early if standard output has no reader.
pub(in crate::cmd) async fn print(mut client: Client, request: LogRequest, ui: &Ui) -> Result<bool, Error> {
    client.only_running();
    let extent = if request.about.is_some() { Extent::All } else { Extent::Lines };
    let log = RunLog { client, request, renderer: RunRenderer::new(extent), day: String::new(), ui };
    tokio::select! {
        printed = log.print() => printed,
        () = ui.unread() => Ok(true),
    }
}

struct RunLog<'a> {
    client: Client,
    request: LogRequest,
    renderer: RunRenderer,
    /// The day of the last line. Lines only have the time.
    day: String,
    ui: &'a Ui,
}

impl RunLog<'_> {
    async fn print(mut self) -> Result<bool, Error> {
        let mut printed = false;
        let runs = self.request.runs.clone();
        for run in &runs {
            let follow = self.request.log.follow && Some(run) == runs.last();
            printed |= self.print_run(*run, follow).await?;
        }
        Ok(printed)
    }

    async fn print_run(&mut self, run: RunId, follow: bool) -> Result<bool, Error> {
        let kind = self.request.kind;
        let mut tail = RunTail::new(kind, run).with_sessions(kind != RunKind::Loop);
        tail = tail.about(self.request.about.clone());
        let mut printed = false;
        loop {
            // Subscribed before reading, so that no change is missed.
            let mut events = self.client.listen(None).await?;
            let mut event = None;
            loop {
                // In this order, so that nothing of a run that is over is missed.
                let view = AnyRun::get(kind, run, true, &mut self.client).await?;
                // Without the environment a run of the loop stops; others wait for it.
                let is_over = match view.progress() {
                    RunProgress::Continues => false,
                    RunProgress::NeedsEnvironment => kind == RunKind::Loop,
                    RunProgress::Over => true,
                };
                let items = tail.next(event.as_ref().filter(|_| !is_over), &mut self.client).await?;
                printed |= !items.is_empty();
                for item in &items {
                    self.item(item).await?;
                }
                if !follow || is_over {
                    return Ok(printed);
                }
                event = events.until(|event| tail.concerns(event)).await;
                if event.is_none() {
                    break;
                }
            }
            sleep(AGAIN).await;
        }
    }

    async fn item(&mut self, item: &TailItem) -> Result<(), Error> {
        if self.request.log.raw {
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
        let (Some(_), None, TailNews::Entry(entry)) = (&self.request.about, item.plan_run, &item.news) else {
            return Ok(());
        };
        if !ui.json() {
            ui.print(&indented(&details(entry), ui));
        }
        match item.session() {
            Some((path, session)) => self.files(&path, &session.name).await,
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
