//! Finding and ending every process of a terminal.
//!
//! Agents' tools start sessions of their own and survive signals to the process group. A family is therefore found in
//! three ways: descent from the terminal's program, membership in its session, and the terminal's id in the environment.
//! A process that left all three (a daemon that also cleared its environment) is not found. Only a cgroup would hold it,
//! and creating one needs privileges that posse does not ask for.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;

use posse_core::ids::TerminalId;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::lineage::{ProcessStat, claimed_terminal};

#[derive(Clone, Debug, PartialEq, Eq)]
struct FamilyProcess {
    pid: i32,
    stat: ProcessStat,
    terminal: Option<TerminalId>,
}

impl FamilyProcess {
    fn member(&self) -> Member {
        Member { pid: self.pid, started: self.stat.started }
    }
}

/// A snapshot of all processes. Taken once for all terminals that are being ended, because reading /proc is expensive.
pub(super) struct ProcessTable {
    keeper: i32,
    processes: Vec<FamilyProcess>,
    /// Indices into `processes`, by parent.
    children: HashMap<i32, Vec<usize>>,
}

/// The process a terminal was started with.
#[derive(Clone, Copy)]
pub(super) enum Leader {
    Running(i32),
    /// Its pid and its session id may have been reused.
    Ended(i32),
}

impl ProcessTable {
    pub(super) fn read() -> io::Result<Self> {
        let entries = fs::read_dir("/proc")?.flatten();
        let processes = entries.filter_map(|entry| read_process(entry.file_name().to_str()?.parse().ok()?)).collect();
        Ok(Self::new(std::process::id() as i32, processes))
    }

    fn new(keeper: i32, processes: Vec<FamilyProcess>) -> Self {
        let mut children: HashMap<i32, Vec<usize>> = HashMap::new();
        for (place, process) in processes.iter().enumerate() {
            children.entry(process.stat.parent).or_default().push(place);
        }
        Self { keeper, processes, children }
    }

    /// Returns the living members of a terminal's family. `leader` is the process that the keeper started, if any;
    /// `known` are the members found before.
    pub(super) fn family(&self, id: TerminalId, leader: Option<Leader>, known: &HashSet<Member>) -> Vec<Member> {
        // The keeper is the subreaper of its orphans. That distinguishes the rest of an exited leader's session from
        // another session that reuses its id.
        let ours = match leader {
            Some(Leader::Ended(_)) => self.with_descendants(self.children_of(self.keeper)),
            _ => BTreeSet::new(),
        };
        let belongs = |place: &usize| {
            let process = &self.processes[*place];
            let by_leader = match leader {
                Some(Leader::Running(pid)) => process.pid == pid || process.stat.session == pid,
                Some(Leader::Ended(pid)) => {
                    process.stat.session == pid && process.terminal.is_none() && ours.contains(place)
                }
                None => false,
            };
            by_leader || process.terminal == Some(id) || known.contains(&process.member())
        };
        let family = self.with_descendants((0..self.processes.len()).filter(belongs));
        family.into_iter().map(|place| self.processes[place].member()).collect()
    }

    fn children_of(&self, pid: i32) -> impl Iterator<Item = usize> {
        self.children.get(&pid).into_iter().flatten().copied()
    }

    fn with_descendants(&self, paths: impl Iterator<Item = usize>) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open: Vec<usize> = paths.collect();
        while let Some(place) = open.pop() {
            if found.insert(place) {
                open.extend(self.children_of(self.processes[place].pid));
            }
        }
        found
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pid: i32,
    started: u64,
}

impl Member {
    /// Signals exactly this process. Does nothing if the process is gone and its pid was reused.
    pub(super) fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if ProcessStat::read(self.pid).is_some_and(|now| now.started == self.started) {
            let _ = pidfd_send_signal(handle, signal);
        }
    }
}

/// Reads one process. `None` if it is gone, a zombie, or the keeper itself.
fn read_process(pid: i32) -> Option<FamilyProcess> {
    if pid as u32 == std::process::id() {
        return None;
    }
    Some(FamilyProcess { pid, stat: ProcessStat::read(pid)?, terminal: claimed_terminal(pid) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, session: i32, terminal: Option<TerminalId>) -> FamilyProcess {
        FamilyProcess { pid, stat: ProcessStat { state: 'S', parent, session, foreground: None, started: 1 }, terminal }
    }

    fn pids(family: &[Member]) -> Vec<i32> {
        family.iter().map(|member| member.pid).collect()
    }

    #[test]
    fn family_is_found_by_descent_session_and_environment() {
        let ours = TerminalId::from_random(1);
        let other = TerminalId::from_random(2);
        let table = ProcessTable::new(
            7,
            vec![
                process(10, 7, 10, Some(ours)),  // the program
                process(11, 10, 10, None),       // its child, environment cleared
                process(12, 11, 12, None),       // a grandchild in a session of its own
                process(13, 7, 10, None),        // orphaned, but still in the session
                process(14, 7, 14, Some(ours)),  // double-forked into its own session
                process(15, 14, 15, None),       // and its child
                process(20, 7, 20, Some(other)), // of another terminal
                process(21, 20, 20, Some(other)),
                process(30, 1, 30, None),
            ],
        );
        let family = |id, leader| pids(&table.family(id, leader, &HashSet::new()));
        assert_eq!(family(ours, Some(Leader::Running(10))), [10, 11, 12, 13, 14, 15]);
        assert_eq!(family(ours, None), [10, 11, 12, 14, 15], "after a new keeper only the environment tells");
        assert_eq!(family(other, Some(Leader::Running(20))), [20, 21]);
        assert_eq!(family(TerminalId::from_random(3), None), [0; 0]);
    }

    /// The kernel reuses process ids.
    #[test]
    fn process_with_a_reused_pid_is_not_in_the_family() {
        let (ours, other) = (TerminalId::from_random(1), TerminalId::from_random(2));
        let leader = Some(Leader::Ended(10));
        let family = |processes| pids(&ProcessTable::new(7, processes).family(ours, leader, &HashSet::new()));
        let orphans = vec![process(13, 7, 10, None), process(14, 13, 10, None), process(15, 7, 15, Some(ours))];
        assert_eq!(family(orphans), [13, 14, 15], "what it left behind is");
        let stranger = vec![process(10, 1, 10, None), process(11, 10, 10, None)];
        assert_eq!(family(stranger), [0; 0]);
        let neighbour = vec![process(10, 7, 10, Some(other)), process(11, 10, 10, Some(other))];
        assert_eq!(family(neighbour), [0; 0]);
    }

    #[test]
    fn member_found_by_its_parents_stays_known_after_they_exit() {
        let ours = TerminalId::from_random(1);
        let hidden = process(12, 10, 12, None);
        let before = ProcessTable::new(7, vec![process(10, 7, 10, Some(ours)), hidden.clone()]);
        let known: HashSet<Member> = before.family(ours, None, &HashSet::new()).into_iter().collect();
        let after = ProcessTable::new(7, vec![process(12, 7, 12, None), process(13, 12, 13, None)]);
        assert_eq!(pids(&after.family(ours, None, &known)), [12, 13]);
        let other = FamilyProcess { stat: ProcessStat { started: 2, ..hidden.stat }, ..hidden };
        let reused = ProcessTable::new(7, vec![other]);
        assert_eq!(pids(&reused.family(ours, None, &known)), [0; 0], "its number is not enough");
    }
}
