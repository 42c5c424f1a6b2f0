//! Reads processes from /proc.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

#[derive(Debug, Clone)]
pub struct Process {
    pub pid: u32,
    pub parent: Option<u32>,
    pub command: Vec<String>,
    environment: Vec<String>,
}

impl Process {
    pub fn variable(&self, name: &str) -> Option<String> {
        self.environment.iter().find_map(|v| v.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    }

    pub fn is_keeper_of(&self, home: &Path) -> bool {
        self.command.get(1).is_some_and(|word| word == "keep")
            && self.variable("POSSE_HOME").as_deref() == home.to_str()
    }
}

/// Returns every visible process except zombies, which have no command.
pub fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

fn read(pid: u32) -> Option<Process> {
    let words = |file| -> Option<Vec<String>> {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).ok()?;
        let words = bytes.split(|b| *b == 0).filter(|word| !word.is_empty());
        Some(words.map(|word| String::from_utf8_lossy(word).into_owned()).collect())
    };
    let command = words("cmdline")?;
    if command.is_empty() || pid == std::process::id() {
        return None;
    }
    let parent = stat(pid).and_then(|stat| stat.get(1)?.parse().ok());
    Some(Process { pid, parent, command, environment: words("environ").unwrap_or_default() })
}

/// Returns the fields of `/proc/PID/stat` after the command: the state, the parent and so on.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat[stat.rfind(')')? + 1..].split_ascii_whitespace().map(str::to_owned).collect())
}

pub fn exists(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat[0].as_str(), "Z" | "X"))
}

/// Waits until a process exits. Returns `false` only if the process hangs.
pub fn ends(pid: u32) -> bool {
    ends_within(pid, crate::PATIENCE)
}

pub fn ends_within(pid: u32, time: Duration) -> bool {
    let Some(handle) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return true };
    let Ok(handle) = pidfd_open(handle, PidfdFlags::empty()) else { return true };
    let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    let mut ended = [PollFd::new(&handle, PollFlags::IN)];
    poll(&mut ended, Some(&timeout)).is_ok_and(|count| count == 1)
}

pub fn memory(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Returns the processor time used so far, in clock ticks of a hundredth of a second, and the voluntary context
/// switches.
pub fn effort(pid: u32) -> Option<(u64, u64)> {
    let stat = stat(pid)?;
    let ticks = stat.get(11)?.parse::<u64>().ok()? + stat.get(12)?.parse::<u64>().ok()?;
    let mut switches = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        switches += line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0);
    }
    Some((ticks, switches))
}

/// Sets the flag when this process receives a termination signal.
pub fn set_on_signals(stop: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(())
}
