//! `posse completions`: for shells.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::error::Exit;
use crate::ui::Ui;

/// Print a script that completes posse's commands in your shell
///
/// For example: `posse completions bash > ~/.local/share/bash-completion/completions/posse`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "posse", &mut script);
    ui.print(&String::from_utf8_lossy(&script));
    Exit::Ok
}
