//! The existing run of a directory: its state file, and a comparison with the requested run.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use posse_api::{EntryView, JournalView, LoopView, ProblemKind};
use posse_core::config::keys::{AUTO_ACCEPT, KEYS};
use posse_core::config::{Setting, ValueOrigin};
use posse_core::ids::RunId;
use posse_core::prompts::PromptTemplates;
use posse_core::review_loop::config::LoopConfig;
use posse_core::review_loop::state::{FinalStatus, StateFile};
use posse_core::review_loop::{Final, Next, Rounds, Rules};
use posse_core::run::{Entry, Spec};
use posse_core::turn::Level;
use posse_term::text_file;

use super::WantedRun;
use crate::client::Client;
use crate::error::Error;
use crate::ui::Ui;

/// Below the project, unless configured otherwise.
pub(in crate::cmd) const DEFAULT: &str = ".tmp/agnostic-3agents-loop-state.json";

/// Keys of a run's configuration that set its location and its start.
const NOT_COMPARED: [&str; 8] =
    ["api", "wd", "prompt", "prompt_file", "start_agent", "resume", "state_file", "limits.poll_seconds"];

/// A state file, and the run that it is of.
pub(super) struct FoundState {
    pub(super) run: Option<RunId>,
    pub(super) state: StateFile,
    pub(super) text: String,
}

/// Reads the state file. An unusable file is renamed, with a message before a new run begins. Returns `None` if there
/// is no run to resume.
pub(super) fn look(path: &Path, resume: bool) -> Result<Option<FoundState>, Error> {
    let text = match text_file::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && !resume => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Error::failed(format!("there is nothing to resume: {} does not exist", path.display()))
                .with_hint("`posse run ls` shows the runs there are; `posse loop --resume RUN` takes one"));
        }
        Err(error) => return Err(Error::failed(format!("the state file {}: {error}", path.display()))),
    };
    let state = match StateFile::read(&text) {
        Ok(state) => state,
        Err(error) => {
            let aside = aside(path);
            std::fs::rename(path, &aside).map_err(Error::io(path.display().to_string()))?;
            return Err(Error::failed(format!("the state file {} cannot be used: {error}", path.display())).with_hint(format!(
                    "it is kept as {}; run the same command again to begin a new run, or `posse run ls` to find the old one",
                    aside.display()
                )));
        }
    };
    // A run that has ended does not keep a new one from being begun.
    if !resume && state.final_status != FinalStatus::Running {
        return Ok(None);
    }
    let run = state.other.get("run").and_then(|run| run.as_str()?.parse().ok());
    Ok(Some(FoundState { run, state, text }))
}

/// Returns a free name for a file that cannot be used.
fn aside(path: &Path) -> PathBuf {
    let names = (1..).map(|n| if n == 1 { "json.corrupt".to_owned() } else { format!("json.corrupt-{n}") });
    let mut places = names.map(|extension| path.with_extension(extension));
    places.find(|place| place.symlink_metadata().is_err()).unwrap_or_else(|| path.with_extension("json.corrupt"))
}

impl FoundState {
    /// The verdict of a run that has ended.
    pub(super) fn verdict(&self) -> Option<Final> {
        match self.state.final_status {
            FinalStatus::Running => None,
            FinalStatus::Pass => Some(Final::Pass),
            FinalStatus::Fail => Some(Final::Fail),
        }
    }

    /// Prints notes about a run that is known only by this file. Returns its verdict if it has ended.
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
            Next::Turn(_) => None,
        }
    }
}

/// Refuses to resume a run that was started with different settings.
pub(super) async fn refuse(client: &mut Client, view: &LoopView, wanted: &WantedRun, ui: &Ui) -> Result<(), Error> {
    let spec = begun_with(client, view.id).await?;
    let differences = differences(&spec, wanted);
    if differences.is_empty() {
        // A person who resumes a run decides anew whether permissions are accepted.
        let variable = |origin: &ValueOrigin| matches!(origin, ValueOrigin::Variable(_));
        for setting in set_otherwise(&spec, wanted, variable).into_iter().filter(|setting| setting.key != AUTO_ACCEPT) {
            ui.warn(&format!("warning: {} is not applied: the run keeps what it was begun with", setting.origin));
        }
        return Ok(());
    }
    let (id, state_file) = (view.id, &view.state_file);
    let first = match view.stop {
        Some(_) => String::new(),
        None => format!("`posse run stop {id}`, then "),
    };
    Err(Error::new(
        ProblemKind::Running,
        format!("run {id} is not over, and was not begun with what is wanted now:\n  {}", differences.join("\n  ")),
    )
    .with_hint(format!(
        "`posse loop --resume {id}` goes on with it as it is; to begin anew instead, {first}move {state_file} away"
    )))
}

fn differences(spec: &Spec, wanted: &WantedRun) -> Vec<&'static str> {
    let prompt = wanted.prompt.as_ref().is_some_and(|given| *given != spec.prompt);
    // A file that says `resume` is written for the resume: only what it sets must be as the run has it.
    let of_file = |origin: &ValueOrigin| matches!(origin, ValueOrigin::RunFile(_));
    let differs = || !wanted.resolved.config.resume || !set_otherwise(spec, wanted, of_file).is_empty();
    let config = wanted.config_hash.is_some() && wanted.config_hash != spec.config_hash && differs();
    let named = [(prompt, "its prompt is another one"), (config, "its configuration file is another one")];
    named.into_iter().filter_map(|(differs, what)| differs.then_some(what)).collect()
}

/// Returns the settings of this origin whose values the run does not have.
fn set_otherwise<'a>(spec: &Spec, wanted: &'a WantedRun, of_origin: impl Fn(&ValueOrigin) -> bool) -> Vec<&'a Setting> {
    let [of_run, now] =
        [&spec.config, &wanted.resolved.config].map(|config| serde_json::to_value(config).unwrap_or_default());
    let differs = |setting: &&Setting| {
        let path = KEYS.iter().find(|key| key.path == setting.key).and_then(|key| key.run);
        let Some(path) = path.filter(|path| !NOT_COMPARED.contains(path)) else { return false };
        // The environment's value never was the run's.
        let place = if setting.key == AUTO_ACCEPT { "handoff.auto_accept_configured" } else { path };
        let place = format!("/{}", place.replace('.', "/"));
        of_run.pointer(&place) != now.pointer(&place)
    };
    wanted.resolved.settings.iter().filter(|setting| of_origin(&setting.origin)).filter(differs).collect()
}

/// Reads the first entry of the run's journal.
async fn begun_with(client: &mut Client, id: RunId) -> Result<Spec, Error> {
    let journal: Vec<JournalView> = client.get(&format!("/runs/{id}/journal")).await?;
    match journal.into_iter().next().map(|first| first.entry) {
        Some(EntryView::Loop(Entry::Created { spec })) => Ok(*spec),
        _ => Err(Error::Nonsense(format!("run {id} has no beginning"))),
    }
}
