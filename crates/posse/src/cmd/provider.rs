//! `posse provider`: which agents there are, and whether their manifests are sound.

use posse_server::providers::{Listed, Providers};

use crate::client;
use crate::error::{Error, Exit};
use crate::ui::{Cell, Colour, Ui};

/// Which agents there are, and whether their manifests are sound
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the agents posse knows
    List,
    /// Check manifests, with every example in them; yours lie in the configuration directory, under providers/
    Check {
        /// Only this one
        provider: Option<String>,
    },
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    let directory = client::places()?.providers();
    let providers = Providers::new(directory.clone());
    let mut listed = providers.list();
    match &args.command {
        Command::List => {
            ui.answer(&listed, || table(&listed, ui));
            Ok(Exit::Ok)
        }
        Command::Check { provider } => {
            if let Some(wanted) = provider {
                listed.retain(|listed| &listed.id == wanted);
                if listed.is_empty() {
                    let error = providers.load(wanted).err().map(|error| error.to_string()).unwrap_or_default();
                    return Err(Error::Usage(error));
                }
            }
            ui.answer(&listed, || checked(&listed, ui));
            let sound = listed.iter().all(|listed| listed.problem.is_none());
            Ok(if sound { Exit::Ok } else { Exit::Failed })
        }
    }
}

fn table(listed: &[Listed], ui: &Ui) -> String {
    let rows: Vec<Vec<Cell>> = listed
        .iter()
        .map(|listed| {
            let problem = listed.problem.as_ref().map_or("", |_| "broken: see `posse provider check`");
            vec![
                Cell::new(&listed.id, None),
                Cell::new(&listed.name, None),
                Cell::new(listed.from.join(" + "), None),
                Cell::new(problem, Some(Colour::Red)),
            ]
        })
        .collect();
    ui.table(&["PROVIDER", "NAME", "MANIFEST", ""], &rows)
}

fn checked(listed: &[Listed], ui: &Ui) -> String {
    let line = |listed: &Listed| match &listed.problem {
        None => format!("{} {} ({})\n", ui.paint("sound ", Colour::Green), listed.id, listed.from.join(" + ")),
        Some(problem) => format!("{} {}\n{}\n", ui.paint("broken", Colour::Red), listed.id, indent(problem)),
    };
    listed.iter().map(line).collect()
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
