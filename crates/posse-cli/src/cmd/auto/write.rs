//! Writes into a backlog without an editor: new items, and answers.

use std::path::{Path, PathBuf};

use posse_core::backlog::{Kind, edit as change};
use posse_files::backlog::{EditError, create, edit};
use posse_files::disk::Disk;

use super::{Where, no_item, slug};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Create an item, with a number that was never used before
#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// defect or feature
    kind: Kind,
    /// The title, in one line
    #[arg(required = true)]
    title: Vec<String>,
    #[command(flatten)]
    place: Where,
}

pub(super) fn new(args: &NewArgs, ui: &Ui) -> Result<Exit, Error> {
    let project = args.place.project()?;
    let kind = args.kind;
    let title = args.title.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    let numbers = ready(project.join(args.place.config()?.state_dir))?.join("numbers");
    let text = template(kind, &title);
    let path = create(&Disk::of_this_thread(), &project, &args.place.shelves()?, &numbers, kind, &title, &text)
        .map_err(Error::io("cannot make the item"))?;
    ui.answer(&serde_json::json!({ "path": path }), || format!("{path}\n"));
    ui.say("write down what it is about; `posse auto items` shows where it stands");
    Ok(Exit::Ok)
}

/// A directory for what git should not see.
fn ready(state: PathBuf) -> Result<PathBuf, Error> {
    let failed = || Error::io(state.display().to_string());
    std::fs::create_dir_all(&state).map_err(failed())?;
    let ignore = state.join(".gitignore");
    if !ignore.exists() {
        std::fs::write(ignore, "*\n").map_err(failed())?;
    }
    Ok(state)
}

/// An item to be filled in. As it stands it is too vague to be begun.
fn template(kind: Kind, title: &str) -> String {
    let sections = match kind {
        Kind::Defect => {
            "## Actual Behavior\n\n<!-- what you did, and what happened -->\n\n## Expected Behavior\n\n<!-- what should happen \
             instead -->\n\n## Acceptance Criteria\n\n<!-- what must hold when it is fixed -->\n"
        }
        Kind::Feature => {
            "## Summary\n\n<!-- what it is for -->\n\n## Acceptance Criteria\n\n<!-- at least one thing that can be checked: - [ ] … \
             -->\n"
        }
    };
    format!("# {title}\n\n## Status: Open\n\n## Priority: Medium\n\n{sections}")
}

/// Answers what was asked about an item.
pub(in crate::cmd) fn answer(project: &Path, item: &str, text: &str, ui: &Ui) -> Result<Exit, Error> {
    let scan = Where::of(project).scan()?;
    let slug = slug(item)?;
    let found = scan.find(&slug).ok_or_else(|| no_item(&slug))?;
    edit(&Disk::of_this_thread(), &project.join(&found.path), |item| change::answer(item, text)).map_err(|error| {
        match error {
            EditError::Io { path, error } => Error::io(path)(error),
            other => Error::failed(other.to_string()),
        }
    })?;
    ui.done(&serde_json::json!({ "success": true, "path": found.path }), || format!("{}\n", found.path));
    ui.say("it is open again");
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use posse_core::backlog::{intake, read};

    use super::*;

    #[test]
    fn a_new_item_is_one_that_is_asked_about() {
        for kind in [Kind::Defect, Kind::Feature] {
            let text = template(kind, "Export is empty");
            let (item, warnings) = read(&"1-x".parse().unwrap(), kind, "1-x.md", &text).unwrap();
            assert_eq!((item.title.as_str(), warnings.len()), ("Export is empty", 0));
            assert!(intake::question(&item).is_some(), "nothing is begun before the item is filled in");
        }
    }
}
