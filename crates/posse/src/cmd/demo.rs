//! `posse demo`: two scripted agents in real terminals, in a home of their own that is gone afterwards.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use posse_core::screen::{Screen, Size};
use posse_server::api::types::{Create, Health, Input, Success, Terminal};
use posse_term::places::Places;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, timeout_at};
use unicode_width::UnicodeWidthStr;

use super::launch;
use crate::client::{self, Client, Repeat, new_writer};
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui, cut};

/// See it work: two scripted agents, and a daemon that is killed under them
///
/// Needs no account and no network, spends nothing, touches nothing of yours, and leaves nothing behind. Takes a
/// few seconds.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Small enough for two screens in one window.
const SIZE: (u16, u16) = (20, 72);
/// How long a scripted agent may take to get where the demo wants it. It takes about a second.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn run(_: &Args, ui: &Ui) -> Result<Exit, Error> {
    let private = std::fs::Permissions::from_mode(0o700);
    let home = tempfile::Builder::new().prefix("posse-demo-").permissions(private).tempdir();
    let home = home.map_err(Error::io("cannot make a directory"))?;
    let path = home.path().as_os_str().to_owned();
    let places = Places::resolve(|name| (name == "POSSE_HOME").then(|| path.clone()))?;
    places.prepare()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::io("cannot start"))?;
    runtime.block_on(async {
        let result = tokio::select! {
            result = play(&places, home.path(), ui) => result,
            asked = super::asked_to_end() => Err(asked),
            () = ui.unread() => Ok(Exit::Ok),
        };
        // Whatever happened, nothing stays behind.
        let tidied = end(&places).await;
        result.and_then(|exit| tidied.map(|()| exit))
    })
}

async fn play(places: &Places, directory: &Path, ui: &Ui) -> Result<Exit, Error> {
    let step = |text: &str| ui.line(&format!("\n{} {text}", ui.paint("▸", Colour::Blue)));
    step("Starting two scripted agents, each in a terminal of its own. No account, no network, no tokens.");
    let mut client = Client::connect_to(places.clone()).await?;
    let busy = start(&mut client, directory, "busy", posse_actor::scenarios::BUSY).await?;
    let asking = start(&mut client, directory, "asking", posse_actor::scenarios::ASKING).await?;
    let working = screen_with(&mut client, &busy, "…").await?;
    let question = screen_with(&mut client, &asking, "❯ 1.").await?;
    let terminals: Vec<Terminal> = client.get("/terminals").await?;
    ui.print(&super::ls::table(&terminals, ui));
    ui.print(&frame("busy", &working, ui));
    ui.print(&frame("asking", &question, ui));

    let health: Health = client.get("/health").await?;
    step(&format!("Killing the daemon (process {}) with SIGKILL, in the middle of everything.", health.pid));
    let pid = i32::try_from(health.pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Error::Nonsense("a process id of 0".into()))?;
    kill_process(pid, Signal::KILL).map_err(|error| Error::failed(format!("cannot kill the daemon: {error}")))?;
    let began = Instant::now();
    let after: Health = client.get("/health").await?;
    let back = began.elapsed();
    let survivors: Vec<Terminal> = client.get("/terminals").await?;
    let same =
        survivors.len() == 2 && survivors.iter().all(|s| terminals.iter().any(|t| t.id == s.id && t.pid == s.pid));
    let same_screen = screen_with(&mut client, &asking, "❯ 1.").await?.rows == question.rows;
    if !(same && same_screen) {
        return Err(Error::failed("the terminals are not what they were before"));
    }
    ui.line(&format!(
        "  A new daemon (process {}) answered after {} ms: the same two programs, the same screens, nothing lost.",
        after.pid,
        back.as_millis()
    ));

    step("Answering the question: pressing 1, once.");
    let input = Input {
        message: "1".into(),
        enter: Some(false),
        raw: Some(true),
        writer: Some(new_writer()),
        sequence: Some(1),
        ..Input::default()
    };
    let _: Success = client.post(&format!("/terminals/{}/input", asking.id), &input, Repeat::Safe).await?;
    let done = screen_without(&mut client, &asking, "❯ 1.").await?;
    ui.print(&frame("asking", &done, ui));
    step("Ending both, with every process they started.");
    end(places).await?;
    ui.line(&format!("\nNow your own: {}", ui.paint("posse launch --attach -- COMMAND", Colour::Bold)));
    Ok(Exit::Ok)
}

async fn start(client: &mut Client, directory: &Path, name: &str, scenario: &str) -> Result<Terminal, Error> {
    let file = directory.join(format!("{name}.toml"));
    std::fs::write(&file, scenario).map_err(Error::io(file.display().to_string()))?;
    let executable = client::executable()?.to_string_lossy().into_owned();
    let create = Create {
        command: vec![executable, "actor".into(), file.to_string_lossy().into_owned()],
        name: Some(name.into()),
        session_name: Some("demo".into()),
        backend: None,
        tmux_server: None,
        working_directory: client::absolute(directory)?,
        environment: launch::environment(),
        size: Some(Size::clamped(SIZE.0, SIZE.1)),
        ring_bytes: None,
        ..Create::default()
    };
    launch::launch(client, create).await
}

/// The screen of a terminal as soon as it shows `mark`.
async fn screen_with(client: &mut Client, terminal: &Terminal, mark: &str) -> Result<Screen, Error> {
    screen_when(client, terminal, |text| text.contains(mark)).await
}

async fn screen_without(client: &mut Client, terminal: &Terminal, mark: &str) -> Result<Screen, Error> {
    screen_when(client, terminal, |text| !text.contains(mark)).await
}

async fn screen_when(client: &mut Client, terminal: &Terminal, wanted: impl Fn(&str) -> bool) -> Result<Screen, Error> {
    let give_up = Instant::now() + PATIENCE;
    // Every change of the title is a sign that the agent did something: that is when to look again.
    let mut events = client.listen(None).await?;
    loop {
        let screen: Screen = client.get(&format!("/terminals/{}/screen", terminal.id)).await?;
        if wanted(&screen.text()) {
            return Ok(screen);
        }
        let look_again = (Instant::now() + Duration::from_millis(200)).min(give_up);
        let _ = timeout_at(look_again, events.next()).await;
        if Instant::now() >= give_up {
            return Err(Error::failed(format!("{} did not get there; its screen:\n{}", terminal.name, screen.text())));
        }
    }
}

async fn end(places: &Places) -> Result<(), Error> {
    if !places.holds_terminals() {
        return Ok(());
    }
    Client::connect_to(places.clone()).await?.stop(true).await?;
    Ok(())
}

/// A screen in a box.
fn frame(name: &str, screen: &Screen, ui: &Ui) -> String {
    let width = usize::from(screen.size.cols());
    let dim = |text: &str| ui.paint(text, Colour::Dim);
    let mut text = format!("{}\n", dim(&format!("╭─ {name} {}╮", "─".repeat(width.saturating_sub(name.width() + 2)))));
    for row in screen.filled_rows() {
        let row = cut(row, width);
        let padding = " ".repeat(width.saturating_sub(row.width()));
        text.push_str(&format!("{} {row}{padding}{}\n", dim("│"), dim("│")));
    }
    text.push_str(&format!("{}\n", dim(&format!("╰{}╯", "─".repeat(width + 1)))));
    text
}
