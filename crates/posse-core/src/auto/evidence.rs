//! The gate before the archive. What is not shown is missing, and what is missing is named.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::backlog::Kind;
use crate::plan::TaskStatus;
use crate::plan::verdict::Verdict;

/// What was found when somebody looked: the plan's file, the history of the branch, the backlog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The tasks of its plan.
    pub plan: Finding<Vec<(String, TaskStatus)>>,
    /// What its tasks have committed, and of this what is not in the branch that gathers the results.
    pub commits: Vec<String>,
    pub unreachable: Finding<Vec<String>>,
    /// The item is in the backlog, and nowhere else.
    pub item: Place,
}

/// The result of a look. It is part of the journal, so the reason of a failure is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding<T> {
    Found(T),
    Unknown { why: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    InBacklog,
    /// Something of this name is in the archive already.
    Archived,
    Gone,
}

/// Why an item is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    PlanDoesNotLoad(String),
    NoTasks,
    TaskNotDone(String, TaskStatus),
    NothingShown,
    NotMerged(Vec<String>),
    NotLookedUp(String),
    NoVerdict,
    Verdict(Verdict),
    Archived,
    Gone,
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlanDoesNotLoad(why) => write!(f, "its plan does not load: {why}"),
            Self::NoTasks => f.write_str("its plan has no tasks"),
            Self::TaskNotDone(task, status) => write!(f, "task {task} is {status}"),
            Self::NothingShown => f.write_str("no session left a commit, and nobody has verified that none is needed"),
            Self::NotMerged(commits) => write!(f, "not in the branch: {}", commits.join(", ")),
            Self::NotLookedUp(why) => write!(f, "whether its work is in the branch could not be told: {why}"),
            Self::NoVerdict => f.write_str("nobody has verified it"),
            Self::Verdict(verdict) => write!(f, "the last verdict is {verdict:?}"),
            Self::Archived => f.write_str("an item of this name is in the archive already"),
            Self::Gone => f.write_str("the item is not in the backlog any more"),
        }
    }
}

/// What is missing. Nothing: it may go into the archive. `verdict` is the last one, of what is there now.
pub fn misses(evidence: &Evidence, kind: Kind, verdict: Option<Verdict>) -> Vec<Miss> {
    let mut misses = Vec::new();
    match &evidence.plan {
        Finding::Unknown { why } => misses.push(Miss::PlanDoesNotLoad(why.clone())),
        Finding::Found(tasks) => {
            if tasks.is_empty() {
                misses.push(Miss::NoTasks);
            }
            let done = |status| matches!(status, TaskStatus::Verified | TaskStatus::Skipped | TaskStatus::Completed);
            let open = tasks.iter().filter(|(_, status)| !done(*status));
            misses.extend(open.map(|(task, status)| Miss::TaskNotDone(task.clone(), *status)));
        }
    }
    // A verifier that has tried it and found nothing wrong is evidence too: it was done before.
    if evidence.commits.is_empty() && verdict != Some(Verdict::Pass) {
        misses.push(Miss::NothingShown);
    }
    match &evidence.unreachable {
        Finding::Unknown { why } => misses.push(Miss::NotLookedUp(why.clone())),
        Finding::Found(commits) if !commits.is_empty() => misses.push(Miss::NotMerged(commits.clone())),
        Finding::Found(_) => {}
    }
    match (kind, verdict) {
        (_, Some(verdict @ (Verdict::Fail | Verdict::Error))) => misses.push(Miss::Verdict(verdict)),
        (Kind::Defect, None) => misses.push(Miss::NoVerdict),
        (Kind::Feature, None) | (_, Some(Verdict::Pass | Verdict::Warn)) => {}
    }
    match evidence.item {
        Place::InBacklog => {}
        Place::Archived => misses.push(Miss::Archived),
        Place::Gone => misses.push(Miss::Gone),
    }
    misses
}

/// All of it on one line.
pub fn in_words(misses: &[Miss]) -> String {
    misses.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::Finding::{Found, Unknown};
    use super::*;

    fn good() -> Evidence {
        Evidence {
            plan: Found(vec![("1".into(), TaskStatus::Verified), ("2".into(), TaskStatus::Skipped)]),
            commits: vec!["c".into()],
            unreachable: Found(Vec::new()),
            item: Place::InBacklog,
        }
    }

    #[test]
    fn every_miss_has_its_reason() {
        use Kind::{Defect, Feature};
        use Verdict::{Error, Fail, Pass, Warn};
        let task = |status| Evidence { plan: Found(vec![("1".into(), status)]), ..good() };
        let bare = || Evidence { commits: Vec::new(), ..good() };
        for (evidence, kind, verdict, missing) in [
            (good(), Feature, None, vec![]),
            (good(), Defect, Some(Pass), vec![]),
            (good(), Defect, Some(Warn), vec![]),
            (good(), Defect, None, vec![Miss::NoVerdict]),
            (good(), Defect, Some(Fail), vec![Miss::Verdict(Fail)]),
            (good(), Defect, Some(Error), vec![Miss::Verdict(Error)]),
            (good(), Feature, Some(Fail), vec![Miss::Verdict(Fail)]),
            (bare(), Feature, None, vec![Miss::NothingShown]),
            (bare(), Defect, Some(Warn), vec![Miss::NothingShown]),
            (bare(), Defect, Some(Pass), vec![]),
            (task(TaskStatus::Failed), Feature, None, vec![Miss::TaskNotDone("1".into(), TaskStatus::Failed)]),
            (task(TaskStatus::Pending), Feature, None, vec![Miss::TaskNotDone("1".into(), TaskStatus::Pending)]),
            (task(TaskStatus::Suspended), Feature, None, vec![Miss::TaskNotDone("1".into(), TaskStatus::Suspended)]),
            (Evidence { plan: Found(Vec::new()), ..good() }, Feature, None, vec![Miss::NoTasks]),
            (
                Evidence { plan: Unknown { why: "no".into() }, ..good() },
                Feature,
                None,
                vec![Miss::PlanDoesNotLoad("no".into())],
            ),
            (
                Evidence { unreachable: Found(vec!["c".into()]), ..good() },
                Feature,
                None,
                vec![Miss::NotMerged(vec!["c".into()])],
            ),
            (
                Evidence { unreachable: Unknown { why: "git".into() }, ..good() },
                Feature,
                None,
                vec![Miss::NotLookedUp("git".into())],
            ),
            (Evidence { item: Place::Archived, ..good() }, Feature, None, vec![Miss::Archived]),
            (Evidence { item: Place::Gone, ..good() }, Feature, None, vec![Miss::Gone]),
        ] {
            assert_eq!(misses(&evidence, kind, verdict), missing, "{evidence:?} {kind:?} {verdict:?}");
        }
        let all = Evidence {
            plan: Unknown { why: "x".into() },
            commits: Vec::new(),
            unreachable: Unknown { why: "y".into() },
            item: Place::Gone,
        };
        assert_eq!(misses(&all, Defect, None).len(), 5, "nothing is left out");
    }
}
