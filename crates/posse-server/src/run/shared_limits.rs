//! Limits that active runs share: exclusive resources, usage limits, money. All runs live in one daemon, so this is kept in memory; a
//! run that is resumed claims again what it has. A run that waits is woken when something changes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use posse_core::engine::Machine;
use posse_core::engine::hold::Hold;
use posse_core::ids::RunId;
use posse_core::plan::{Plan, TaskId};
use posse_core::time::Wall;
use tokio::sync::mpsc;

use super::{RunLedger, SpecFields, Workflow, lock};

#[derive(Clone, Default)]
pub(crate) struct SharedLimits {
    inner: Arc<Mutex<LimitsState>>,
}

#[derive(Default)]
struct LimitsState {
    held: Vec<HeldResource>,
    /// By provider: no session is started before then.
    holds: HashMap<String, Hold>,
    runs: HashMap<RunId, mpsc::UnboundedSender<()>>,
}

/// A resource that a task has. Resources belong to a project: two projects may each have a database.
#[derive(Debug)]
struct HeldResource {
    project: String,
    name: String,
    run: RunId,
    task: TaskId,
    by: String,
}

impl SharedLimits {
    /// Adds a run. `title` is its name for people.
    pub(crate) fn join(&self, fields: &SpecFields<'_>, title: String) -> LimitsHandle {
        let (send, changes) = mpsc::unbounded_channel();
        lock(&self.inner).runs.insert(fields.id, send);
        LimitsHandle {
            shared: self.clone(),
            run: fields.id,
            project: fields.directory.to_owned(),
            title,
            provider: fields.provider.to_owned(),
            changes,
        }
    }

    /// Restores a run's share from when the last daemon ended: its sessions kept running.
    pub(super) fn adopt<W: Workflow>(&self, ledger: &RunLedger<W>) {
        let fields = W::fields(&ledger.spec);
        if let Some(hold) = ledger.machine.hold() {
            self.hold(fields.provider, hold);
        }
        let mut inner = lock(&self.inner);
        for (task, name) in W::held_resources(&ledger.machine) {
            inner.put(fields.directory, name, fields.id, task, &W::title(ledger));
        }
    }

    pub(crate) fn forget_hold(&self, provider: &str) {
        lock(&self.inner).holds.remove(provider);
    }

    /// Returns until when sessions of this provider wait for a usage limit.
    pub(crate) fn held(&self, provider: &str, now: Wall) -> Option<Hold> {
        lock(&self.inner).holds.get(provider).filter(|hold| hold.until > now).cloned()
    }

    /// Lets sessions of this provider wait until then, in all runs.
    pub(super) fn hold(&self, provider: &str, hold: &Hold) {
        let mut inner = lock(&self.inner);
        if inner.holds.get(provider).is_none_or(|known| known.until < hold.until) {
            inner.holds.insert(provider.to_owned(), hold.clone());
            inner.publish(None);
        }
    }
}

impl LimitsState {
    fn put(&mut self, project: &str, name: &str, run: RunId, task: &TaskId, title: &str) {
        let has =
            |held: &HeldResource| held.project == project && held.name == name && held.run == run && held.task == *task;
        if !self.held.iter().any(has) {
            let by = format!("task {task} of {title} (run {run})");
            let (project, name) = (project.to_owned(), name.to_owned());
            self.held.push(HeldResource { project, name, run, task: task.clone(), by });
        }
    }

    /// Wakes the runs.
    fn publish(&self, besides: Option<RunId>) {
        for (_, send) in self.runs.iter().filter(|(run, _)| Some(**run) != besides) {
            let _ = send.send(());
        }
    }
}

/// The share of one run. Dropping it releases everything.
pub(crate) struct LimitsHandle {
    shared: SharedLimits,
    run: RunId,
    project: String,
    title: String,
    provider: String,
    pub(super) changes: mpsc::UnboundedReceiver<()>,
}

impl LimitsHandle {
    /// Acquires all resources of a task, or returns one that another run has, and who.
    pub(crate) fn acquire(&self, task: &TaskId, resources: &[String]) -> Result<(), (String, String)> {
        let mut inner = lock(&self.shared.inner);
        let of_others = |held: &&HeldResource| {
            held.run != self.run && held.project == self.project && resources.contains(&held.name)
        };
        if let Some(held) = inner.held.iter().find(of_others) {
            return Err((held.name.clone(), held.by.clone()));
        }
        for name in resources {
            inner.put(&self.project, name, self.run, task, &self.title);
        }
        if !resources.is_empty() {
            inner.publish(Some(self.run));
        }
        Ok(())
    }

    /// Releases the resources of all tasks but these.
    pub(super) fn keep(&self, tasks: &BTreeSet<&TaskId>) {
        let mut inner = lock(&self.shared.inner);
        let before = inner.held.len();
        inner.held.retain(|held| held.run != self.run || tasks.contains(&held.task));
        if inner.held.len() < before {
            inner.publish(Some(self.run));
        }
    }

    /// The resources of this plan that other runs have, and who.
    pub(crate) fn taken(&self, plan: &Plan) -> Vec<(String, String)> {
        let needed: BTreeSet<&String> = plan.tasks().flat_map(|task| &task.exclusive_resources).collect();
        let inner = lock(&self.shared.inner);
        let of_others =
            |held: &&HeldResource| held.run != self.run && held.project == self.project && needed.contains(&held.name);
        inner.held.iter().filter(of_others).map(|held| (held.name.clone(), held.by.clone())).collect()
    }

    /// Lets sessions of this provider wait, in all runs.
    pub(super) fn hold(&self, hold: &Hold) {
        self.shared.hold(&self.provider, hold);
    }

    /// Returns until when other runs wait for a usage limit.
    pub(crate) fn held(&self, now: Wall) -> Option<Hold> {
        self.shared.held(&self.provider, now)
    }

    /// Publishes that this run has spent money.
    pub(super) fn spent(&self) {
        lock(&self.shared.inner).publish(Some(self.run));
    }
}

impl Drop for LimitsHandle {
    fn drop(&mut self) {
        self.keep(&BTreeSet::new());
        lock(&self.shared.inner).runs.remove(&self.run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mine(shared: &SharedLimits, run: u32, project: &str) -> LimitsHandle {
        let (tell, changes) = mpsc::unbounded_channel();
        let run = RunId::from_random(run);
        lock(&shared.inner).runs.insert(run, tell);
        let (project, title, provider) = (project.to_owned(), format!("Plan {run}"), "claude_code".to_owned());
        LimitsHandle { shared: shared.clone(), run, project, title, provider, changes }
    }

    fn plan() -> Plan {
        let text = "meta: {name: p}\nsections: [{id: s, tasks: [{id: a, name: A, exclusive_resources: [db, port]}]}]";
        Plan::read("p", text).unwrap().0
    }

    #[test]
    fn only_one_has_it_and_the_others_are_woken_when_it_lets_go() {
        let shared = SharedLimits::default();
        let (one, mut two, three) = (mine(&shared, 1, "/p"), mine(&shared, 2, "/p"), mine(&shared, 3, "/elsewhere"));
        let (task, db, both) =
            ("a".parse::<TaskId>().unwrap(), ["db".to_owned()], ["port".to_owned(), "db".to_owned()]);
        assert_eq!(one.acquire(&task, &db), Ok(()));
        assert_eq!(one.acquire(&task, &db), Ok(()), "again is the same as once");
        let by = format!("task a of Plan {0} (run {0})", one.run);
        assert_eq!(two.acquire(&task, &both), Err(("db".into(), by.clone())));
        assert_eq!(two.taken(&plan()), [("db".to_owned(), by)]);
        assert_eq!(one.taken(&plan()), [], "one's own is not in one's way");
        assert_eq!(three.acquire(&task, &both), Ok(()), "another project has a database of its own");
        while two.changes.try_recv().is_ok() {}
        one.keep(&BTreeSet::from([&task]));
        assert!(two.changes.try_recv().is_err(), "nothing has changed");
        one.keep(&BTreeSet::new());
        assert_eq!(two.changes.try_recv(), Ok(()));
        assert_eq!(two.acquire(&task, &both), Ok(()), "all or nothing: the port was not kept from others");
        drop(two);
        assert_eq!(one.acquire(&task, &both), Ok(()), "who goes lets go of everything");
    }

    #[test]
    fn a_hold_is_told_once_and_is_for_one_provider() {
        let shared = SharedLimits::default();
        let (one, mut two, mut codex) = (mine(&shared, 1, "/p"), mine(&shared, 2, "/q"), mine(&shared, 3, "/p"));
        codex.provider = "codex".into();
        let hold = |until| Hold { until: Wall(until), reason: "used up".into(), known: true };
        one.hold(&hold(100));
        one.hold(&hold(100));
        one.hold(&hold(50));
        assert_eq!((two.changes.try_recv(), two.changes.try_recv().is_err()), (Ok(()), true));
        assert_eq!(two.held(Wall(99)), Some(hold(100)));
        assert_eq!((two.held(Wall(100)), codex.held(Wall(0))), (None, None));
        two.spent();
        assert_eq!(codex.changes.try_recv(), Ok(()));
        assert_eq!(codex.changes.try_recv(), Ok(()));
    }
}
