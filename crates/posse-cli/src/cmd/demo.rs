//! `posse demo`: the whole loop on five scripted agents, in a home of its own that is gone afterwards. It is the product
//! itself that is shown: the same runs, the same view as `posse loop`.

mod ending;
mod stage;

use posse_api::{Health, RunView, Terminal};
use posse_core::run::{Entry, RunStatus};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use super::run::follow::{Follower, OnSignal, Onlooker};
use crate::client::{Client, Repeat};
use crate::error::{Error, Exit};
use crate::status_area::StatusArea;
use crate::ui::{Colour, Ui};
use ending::{Ending, Killed};
use stage::{Beat, DemoStage};

/// See it work: five scripted agents, from a task to PASS, and a daemon that is killed under them
///
/// Needs no account and no network, spends nothing, touches nothing of yours, and leaves nothing behind. Takes about
/// twenty seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse demo           watch it
  posse demo --fast    do not watch it: a few seconds, for tests")]
pub(crate) struct Args {
    /// Let the agents think for a moment only
    #[arg(long)]
    fast: bool,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    let beat = if args.fast { Beat::FAST } else { Beat::CALM };
    let stage = DemoStage::build(beat)?;
    super::on_own_signals(async {
        let result = tokio::select! {
            result = play(&stage, beat, ui) => result.map(Some),
            asked = super::asked_to_end() => Err(asked),
            () = ui.unread() => Ok(None),
        };
        // Clean up after failures, too.
        let tidied = stage.home.end().await;
        if tidied.is_ok() && result.is_err() {
            ui.say("the demo is over, and nothing of it stays behind");
        }
        let ending = result?;
        tidied?;
        if let Some(ending) = ending {
            ui.item(&ending, || ending.text(&stage.home.directory, ui));
        }
        Ok(Exit::Ok)
    })
}

/// Plays it to its PASS. Anything else is an error: it is our own play.
async fn play(stage: &DemoStage, beat: Beat, ui: &Ui) -> Result<Ending, Error> {
    let began = Instant::now();
    if !ui.json() && !ui.quiet() {
        ui.line(&format!("{}\n", ui.paint(INTRODUCTION, Colour::Bold)));
    }
    let mut client = stage.home.connect().await?;
    let view: RunView = client.post("/runs", &stage.run()?, Repeat::Never).await?;
    let mut audience = stage.home.connect().await?;
    audience.only_running();
    let narrator = Narrator { client: audience, beat, accepted: 0, killed: None, ui };
    let mut follower = Follower::new(client, &view, OnSignal::Stop, Some(narrator), ui);
    let (RunView::Loop(view), Some(mut narrator)) = (follower.until_over().await?, follower.onlooker.take()) else {
        return Err(Error::Nonsense("no run of the loop".into()));
    };
    if view.status != RunStatus::Passed {
        let why = view.run.reason.unwrap_or_else(|| "the tester said FAIL".to_owned());
        return Err(Error::failed(format!("the demo did not pass: {why}")));
    }
    let killed = narrator.killed.ok_or_else(|| Error::failed("the daemon was never killed"))?;
    Ending::of(&mut narrator.client, stage, view, killed, began.elapsed()).await
}

const INTRODUCTION: &str = "\
Five scripted agents work on a task until its test passes. No account, no
network, no tokens. Three look like Claude Code, two like Codex. They ask before
they run commands; this demo accepts that, which posse does only when told to.";

/// Comments on the demo, and kills the daemon at the worst moment.
struct Narrator<'a> {
    client: Client,
    beat: Beat,
    accepted: u32,
    killed: Option<Killed>,
    ui: &'a Ui,
}

/// The review of the program: the agents have something to lose by then.
const KILLED_IN: u64 = 4;

impl Onlooker for Narrator<'_> {
    async fn on_entry(&mut self, entry: &Entry, screen: &mut StatusArea<'_>) -> Result<(), Error> {
        match entry {
            Entry::Accepting { .. } => {
                self.accepted += 1;
                if self.accepted == 1 {
                    self.remark("Audited first: who asked what, where, and which key answers.", screen);
                }
            }
            Entry::Sent { turn } if *turn == KILLED_IN => {
                let pid = self.client.get::<Health>("/health").await?.pid;
                self.remark(&format!("Killing the daemon (process {pid}) with SIGKILL, mid-review."), screen);
                // The agent is at work by then, and the line was read.
                sleep(self.beat.0 * 3).await;
                let killed = self.kill(pid).await?;
                let Killed { after, milliseconds, .. } = killed;
                let text = format!("Process {after} took over after {milliseconds} ms, with the same agents.");
                self.remark(&text, screen);
                self.killed = Some(killed);
            }
            Entry::Said { text, .. } if text.starts_with("FAIL") => {
                self.remark("What the tester saw goes back to the programmer.", screen);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Narrator<'_> {
    /// Prints a remark below the text of an entry.
    fn remark(&self, text: &str, screen: &mut StatusArea<'_>) {
        screen.print(&format!("          {} {text}\n", self.ui.paint("▸", Colour::Blue)));
    }

    /// Kills the daemon without any warning, and makes sure that its agents did not notice. The keeper brings it back.
    async fn kill(&mut self, doomed: u32) -> Result<Killed, Error> {
        let before: Vec<Terminal> = self.client.get("/terminals").await?;
        let pid = i32::try_from(doomed).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Error::Nonsense("a process id of 0".into()))?;
        let began = Instant::now();
        kill_process(pid, Signal::KILL).map_err(|error| Error::failed(format!("cannot kill the daemon: {error}")))?;
        let after = loop {
            // An answer sent just before the crash may still arrive.
            let health: Health = self.client.get("/health").await?;
            if health.pid != doomed {
                break health.pid;
            }
        };
        let milliseconds = began.elapsed().as_millis();
        let survivors: Vec<Terminal> = self.client.get("/terminals").await?;
        let same = |terminal: &Terminal| survivors.iter().any(|s| s.id == terminal.id && s.pid == terminal.pid);
        if survivors.len() != before.len() || !before.iter().all(same) {
            return Err(Error::failed("the terminals are not what they were before the daemon was killed"));
        }
        Ok(Killed { before: doomed, after, milliseconds })
    }
}
