//! What the runs of plans share: things only one may have, a quota, money. All runs live in one daemon, so this is kept in
//! memory; a run that is taken up says again what it has. Whoever waits is woken when something changes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use posse_core::ids::RunId;
use posse_core::plan::limits::Hold;
use posse_core::plan::{Plan, TaskId};
use posse_core::time::Wall;
use tokio::sync::mpsc;

use super::ledger::Ledger;
use super::lock;

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Resources,
    Money,
    Hold,
}

#[derive(Clone, Default)]
pub(super) struct Shared {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    held: Vec<Held>,
    /// By provider: no session before then.
    holds: HashMap<String, Hold>,
    runs: HashMap<RunId, mpsc::UnboundedSender<News>>,
}

/// A thing that a task has. Things are a project's: two projects may each have a database.
#[derive(Debug)]
struct Held {
    project: String,
    name: String,
    run: RunId,
    task: TaskId,
    /// For people.
    by: String,
}

impl Shared {
    /// A run that begins to hear of the others.
    pub(super) fn join(&self, ledger: &Ledger) -> Mine {
        let (tell, news) = mpsc::unbounded_channel();
        lock(&self.inner).runs.insert(ledger.spec.id, tell);
        Mine {
            shared: self.clone(),
            run: ledger.spec.id,
            project: ledger.spec.directory.clone(),
            plan: ledger.run.plan().name.clone(),
            provider: ledger.spec.provider.clone(),
            news,
        }
    }

    /// What a run had when the last daemon ended it still has: its tasks went on. What it waited for, everyone waits for.
    pub(super) fn adopt(&self, ledger: &Ledger) {
        let plan = ledger.run.plan();
        if let Some(hold) = ledger.run.hold() {
            self.hold(&ledger.spec.provider, hold);
        }
        let mut inner = lock(&self.inner);
        for task in ledger.run.begun() {
            for name in resources(plan, task) {
                inner.put(&ledger.spec.directory, name, ledger.spec.id, task, &plan.name);
            }
        }
    }

    /// Somebody who is no run of a plan begins to hear of them.
    pub(super) fn listen(&self, run: RunId) -> Listening {
        let (tell, news) = mpsc::unbounded_channel();
        lock(&self.inner).runs.insert(run, tell);
        Listening { shared: self.clone(), run, news }
    }

    /// A person knows better.
    pub(super) fn forget_hold(&self, provider: &str) {
        lock(&self.inner).holds.remove(provider);
    }

    /// The quota is used up, and whoever runs is told.
    pub(super) fn hold_all(&self, provider: &str, hold: &Hold) {
        if self.hold(provider, hold) {
            let inner = lock(&self.inner);
            for tell in inner.runs.values() {
                let _ = tell.send(News::Hold);
            }
        }
    }

    /// Until when this provider's sessions wait for the quota.
    pub(super) fn held(&self, provider: &str, now: Wall) -> Option<Hold> {
        lock(&self.inner).holds.get(provider).filter(|hold| hold.until > now).cloned()
    }

    /// No session of this provider before then. Whether that is news.
    pub(super) fn hold(&self, provider: &str, hold: &Hold) -> bool {
        let mut inner = lock(&self.inner);
        if inner.holds.get(provider).is_some_and(|known| known.until >= hold.until) {
            return false;
        }
        inner.holds.insert(provider.to_owned(), hold.clone());
        true
    }
}

impl Inner {
    fn put(&mut self, project: &str, name: &str, run: RunId, task: &TaskId, plan: &str) {
        let has = |held: &Held| held.project == project && held.name == name && held.run == run && held.task == *task;
        if !self.held.iter().any(has) {
            let by = format!("task {task} of {plan} (run {run})");
            let (project, name) = (project.to_owned(), name.to_owned());
            self.held.push(Held { project, name, run, task: task.clone(), by });
        }
    }

    fn tell(&self, besides: RunId, news: News) {
        for (run, tell) in &self.runs {
            if *run != besides {
                let _ = tell.send(news);
            }
        }
    }
}

/// Who hears of the others, and has nothing that they could want but money.
pub(crate) struct Listening {
    shared: Shared,
    run: RunId,
    pub(crate) news: mpsc::UnboundedReceiver<News>,
}

impl Listening {
    /// Money was spent.
    pub(crate) fn spent(&self) {
        lock(&self.shared.inner).tell(self.run, News::Money);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        lock(&self.shared.inner).runs.remove(&self.run);
    }
}

/// One run among the others. When it goes, it lets go of everything.
pub(super) struct Mine {
    shared: Shared,
    run: RunId,
    project: String,
    plan: String,
    provider: String,
    /// What has changed at the others.
    pub(super) news: mpsc::UnboundedReceiver<News>,
}

impl Mine {
    /// All that this task needs, or what somebody else has of it, and who.
    pub(super) fn acquire(&self, task: &TaskId, resources: &[String]) -> Result<(), (String, String)> {
        let mut inner = lock(&self.shared.inner);
        let of_others =
            |held: &&Held| held.run != self.run && held.project == self.project && resources.contains(&held.name);
        if let Some(held) = inner.held.iter().find(of_others) {
            return Err((held.name.clone(), held.by.clone()));
        }
        for name in resources {
            inner.put(&self.project, name, self.run, task, &self.plan);
        }
        if !resources.is_empty() {
            inner.tell(self.run, News::Resources);
        }
        Ok(())
    }

    /// Only these tasks still have what they have.
    pub(super) fn keep(&self, tasks: &BTreeSet<&TaskId>) {
        let mut inner = lock(&self.shared.inner);
        let before = inner.held.len();
        inner.held.retain(|held| held.run != self.run || tasks.contains(&held.task));
        if inner.held.len() < before {
            inner.tell(self.run, News::Resources);
        }
    }

    /// What others have of the things that this plan needs, and who.
    pub(super) fn taken(&self, plan: &Plan) -> Vec<(String, String)> {
        let needed: BTreeSet<&String> = plan.tasks().flat_map(|task| &task.exclusive_resources).collect();
        let inner = lock(&self.shared.inner);
        let of_others =
            |held: &&Held| held.run != self.run && held.project == self.project && needed.contains(&held.name);
        inner.held.iter().filter(of_others).map(|held| (held.name.clone(), held.by.clone())).collect()
    }

    /// The quota is used up, for everyone.
    pub(super) fn hold(&self, hold: &Hold) {
        if self.shared.hold(&self.provider, hold) {
            lock(&self.shared.inner).tell(self.run, News::Hold);
        }
    }

    /// Until when others wait for the quota.
    pub(super) fn held(&self, now: Wall) -> Option<Hold> {
        self.shared.held(&self.provider, now)
    }

    /// Money was spent.
    pub(super) fn spent(&self) {
        lock(&self.shared.inner).tell(self.run, News::Money);
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        self.keep(&BTreeSet::new());
        lock(&self.shared.inner).runs.remove(&self.run);
    }
}

/// What a task needs for itself alone.
pub(super) fn resources<'p>(plan: &'p Plan, task: &TaskId) -> &'p [String] {
    plan.task(task.as_str()).map_or(&[], |task| &task.exclusive_resources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mine(shared: &Shared, run: u32, project: &str) -> Mine {
        let (tell, news) = mpsc::unbounded_channel();
        let run = RunId::from_random(run);
        lock(&shared.inner).runs.insert(run, tell);
        let (project, plan, provider) = (project.to_owned(), format!("Plan {run}"), "claude_code".to_owned());
        Mine { shared: shared.clone(), run, project, plan, provider, news }
    }

    fn plan() -> Plan {
        let text = "meta: {name: p}\nsections: [{id: s, tasks: [{id: a, name: A, exclusive_resources: [db, port]}]}]";
        Plan::read("p", text).unwrap().0
    }

    #[test]
    fn only_one_has_it_and_the_others_are_woken_when_it_lets_go() {
        let shared = Shared::default();
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
        while two.news.try_recv().is_ok() {}
        one.keep(&BTreeSet::from([&task]));
        assert!(two.news.try_recv().is_err(), "nothing has changed");
        one.keep(&BTreeSet::new());
        assert_eq!(two.news.try_recv(), Ok(News::Resources));
        assert_eq!(two.acquire(&task, &both), Ok(()), "all or nothing: the port was not kept from others");
        drop(two);
        assert_eq!(one.acquire(&task, &both), Ok(()), "who goes lets go of everything");
    }

    #[test]
    fn a_hold_is_told_once_and_is_for_one_provider() {
        let shared = Shared::default();
        let (one, mut two, mut codex) = (mine(&shared, 1, "/p"), mine(&shared, 2, "/q"), mine(&shared, 3, "/p"));
        codex.provider = "codex".into();
        let hold = |until| Hold { until: Wall(until), reason: "used up".into(), known: true };
        one.hold(&hold(100));
        one.hold(&hold(100));
        one.hold(&hold(50));
        assert_eq!((two.news.try_recv(), two.news.try_recv().is_err()), (Ok(News::Hold), true));
        assert_eq!(two.held(Wall(99)), Some(hold(100)));
        assert_eq!((two.held(Wall(100)), codex.held(Wall(0))), (None, None));
        two.spent();
        assert_eq!(codex.news.try_recv(), Ok(News::Hold));
        assert_eq!(codex.news.try_recv(), Ok(News::Money));
    }
}
