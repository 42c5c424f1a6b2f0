//! `posse completions`: for shells.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::error::Exit;

/// Print a script that completes posse's commands in your shell
///
/// For example: `posse completions bash > ~/.local/share/bash-completion/completions/posse`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Exit {
    clap_complete::generate(args.shell, &mut super::Cli::command(), "posse", &mut std::io::stdout());
    Exit::Ok
}
