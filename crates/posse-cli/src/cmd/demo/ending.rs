//! The summary of the demo: results, where to find them, and next steps.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use posse_api::{AuditEntry, AuditVerdict, LoopView};
use serde::Serialize;
use serde_json::Value;

use super::stage::DemoStage;
use crate::client::Client;
use crate::error::Error;
use crate::ui::{Colour, Ui, plain};

#[derive(Serialize)]
pub(super) struct Ending {
    verdict: &'static str,
    seconds: f64,
    run: LoopView,
    /// The killed daemon and its successor.
    daemon: Killed,
    accepted: Vec<Accepted>,
    /// Prompts that arrived, by the agents' own account.
    prompts: usize,
}

#[derive(Serialize)]
pub(super) struct Killed {
    pub(super) before: u32,
    pub(super) after: u32,
    /// Until the next one answered.
    pub(super) milliseconds: u128,
}

#[derive(Serialize)]
struct Accepted {
    role: String,
    turn: u64,
    /// The command, as far as it is on one line.
    what: String,
    keys: Vec<String>,
}

impl Ending {
    /// Asks posse and the agents what happened, and makes sure that they agree.
    pub(super) async fn of(
        client: &mut Client,
        stage: &DemoStage,
        run: LoopView,
        daemon: Killed,
        took: Duration,
    ) -> Result<Self, Error> {
        let entries: Vec<AuditEntry> = client.get(&format!("/audit?run={}", run.id)).await?;
        let verdict: AuditVerdict = client.get("/audit/verify").await?;
        let log = std::fs::read_to_string(stage.log()).map_err(Error::io(stage.log().display().to_string()))?;
        let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let prompts: Vec<String> = records
            .filter(|record| record["event"] == "submitted")
            .map(|record| record["prompt"].to_string())
            .collect();
        let distinct = prompts.iter().collect::<BTreeSet<_>>().len();
        if distinct != prompts.len() {
            return Err(Error::failed(format!(
                "{} of {} prompts arrived twice",
                prompts.len() - distinct,
                prompts.len()
            )));
        }
        if !verdict.intact {
            return Err(Error::failed("the audit is not as it was written"));
        }
        Ok(Self {
            verdict: "PASS",
            seconds: took.as_secs_f64(),
            daemon,
            accepted: entries.iter().filter_map(Accepted::of).collect(),
            prompts: prompts.len(),
            run,
        })
    }

    pub(super) fn text(&self, directory: &Path, ui: &Ui) -> String {
        let head = |text: &str| ui.paint(text, Colour::Bold);
        let Self { run, seconds, .. } = self;
        let verdict = ui.paint(self.verdict, Colour::Green);
        let verdict =
            format!("{verdict} in round {}: {} turns of five agents in {seconds:.0} s.", run.round, run.turns);
        if ui.quiet() {
            return verdict;
        }
        let mut lines = vec![
            format!("\n{verdict}"),
            format!("{} permissions were accepted. All are in the audit, and it is intact:", self.accepted.len()),
        ];
        lines.extend(self.accepted.iter().map(|Accepted { role, turn, what, keys }| {
            plain(&format!("  turn {turn}, {role}: {what}   answered with {}", keys.join(" ")))
        }));
        lines.push("The daemon was killed once. No answer was lost, and by the agents' own account".into());
        lines.push(format!("each of the {} prompts arrived once.\n", self.prompts));
        lines.push(format!("{} {}, and is gone.\n", head("Everything was in"), directory.display()));
        lines.push(head("Next, with Claude Code or Codex, installed and logged in"));
        for (command, why) in [
            ("posse launch claude_code --attach", "one agent, in a terminal of its own"),
            ("posse loop --template > task.md", "a task to be filled in"),
            ("posse loop --prompt-file task.md --trust", "five agents on it"),
        ] {
            lines.push(format!("  {command:<42} {}", ui.paint(why, Colour::Dim)));
        }
        lines.join("\n")
    }
}

impl Accepted {
    /// An answer, without what became of it: the run would not have passed otherwise.
    fn of(entry: &AuditEntry) -> Option<Self> {
        let answering = entry.answering.as_ref()?;
        let what = answering.dialog.as_ref().and_then(|dialog| dialog.subject.as_ref()?.lines().next());
        Some(Self {
            role: entry.who.role.clone().unwrap_or_default(),
            turn: entry.who.turn?,
            what: what.unwrap_or_default().to_owned(),
            keys: answering.keys.clone(),
        })
    }
}
