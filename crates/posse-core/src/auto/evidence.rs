//! The gate before the archive. Anything without evidence is reported as missing.

use serde::{Deserialize, Serialize};

use crate::backlog::Kind;
use crate::plan::TaskStatus;
use crate::plan::verdict::Verdict;

/// The state of the plan's file, of the branch's history and of the backlog at one moment. Part of the journal, so the reason
/// of a failure is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The tasks of its plan.
    pub plan: Result<Vec<(String, TaskStatus)>, String>,
    /// The commits of its tasks, and those of them that are not in the result branch.
    pub commits: Vec<String>,
    pub unreachable: Result<Vec<String>, String>,
    /// The item is only in the backlog.
    pub item: Place,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    InBacklog,
    /// The archive has an item of this name already.
    Archived,
    Gone,
}

/// Returns the missing evidence. If there is none, the item may be archived. `verdict` is the latest verdict on the
/// current state.
pub fn missing(evidence: &Evidence, kind: Kind, verdict: Option<Verdict>) -> Vec<String> {
    let mut missing = Vec::new();
    let mut add = |miss: String| missing.push(miss);
    match &evidence.plan {
        Err(why) => add(format!("its plan does not load: {why}")),
        Ok(tasks) if tasks.is_empty() => add("its plan has no tasks".into()),
        Ok(tasks) => {
            let done = |status| matches!(status, TaskStatus::Verified | TaskStatus::Skipped | TaskStatus::Completed);
            let open = tasks.iter().filter(|(_, status)| !done(*status));
            open.for_each(|(task, status)| add(format!("task {task} is {status}")));
        }
    }
    // A verifier's PASS also counts as evidence: the work existed before this run.
    if evidence.commits.is_empty() && verdict != Some(Verdict::Pass) {
        add("no session left a commit, and nobody has verified that none is needed".into());
    }
    match &evidence.unreachable {
        Err(why) => add(format!("whether its work is in the branch could not be told: {why}")),
        Ok(commits) if !commits.is_empty() => add(format!("not in the branch: {}", commits.join(", "))),
        Ok(_) => {}
    }
    match (kind, verdict) {
        (_, Some(verdict @ (Verdict::Fail | Verdict::Error))) => add(format!("the last verdict is {verdict:?}")),
        (Kind::Defect, None) => add("nobody has verified it".into()),
        (Kind::Feature, None) | (_, Some(Verdict::Pass | Verdict::Warn)) => {}
    }
    match evidence.item {
        Place::InBacklog => {}
        Place::Archived => add("an item of this name is in the archive already".into()),
        Place::Gone => add("the item is not in the backlog any more".into()),
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::tests::good;

    #[test]
    fn every_miss_has_its_reason() {
        use Kind::{Defect, Feature};
        use Verdict::{Error, Fail, Pass, Warn};
        let task = |status| Evidence { plan: Ok(vec![("1".into(), status)]), ..good() };
        let bare = || Evidence { commits: Vec::new(), ..good() };
        let unknown = || Err("git".to_owned());
        for (evidence, kind, verdict, expected) in [
            (good(), Feature, None, ""),
            (task(TaskStatus::Skipped), Defect, Some(Pass), ""),
            (good(), Defect, Some(Warn), ""),
            (bare(), Defect, Some(Pass), ""),
            (good(), Defect, None, "nobody has verified it"),
            (good(), Defect, Some(Error), "the last verdict is Error"),
            (good(), Feature, Some(Fail), "the last verdict is Fail"),
            (bare(), Feature, None, "no session left a commit, and nobody has verified that none is needed"),
            (bare(), Defect, Some(Warn), "no session left a commit, and nobody has verified that none is needed"),
            (task(TaskStatus::Failed), Feature, None, "task 1 is failed"),
            (task(TaskStatus::Pending), Feature, None, "task 1 is pending"),
            (task(TaskStatus::Suspended), Feature, None, "task 1 is suspended"),
            (Evidence { plan: Ok(Vec::new()), ..good() }, Feature, None, "its plan has no tasks"),
            (Evidence { unreachable: Ok(vec!["c".into()]), ..good() }, Feature, None, "not in the branch: c"),
            (
                Evidence { item: Place::Archived, ..good() },
                Feature,
                None,
                "an item of this name is in the archive already",
            ),
            (
                Evidence { plan: Err("x".into()), unreachable: unknown(), item: Place::Gone, ..bare() },
                Defect,
                Some(Error),
                "its plan does not load: x; no session left a commit, and nobody has verified that none is needed; \
                 whether its work is in the branch could not be told: git; the last verdict is Error; \
                 the item is not in the backlog any more",
            ),
        ] {
            assert_eq!(missing(&evidence, kind, verdict).join("; "), expected);
        }
    }
}
