//! `posse actor`: play a scripted agent in this terminal, or a scripted session. For the demo and for tests.

use std::path::PathBuf;

use posse_sim::Scenario;
use posse_term::text_file;

use crate::error::{Error, Exit};

/// Play a scripted agent
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The scenario, a TOML file, or the home of sessions without a terminal, a directory
    scenario: PathBuf,
    /// The arguments of the agent it plays. A scenario has all that it needs; a session records them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Error> {
    let shown = args.scenario.display();
    if args.scenario.is_dir() {
        let code = posse_sim::session::run(&args.scenario, &args.arguments);
        std::process::exit(code.map_err(Error::io(format!("cannot play {shown}")))?.into());
    }
    let text = text_file::read_argument(&args.scenario).map_err(Error::io(format!("cannot read {shown}")))?;
    let scenario = Scenario::parse(&text).map_err(|error| Error::usage(format!("{shown}: {error}")))?;
    let code = posse_sim::agent::run(scenario).map_err(|error| Error::failed(error.to_string()))?;
    // The script decides the exit code, any of them.
    std::process::exit(code);
}
