//! `posse config`: what is configured, where it comes from, and what could be.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

use posse_server::providers::Providers;
use serde_json::{Value, json};

use crate::client;
use crate::config::{Config, DEFAULT, Origin, Setting, commented_out, settings};
use crate::error::{Error, Exit};
use crate::ui::{Cell, Colour, Ui};

/// What is configured, and where each value comes from
///
/// Values come from variables, else from config.toml, else they are the default. Options of a command, and the configuration
/// of a run, win over all of these. What holds for plans in a project is shown by `posse plan config`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse config show         every value, and where it comes from
  posse config default      the default configuration, with a comment on every key
  posse config init         write that as config.toml, everything commented out")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show every value, and where it comes from: a variable, a line of config.toml, or the default
    #[command(after_help = "Examples:\n  posse config show\n  posse config show --json")]
    Show,
    /// Print the default configuration, with a comment on every key
    #[command(after_help = "Examples:\n  posse config default")]
    Default,
    /// Write a config.toml with everything in it commented out; one that is there is left alone
    #[command(after_help = "Examples:\n  posse config init")]
    Init,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    match args.command {
        Command::Show => show(ui),
        Command::Default => {
            ui.answer(&json!({ "text": DEFAULT }), || DEFAULT.to_owned());
            Ok(Exit::Ok)
        }
        Command::Init => init(ui),
    }
}

fn show(ui: &Ui) -> Result<Exit, Error> {
    let paths = client::paths()?;
    let path = Config::path(&paths);
    let text = Config::read(&path)?;
    let listed = Providers::new(paths.providers()).list();
    let providers: Vec<&str> = listed.iter().map(|listed| listed.id.as_str()).collect();
    let settings = settings(text.as_deref().unwrap_or_default(), &|name| std::env::var(name).ok(), &providers)?;
    let answer = json!({ "file": path, "there": text.is_some(), "settings": settings });
    ui.answer(&answer, || {
        let note = if text.is_some() { "" } else { " (not there; `posse config init` writes one)" };
        format!("{}{note}\n\n{}", path.display(), table(&settings, ui))
    });
    Ok(Exit::Ok)
}

fn table(settings: &[Setting], ui: &Ui) -> String {
    let rows: Vec<Vec<Cell>> = settings
        .iter()
        .map(|Setting { key, value, origin }| {
            let value = match value {
                Value::String(text) => format!("{text:?}"),
                other => other.to_string(),
            };
            let (from, colour) = match origin {
                Origin::Variable(name) => (format!("variable {name}"), Colour::Yellow),
                Origin::Line(line) => (format!("config.toml, line {line}"), Colour::Green),
                Origin::Default => ("default".to_owned(), Colour::Dim),
            };
            vec![Cell::new(key, None), Cell::new(value, None), Cell::new(from, Some(colour))]
        })
        .collect();
    ui.table(&["KEY", "VALUE", "FROM"], &rows)
}

fn init(ui: &Ui) -> Result<Exit, Error> {
    let paths = client::paths()?;
    let path = Config::path(&paths);
    let make = || -> std::io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&paths.config)?;
        // Never over one that is there, not even one that appears this very moment.
        let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(commented_out().as_bytes())
    };
    match make() {
        Ok(()) => {
            ui.answer(&json!({ "file": path }), || format!("{}\n", path.display()));
            Ok(Exit::Ok)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Error::Failed {
            message: format!("{} is there already", path.display()),
            hint: Some("`posse config default` shows what else could be in it".into()),
        }),
        Err(error) => Err(Error::io(format!("cannot write {}", path.display()))(error)),
    }
}
