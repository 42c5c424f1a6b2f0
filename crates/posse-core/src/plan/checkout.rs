//! Whose is what in a checkout that the user and sessions share. What is not committed there belongs to a task, to a check that
//! was run, or to the user: whatever nobody of ours is known to have left is theirs.

use serde::{Deserialize, Serialize};

use super::TaskId;
use crate::finalize::{GitPath, Was};

/// What is not committed and not the user's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loose {
    files: Vec<LooseFile>,
    /// While a check runs: all that was not committed when it began. What comes on top is the check's.
    checking: Option<Vec<GitPath>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LooseFile {
    path: GitPath,
    /// As it was left. What is not like that any more is somebody else's.
    content: String,
    /// `None`: a check left it.
    task: Option<TaskId>,
}

impl Loose {
    /// Forgets what is committed, gone, or changed by others since. After a crash it ends the check that ran then.
    pub fn refresh(&mut self, dirty: &[Was]) {
        self.check_ended(dirty);
        self.files.retain(|file| dirty.iter().any(|was| was.path == file.path && was.content == file.content));
    }

    pub fn check_begins(&mut self, dirty: &[Was]) {
        // One that a crash has cut off.
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

    /// The session of a task is over. `before`: what was not committed when it began.
    pub fn session_ended(&mut self, task: &TaskId, before: &[Was], dirty: &[Was]) {
        for was in dirty {
            let known = self.files.iter_mut().find(|file| file.path == was.path);
            match known {
                Some(file) if file.task.as_ref().is_none_or(|owner| owner == task) => {
                    file.content.clone_from(&was.content);
                }
                // Another task's, which this one should have left alone: then it is nobody's any more.
                Some(_) => {}
                None if before.iter().any(|before| before.path == was.path) => {}
                None => self.put(was, Some(task.clone())),
            }
        }
    }

    fn put(&mut self, was: &Was, task: Option<TaskId>) {
        self.files.push(LooseFile { path: was.path.clone(), content: was.content.clone(), task });
    }

    /// What sessions of this task have left.
    pub fn of(&self, task: &TaskId) -> Vec<GitPath> {
        self.files.iter().filter(|file| file.task.as_ref() == Some(task)).map(|file| file.path.clone()).collect()
    }

    /// What checks have left.
    pub fn of_checks(&self) -> Vec<GitPath> {
        self.files.iter().filter(|file| file.task.is_none()).map(|file| file.path.clone()).collect()
    }

    /// What a session of this task may not commit: the user's, and what other tasks have left.
    pub fn guarded(&self, dirty: &[Was], task: &TaskId) -> Vec<GitPath> {
        let free = |was: &&Was| {
            let known = self.files.iter().find(|file| file.path == was.path);
            known.is_some_and(|file| file.task.as_ref().is_none_or(|owner| owner == task))
        };
        dirty.iter().filter(|was| !free(was)).map(|was| was.path.clone()).collect()
    }

    /// What is the user's.
    pub fn users(&self, dirty: &[Was]) -> Vec<GitPath> {
        let known = |was: &&Was| self.files.iter().any(|file| file.path == was.path);
        dirty.iter().filter(|was| !known(was)).map(|was| was.path.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a=1 b=2`: a and b are not committed, and what is in them.
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

    /// What is t's, what is checks', what t may not commit, what is the user's.
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
        // It was not told to keep its hands off by the operating system.
        loose.session_ended(&task("t"), &dirty("other=1"), &dirty("other=2"));
        loose.refresh(&dirty("other=2"));
        assert_eq!(whose(&loose, "other=2"), ["", "", "other", "other"]);
    }

    #[test]
    fn what_a_check_leaves_is_nobodys_work() {
        let mut loose = Loose::default();
        loose.session_ended(&task("t"), &dirty("mine=1"), &dirty("mine=1 new=1"));
        loose.check_begins(&dirty("mine=1 new=1"));
        // The process dies while it runs; the next one sees what is there then.
        loose.refresh(&dirty("mine=2 new=2 log=1"));
        assert_eq!(whose(&loose, "mine=2 new=2 log=1"), ["new", "log", "mine", "mine"]);
        loose.session_ended(&task("t"), &dirty("mine=2 new=2 log=1"), &dirty("mine=2 log=2"));
        loose.refresh(&dirty("mine=2 log=2"));
        assert_eq!(whose(&loose, "mine=2 log=2"), ["", "log", "mine", "mine"], "also if a session runs it again");
        loose.refresh(&dirty("mine=2"));
        assert_eq!(whose(&loose, "mine=2"), ["", "", "mine", "mine"], "gone");
    }
}
