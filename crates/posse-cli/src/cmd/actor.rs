//! `posse actor`: play a scripted agent in this terminal. For the demo and for tests.

use std::path::PathBuf;

use posse_sim::Scenario;
use posse_term::text_file;

use crate::error::{Error, Exit};

/// Play a scripted agent
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The scenario, a TOML file
    scenario: PathBuf,
    /// What an agent in its place would be told; it knows all it needs from the scenario
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Error> {
    let shown = args.scenario.display();
    let text = text_file::read_argument(&args.scenario).map_err(Error::io(format!("cannot read {shown}")))?;
    let scenario = Scenario::parse(&text).map_err(|error| Error::Usage(format!("{shown}: {error}")))?;
    let code = posse_sim::agent::run(scenario).map_err(|error| Error::failed(error.to_string()))?;
    // The script decides the exit code, any of them.
    std::process::exit(code);
}
