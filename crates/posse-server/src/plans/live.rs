//! What people see of runs that go on.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use posse_api::PlanView;
use posse_core::ids::RunId;
use posse_core::plan::machine;

use super::ledger::Ledger;
use super::lock;
use super::view::{Tasks, with_activity, without_tasks};

/// The runs that go on, as they are now. In the database a run is as it began, and when it is over as it ended: to write
/// down all of its tasks with every entry would take longer than everything else.
#[derive(Clone, Default)]
pub(crate) struct Live(Arc<Mutex<HashMap<RunId, Now>>>);

#[derive(Clone)]
struct Now {
    /// All but its tasks, which are put together for whoever asks.
    view: Arc<PlanView>,
    tasks: Tasks,
    /// What its sessions are heard to do. Nobody writes it down.
    heard: BTreeMap<String, String>,
}

impl Now {
    fn without_tasks(&self) -> PlanView {
        with_activity(PlanView::clone(&self.view), &self.heard)
    }
}

impl Live {
    pub(super) fn put(&self, ledger: &Ledger, files: &str) {
        let (view, tasks) = (Arc::new(without_tasks(ledger, files)), Tasks::of(&ledger.run));
        match lock(&self.0).entry(view.id) {
            Entry::Occupied(mut now) => (now.get_mut().view, now.get_mut().tasks) = (view, tasks),
            Entry::Vacant(place) => drop(place.insert(Now { view, tasks, heard: BTreeMap::new() })),
        }
    }

    pub(super) fn get(&self, run: RunId) -> Option<PlanView> {
        let now = lock(&self.0).get(&run).cloned()?;
        Some(PlanView { tasks: now.tasks.views(), ..now.without_tasks() })
    }

    pub(super) fn without_tasks(&self, run: RunId) -> Option<PlanView> {
        Some(lock(&self.0).get(&run).cloned()?.without_tasks())
    }

    pub(super) fn remove(&self, run: RunId) {
        lock(&self.0).remove(&run);
    }

    pub(super) fn hear(&self, run: RunId, session: &machine::RunId, text: String) {
        if let Some(now) = lock(&self.0).get_mut(&run) {
            now.heard.insert(session.to_string(), text);
        }
    }

    pub(super) fn forget(&self, run: RunId, session: &machine::RunId) {
        if let Some(now) = lock(&self.0).get_mut(&run) {
            now.heard.remove(&session.to_string());
        }
    }
}
