//! Checks that outlive a daemon that was killed. Two at once would write over each other's results, and in the user's checkout
//! the end of the old one would go unnoticed.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use posse_files::child::ends_within;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::disk::Disk;
use crate::git::outlived::processes;

/// The environment variable by which a check is found. Its value is the directory of the run.
pub(super) const CHECK_OF: &str = "POSSE_CHECK_OF";
/// How long a check may take to be gone once it is killed.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Kills the checks of a run that are running now, with the programs they started, and waits for their end.
pub(super) fn end(disk: &Disk, state: &Path) {
    let mark = [CHECK_OF.as_bytes(), b"=", state.as_os_str().as_bytes()].concat();
    for (pid, process) in processes(disk) {
        let has_mark = |variables: Vec<u8>| variables.split(|byte| *byte == 0).any(|variable| variable == mark);
        if !disk.read(&process.join("environ")).is_ok_and(has_mark)
            || !disk.read(&process.join("stat")).is_ok_and(|stat| leads_group(&stat, pid))
        {
            continue;
        }
        let Ok(check) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        tracing::info!("ending a check that outlived the last daemon: {}", pid.as_raw_nonzero());
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = ends_within(&check, KILL_LIMIT);
    }
}

/// Whether a process leads its process group, as the shell of a check does, and not its session, as a service does that a
/// check started. Reads `pid (name) state parent group session …`, in which the name may have anything in it.
fn leads_group(stat: &[u8], pid: Pid) -> bool {
    let stat = String::from_utf8_lossy(stat);
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields.split(' ').skip(2).take(2).map(str::parse::<i32>));
    let fields: Vec<i32> = fields.into_iter().flatten().flatten().collect();
    let pid = pid.as_raw_nonzero().get();
    matches!(fields[..], [group, session] if group == pid && session != pid)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::disk::DISK;

    #[test]
    fn check_of_the_run_is_ended_and_no_other_process() {
        let begin = |program: &str, state: &str| -> Child {
            let mut command = Command::new(program);
            command.args(["sh", "-c", "echo begun; sleep 600 & wait"]).env(CHECK_OF, state);
            if program != "setsid" {
                command.process_group(0);
            }
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 6]).unwrap();
            child
        };
        let state = tempfile::tempdir().unwrap();
        let state = state.path().to_str().unwrap();
        let mut check = begin("env", state);
        let mut others = [begin("env", "/elsewhere"), begin("setsid", state)];
        end(DISK, Path::new(state));
        assert_eq!(check.wait().unwrap().signal(), Some(9));
        for other in &mut others {
            assert!(other.try_wait().unwrap().is_none());
            let _ = kill_process_group(Pid::from_child(other), Signal::KILL);
            let _ = other.kill();
            other.wait().unwrap();
        }
    }
}
