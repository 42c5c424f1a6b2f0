//! What must hold between the tasks of a plan before any session is started: ids are unique, what is depended on exists,
//! nothing waits for itself. A plan that breaks this would otherwise end with "nothing left to do".

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

/// The id that was written in another way: `1-2` for `1.2`.
fn meant<'t>(typed: &TaskId, tasks: &[&'t Task]) -> Option<&'t TaskId> {
    let plain = |id: &TaskId| id.as_str().chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let wanted = plain(typed);
    tasks.iter().map(|task| &task.id).find(|id| plain(id) == wanted)
}

/// Circles in a graph, each once, beginning at its first task in the order of the file.
pub(crate) fn cycles(needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut left: Vec<bool> = vec![true; needs.len()];
    let mut found = Vec::new();
    loop {
        // Take away what waits for nothing that is left, until only circles and what waits for them remain.
        let mut waits: Vec<usize> = needs.iter().map(|needs| needs.iter().filter(|n| left[**n]).count()).collect();
        let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
        for (i, needs) in needs.iter().enumerate() {
            needs.iter().for_each(|n| needed_by[*n].push(i));
        }
        let mut free: Vec<usize> = (0..needs.len()).filter(|i| left[*i] && waits[*i] == 0).collect();
        while let Some(i) = free.pop() {
            left[i] = false;
            for next in &needed_by[i] {
                waits[*next] -= 1;
                if waits[*next] == 0 && left[*next] {
                    free.push(*next);
                }
            }
        }
        // Everything left waits for something left: following that leads into a circle.
        let Some(start) = left.iter().position(|left| *left) else { return found };
        let mut path = vec![start];
        let cycle = loop {
            let here = path[path.len() - 1];
            let Some(next) = needs[here].iter().copied().find(|n| left[*n]) else { return found };
            if let Some(at) = path.iter().position(|seen| *seen == next) {
                break path.split_off(at);
            }
            path.push(next);
        };
        cycle.iter().for_each(|i| left[*i] = false);
        let first = cycle.iter().enumerate().min_by_key(|(_, task)| **task).map_or(0, |(at, _)| at);
        found.push(cycle.iter().cycle().skip(first).take(cycle.len()).copied().collect());
    }
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
