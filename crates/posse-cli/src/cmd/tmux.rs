//! `posse tmux`: tmux windows that show terminals. Each window runs `posse attach`, so tmux hosts nothing.

use std::ffi::OsString;
use std::process::{Output, Stdio};

use posse_api::{LoopView, ProblemKind, Terminal};
use posse_core::ids::{Name, TerminalId};
use posse_core::run::Entry;
use serde::Serialize;
use tokio::process::Command;

use super::audit::encoded;
use super::run::follow::Onlooker;
use crate::client::{self, Client};
use crate::error::{Error, Exit};
use crate::status_area::StatusArea;
use crate::ui::{Cell, Ui};

/// Show terminals in tmux windows
///
/// Opens a window for each terminal: in your tmux if you are inside one, otherwise in a tmux session called `posse`. A
/// window runs `posse attach`, so what you type there reaches the program. Programs do not live in tmux: closing a window, or
/// ending tmux, ends no program, and a window closes when its program ends.
///
/// A terminal keeps its size. A window that is smaller shows the part around the cursor; --resize fits the terminal to the
/// window instead. A terminal that has a window already gets no second one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse tmux                           all running terminals
  posse tmux 1a2b                      the agents of a run
  posse tmux reviewer                  one terminal
  posse tmux night --resize            all terminals of a session, fitted to their windows
  posse launch claude_code --tmux      start an agent and show it
  posse loop loop.json --tmux          show the agents of a run as they start

Exit codes: 0 done; 1 tmux refused; 69 tmux is not installed.")]
pub(crate) struct Args {
    /// The run whose agents to show: its id or the beginning of it; or the name of a session or a terminal [default: all
    /// running terminals]
    run: Option<String>,
    /// Give each terminal the size of its window while the window is open
    #[arg(long)]
    resize: bool,
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let tmux = Tmux::find(args.resize).await?;
    let mut client = Client::connect().await?;
    let terminals = terminals(&mut client, args.run.as_deref()).await?;
    let shown = tmux.show(&terminals).await?;
    ui.answer(&shown, || {
        let row = |window: &ShownWindow| {
            let state = if window.opened { "opened" } else { "open already" };
            vec![window.name.to_string().into(), window.target().into(), Cell::new(state, None)]
        };
        if shown.windows.is_empty() {
            return String::new();
        }
        ui.table(&["NAME", "WINDOW", ""], shown.windows.iter().map(row))
    });
    match &shown.attach {
        _ if shown.windows.is_empty() => ui.say("no terminal is running; start one with `posse launch`"),
        Some(command) => ui.say(&format!("look at them with `{command}`")),
        None => {}
    }
    Ok(Exit::Ok)
}

/// The running terminals that a run, a session or a terminal of this name has; without a name all of them.
async fn terminals(client: &mut Client, name: Option<&str>) -> Result<Vec<Terminal>, Error> {
    let mut running: Vec<Terminal> = client.get("/terminals").await?;
    running.retain(|terminal| terminal.exit.is_none());
    let Some(name) = name else {
        running.retain(|terminal| !is_headless(terminal));
        return Ok(running);
    };
    if let Some(terminal) = running.iter().find(|terminal| terminal.name.as_str() == name) {
        return Ok(vec![terminal.clone()]);
    }
    let of_session = |terminal: &Terminal| Name::session(name).is_ok_and(|session| session == terminal.session_name);
    if running.iter().any(of_session) {
        running.retain(of_session);
        return Ok(running);
    }
    let fits: Vec<LoopView> = client.get(&format!("/runs?kind=loop&id={}", encoded(name))).await?;
    let of_id = |terminal: &Terminal| !name.is_empty() && terminal.id.as_str().starts_with(name);
    match &fits[..] {
        [run] => running.retain(|terminal| run.terminals.values().any(|id| *id == terminal.id)),
        [] => running.retain(of_id),
        _ => return Err(Error::usage(format!("{name:?} fits several runs: give more of the id"))),
    }
    if running.is_empty() && fits.is_empty() {
        return Err(Error::failed(format!("there is no run, session or running terminal called {name:?}"))
            .with_hint("`posse run ls` and `posse ls` show those there are"));
    }
    Ok(running)
}

/// Returns whether a terminal runs a session of a plan, whose output goes to files and not to the screen.
fn is_headless(terminal: &Terminal) -> bool {
    matches!(&terminal.command[..], [_, command, input, ..] if command == "session" && input == "--in")
}

/// The session that windows are opened in when the user is not inside tmux.
const SESSION: &str = "posse";

/// The pane option that names the terminal a pane shows.
const MARK: &str = "@posse_terminal";

/// The fields that tmux prints of a pane, in this order. Names of sessions may contain spaces, so they come last.
const FORMAT: &str = "#{pane_id} #{window_index} #{session_name}";

/// The variables that decide where posse's sockets and files are.
const PLACES: [&str; 6] =
    ["POSSE_HOME", "POSSE_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "HOME"];

/// The tmux server that windows are opened on.
#[derive(Debug)]
pub(crate) struct Tmux {
    /// The user is inside tmux, so windows go into the session they are in.
    inside: bool,
    resize: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct ShownTerminals {
    windows: Vec<ShownWindow>,
    /// The command that shows the windows; null if the user is inside that tmux.
    attach: Option<String>,
}

#[derive(Debug, Serialize)]
struct ShownWindow {
    terminal: TerminalId,
    name: Name,
    #[serde(flatten)]
    pane: Pane,
    /// False if the window was there before.
    opened: bool,
}

/// A pane as tmux describes it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Pane {
    #[serde(rename = "pane")]
    id: String,
    window: u32,
    session: String,
}

impl ShownTerminals {
    /// Returns one line with the location of the windows.
    pub(crate) fn summary(&self) -> String {
        let windows: Vec<String> =
            self.windows.iter().map(|window| format!("{} in tmux window {}", window.name, window.target())).collect();
        let attach = self.attach.as_ref().map(|command| format!("; look at it with `{command}`"));
        windows.join(", ") + &attach.unwrap_or_default()
    }
}

impl ShownWindow {
    fn of(terminal: &Terminal, pane: Pane, opened: bool) -> Self {
        Self { terminal: terminal.id, name: terminal.name.clone(), pane, opened }
    }

    fn target(&self) -> String {
        format!("{}:{}", self.pane.session, self.pane.window)
    }
}

impl Tmux {
    /// Finds tmux before anything is started. `resize`: terminals take the sizes of their windows.
    pub(crate) async fn find(resize: bool) -> Result<Self, Error> {
        match Command::new("tmux").arg("-V").stdin(Stdio::null()).output().await {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let hint = "install the package `tmux` of your system; without it, `posse attach` shows a terminal in this window";
                return Err(Error::new(ProblemKind::NoTmux, "tmux is not installed, or not in PATH").with_hint(hint));
            }
            Err(error) => return Err(Error::io("cannot start tmux")(error)),
        }
        let inside = std::env::var_os("TMUX").is_some_and(|value| !value.is_empty());
        Ok(Self { inside, resize })
    }

    /// Opens a window for each terminal that has none.
    pub(crate) async fn show(&self, terminals: &[Terminal]) -> Result<ShownTerminals, Error> {
        let open = self.marked_panes().await?;
        let mut windows = Vec::new();
        for terminal in terminals {
            let known = open.iter().find(|(id, _)| id == terminal.id.as_str());
            windows.push(match known.and_then(|(_, pane)| Pane::parse(pane)) {
                Some(pane) => ShownWindow::of(terminal, pane, false),
                None => ShownWindow::of(terminal, self.open(terminal).await?, true),
            });
        }
        let attach = (!self.inside && !windows.is_empty()).then(|| format!("tmux attach -t {SESSION}"));
        Ok(ShownTerminals { windows, attach })
    }

    /// Returns the panes that show terminals: the terminal's id, and tmux's data about the pane.
    async fn marked_panes(&self) -> Result<Vec<(String, String)>, Error> {
        let format = format!("#{{?pane_dead,,#{{{MARK}}}}} {FORMAT}");
        // Without a server there is no pane.
        let output = run_tmux(&["list-panes".into(), "-a".into(), "-F".into(), format.into()]).await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let marked = text.lines().filter_map(|line| line.split_once(' ')).filter(|(id, _)| !id.is_empty());
        Ok(marked.map(|(id, pane)| (id.to_owned(), pane.to_owned())).collect())
    }

    async fn open(&self, terminal: &Terminal) -> Result<Pane, Error> {
        let name = terminal.name.as_str();
        let target = format!("={SESSION}:");
        let beside = ["new-window", "-d", "-t", &target];
        let has_session = ["has-session", "-t", &target].map(OsString::from);
        let mut output = if self.inside {
            self.start(&beside[..2], terminal).await?
        } else if run_tmux(&has_session).await?.status.success() {
            self.start(&beside, terminal).await?
        } else {
            self.start(&["new-session", "-d", "-s", SESSION], terminal).await?
        };
        // Another posse was faster to create the session.
        if !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("duplicate session") {
            output = self.start(&beside, terminal).await?;
        }
        let opened = output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        let Some(pane) = opened.as_deref().and_then(Pane::parse) else {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::failed(format!("tmux opened no window for {name}: {why}"))
                .with_hint(format!("it runs all the same: `posse attach {name}`")));
        };
        let mark = ["set-option", "-p", "-t", &pane.id, MARK, terminal.id.as_str()];
        run_tmux(&mark.map(OsString::from)).await?;
        Ok(pane)
    }

    /// Runs a command of tmux that opens a window, with `posse attach` in it. A window has the environment of the tmux server,
    /// so what decides where posse's files are is passed on.
    async fn start(&self, opening: &[&str], terminal: &Terminal) -> Result<Output, Error> {
        let shown = ["-P", "-F", FORMAT, "-n", terminal.name.as_str(), "env"];
        let mut words: Vec<OsString> = opening.iter().chain(&shown).map(Into::into).collect();
        for name in PLACES.iter().filter(|name| std::env::var_os(name).is_none()) {
            words.extend(["-u", name].map(Into::into));
        }
        for (name, value) in PLACES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))) {
            let mut variable = OsString::from(format!("{name}="));
            variable.push(value);
            words.push(variable);
        }
        words.push(client::executable()?.into());
        words.extend(["attach", terminal.id.as_str()].map(Into::into));
        if self.resize {
            words.push("--resize".into());
        }
        run_tmux(&words).await
    }
}

impl Pane {
    /// Reads a line in `FORMAT`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, ' ');
        let id = words.next().filter(|id| id.starts_with('%'))?.to_owned();
        let window = words.next()?.parse().ok()?;
        Some(Self { id, window, session: words.next()?.to_owned() })
    }
}

async fn run_tmux(words: &[OsString]) -> Result<Output, Error> {
    let mut command = Command::new("tmux");
    command.args(words).stdin(Stdio::null()).output().await.map_err(Error::io("cannot start tmux"))
}

/// Shows the agents of a run that is followed, each as soon as it is ready.
pub(super) struct RunWindows {
    tmux: Tmux,
    client: Client,
}

impl RunWindows {
    pub(super) async fn new(tmux: Tmux) -> Result<Self, Error> {
        let mut client = Client::connect().await?;
        client.only_running();
        Ok(Self { tmux, client })
    }

    async fn open(&mut self, id: TerminalId) -> Result<ShownTerminals, Error> {
        let mut terminals: Vec<Terminal> = self.client.get("/terminals").await?;
        terminals.retain(|terminal| terminal.exit.is_none() && terminal.id == id);
        self.tmux.show(&terminals).await
    }
}

impl Onlooker for RunWindows {
    /// Opens a window for an agent that is ready. A window that cannot be opened is a warning: the run does not need it.
    async fn on_entry(&mut self, entry: &Entry, screen: &mut StatusArea<'_>) -> Result<(), Error> {
        let Entry::TerminalReady { terminal, .. } = entry else { return Ok(()) };
        match self.open(*terminal).await {
            Ok(shown) if shown.windows.iter().any(|window| window.opened) => {
                screen.print(&format!("{}\n", shown.summary()));
            }
            Ok(_) => {}
            Err(error) => screen.print(&format!("warning: {error}\n")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pane_lines_are_read_and_others_refused() {
        let pane = |id: &str, window, session: &str| Some(Pane { id: id.into(), window, session: session.into() });
        assert_eq!(Pane::parse("%3 2 work"), pane("%3", 2, "work"));
        assert_eq!(Pane::parse("%3 12 my work"), pane("%3", 12, "my work"));
        for wrong in ["", "%3", "%3 x work", "3 2 work"] {
            assert_eq!(Pane::parse(wrong), None, "{wrong:?}");
        }
    }
}
