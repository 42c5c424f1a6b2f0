//! Commands that posse itself and agents call, never people.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use posse_core::signal::listener::TOO_LARGE;
use posse_sim::Scenario;
use posse_term::{lock, text_file};
use serde_json::{Map, Value};

use crate::client;
use crate::error::{Error, Exit};

/// Runs the keeper.
pub(crate) fn keep() -> Result<Exit, Error> {
    let paths = client::paths()?;
    paths.prepare()?;
    lock::acquire(&paths.keeper_lock(), Duration::from_secs(1))?.until_exit();
    posse_term::keeper::run(paths.keeper_socket(), say_ready).map_err(Error::io("the keeper cannot go on"))?;
    // The keeper's socket is gone; the directory goes if the daemon's is too. The last of the two removes it.
    let _ = std::fs::remove_dir(&paths.runtime);
    Ok(Exit::Ok)
}

/// The line that the starting process waits for. It waits for nothing after it.
fn say_ready() {
    let _ = std::io::stdout().write_all(b"ready\n").and_then(|()| std::io::stdout().flush());
    if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}

/// Start a headless session (started by posse itself)
#[derive(Debug, clap::Args)]
pub(crate) struct HeadlessArgs {
    /// The file that it reads on standard input
    #[arg(long = "in")]
    input: PathBuf,
    /// Where its standard output goes
    #[arg(long)]
    out: PathBuf,
    /// Where its standard error goes
    #[arg(long)]
    err: PathBuf,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Becomes the program of a headless session: same process, same exit status. The keeper starts this instead of the
/// program, so that output goes to files and the prompt is read from one.
pub(crate) fn session(args: &HeadlessArgs) -> Result<Exit, Error> {
    let [program, arguments @ ..] = args.command.as_slice() else { return Ok(Exit::Usage) };
    let prompt = File::options().read(true).custom_flags(NO_LINK).open(&args.input);
    let prompt = prompt.map_err(Error::io(args.input.display().to_string()))?;
    let error = Command::new(program)
        .args(arguments)
        .stdin(Stdio::from(prompt))
        .stdout(file(&args.out)?)
        .stderr(file(&args.err)?)
        .exec();
    Err(Error::Io { what: format!("cannot start {program}"), error })
}

/// A link in place of a file could lead anywhere.
const NO_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

fn file(path: &Path) -> Result<File, Error> {
    let opened = File::options().create(true).append(true).mode(0o600).custom_flags(NO_LINK).open(path);
    opened.map_err(Error::io(path.display().to_string()))
}

/// Play a scripted agent
#[derive(Debug, clap::Args)]
pub(crate) struct ActorArgs {
    /// The scenario, a TOML file
    scenario: PathBuf,
    /// The arguments of the agent it plays. A scenario has all that it needs
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

/// Plays a scripted agent in this terminal. For the demo and for tests.
pub(crate) fn actor(args: &ActorArgs) -> Result<Exit, Error> {
    let shown = args.scenario.display();
    let text = text_file::read_argument(&args.scenario).map_err(Error::io(format!("cannot read {shown}")))?;
    let scenario = Scenario::parse(&text).map_err(|error| Error::usage(format!("{shown}: {error}")))?;
    let code = posse_sim::agent::run(scenario).map_err(|error| Error::failed(error.to_string()))?;
    // The script decides the exit code, any of them.
    std::process::exit(code);
}

/// A daemon that takes longer is busy; the screen shows the state.
const PATIENCE: Duration = Duration::from_secs(1);
/// The largest payload that is read. Payloads contain prompts and results of tools too.
const MOST: u64 = 8 << 20;
/// The fields that are passed on. The rest is the conversation. The input of a tool is compared with the
/// question on the screen.
const KEPT: [&str; 8] =
    ["hook_event_name", "tool_name", INPUT, "background_tasks", "error", "error_type", "notification_type", "source"];
const INPUT: &str = "tool_input";
/// The largest input that is passed on, as JSON. Of a larger one the daemon hears that it is too large.
const LARGEST_INPUT: usize = 1 << 20;

/// Sends an agent's report to the daemon. Agents wait for this command: it is quick, prints nothing and always
/// succeeds, because an agent cannot handle a failure.
pub(crate) fn hook() -> Option<()> {
    let terminal = std::env::var("POSSE_TERMINAL_ID").ok()?;
    let mut payload = Vec::new();
    std::io::stdin().take(MOST).read_to_end(&mut payload).ok()?;
    let mut payload: Map<String, Value> = serde_json::from_slice(&payload).ok()?;
    payload.retain(|name, _| KEPT.contains(&name.as_str()));
    if let Some(input) = payload.get_mut(INPUT).filter(|input| input.to_string().len() > LARGEST_INPUT) {
        *input = TOO_LARGE.into();
    }
    let body = Value::Object(payload).to_string();
    let mut stream = UnixStream::connect(client::paths().ok()?.daemon_socket()).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let head = format!(
        "POST /terminals/{terminal}/hook HTTP/1.1\r\nhost: posse\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    // Answered means that it counts; until then the agent waits for us.
    stream.read_exact(&mut [0; 12]).ok()
}
