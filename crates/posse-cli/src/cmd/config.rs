//! `posse config`: the settings, their origins, and the possible settings.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

use posse_core::config::{ConfigLayer, ValueOrigin, resolve, user_template};
use posse_files::disk::Disk;
use posse_files::providers::Providers;
use posse_term::config_files;
use serde_json::json;

use crate::client;
use crate::config;
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Show the configuration, and the origin of each value
///
/// Values come from variables, else from config.toml, else they are the default. Options of a command, and the configuration
/// of a run, win over all of these. What holds for plans in a project is shown by `posse plan config`.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  posse config show         every value, and where it comes from
  posse config default      the default configuration, with a comment on every key
  posse config init         write that as config.toml, everything commented out")]
pub(crate) enum ConfigCommand {
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

pub(crate) fn run(command: &ConfigCommand, ui: &Ui) -> Result<Exit, Error> {
    match command {
        ConfigCommand::Show => show(ui),
        ConfigCommand::Default => {
            let text = user_template();
            ui.answer(&json!({ "text": text }), || text.clone());
            Ok(Exit::Ok)
        }
        ConfigCommand::Init => init(ui),
    }
}

fn show(ui: &Ui) -> Result<Exit, Error> {
    let paths = client::paths()?;
    let path = paths.config_file();
    let listed = Providers::new(paths.providers()).list(&Disk::of_this_thread());
    let providers: Vec<&str> = listed.iter().map(|listed| listed.id.as_str()).collect();
    let user = config_files::user(&paths, Some(&providers))?;
    let environment = ConfigLayer::environment(&config::variable, Some(&providers), |key| key.user)?;
    let mut settings = resolve(&[&user, &environment], |key| key.user);
    // What counts in a project also depends on the project's own file: `posse plan config` shows that.
    settings.retain(|setting| !setting.key.starts_with("plans.") || setting.origin != ValueOrigin::Default);
    let there = path.exists();
    ui.answer(&json!({ "file": path, "there": there, "settings": settings }), || {
        let note = if there { "" } else { " (not there; `posse config init` writes one)" };
        format!("{}{note}\n\n{}", path.display(), config::table(&settings, ui))
    });
    Ok(Exit::Ok)
}

fn init(ui: &Ui) -> Result<Exit, Error> {
    let paths = client::paths()?;
    let path = paths.config_file();
    let make = || -> std::io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&paths.config)?;
        // Never over one that is there, not even one that appears this very moment.
        let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(user_template().as_bytes())
    };
    match make() {
        Ok(()) => {
            ui.answer(&json!({ "file": path }), || format!("{}\n", path.display()));
            Ok(Exit::Ok)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Error::failed(format!("{} is there already", path.display()))
                .with_hint("`posse config default` shows what else could be in it"))
        }
        Err(error) => Err(Error::io(format!("cannot write {}", path.display()))(error)),
    }
}
