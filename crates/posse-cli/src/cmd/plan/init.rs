//! `posse plan init`: a beginning.

use std::io::Write;
use std::path::{Path, PathBuf};

use posse_core::config::project_template;
use posse_core::plan::config::FILE;

use crate::error::{Error, Exit};
use crate::ui::Ui;

/// The plan one begins with. Checked by a test, so that it is one.
const SAMPLE: &str = include_str!("sample.yaml");
/// The file that keeps state out of commits.
const IGNORED: (&str, &str) = (".posse/.gitignore", "/state/\n");

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The path of the new plan
    #[arg(default_value = ".posse/plans/first.yaml")]
    file: PathBuf,
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    let shown = args.file.display().to_string();
    if !write_new(&args.file, SAMPLE)? {
        return Err(Error::failed(format!("{shown} is there already"))
            .with_hint("give another name, like `posse plan init second.yaml`"));
    }
    // Files of the user are kept.
    let mut made = vec![shown.clone()];
    for (path, text) in [(FILE, project_template().as_str()), (IGNORED.0, IGNORED.1)] {
        if write_new(Path::new(path), text)? {
            made.push(path.to_owned());
        }
    }
    ui.answer(&serde_json::json!({ "file": shown, "made": made }), || {
        made.iter().map(|path| format!("{path}\n")).collect()
    });
    ui.say(&format!("edit it, then `posse plan check {shown}`; your checks go into {FILE}"));
    Ok(Exit::Ok)
}

/// Returns whether the file was written. An existing file is kept.
fn write_new(path: &Path, text: &str) -> Result<bool, Error> {
    let failed = || Error::io(path.display().to_string());
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(failed())?;
    }
    match std::fs::File::options().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true).map_err(failed()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed()(error)),
    }
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
