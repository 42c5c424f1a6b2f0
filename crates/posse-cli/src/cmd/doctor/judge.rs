//! What facts mean, and what to do about them. Pure.

use std::path::Path;

use posse_agents::account::Sign;
use posse_agents::version::Version;
use posse_api::DatabaseCondition;
use posse_term::lock::Holder;
use serde::Serialize;

use super::gather::{Account, Agent, Configuration, Daemon, Directory, Disk, Facts, Found, Limits, Process, Writable};
use crate::ui::{Colour, bytes};

/// From good to worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Warn,
    Bad,
}

impl Verdict {
    /// The word for people, and its colour.
    pub(super) fn shown(self) -> (&'static str, Colour) {
        match self {
            Verdict::Ok => ("ok", Colour::Green),
            Verdict::Warn => ("warn", Colour::Yellow),
            Verdict::Bad => ("bad", Colour::Red),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    pub(super) area: &'static str,
    pub(super) what: String,
    pub(super) verdict: Verdict,
    pub(super) says: String,
    /// The recommended action.
    pub(super) advice: Option<String>,
}

/// The oldest git that merges without a checkout (`merge-tree --write-tree`).
const GIT: &str = "2.38";
/// A keeper with a hundred terminals, and what agents open, fit into this.
const OPEN_FILES: u64 = 1024;
/// With fewer not even a few terminals can be kept.
const FEW_OPEN_FILES: u64 = 128;
/// Five agents with all their threads, which count too.
const PROCESSES: u64 = 1000;
/// Terminals of the kernel that should be left.
const TERMINALS: u64 = 16;
/// With less on the disk journals and recordings will soon be in need; with almost nothing new terminals are refused.
const ROOM: u64 = 1 << 30;
const ALMOST_NOTHING: u64 = 32 << 20;

const SEE_LOG: &str = "see posse.log in posse's home; `posse ls` tries again";

pub(super) fn judge(facts: &Facts) -> Vec<Line> {
    let posse = vec![
        line("version", &facts.version),
        daemon(&facts.daemon, &facts.keeper, &facts.version),
        keeper(&facts.keeper),
        database(&facts.database),
    ];
    let areas = [
        ("posse", posse),
        ("agents", agents(&facts.agents)),
        ("programs", vec![git(facts.git.as_deref())]),
        ("terminal", vec![characters(facts.locale.as_deref())]),
        ("files", files(facts)),
        ("limits", limits(&facts.limits)),
        ("disk", disk(&facts.disk)),
    ];
    let in_area = |(area, lines): (&'static str, Vec<Line>)| lines.into_iter().map(move |line| Line { area, ..line });
    areas.into_iter().flat_map(in_area).collect()
}

/// A line that is in order. `judge` adds the area.
fn line(what: impl Into<String>, says: impl Into<String>) -> Line {
    Line { area: "", what: what.into(), verdict: Verdict::Ok, says: says.into(), advice: None }
}

impl Line {
    fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    fn warn(self, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, ..self.advise(advice) }
    }

    fn bad(self, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Bad, ..self.advise(advice) }
    }

    /// Judges how much is left of something. What is not known is in order.
    fn left(self, left: Option<u64>, least: u64, enough: u64, advice: &str) -> Self {
        match left {
            Some(left) if left < least => self.bad(advice),
            Some(left) if left < enough => self.warn(advice),
            _ => self,
        }
    }
}

fn agents(agents: &[Agent]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    if agents.iter().all(|agent| agent.program.is_none()) {
        let none = line("any", "none is installed; `posse demo` works all the same");
        lines.push(none.warn("install one of those below and sign in to it"));
    }
    for agent in agents {
        lines.push(installed(agent));
        if agent.program.is_some() && agent.said.is_some() {
            lines.push(account(agent));
        }
    }
    lines
}

fn installed(agent: &Agent) -> Line {
    let id = &agent.id;
    if agent.is_broken {
        return line(id, "its manifest is broken").bad(format!("`posse provider check {id}` shows where"));
    }
    let Some(program) = &agent.program else {
        return line(id, "not installed").advise(format!("to get it: {}", agent.install));
    };
    let Some(said) = &agent.said else {
        let fails = line(id, format!("{} --version fails", program.display()));
        return fails.bad("install it anew, or take it off your PATH");
    };
    let known: Vec<String> = agent.known.iter().map(Version::to_string).collect();
    let fits = format!("`posse provider check --live {id}` says whether it fits; needs no account, spends nothing");
    match Version::said(said) {
        Some(version) if agent.known.contains(&version) => line(id, format!("{version}, which posse knows")),
        Some(version) if known.is_empty() => {
            line(id, format!("{version}; its manifest names no versions, so try it before you rely on it"))
        }
        Some(version) => line(id, format!("{version} is new to posse, which knows {}", known.join(", "))).warn(fits),
        None => line(id, format!("its version is unknown: it says {said:?}")).warn(fits),
    }
}

fn account(agent: &Agent) -> Line {
    let what = format!("{} account", agent.id);
    match &agent.account {
        Account::Signed(Sign::File(file)) => line(what, format!("signed in, it seems: {} is there", file.display())),
        Account::Signed(Sign::Variable(name)) => line(what, format!("a key is set: {name}")),
        Account::NoSign { sign_in } => {
            line(what, "unknown: no sign of one was found").warn(format!("if you have not signed in: {sign_in}"))
        }
        Account::Unknown => line(what, "unknown").advise("start it once by hand to see"),
    }
}

fn git(said: Option<&str>) -> Line {
    let advice = format!("plans and commits need git {GIT} or newer: install or update it");
    let Some(said) = said else { return line("git", "not installed").warn(advice) };
    let needed = GIT.parse::<Version>().ok();
    match Version::said(said) {
        Some(version) if needed.is_some_and(|needed| version >= needed) => line("git", version.to_string()),
        Some(version) => line("git", format!("{version} is too old")).warn(advice),
        None => line("git", format!("its version is unknown: it says {said:?}")).warn(advice),
    }
}

fn characters(locale: Option<&str>) -> Line {
    let advice = "set LANG=C.UTF-8 or another UTF-8 locale: agents draw with such characters";
    match locale.filter(|locale| !locale.is_empty()) {
        Some(locale) if ["UTF-8", "utf-8", "utf8", "UTF8"].iter().any(|ending| locale.ends_with(ending)) => {
            line("characters", locale)
        }
        Some(locale) => line("characters", format!("{locale} is not UTF-8")).warn(advice),
        None => line("characters", "no locale is set").warn(advice),
    }
}

fn files(facts: &Facts) -> Vec<Line> {
    let no_home = |why: &String| line("home", why).bad("set POSSE_HOME to a directory of your own");
    let mut lines: Vec<Line> = facts.home_problem.iter().map(no_home).collect();
    lines.extend(facts.directories.iter().map(directory));
    let one_line = |text: &str| text.lines().collect::<Vec<_>>().join(" ");
    lines.push(match &facts.configuration {
        Configuration::Absent(path) => {
            line(shown(path), "not there; the defaults count").advise("`posse config init` writes one")
        }
        Configuration::Sound(path) => line(shown(path), "sound"),
        Configuration::Wrong(why) => line("config.toml", one_line(why)).bad("mend it, or move it away"),
    });
    if let Some(problem) = &facts.prompts {
        let advice = "mend the template, or move it away: runs and plans do not start with it";
        lines.push(line("prompts", one_line(problem)).bad(advice));
    }
    lines.extend(facts.writable_by_others.iter().map(|Writable { path, by_all }| {
        let advice = format!("chmod go-w {}", path.display());
        let by = |who: &str| line(shown(path), format!("{who} can write it, and so decide what your agents may do"));
        if *by_all { by("everybody").bad(advice) } else { by("its group").warn(advice) }
    }));
    lines
}

fn directory(directory: &Directory) -> Line {
    let path = shown(&directory.path);
    match &directory.found {
        Found::Absent => line(path, "not there yet; it is made when needed"),
        Found::Fine => line(path, "yours alone"),
        Found::Refused { why, advice } => line(path, why).bad(advice),
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn limits(limits: &Limits) -> Vec<Line> {
    let count = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    let files = line("open files", count(limits.open_files)).left(
        limits.open_files,
        FEW_OPEN_FILES,
        OPEN_FILES,
        "`ulimit -n 4096`, then `posse stop --all`: what runs keeps the limit it has",
    );
    let processes = line("processes", count(limits.processes)).left(
        limits.processes,
        0,
        PROCESSES,
        "threads count too: `ulimit -u 4096` before agents are started",
    );
    let says = limits.terminals.map(|(used, most)| format!("{used} of {most} in use on this machine"));
    let terminals = line("terminals", says.unwrap_or_else(|| "unknown".into())).left(
        limits.terminals.map(|(used, most)| most.saturating_sub(used)),
        1,
        TERMINALS,
        "end some, or raise /proc/sys/kernel/pty/max",
    );
    let input = if limits.types_into_itself {
        let says = "a process in a terminal can type into it, and so answer what its agent asks (TIOCSTI)";
        line("terminal input", says).warn("`sysctl dev.tty.legacy_tiocsti=0` as root, from Linux 6.2 on")
    } else {
        line("terminal input", "only from outside the terminal")
    };
    vec![files, processes, terminals, input]
}

fn daemon(daemon: &Daemon, keeper: &Process, ours: &str) -> Line {
    let daemon_says = |says: &str| line("daemon", says);
    match (daemon, keeper) {
        (Daemon::Answers { problem: Some(problem), .. }, _) => daemon_says(problem).bad(SEE_LOG),
        (Daemon::Answers { pid, version, problem: None }, _) => {
            let says = format!("process {pid}, version {version}");
            if ours.split(' ').next() == Some(version) {
                return daemon_says(&says);
            }
            daemon_says(&format!("{says}; this is {ours}"))
                .warn("an older one is replaced by the next command; with a newer one, update this program")
        }
        (Daemon::Silent { holder, why }, _) => {
            let pid = holder.as_ref().map(|holder| holder.pid.to_string());
            let advice = format!(
                "see posse.log in posse's home; `kill {}` ends it, and another one is started: terminals go on",
                pid.as_deref().unwrap_or("PID")
            );
            let pid = pid.map(|pid| format!("process {pid} ")).unwrap_or_default();
            daemon_says(&format!("{pid}does not answer: {why}")).bad(advice)
        }
        (Daemon::Unknown(why), _) => daemon_says(why).bad(SEE_LOG),
        (Daemon::Off, Process::Runs(_) | Process::Stopped(_)) => {
            daemon_says("not running; terminals go on").advise("`posse ls` starts it")
        }
        (Daemon::Off, _) => daemon_says("not running; every command that needs it starts it"),
    }
}

fn keeper(keeper: &Process) -> Line {
    match keeper {
        Process::Off => line("keeper", "not running; it is started with the first terminal"),
        Process::Runs(holder) => line("keeper", holder.as_ref().map_or_else(|| "runs".to_owned(), since)),
        Process::Stopped(Holder { pid, .. }) => {
            line("keeper", format!("process {pid} is stopped: no terminal can be started, typed to or ended"))
                .bad(format!("`kill -CONT {pid}` continues it"))
        }
        Process::Unknown(why) => line("keeper", why).bad(SEE_LOG),
    }
}

fn database(condition: &DatabaseCondition) -> Line {
    match condition {
        DatabaseCondition::Absent => line("database", "not there yet"),
        DatabaseCondition::Sound => line("database", "can be read from end to end"),
        DatabaseCondition::Damaged(why) => line("database", format!("damaged: {why}"))
            .bad("`posse doctor --repair` sets it aside and goes on with a new one; running terminals are kept"),
        DatabaseCondition::Unusable(why) => {
            line("database", why).bad("nothing is lost: put that right, and posse goes on")
        }
    }
}

fn since(holder: &Holder) -> String {
    format!("process {}, since {}", holder.pid, holder.started.strftime("%F %T UTC"))
}

fn disk(disk: &Disk) -> Vec<Line> {
    let mut lines: Vec<Line> = disk.parts.iter().map(|(what, size)| line(*what, bytes(*size))).collect();
    let free = line("free", disk.free.map_or_else(|| "unknown".into(), bytes));
    lines.push(free.left(disk.free, ALMOST_NOTHING, ROOM, "make room: with a full disk new terminals are refused"));
    lines
}
