//! `posse plan init`: a beginning.

use std::io::Write;
use std::path::PathBuf;

use crate::error::{Error, Exit};
use crate::ui::Ui;

/// The plan one begins with. Checked by a test, so that it is one.
const SAMPLE: &str = include_str!("sample.yaml");

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the plan goes
    #[arg(default_value = ".posse/plans/first.yaml")]
    file: PathBuf,
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    let shown = args.file.display().to_string();
    if let Some(parent) = args.file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(Error::io(parent.display().to_string()))?;
    }
    // Nothing of anybody's is written over.
    let opened = std::fs::File::options().write(true).create_new(true).open(&args.file);
    let mut file = opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Error::Failed {
            message: format!("{shown} is there already"),
            hint: Some("give another name, like `posse plan init second.yaml`".into()),
        },
        _ => Error::io(shown.clone())(error),
    })?;
    file.write_all(SAMPLE.as_bytes()).map_err(Error::io(shown.clone()))?;
    ui.answer(&serde_json::json!({ "file": shown }), || format!("{shown}\n"));
    ui.say(&format!("edit it, then `posse plan check {shown}`"));
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_sample_is_a_plan() {
        let (plan, warnings) = posse_core::plan::Plan::read("first.yaml", super::SAMPLE).unwrap();
        assert_eq!(warnings, []);
        assert!(plan.tasks().count() > 1);
    }
}
