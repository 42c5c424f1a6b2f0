//! `posse run why`: the reason for a task's state, and possible actions.

use posse_core::plan::file::Task;
use posse_core::plan::select::Why;
use posse_core::plan::{FailureKind, Record, TaskId, TaskStatus};

use super::KnownPlan;
use crate::cmd::run::rows::holds;
use crate::ui::{age, date_time, plain};

/// One task: how it stands, why, and what to do next.
pub(super) fn text(task: &Task, known: &KnownPlan) -> String {
    let status = known.state.status(&task.id);
    let record = known.state.get(&task.id).cloned().unwrap_or_default();
    let mut text = format!("{} {}\n", task.id, plain(&task.name));
    let mut add = |name: &str, value: &str| {
        for (i, line) in value.lines().enumerate() {
            text.push_str(&format!("{:<10} {}\n", if i == 0 { name } else { "" }, plain(line)));
        }
    };
    add("status", status.as_str());
    add("because", &because(task, status, &record, known));
    if let Some(next) = next(task, status, &record, known) {
        add("next", &next);
    }
    add("agent", task.agent());
    if let Some(model) = &record.model_used {
        add("model", model);
    }
    if record.attempts > 0 {
        add("attempts", &record.attempts.to_string());
    }
    if let Some(cost) = record.cost_usd {
        add("cost", &format!("{cost:.2} USD"));
    }
    let error = record.last_error.as_ref().filter(|_| status != TaskStatus::Failed);
    let question = record.question.as_ref().filter(|_| status != TaskStatus::Suspended);
    let texts = [
        ("result", record.result_message.as_ref()),
        ("error", error),
        ("question", question),
        ("answer", record.answer.as_ref()),
    ];
    texts.into_iter().filter_map(|(name, value)| Some((name, value?))).for_each(|(name, value)| add(name, value));
    record.validation_findings.iter().for_each(|finding| add("finding", finding));
    record.commits.iter().for_each(|commit| add("commit", commit));
    if record.attempts > 0 || !record.commits.is_empty() {
        add("log", &format!("`posse run log {} {}` tells what its sessions did", known.file, task.id));
    }
    text
}

fn because(task: &Task, status: TaskStatus, record: &Record, known: &KnownPlan) -> String {
    let blocked = known.blocked(&task.id);
    match status {
        TaskStatus::Pending => match blocked {
            // A reason of the task itself comes before a reason that holds for all.
            Some(why) if !matches!(why, Why::Turn | Why::Resting) => why.to_string(),
            _ if known.selection.start.contains(&task.id) => {
                waits(&task.id, known).unwrap_or_else(|| "nothing is in its way: it is next".into())
            }
            _ => waits(&task.id, known)
                .unwrap_or_else(|| blocked.map_or_else(|| "its turn has not come".into(), Why::to_string)),
        },
        TaskStatus::InProgress => in_progress(&task.id, known),
        TaskStatus::Completed if known.selection.validate.contains(&task.id) || blocked.is_some() => {
            "its session says it is done, and its checks pass; it counts when validators agree and it is merged".into()
        }
        TaskStatus::Completed => "it is done; this plan does not have such tasks validated".into(),
        TaskStatus::Verified => {
            let when = record.completed_at.as_deref().map(|at| format!(" at {at}")).unwrap_or_default();
            format!("it was done, checked and merged{when}")
        }
        TaskStatus::Failed => {
            let kind = record.failure_kind.map_or("failed", FailureKind::as_str).replace('_', " ");
            record.last_error.as_ref().map_or_else(|| kind.clone(), |error| format!("{kind}; the last time: {error}"))
        }
        TaskStatus::Skipped => record.skip_reason.clone().unwrap_or_else(|| "nobody says why".into()),
        TaskStatus::Suspended => match &record.question {
            Some(question) => format!("it asks: {question}"),
            None => "it waits for an answer".into(),
        },
    }
}

/// Returns what the run waits for before it starts this task.
fn waits(task: &TaskId, known: &KnownPlan) -> Option<String> {
    let run = known.run.as_ref()?;
    if run.waits {
        return Some("the run waits for somebody who knows the environment of sessions".into());
    }
    if let Some(held) = holds(run, run.paused_until).next() {
        return Some(held);
    }
    let rests = run.resting.iter().find(|rest| rest.task == *task)?;
    Some(format!("it pauses after a failure, until {}", date_time(rests.until)))
}

fn in_progress(task: &TaskId, known: &KnownPlan) -> String {
    let Some(run) = &known.run else {
        return "a run that is gone worked on it; the next run begins it anew, and that costs no attempt".into();
    };
    match run.sessions.iter().find(|session| session.task == *task) {
        Some(session) => {
            let verb = if session.validates { "looks at it" } else { "works on it" };
            let doing = session.doing.as_deref().map(|doing| format!(": {doing}")).unwrap_or_default();
            format!("{} {verb}, for {}{doing}", session.agent, age(session.since))
        }
        None => "its work tree is made, its work is checked, or it is merged".into(),
    }
}

/// Returns what the user can do.
fn next(task: &Task, status: TaskStatus, record: &Record, known: &KnownPlan) -> Option<String> {
    let file = &known.file;
    let id = &task.id;
    let run = format!("`posse plan run {file}`");
    let again = |id: &TaskId| format!("`posse run retry {file} {id}` lets it be tried from the beginning, then {run}");
    let blocked = known.blocked(id);
    match status {
        TaskStatus::Failed => Some(match record.failure_kind {
            Some(FailureKind::Denied) => {
                format!("`posse plan flags {}` shows what its agent may do; {}", task.agent(), again(id))
            }
            _ => again(id),
        }),
        TaskStatus::Suspended => Some(format!("`posse run answer {file} {id} TEXT`, then {run} if it does not run")),
        TaskStatus::Pending => match blocked {
            Some(Why::NoAttemptsLeft { .. }) => Some(again(id)),
            Some(Why::Needs(chains)) => {
                let roots = chains.iter().filter_map(|chain| chain.last());
                let stuck = roots.map(|(root, status)| match status {
                    TaskStatus::Failed => Some(again(root)),
                    TaskStatus::Suspended => Some(format!("`posse run answer {file} {root} TEXT`")),
                    _ => None,
                });
                stuck.flatten().next().or_else(|| known.run.is_none().then_some(run))
            }
            _ => match &known.run {
                None => Some(run),
                Some(view) => view.waits.then_some(run),
            },
        },
        TaskStatus::InProgress | TaskStatus::Completed => known.run.is_none().then_some(run),
        TaskStatus::Verified | TaskStatus::Skipped => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use posse_core::plan::Plan;
    use posse_core::plan::config::PlanConfig;

    use super::*;

    const PLAN: &str = "\
meta: {name: All, validation: {enabled: true, run_after: [coder]}}
sections:
  - id: s
    tasks:
      - {id: pending, name: P}
      - {id: needs, name: N, depends_on: [failed]}
      - {id: asks_root, name: A, depends_on: [suspended]}
      - {id: progress, name: I, status: in_progress, attempts: 1}
      - {id: completed, name: C, status: completed, attempts: 1, result_message: it is there}
      - {id: verified, name: V, status: verified, attempts: 2, completed_at: '2026-01-01T00:00:00Z', cost_usd: 0.5, commits: [abc]}
      - {id: failed, name: F, status: failed, attempts: 3, failure_kind: attempts_exhausted, last_error: no report}
      - {id: denied, name: D, status: failed, attempts: 2, failure_kind: denied, last_error: refused Write}
      - {id: skipped, name: S, status: skipped, skip_reason: not needed}
      - {id: suspended, name: Q, status: suspended, question: Which colour?}
      - {id: spent, name: X, attempts: 3}
";

    /// Every status has a reason, and a hint if the user can act.
    #[test]
    fn every_status_says_why() {
        let (plan, _) = Plan::read("p.yaml", PLAN).unwrap();
        let known = KnownPlan::new(Path::new("p.yaml"), &plan, &PlanConfig::default(), None);
        let all: Vec<String> = plan.tasks().map(|task| text(task, &known)).collect();
        for (task, text) in plan.tasks().zip(&all) {
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines[2].starts_with("because") && lines[2].len() > 15, "{}: {text}", task.id);
        }
        insta::assert_snapshot!(all.join("\n"));
    }
}
