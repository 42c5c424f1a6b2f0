//! `posse provider`: lists agents, and checks their manifests, also against the installed agents.

mod live;

use posse_files::disk::Disk;
use posse_files::providers::{Listed, Providers};

use crate::client;
use crate::error::{Error, Exit};
use crate::ui::{Cell, Colour, Ui};

/// List agents, and check their manifests
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  posse provider list
  posse provider check
  posse provider check --live codex")]
pub(crate) enum ProviderCommand {
    /// List the agents posse knows
    #[command(after_help = "Examples:\n  posse provider list")]
    List,
    /// Check manifests, with every example in them; yours lie in the configuration directory, under providers/
    ///
    /// With --live also checks whether they fit the installed agents: each is started in a scratch home and plays a few short
    /// conversations with a scripted model on this machine. This needs no account, costs nothing, touches none of your files
    /// and leaves nothing behind. Exit codes: 0 all fits, 1 something does not, 69 not installed.
    #[command(after_help = "\
Examples:
  posse provider check                          all manifests, with every example in them
  posse provider check --live codex             also start the one that is installed")]
    Check {
        /// Only these
        #[arg(value_name = "PROVIDER")]
        providers: Vec<String>,
        /// Also start the installed agents, and report what no longer fits
        #[arg(long)]
        live: bool,
    },
}

pub(crate) fn run(command: &ProviderCommand, ui: &Ui) -> Result<Exit, Error> {
    let providers = Providers::new(client::paths()?.providers());
    let mut listed = providers.list(&Disk::of_this_thread());
    match command {
        ProviderCommand::List => {
            ui.answer(&listed, || table(&listed, ui));
            Ok(Exit::Ok)
        }
        ProviderCommand::Check { providers: wanted, live } => {
            if let Some(unknown) = wanted.iter().find(|wanted| !listed.iter().any(|listed| listed.id == **wanted)) {
                let loaded = providers.load(&Disk::of_this_thread(), unknown);
                loaded.map_err(|error| Error::usage(error.to_string()))?;
            }
            listed.retain(|listed| wanted.is_empty() || wanted.contains(&listed.id));
            let sound = listed.iter().all(|listed| listed.problem.is_none());
            if *live && sound {
                return live::run(&listed, !wanted.is_empty(), ui);
            }
            ui.answer(&listed, || checked(&listed, ui));
            Ok(if sound { Exit::Ok } else { Exit::Failed })
        }
    }
}

fn table(listed: &[Listed], ui: &Ui) -> String {
    let row = |listed: &Listed| {
        let problem = listed.problem.as_ref().map_or("", |_| "broken: see `posse provider check`");
        vec![
            Cell::new(&listed.id, None),
            Cell::new(&listed.name, None),
            Cell::new(listed.from.join(" + "), None),
            Cell::new(problem, Colour::Red),
        ]
    };
    ui.table(&["PROVIDER", "NAME", "MANIFEST", ""], listed.iter().map(row))
}

fn checked(listed: &[Listed], ui: &Ui) -> String {
    let line = |listed: &Listed| match &listed.problem {
        None => format!("{} {} ({})\n", ui.paint("sound ", Colour::Green), listed.id, listed.from.join(" + ")),
        Some(problem) => format!("{} {}\n{}\n", ui.paint("broken", Colour::Red), listed.id, indent(problem)),
    };
    listed.iter().filter(|listed| listed.problem.is_some() || !ui.quiet()).map(line).collect()
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
