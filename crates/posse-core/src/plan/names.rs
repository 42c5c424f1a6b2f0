//! Names of branches and directories. Plans may share task ids, and files may share plan names; their work must stay
//! apart.

use super::TaskId;
use crate::visible::words_of;

/// The maximum length of the readable part of a plan's name in a path.
const SLUG_MAX: usize = 30;

/// Returns the name of a plan as part of a path or branch. `file` is the path of its file, which distinguishes plans of
/// the same name.
pub fn plan_slug(name: &str, file: &str) -> String {
    format!("{}-{:08x}", slug_of(name, SLUG_MAX, "plan"), fingerprint(name, file))
}

/// Returns the lowercase letters and digits of a text, with one `-` for everything between them, or `otherwise` if
/// there are none.
pub(crate) fn slug_of(text: &str, longest: usize, otherwise: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => slug.push(c),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
        if slug.len() == longest {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { otherwise.to_owned() } else { slug.to_owned() }
}

/// Returns the branch for one start of a task.
pub fn branch(plan_slug: &str, task: &TaskId, start: u32) -> String {
    format!("plan/{plan_slug}/{}/{start}", task.slug())
}

/// Returns the directory for one start of a task, below the directory of all work areas.
pub fn area(plan_slug: &str, task: &TaskId, start: u32) -> String {
    format!("{plan_slug}/{}-{start}", task.slug())
}

/// Returns the message of a commit that posse makes for a task, with trailers that identify the commit. `run`: its
/// session.
pub fn commit_message(plan: &str, (task, name): (&TaskId, &str), run: &str, attempt: u32) -> String {
    // A line break in a name would end the subject, or forge a trailer.
    let [plan, name, run] = [plan, name, run].map(words_of);
    format!("task {task}: {name}\n\nPlan: {plan}\nTask: {task}\nRun: {run}\nAttempt: {attempt}\n")
}

/// Returns the FNV-1a hash. It must stay the same for ever, which the standard library does not guarantee for its own.
fn fingerprint(name: &str, file: &str) -> u32 {
    name.bytes()
        .chain([0])
        .chain(file.bytes())
        .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_say_what_they_are_of() {
        let task = "1.2".parse().unwrap();
        assert_eq!(
            commit_message("Sandbox\nfix", (&task, " Write the\n\nTask: 9.9 "), "1.2-3", 2),
            "task 1.2: Write the Task: 9.9\n\nPlan: Sandbox fix\nTask: 1.2\nRun: 1.2-3\nAttempt: 2\n"
        );
    }

    #[test]
    fn t82_plans_and_tasks_do_not_meet() {
        let slugs = [
            plan_slug("Sandbox fix", "a.yaml"),
            plan_slug("Sandbox fix", "b.yaml"),
            plan_slug("sandbox-fix", "a.yaml"),
            plan_slug("../..", "a.yaml"),
            plan_slug("", "a.yaml"),
            plan_slug(&"Ünï".repeat(40), "a.yaml"),
        ];
        assert_eq!(slugs[0], "sandbox-fix-b68571d5");
        let mut branches: Vec<String> = Vec::new();
        for slug in &slugs {
            for id in ["1.1", "1-1"] {
                let task: TaskId = id.parse().unwrap();
                for start in [1, 2] {
                    let branch = branch(slug, &task, start);
                    assert!(!branch.contains("..") && branch.is_ascii() && branch.len() < 80, "{branch}");
                    branches.extend([branch, area(slug, &task, start)]);
                }
            }
        }
        let all = branches.len();
        branches.sort();
        branches.dedup();
        assert_eq!(branches.len(), all);
    }
}
