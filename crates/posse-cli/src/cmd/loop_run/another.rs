//! Whether what is wanted now is the run that is there. It keeps what it was begun with; other wishes are not just forgotten.

use posse_api::{LoopJournalView, RunView};
use posse_core::ids::RunId;
use posse_core::rounds::config::NamedFile;
use posse_core::run::{Entry, Spec};

use super::Wanted;
use crate::client::Client;
use crate::error::Error;

/// Refuses to go on with a run that was begun with something else than is wanted now.
pub(super) async fn refuse(client: &mut Client, view: &RunView, wanted: &Wanted) -> Result<(), Error> {
    let spec = begun_with(client, view.id).await?;
    let differences = differences(&spec, wanted);
    if differences.is_empty() {
        return Ok(());
    }
    let (id, state_file) = (view.id, &view.state_file);
    let first = match view.stopped {
        Some(_) => String::new(),
        None => format!("`posse run stop {id}`, then "),
    };
    Err(Error::Running {
        message: format!(
            "run {id} is not over, and was not begun with what is wanted now:\n  {}",
            differences.join("\n  ")
        ),
        hint: format!(
            "`posse loop --resume {id}` goes on with it as it is; to begin anew instead, {first}move {state_file} away"
        ),
    })
}

fn differences(spec: &Spec, wanted: &Wanted) -> Vec<String> {
    let named = match &wanted.config_hash {
        None => NamedFile::None,
        hash if *hash == spec.config_hash => NamedFile::TheSame,
        Some(_) => NamedFile::Another,
    };
    let prompt = wanted.prompt.as_ref().is_some_and(|given| *given != spec.prompt);
    let prompt = prompt.then(|| "its prompt is another one".to_owned());
    let config = wanted.resolved.differences(&spec.config, named);
    prompt.into_iter().chain(config.iter().map(ToString::to_string)).collect()
}

/// It is the first thing that a run writes down.
async fn begun_with(client: &mut Client, id: RunId) -> Result<Spec, Error> {
    let journal: Vec<LoopJournalView> = client.get(&format!("/runs/{id}/journal")).await?;
    match journal.into_iter().next().map(|first| first.entry) {
        Some(Entry::Created { spec }) => Ok(*spec),
        _ => Err(Error::Nonsense(format!("run {id} has no beginning"))),
    }
}
