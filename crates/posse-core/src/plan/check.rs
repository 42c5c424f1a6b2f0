//! Checks between the tasks of a plan: ids are unique, dependencies exist, and there are no cycles. A plan that fails
//! these checks would deadlock.

use std::collections::HashMap;

use super::TaskId;
use super::file::{Plan, Task};
use crate::file_problem::ProblemList;

pub(super) fn check(plan: &Plan, found: &mut ProblemList) {
    let tasks: Vec<&Task> = plan.tasks().collect();
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for (i, task) in tasks.iter().enumerate() {
        match by_id.get(task.id.as_str()) {
            Some(first) => {
                let problem = found.error(task.at.id, format!("there are two tasks {}", task.id));
                problem.add_span(tasks[*first].at.id, "the first").add_hint("ids are unique in the whole plan");
            }
            None => {
                by_id.insert(task.id.as_str(), i);
            }
        }
    }
    let mut needs: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    for (i, task) in tasks.iter().enumerate() {
        for (id, at) in task.depends_on.iter().zip(&task.at.depends_on) {
            match by_id.get(id.as_str()) {
                None => {
                    let problem = found.error(*at, format!("task {} depends on {id}, which does not exist", task.id));
                    problem.hint = meant(id, &tasks).map(|meant| format!("did you mean {meant}?"));
                }
                Some(other) if *other == i => {
                    found.error(*at, format!("task {id} depends on itself"));
                }
                Some(other) => {
                    needs[i].push(*other);
                    let group = &task.parallel_group;
                    if group.is_some() && *group == tasks[*other].parallel_group {
                        let both = format!("{} and {id} are in one parallel group", task.id);
                        found.warning(*at, format!("{both}, but one needs the other: they run in turn"));
                    }
                }
            }
        }
    }
    for cycle in cycles(&needs) {
        let ids: Vec<&str> = cycle.iter().chain(cycle.first()).map(|i| tasks[*i].id.as_str()).collect();
        let message = format!("tasks wait for each other: {}", ids.join(" -> "));
        let problem = found.error(tasks[cycle[0]].at.id, message).add_hint("remove one of these dependencies");
        for other in &cycle[1..] {
            problem.add_span(tasks[*other].at.id, tasks[*other].id.as_str());
        }
    }
}

/// Returns the id that was probably meant: `1.2` for `1-2`.
fn meant<'t>(typed: &TaskId, tasks: &[&'t Task]) -> Option<&'t TaskId> {
    let plain = |id: &TaskId| id.as_str().chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let wanted = plain(typed);
    tasks.iter().map(|task| &task.id).find(|id| plain(id) == wanted)
}

/// Returns each cycle of a graph once, beginning at its first task in the order of the file.
pub(crate) fn cycles(needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    // Finished nodes lead into no new cycle.
    let mut done = vec![false; needs.len()];
    let mut found = Vec::new();
    for start in 0..needs.len() {
        let mut path = vec![start];
        while let Some(&here) = path.last() {
            let next = needs[here].iter().copied().find(|next| !done[*next] && !done[here]);
            match next.map(|next| (next, path.iter().position(|seen| *seen == next))) {
                None => {
                    done[here] = true;
                    path.pop();
                }
                Some((next, None)) => path.push(next),
                Some((_, Some(at))) => {
                    let mut cycle = path.split_off(at);
                    cycle.iter().for_each(|i| done[*i] = true);
                    let first = cycle.iter().enumerate().min_by_key(|(_, task)| **task).map_or(0, |(at, _)| at);
                    cycle.rotate_left(first);
                    found.push(cycle);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_once_and_others_are_left_alone() {
        for (needs, circles) in [
            (vec![vec![1], vec![2], vec![]], vec![]),
            (vec![vec![1], vec![0]], vec![vec![0, 1]]),
            (vec![vec![1], vec![2], vec![1], vec![2]], vec![vec![1, 2]]),
            (vec![vec![1], vec![0], vec![3], vec![2], vec![0]], vec![vec![0, 1], vec![2, 3]]),
            (vec![vec![], vec![0, 3], vec![1], vec![2]], vec![vec![1, 3, 2]]),
        ] {
            assert_eq!(cycles(&needs), circles, "{needs:?}");
        }
    }
}
