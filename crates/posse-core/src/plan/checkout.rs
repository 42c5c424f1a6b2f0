//! Ownership of uncommitted paths in a checkout that the user and sessions share. A path belongs to a task, to a check,
//! or to the user. Paths without a known owner are the user's.

use serde::{Deserialize, Serialize};

use super::TaskId;
use crate::finalize::{GitPath, Was};

/// Uncommitted paths that are not the user's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loose {
    files: Vec<LooseFile>,
    /// The uncommitted paths at the start of a running check. Later ones belong to the check.
    checking: Option<Vec<GitPath>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LooseFile {
    path: GitPath,
    /// The content at the end of the session. If it differs now, another actor changed it.
    content: String,
    /// `None`: a check left it.
    task: Option<TaskId>,
}

impl Loose {
    /// Forgets paths that were committed, removed, or changed by others since. After a crash it also ends the
    /// interrupted check.
    pub fn refresh(&mut self, dirty: &[Was]) {
        self.check_ended(dirty);
        self.files.retain(|file| dirty.iter().any(|was| was.path == file.path && was.content == file.content));
    }

    pub fn check_begins(&mut self, dirty: &[Was]) {
        // A crash interrupted the check.
        self.check_ended(dirty);
        self.checking = Some(dirty.iter().map(|was| was.path.clone()).collect());
    }

    pub fn check_ended(&mut self, dirty: &[Was]) {
        let Some(before) = self.checking.take() else { return };
        for was in dirty {
            match self.files.iter_mut().find(|file| file.path == was.path) {
                Some(file) => file.content.clone_from(&was.content),
                None if before.contains(&was.path) => {}
                None => self.put(was, None),
            }
        }
    }

    /// Records the end of a task's session. `before`: the uncommitted paths at its start.
    pub fn session_ended(&mut self, task: &TaskId, before: &[Was], dirty: &[Was]) {
        for was in dirty {
            let known = self.files.iter_mut().find(|file| file.path == was.path);
            match known {
                Some(file) if file.task.as_ref().is_none_or(|owner| owner == task) => {
                    file.content.clone_from(&was.content);
                }
                // This session changed another task's path, so the path no longer has an owner.
                Some(_) => {}
                None if before.iter().any(|before| before.path == was.path) => {}
                None => self.put(was, Some(task.clone())),
            }
        }
    }

    fn put(&mut self, was: &Was, task: Option<TaskId>) {
        self.files.push(LooseFile { path: was.path.clone(), content: was.content.clone(), task });
    }

    /// Returns the paths that sessions of this task have left.
    pub fn of(&self, task: &TaskId) -> Vec<GitPath> {
        self.files.iter().filter(|file| file.task.as_ref() == Some(task)).map(|file| file.path.clone()).collect()
    }

    /// Returns the paths that checks have left.
    pub fn of_checks(&self) -> Vec<GitPath> {
        self.files.iter().filter(|file| file.task.is_none()).map(|file| file.path.clone()).collect()
    }

    /// Returns the paths that a session of this task may not commit: the user's, and those of other tasks.
    pub fn guarded(&self, dirty: &[Was], task: &TaskId) -> Vec<GitPath> {
        let free = |was: &&Was| {
            let known = self.files.iter().find(|file| file.path == was.path);
            known.is_some_and(|file| file.task.as_ref().is_none_or(|owner| owner == task))
        };
        dirty.iter().filter(|was| !free(was)).map(|was| was.path.clone()).collect()
    }

    /// Returns the user's paths.
    pub fn users(&self, dirty: &[Was]) -> Vec<GitPath> {
        let known = |was: &&Was| self.files.iter().any(|file| file.path == was.path);
        dirty.iter().filter(|was| !known(was)).map(|was| was.path.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `a=1 b=2`: a and b are uncommitted, with these contents.
    fn dirty(text: &str) -> Vec<Was> {
        let was = |word: &str| {
            let (path, content) = word.split_once('=').unwrap();
            Was { path: GitPath(path.into()), content: content.into() }
        };
        text.split_whitespace().map(was).collect()
    }

    fn shown(paths: &[GitPath]) -> String {
        paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    fn task(id: &str) -> TaskId {
        id.parse().unwrap()
    }

    /// Returns the paths of t, those of checks, those that t may not commit, and the user's.
    fn whose(loose: &Loose, now: &str) -> [String; 4] {
        let now = dirty(now);
        [&loose.of(&task("t")), &loose.of_checks(), &loose.guarded(&now, &task("t")), &loose.users(&now)]
            .map(|x| shown(x))
    }

    #[test]
    fn what_a_session_leaves_is_its_tasks() {
        let mut loose = Loose::default();
        loose.session_ended(&task("t"), &dirty("mine=1"), &dirty("mine=2 new=1"));
        assert_eq!(whose(&loose, "mine=2 new=1"), ["new", "", "mine", "mine"], "what was the user's stays so");
        loose.session_ended(&task("t"), &dirty("mine=2 new=1"), &dirty("mine=2 new=2"));
        loose.refresh(&dirty("mine=2 new=2"));
        assert_eq!(whose(&loose, "mine=2 new=2"), ["new", "", "mine", "mine"], "the next attempt goes on with it");
        loose.refresh(&dirty("mine=2 new=3"));
        assert_eq!(whose(&loose, "mine=2 new=3"), ["", "", "mine new", "mine new"], "somebody else changed it");
    }

    #[test]
    fn what_other_tasks_left_is_not_for_this_one() {
        let mut loose = Loose::default();
        loose.session_ended(&task("u"), &[], &dirty("other=1"));
        assert_eq!(whose(&loose, "other=1"), ["", "", "other", ""]);
        // The operating system does not protect the paths of other tasks.
        loose.session_ended(&task("t"), &dirty("other=1"), &dirty("other=2"));
        loose.refresh(&dirty("other=2"));
        assert_eq!(whose(&loose, "other=2"), ["", "", "other", "other"]);
    }

    #[test]
    fn what_a_check_leaves_is_nobodys_work() {
        let mut loose = Loose::default();
        loose.session_ended(&task("t"), &dirty("mine=1"), &dirty("mine=1 new=1"));
        loose.check_begins(&dirty("mine=1 new=1"));
        // The process dies during the check. The next process sees the state of that time.
        loose.refresh(&dirty("mine=2 new=2 log=1"));
        assert_eq!(whose(&loose, "mine=2 new=2 log=1"), ["new", "log", "mine", "mine"]);
        loose.session_ended(&task("t"), &dirty("mine=2 new=2 log=1"), &dirty("mine=2 log=2"));
        loose.refresh(&dirty("mine=2 log=2"));
        assert_eq!(whose(&loose, "mine=2 log=2"), ["", "log", "mine", "mine"], "also if a session runs it again");
        loose.refresh(&dirty("mine=2"));
        assert_eq!(whose(&loose, "mine=2"), ["", "", "mine", "mine"], "gone");
    }
}
