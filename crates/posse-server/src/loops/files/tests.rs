//! With real files, in directories of the tests' own.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use posse_core::review_loop::Prompt;

use super::*;
use crate::disk::DISK;

struct Project {
    place: tempfile::TempDir,
    files: RunFiles,
}

impl Project {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().to_str().unwrap();
        let state = place.path().join(".tmp/state.json");
        let files = RunFiles::new(directory, "now", state.to_str().unwrap());
        files.prepare(DISK).unwrap();
        Self { place, files }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(".tmp").join(name)
    }

    fn answers(&self, key: Key, text: &str) {
        fs::write(self.files.response(key), text).unwrap();
    }

    fn kept(&self, name: &str) -> String {
        fs::read_to_string(self.files.archive().join(name)).unwrap()
    }
}

fn state(round: u32) -> StateFile {
    let prompt = Prompt { explore: "Say hello.".into(), scenario: "Expect hello.".into() }.to_string();
    let state = serde_json::json!({ "prompt": prompt, "current_round": round, "final_status": "RUNNING" });
    StateFile::read(&state.to_string()).unwrap()
}

#[tokio::test]
async fn s_112_what_an_earlier_turn_left_is_moved_away_and_kept() {
    let project = Project::new();
    project.answers(Key::Analyst, "old");
    let name = project.files.keep(Key::Analyst, 3, Some(Suffix::Stale)).await.unwrap();
    assert_eq!(name.as_deref(), Some("003-analyst-stale.md"));
    assert_eq!(project.kept("003-analyst-stale.md"), "old");
    assert!(!project.files.response(Key::Analyst).exists());
}

#[tokio::test]
async fn s_113_what_is_not_there_is_not_missed() {
    let project = Project::new();
    assert_eq!(project.files.keep(Key::Tester, 1, Some(Suffix::Stale)).await.unwrap(), None);
    // If all of it is removed, it is created again.
    fs::remove_dir_all(project.path("")).unwrap();
    assert_eq!(project.files.keep(Key::Tester, 1, Some(Suffix::Stale)).await.unwrap(), None);
    project.files.prepare(DISK).unwrap();
    project.answers(Key::Tester, "RESULT: PASS");
    fs::remove_dir_all(project.files.archive()).unwrap();
    assert_eq!(project.files.keep(Key::Tester, 1, None).await.unwrap().as_deref(), Some("001-tester.md"));
}

#[tokio::test]
async fn s_114_nothing_in_the_archive_is_overwritten() {
    let project = Project::new();
    for text in ["first", "second"] {
        project.answers(Key::Programmer, text);
        project.files.keep(Key::Programmer, 1, None).await.unwrap();
    }
    assert_eq!(
        (project.kept("001-programmer.md"), project.kept("001-programmer-2.md")),
        ("first".into(), "second".into())
    );
    // A link that leads nowhere is a name that is taken too.
    symlink("/nowhere", project.files.archive().join("002-programmer.md")).unwrap();
    project.answers(Key::Programmer, "third");
    assert_eq!(project.files.keep(Key::Programmer, 2, None).await.unwrap().as_deref(), Some("002-programmer-2.md"));
}

/// The disk is full, or what should be a directory is none. (A file in the place of the archive refuses root too.)
#[tokio::test]
async fn s_117_what_cannot_be_archived_stays_and_is_told() {
    let project = Project::new();
    project.answers(Key::Analyst, "the answer");
    fs::remove_dir(project.files.archive()).unwrap();
    fs::write(project.files.archive(), "in the way").unwrap();
    assert_eq!(project.files.keep_if_possible(Key::Analyst, 1, None).await, None);
    assert_eq!(fs::read_to_string(project.files.response(Key::Analyst)).unwrap(), "the answer");
    // Before the next turn that is no longer nothing: it would be taken for its answer.
    let error = project.files.keep(Key::Analyst, 2, Some(Suffix::Stale)).await.unwrap_err().to_string();
    assert!(error.contains("now"), "it says where: {error}");
}

#[tokio::test]
async fn what_is_in_a_response_file() {
    let project = Project::new();
    let look = |key| project.files.look(key, None, false);
    assert_eq!(look(Key::Analyst).await, Look::Absent);
    project.answers(Key::Analyst, " \n");
    assert_eq!(look(Key::Analyst).await, Look::Blank, "S-101");
    project.answers(Key::Analyst, "\u{feff}RESULT: PASS\r\n");
    assert_eq!(look(Key::Analyst).await, Look::Ready("RESULT: PASS\n".into()), "S-107");
    fs::write(project.files.response(Key::Analyst), b"a \xff b").unwrap();
    assert_eq!(look(Key::Analyst).await, Look::Ready("a \u{fffd} b".into()), "S-108");
    fs::create_dir(project.files.response(Key::Tester)).unwrap();
    assert_eq!(look(Key::Tester).await, Look::NotRegular, "S-109");
    symlink("/etc/passwd", project.files.response(Key::Programmer)).unwrap();
    assert_eq!(look(Key::Programmer).await, Look::NotRegular, "what somebody else has written is no answer");
}

#[tokio::test]
async fn s_104_a_file_that_grows_is_not_taken_yet() {
    let project = Project::new();
    let path = project.files.response(Key::Analyst);
    let other = project.path("other.md");
    type Change<'a> = &'a dyn Fn();
    let changes: [(&str, Change); 4] = [
        ("another file takes its place", &|| {
            fs::write(&other, "text").unwrap();
            fs::rename(&other, &path).unwrap();
        }),
        ("it is written anew, as long as before", &|| fs::write(&path, "half").unwrap()),
        ("it is truncated", &|| fs::write(&path, "").unwrap()),
        ("it grows", &|| fs::write(&path, "half and the rest").unwrap()),
    ];
    for (what, change) in changes {
        project.answers(Key::Analyst, "half");
        let between_two_looks = async {
            // The first scan is done by then. A change within the same tick of the file system's clock would be
            // invisible.
            tokio::time::sleep(SETTLED / 2).await;
            change();
        };
        let (look, ()) = tokio::join!(project.files.look(Key::Analyst, None, false), between_two_looks);
        assert_eq!(look, Look::Unsettled, "{what}");
    }
    // One that was renamed into place is whole, and is not waited for.
    let look = project.files.look(Key::Analyst, None, true);
    let placed = tokio::time::timeout(SETTLED.min(Duration::from_secs(1)) * 20, look);
    assert_eq!(placed.await.unwrap(), Look::Ready("half and the rest".into()));
}

/// An agent that died might have written more into a file in its place.
#[tokio::test]
async fn file_of_a_dead_agent_counts_only_if_it_is_whole() {
    let project = Project::new();
    let path = project.files.response(Key::Analyst);
    let before = crate::now();
    let look = || project.files.look(Key::Analyst, Some(before), false);
    project.answers(Key::Analyst, "half");
    assert_eq!(look().await, Look::Absent);
    assert_eq!(fs::read_to_string(&path).unwrap(), "half", "it is still there to be put aside");
    // The agent lived on, and wrote no more.
    let later = Some(Wall(crate::now().0 + 60));
    assert_eq!(project.files.look(Key::Analyst, later, false).await, Look::Ready("half".into()));
    let part = project.path("analyst.part");
    fs::write(&part, "whole").unwrap();
    loop {
        fs::rename(&part, &path).unwrap();
        let metadata = fs::metadata(&path).unwrap();
        // Within one tick of the file system's clock a rename leaves no trace.
        if (metadata.ctime(), metadata.ctime_nsec()) > (metadata.mtime(), metadata.mtime_nsec()) {
            break;
        }
        fs::rename(&path, &part).unwrap();
    }
    assert_eq!(look().await, Look::Ready("whole".into()));
}

#[test]
fn s_193_a_state_file_is_old_or_new_and_never_half() {
    let project = Project::new();
    let path = project.path("state.json");
    project.files.write_state(DISK, state(1));
    let first = fs::read_to_string(&path).unwrap();
    assert_eq!(StateFile::read(&first).unwrap().progress.round, 1);
    // Cut off while it was written: what is half is under another name.
    fs::write(project.path("state.new"), &first[..40]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), first);
    project.files.write_state(DISK, state(2));
    assert_eq!(StateFile::read(&fs::read_to_string(&path).unwrap()).unwrap().progress.round, 2);
    // It cannot be written: the last one stays.
    fs::create_dir(project.path("state.new")).unwrap();
    project.files.write_state(DISK, state(3));
    let kept = StateFile::read(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!((kept.progress.round, kept.final_status), (2, FinalStatus::Running));
}

/// An agent replaces the directory with a link during the run.
#[test]
fn nothing_is_written_where_a_link_leads_out_of_the_project() {
    let project = Project::new();
    let outside = tempfile::tempdir().unwrap();
    let tmp = project.place.path().join(".tmp");
    fs::remove_dir_all(&tmp).unwrap();
    symlink(outside.path(), &tmp).unwrap();
    let error = project.files.prepare(DISK).unwrap_err().to_string();
    assert!(error.contains(".tmp is a link"), "{error}");
    project.files.write_state(DISK, state(1));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn the_state_file_of_a_run_that_is_over_is_in_its_archive() {
    let project = Project::new();
    for name in ["state.json", "state-2.json"] {
        project.files.write_state(DISK, state(1));
        project.files.archive_state(DISK);
        assert!(project.files.archive().join(name).exists(), "{name}");
        assert!(!project.path("state.json").exists());
    }
    project.files.archive_state(DISK);
}
