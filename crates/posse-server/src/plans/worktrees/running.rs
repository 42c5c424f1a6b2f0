//! Checks that outlive a daemon that was killed. Whoever runs one in the same directory ends the old one first: two at once
//! would write over each other's results, and in the user's checkout nobody could tell when it is over.

use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_files::child::ends_within;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use sha2::{Digest, Sha256};

use crate::disk::{self, Disk};

/// How long an old check may take to end once it is killed.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// How the names of notes begin.
const PREFIX: &str = "running-";

/// Where it is written down which check runs in a directory.
pub(super) struct Running {
    note: PathBuf,
}

/// Ends all that a daemon before us has left running for this run.
pub(super) async fn end_all(state: &Path) {
    let list = |disk: &Disk, directory: &Path| -> Vec<PathBuf> {
        let files = disk.read_dir(directory).into_iter().flatten().flatten();
        files.filter(|note| note.file_name().to_string_lossy().starts_with(PREFIX)).map(|note| note.path()).collect()
    };
    for note in disk::at(state.join("gates"), list).await {
        Running { note }.end().await;
    }
}

impl Running {
    pub(super) fn in_directory(state: &Path, directory: &Path) -> Self {
        let key = Sha256::digest(directory.as_os_str().as_encoded_bytes());
        let key: String = key.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self { note: state.join("gates").join(format!("{PREFIX}{key}")) }
    }

    /// What the shell of a check says first: this boot, and its own line in the list of processes, which has its number and its
    /// start. The shell itself, because nobody else can do it before the command begins.
    pub(super) fn words(&self) -> String {
        let note = self.note.to_string_lossy().replace('\'', r"'\''");
        format!(
            "read -r boot < /proc/sys/kernel/random/boot_id && read -r stat < /proc/$$/stat && \
             printf '%s\\n%s\\n' \"$boot\" \"$stat\" > '{note}'\nunset boot stat\n"
        )
    }

    /// Ends the check that was left running here, with all it started.
    pub(super) async fn end(&self) {
        let end = |disk: &Disk, note: &Path| {
            let Some((pid, start)) = noted(disk, note) else { return };
            let process = pidfd_open(pid, PidfdFlags::empty());
            // Compared only now: before, another process could have got the number.
            if let Some(process) = process.ok().filter(|_| started(disk, pid) == Some(start)) {
                tracing::info!("ending a check that outlived the last daemon: {pid}");
                // It leads a process group of its own.
                let _ = kill_process_group(pid, Signal::KILL);
                let _ = ends_within(&process, KILL_LIMIT);
            }
            let _ = disk.remove_file(note);
        };
        disk::at(&self.note, end).await;
    }

    pub(super) async fn over(&self) {
        let _ = disk::at(&self.note, Disk::remove_file).await;
    }
}

/// The number and the start of the process that a note names, if it is of this boot.
fn noted(disk: &Disk, note: &Path) -> Option<(Pid, String)> {
    let noted = disk.read_to_string(note).ok()?;
    let (boot, stat) = noted.split_once('\n')?;
    let now = disk.read_to_string(Path::new("/proc/sys/kernel/random/boot_id")).ok()?;
    (boot.trim() == now.trim()).then_some(())?;
    Some((Pid::from_raw(stat.split_whitespace().next()?.parse().ok()?)?, start(stat)?))
}

fn started(disk: &Disk, pid: Pid) -> Option<String> {
    start(&disk.read_to_string(Path::new(&format!("/proc/{pid}/stat"))).ok()?)
}

/// The 22nd field; the second, in brackets, may have anything in it.
fn start(stat: &str) -> Option<String> {
    stat.rsplit_once(") ")?.1.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test]
    async fn a_check_that_was_left_running_is_ended_and_no_other() {
        let state = tempfile::Builder::new().prefix("it's ").tempdir().unwrap();
        std::fs::create_dir(state.path().join("gates")).unwrap();
        let running = Running::in_directory(state.path(), Path::new("/x"));
        running.end().await;
        let begin = |running: &Running| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("{}echo begun; sleep 600 & wait", running.words())]).process_group(0);
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let mut line = [0; 6];
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
            child
        };
        let mut child = begin(&running);
        let other = Running::in_directory(state.path(), Path::new("/y"));
        let mut bystander = begin(&other);
        // Whoever comes after a crash.
        let bystander_note = std::fs::read(&other.note).unwrap();
        std::fs::remove_file(&other.note).unwrap();
        end_all(state.path()).await;
        std::fs::write(&other.note, bystander_note).unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()), Some(9));
        assert!(bystander.try_wait().unwrap().is_none());
        // The same number, but another process.
        let noted = std::fs::read_to_string(&other.note).unwrap();
        let (boot, stat) = noted.split_once('\n').unwrap();
        let start = start(stat).unwrap();
        std::fs::write(&other.note, format!("{boot}\n{}", stat.replace(&start, "1"))).unwrap();
        other.end().await;
        assert!(bystander.try_wait().unwrap().is_none() && !other.note.exists());
        let _ = kill_process_group(Pid::from_child(&bystander), Signal::KILL);
        bystander.wait().unwrap();
    }
}
