//! What a state file says about whether a run is to be begun or resumed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use posse_core::ids::RunId;
use posse_core::prompts::PromptTemplates;
use posse_core::rounds::config::LoopConfig;
use posse_core::rounds::state::{FinalStatus, StateFile};
use posse_core::rounds::{Final, Next, Rounds, Rules};
use posse_core::turn::Level;
use posse_term::text_file;

use crate::error::Error;
use crate::ui::Ui;

/// Below the project, unless the configuration says otherwise.
pub(in crate::cmd) const DEFAULT: &str = ".tmp/agnostic-3agents-loop-state.json";

pub(super) enum Known {
    /// There is no run to go on with.
    Nothing,
    /// It has ended.
    Over(Final),
    Running(Box<Running>),
}

/// A run that is not over, as its file says.
pub(super) struct Running {
    pub(super) run: Option<RunId>,
    pub(super) state: StateFile,
    pub(super) text: String,
}

/// Looks at the state file. One that cannot be read is put aside, and nothing is begun in its place unseen.
pub(super) fn look(path: &Path, resume: bool) -> Result<Known, Error> {
    let text = match text_file::read(path) {
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
            let aside = aside(path);
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
            Ok(Known::Running(Box::new(Running { run, state, text })))
        }
        // The file of a run that has ended is in the way of nobody who wants a new one.
        _ if !resume => Ok(Known::Nothing),
        FinalStatus::Pass => Ok(Known::Over(Final::Pass)),
        FinalStatus::Fail => Ok(Known::Over(Final::Fail)),
    }
}

/// Where a file that cannot be used is kept: beside it, and in the place of no other.
fn aside(path: &Path) -> PathBuf {
    let names = (1..).map(|n| if n == 1 { "json.corrupt".to_owned() } else { format!("json.corrupt-{n}") });
    let mut places = names.map(|extension| path.with_extension(extension));
    places.find(|place| place.symlink_metadata().is_err()).unwrap_or_else(|| path.with_extension("json.corrupt"))
}

impl Running {
    /// What is to be told before a run goes on of which nothing is known but this file. Gives how it ended, if it has.
    pub(super) fn taken_up(&self, config: &LoopConfig, directory: &Path, ui: &Ui) -> Option<Final> {
        let rules = Rules::new(config, directory.join("openspec").is_dir(), PromptTemplates::default());
        let (rounds, notes) = Rounds::from_state(&self.state, rules);
        for note in notes {
            match note.level {
                Level::Warning => ui.warn(&format!("warning: {}", note.text)),
                Level::Info | Level::Detail => ui.say(&note.text),
            }
        }
        for (role, terminal) in &self.state.terminals {
            let now = config.agents.get(role).map_or("", |choice| choice.provider.as_str());
            if !terminal.provider.is_empty() && terminal.provider != now {
                ui.warn(&format!("warning: the {role} was {} so far, and is {now} from now on", terminal.provider));
            }
        }
        match rounds.next() {
            Next::Over(verdict) => Some(verdict),
            Next::Turn(_) | Next::Stuck(_) => None,
        }
    }
}
