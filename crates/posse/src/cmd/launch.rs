//! `posse launch`: start a program in a terminal of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use posse_core::screen::Size;
use posse_server::api::types::{Create, Terminal};
use posse_server::record::Backend;
use posse_server::tmux_server::TmuxServer;

use crate::client::{self, Client, Repeat};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Start a program in a terminal of its own
///
/// The program is started directly, without a shell, with the environment of this shell and in this directory.
/// It goes on when you close your window. Prints the new terminal's id.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A name for the terminal; one is made up otherwise
    #[arg(long)]
    name: Option<String>,
    /// The session (a named group of terminals) it belongs to; a new one otherwise
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Where to start it [default: here]
    #[arg(long, short = 'C', value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// Its size, as COLUMNSxROWS
    #[arg(long, value_name = "SIZE", default_value_t = Size::DEFAULT)]
    size: Size,
    /// Where the terminal lives: `embedded` or `tmux`
    #[arg(long, value_name = "BACKEND", env = "POSSE_BACKEND", default_value_t = Backend::Embedded)]
    backend: Backend,
    /// Which tmux server terminals in tmux live on: `private`, `default` (yours), or the NAME of another of yours
    #[arg(long, value_name = "SERVER", env = "POSSE_TMUX_SERVER", value_parser = tmux_server)]
    tmux_server: Option<TmuxServer>,
    /// An additional variable for its environment
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<(String, String)>,
    /// Attach to it at once
    #[arg(long, short)]
    attach: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a variable is written NAME=VALUE".into()),
    }
}

/// A tmux server as it is called in this shell.
pub(crate) fn tmux_server(text: &str) -> Result<TmuxServer, String> {
    let directory = std::env::var_os("TMUX_TMPDIR").map(PathBuf::from);
    TmuxServer::parse(text, directory).map_err(|error| error.to_string())
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let terminal: Terminal = launch(&mut client, args.create()?).await?;
    if args.attach {
        return super::attach::attach(client, &terminal, ui).await;
    }
    ui.answer(&terminal, || format!("{}\n", terminal.id));
    if ui.interactive() {
        ui.say(&format!("{} runs; look at it with `posse attach {}`", terminal.name, terminal.name));
    }
    Ok(Exit::Ok)
}

pub(crate) async fn launch(client: &mut Client, create: Create) -> Result<Terminal, Error> {
    client.post("/terminals", &create, Repeat::Never).await
}

impl Args {
    fn create(&self) -> Result<Create, Error> {
        let directory = self.directory.clone().unwrap_or_else(|| PathBuf::from("."));
        let mut environment = environment();
        environment.extend(self.environment.iter().cloned());
        Ok(Create {
            command: self.command.clone(),
            name: self.name.clone(),
            session_name: self.session.clone(),
            backend: Some(self.backend),
            tmux_server: self.tmux_server.clone().filter(|_| self.backend == Backend::Tmux),
            working_directory: client::absolute(&directory)?,
            environment,
            size: Some(self.size),
            ring_bytes: None,
        })
    }
}

/// This shell's environment. What is not UTF-8 cannot be sent and is left out.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
