//! `posse completions`: for shells.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::error::Exit;
use crate::ui::Ui;

/// Print a script that completes posse's commands in your shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse completions bash > ~/.local/share/bash-completion/completions/posse
  posse completions fish")]
pub(crate) struct Args {
    /// For this shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "posse", &mut script);
    let text = String::from_utf8_lossy(&script).into_owned();
    ui.answer(&serde_json::json!({ "shell": args.shell.to_string(), "text": text }), || text.clone());
    Exit::Ok
}
