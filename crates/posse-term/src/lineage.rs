//! Reads a process and its ancestors from /proc, for `posse_core::peer` to place.

use std::fs;

use posse_core::ids::TerminalId;
use posse_core::peer::Ancestor;

/// The variable by which a process can be recognised as part of a terminal.
pub const TERMINAL_VARIABLE: &str = "POSSE_TERMINAL_ID";

/// The number of times a walk is restarted because an ancestor exited during it.
const WALKS: usize = 20;
/// The maximum number of ancestors. A real process has about ten.
const GENERATIONS: usize = 1024;

/// The fields of `/proc/PID/stat` of a living process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    /// The foreground process group of the terminal, if there is one.
    pub foreground: Option<i32>,
    /// In clock ticks since boot. Pid and start time together identify a process.
    pub(crate) started: u64,
}

impl ProcessStat {
    /// Reads a living process. `None` if it is gone, or dead and not reaped yet.
    pub fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses the fields, counted from the end of the name, which may contain parentheses and spaces.
    pub(crate) fn parse(stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<i32>().ok();
        let state = fields.first()?.chars().next()?;
        // A process whose first thread has ended looks like a zombie, but is alive while it has other threads.
        if state == 'X' || (state == 'Z' && number(17)? <= 1) {
            return None;
        }
        Some(Self {
            state,
            parent: number(1)?,
            session: number(3)?,
            foreground: number(5).filter(|group| *group > 0),
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Returns the terminal that the environment of a process names. Unreadable for processes of other users.
pub(crate) fn claimed_terminal(pid: i32) -> Option<TerminalId> {
    terminal_of(&fs::read(format!("/proc/{pid}/environ")).unwrap_or_default())
}

fn terminal_of(environment: &[u8]) -> Option<TerminalId> {
    environment.split(|b| *b == 0).find_map(|variable| {
        let value = variable.strip_prefix(TERMINAL_VARIABLE.as_bytes())?.strip_prefix(b"=")?;
        std::str::from_utf8(value).ok()?.parse().ok()
    })
}

/// Returns a process and its ancestors, the process first. Empty if the process is gone.
pub fn lineage(pid: i32) -> Vec<Ancestor> {
    (0..WALKS).find_map(|_| walk(pid)).unwrap_or_default()
}

/// Walks up to the first process without a parent. `None` if a process on the way exits meanwhile.
fn walk(pid: i32) -> Option<Vec<Ancestor>> {
    let Some(first) = ProcessStat::read(pid) else { return Some(Vec::new()) };
    let mut line = Vec::new();
    let mut at = (pid, first);
    for _ in 0..GENERATIONS {
        let (pid, stat) = at;
        line.push(Ancestor { pid, session: stat.session, claimed: claimed_terminal(pid) });
        if stat.parent <= 0 {
            return (ProcessStat::read(line[0].pid)?.started == first.started).then_some(line);
        }
        let parent = ProcessStat::read(stat.parent)?;
        // The child still names it, so the parent lives and its id was not reused.
        if ProcessStat::read(pid)? != stat {
            return None;
        }
        at = (stat.parent, parent);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn name_with_parentheses_does_not_shift_the_fields() {
        let tail = "S 7 10 10 34816 10 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let expected = ProcessStat { state: 'S', parent: 7, session: 10, foreground: Some(10), started: 4242 };
        assert_eq!(ProcessStat::parse(&format!("10 (a) b (c)) {tail}")), Some(expected));
        assert_eq!(ProcessStat::parse(&format!("10 (a) {}", tail.replace('S', "Z"))), None, "a zombie is dead");
        let threads = tail.replace('S', "Z").replace(" 0 1 0 ", " 0 3 0 ");
        let zombie = ProcessStat { state: 'Z', ..expected };
        assert_eq!(ProcessStat::parse(&format!("10 (a) {threads}")), Some(zombie), "but not one with threads");
        assert_eq!(ProcessStat::parse("nonsense"), None);
    }

    #[test]
    fn terminal_is_read_from_the_environment() {
        assert_eq!(terminal_of(b"A=1\0POSSE_TERMINAL_ID=00000007\0"), Some(TerminalId::from_random(7)));
        assert_eq!(terminal_of(b"XPOSSE_TERMINAL_ID=00000007\0POSSE_TERMINAL_ID=nonsense\0"), None);
    }

    #[test]
    fn child_descends_from_this_process_and_names_its_terminal() {
        let mut child = Command::new("sh");
        child.args(["-c", "echo ready; read end"]).env(TERMINAL_VARIABLE, "00000007");
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // The process has our environment, or none, until it has replaced itself.
        let mut ready = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        let pid = child.id() as i32;
        let line = lineage(pid);
        assert_eq!((line[0].pid, line[1].pid), (pid, std::process::id() as i32));
        assert_eq!(line[0].claimed, Some(TerminalId::from_random(7)));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(lineage(pid), [], "a process that is gone has no ancestors");
    }
}
