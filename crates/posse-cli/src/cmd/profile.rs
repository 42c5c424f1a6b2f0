//! `posse profile`: lists and shows roles.

use posse_files::providers::{self, ListedProfile, WrittenProfile};
use serde_json::json;

use crate::client;
use crate::error::{Error, Exit};
use crate::ui::{Cell, Colour, Ui};

/// List and show profiles (roles)
///
/// A profile is Markdown with a few fields on top; `posse launch --profile NAME` starts an agent with it. Yours lie in
/// agent-store/NAME.md in posse's home; one with the name of a built-in profile takes its place:
/// `posse profile show tester > ~/.local/state/posse/agent-store/tester.md`.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  posse profile list
  posse profile show tester")]
pub(crate) enum ProfileCommand {
    /// List the profiles there are
    #[command(after_help = "Examples:\n  posse profile list")]
    List,
    /// Show a profile as it is written
    #[command(after_help = "Examples:\n  posse profile show tester")]
    Show {
        /// Its name
        profile: String,
    },
}

pub(crate) fn run(command: &ProfileCommand, ui: &Ui) -> Result<Exit, Error> {
    let directory = client::paths()?.profiles();
    match command {
        ProfileCommand::List => {
            let listed = providers::profiles(&directory);
            ui.answer(&listed, || table(&listed, ui));
            Ok(Exit::Ok)
        }
        ProfileCommand::Show { profile } => {
            let usage = |error: providers::UserFileError| Error::usage(error.to_string());
            let written = WrittenProfile::find(&directory, profile).map_err(usage)?;
            // A broken one is shown too: that is how one finds what is wrong with it.
            let (read, problem) = match written.read() {
                Ok(read) => (Some(read), None),
                Err(error) => (None, Some(error.to_string())),
            };
            let answer = json!({
                "name": profile,
                "description": read.as_ref().map(|read| read.description.as_str()),
                "model": read.as_ref().and_then(|read| read.model.as_deref()),
                "from": written.from(),
                "text": read.as_ref().map(|read| read.text.as_str()),
                "problem": problem,
            });
            ui.answer(&answer, || written.text.clone());
            if let Some(problem) = problem {
                ui.warn(&problem);
                return Ok(Exit::Failed);
            }
            Ok(Exit::Ok)
        }
    }
}

fn table(listed: &[ListedProfile], ui: &Ui) -> String {
    let row = |listed: &ListedProfile| {
        let about = match &listed.problem {
            Some(problem) => Cell::new(problem, Colour::Red),
            None => Cell::new(&listed.description, None),
        };
        vec![Cell::new(&listed.name, None), Cell::new(&listed.from, None), about]
    };
    ui.table(&["PROFILE", "FROM", "WHAT IT IS FOR"], listed.iter().map(row))
}
