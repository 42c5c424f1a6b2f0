//! What a state file says about whether a run is to be begun or resumed.

use std::io::ErrorKind;
use std::path::Path;

use posse_core::ids::RunId;
use posse_core::rounds::Prompt;
use posse_core::rounds::state::{FinalStatus, StateFile};

use crate::error::Error;

/// Below the project, unless the configuration says otherwise.
pub(in crate::cmd) const DEFAULT: &str = ".tmp/agnostic-3agents-loop-state.json";

pub(super) enum Known {
    /// There is no run to go on with.
    Nothing,
    /// It has ended; with PASS or not.
    Over(bool),
    Running {
        run: Option<RunId>,
        prompt: Prompt,
        text: String,
    },
}

/// Looks at the state file. One that cannot be read is put aside, and nothing is begun in its place unseen.
pub(super) fn look(path: &Path, resume: bool) -> Result<Known, Error> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && !resume => return Ok(Known::Nothing),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Error::Failed {
                message: format!("there is nothing to resume: {} does not exist", path.display()),
                hint: Some("`posse runs` shows the runs there are; `posse loop --resume RUN` takes one".into()),
            });
        }
        Err(error) => return Err(Error::failed(format!("the state file {}: {error}", path.display()))),
    };
    let state = match StateFile::read(&text) {
        Ok(state) => state,
        Err(error) => {
            let aside = path.with_extension("json.corrupt");
            std::fs::rename(path, &aside).map_err(Error::io(path.display().to_string()))?;
            return Err(Error::Failed {
                message: format!("the state file {} cannot be used: {error}", path.display()),
                hint: Some(format!(
                    "it is kept as {}; run the same command again to begin a new run, or `posse runs` to find the old one",
                    aside.display()
                )),
            });
        }
    };
    match state.final_status {
        FinalStatus::Running => {
            let run = state.other.get("run").and_then(|run| run.as_str()?.parse().ok());
            Ok(Known::Running { run, prompt: state.prompt, text })
        }
        // The file of a run that has ended is in the way of nobody who wants a new one.
        _ if !resume => Ok(Known::Nothing),
        status => Ok(Known::Over(status == FinalStatus::Pass)),
    }
}
