//! `posse shim`: what tmux starts instead of a program, to start the program as it was asked for.

use std::path::PathBuf;

use crate::error::{Error, Exit};

/// Start a program in a tmux pane (started by posse itself)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    program: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<Exit, Error> {
    let code = posse_term::tmux::run_shim(&args.program).map_err(Error::io("cannot start the program"))?;
    std::process::exit(code);
}
