//! Locates a connected process: outside, or inside one of posse's terminals.
//!
//! The kernel identifies the process at the other end of a local socket. The shell reads that process and its
//! ancestors; this module interprets them. Descent and session membership cannot be forged: the keeper adopts orphans,
//! and no process can enter an existing session. The environment can be forged. It is only used to recognise more
//! processes as inside, and to name the terminal of an orphan.

use crate::ids::TerminalId;

/// A process as the kernel describes it: the peer itself, or one of its ancestors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestor {
    pub pid: i32,
    pub session: i32,
    /// The terminal that the environment of the process names.
    pub claimed: Option<TerminalId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Household {
    /// The keeper, once the daemon has been connected to it.
    pub keeper: Option<i32>,
    pub daemon: i32,
    /// Every terminal, with the process that leads it while that process runs.
    pub terminals: Vec<(TerminalId, Option<i32>)>,
}

/// The location of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// Neither in a terminal nor started by the daemon.
    Outside,
    /// In this terminal, by descent or session.
    Terminal(TerminalId),
    /// Below the keeper or the daemon. The terminal is the one that an environment names, if it is one of ours.
    Inside(Option<TerminalId>),
    /// The process could not be read: it is gone, or in another process namespace.
    Unknown,
}

impl Whereabouts {
    /// Returns the terminal, if anything names it.
    pub fn terminal(self) -> Option<TerminalId> {
        match self {
            Whereabouts::Terminal(id) => Some(id),
            Whereabouts::Inside(id) => id,
            Whereabouts::Outside | Whereabouts::Unknown => None,
        }
    }
}

impl Household {
    /// Locates a process, given itself and its ancestors up to the first one without a parent.
    pub fn place(&self, lineage: &[Ancestor]) -> Whereabouts {
        if lineage.is_empty() {
            return Whereabouts::Unknown;
        }
        let led_by = |pid: i32| self.terminals.iter().find(|(_, leader)| *leader == Some(pid)).map(|(id, _)| *id);
        // The ancestors of the keeper and the daemon are not posse's.
        let is_ours = |one: &Ancestor| Some(one.pid) == self.keeper || one.pid == self.daemon;
        let top = lineage.iter().position(is_ours);
        let below = &lineage[..top.unwrap_or(lineage.len())];
        if let Some(id) = below.iter().find_map(|one| led_by(one.pid).or_else(|| led_by(one.session))) {
            return Whereabouts::Terminal(id);
        }
        let known = |id: &TerminalId| self.terminals.iter().any(|(terminal, _)| terminal == id);
        let claimed = below.iter().filter_map(|one| one.claimed).find(known);
        match (top, claimed) {
            (None, None) => Whereabouts::Outside,
            (_, claimed) => Whereabouts::Inside(claimed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEPER: i32 = 7;
    const DAEMON: i32 = 8;

    fn id(bits: u32) -> TerminalId {
        TerminalId::from_random(bits)
    }

    fn household() -> Household {
        let terminals = vec![(id(1), Some(10)), (id(2), Some(20)), (id(3), None)];
        Household { keeper: Some(KEEPER), daemon: DAEMON, terminals }
    }

    /// Processes as `PID/SESSION=CLAIMED`.
    fn lineage(text: &str) -> Vec<Ancestor> {
        let ancestor = |word: &str| {
            let (numbers, claimed) = word.split_once('=').map_or((word, None), |(word, id)| (word, Some(id)));
            let (pid, session) = numbers.split_once('/').unwrap();
            let claimed = claimed.map(|bits| id(bits.parse().unwrap()));
            Ancestor { pid: pid.parse().unwrap(), session: session.parse().unwrap(), claimed }
        };
        let text = text.replace("keeper", "7/7").replace("daemon", "8/7").replace("init", "1/1");
        text.split_whitespace().map(ancestor).collect()
    }

    #[test]
    fn a_process_is_placed_by_descent_session_and_environment() {
        use Whereabouts::{Inside, Outside, Terminal, Unknown};
        for (what, text, expected) in [
            ("a shell of the user", "50/50 40/40 init", Outside),
            ("nothing could be read", "", Unknown),
            (
                "a child with a cleared environment and its own session",
                "12/12 11/10 10/10=1 keeper init",
                Terminal(id(1)),
            ),
            ("a child that claims to be another's", "12/10=2 10/10=1 keeper", Terminal(id(1))),
            ("an orphan still in the session", "12/20 keeper", Terminal(id(2))),
            ("an orphan in its own session with its environment", "12/12=1 keeper", Inside(Some(id(1)))),
            ("an orphan that has cleared everything", "12/12 keeper", Inside(None)),
            ("an orphan that names a terminal of another posse", "12/12=99 keeper", Inside(None)),
            ("what the daemon started: a check, a gate", "60/60 daemon keeper", Inside(None)),
            ("left over from an ended terminal after its keeper", "12/12=3 init", Inside(Some(id(3)))),
            ("a posse inside a terminal of another posse", "50/50=99 init", Outside),
            ("below the keeper counts, above it does not", "12/12 keeper 10/10=1", Inside(None)),
        ] {
            assert_eq!(household().place(&lineage(text)), expected, "{what}");
        }
    }

    #[test]
    fn the_leader_of_a_terminal_that_ended_is_nobody() {
        let gone = Household { terminals: vec![(id(1), None)], ..household() };
        assert_eq!(gone.place(&lineage("10/10 init")), Whereabouts::Outside);
    }
}
