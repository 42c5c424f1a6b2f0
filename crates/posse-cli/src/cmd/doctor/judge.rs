//! What facts mean, and what to do about them. Pure.

use posse_agents::account::Sign;
use posse_agents::version::Version;
use posse_api::DatabaseCondition;
use posse_term::lock::Holder;
use serde::Serialize;

use super::facts::{
    Account, Agent, Configuration, Daemon, Directories, Directory, Disk, Facts, Found, Limits, Process, Writable,
};
use crate::ui::bytes;

/// From good to worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Warn,
    Bad,
}

impl Verdict {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Bad => "bad",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    pub(super) area: &'static str,
    pub(super) what: String,
    pub(super) verdict: Verdict,
    pub(super) says: String,
    /// What to do.
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
    let mut lines = vec![ok("posse", "version", facts.version.clone())];
    lines.push(daemon(&facts.daemon, &facts.keeper, &facts.version));
    lines.push(keeper(&facts.keeper));
    lines.push(database(&facts.database));
    lines.extend(agents(&facts.agents));
    lines.push(git(facts.git.as_deref()));
    lines.push(characters(facts.locale.as_deref()));
    match &facts.directories {
        Directories::Known(directories) => lines.extend(directories.iter().map(directory)),
        Directories::Unknown(why) => lines.push(bad("files", "home", why, "set POSSE_HOME to a directory of your own")),
    }
    lines.extend(configuration(facts));
    lines.extend(limits(&facts.limits));
    lines.extend(disk(&facts.disk));
    lines
}

fn line(
    area: &'static str,
    what: impl Into<String>,
    verdict: Verdict,
    says: impl Into<String>,
    advice: Option<String>,
) -> Line {
    Line { area, what: what.into(), verdict, says: says.into(), advice }
}

fn ok(area: &'static str, what: impl Into<String>, says: impl Into<String>) -> Line {
    line(area, what, Verdict::Ok, says, None)
}

fn warn(area: &'static str, what: impl Into<String>, says: impl Into<String>, advice: impl Into<String>) -> Line {
    line(area, what, Verdict::Warn, says, Some(advice.into()))
}

fn bad(area: &'static str, what: impl Into<String>, says: impl Into<String>, advice: impl Into<String>) -> Line {
    line(area, what, Verdict::Bad, says, Some(advice.into()))
}

fn agents(agents: &[Agent]) -> Vec<Line> {
    const AREA: &str = "agents";
    let mut lines: Vec<Line> = Vec::new();
    if agents.iter().all(|agent| agent.program.is_none()) {
        lines.push(warn(
            AREA,
            "any",
            "none is installed; `posse demo` works all the same",
            "install one of those below and sign in to it",
        ));
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
    const AREA: &str = "agents";
    let id = &agent.id;
    if agent.is_broken {
        return bad(AREA, id, "its manifest is broken", format!("`posse provider check {id}` shows where"));
    }
    let Some(program) = &agent.program else {
        return line(AREA, id, Verdict::Ok, "not installed", Some(format!("to get it: {}", agent.install)));
    };
    let Some(said) = &agent.said else {
        let says = format!("{} --version fails", program.display());
        return bad(AREA, id, says, "install it anew, or take it off your PATH");
    };
    let known: Vec<String> = agent.known.iter().map(Version::to_string).collect();
    let fits = format!("`posse provider check --live {id}` says whether it fits; needs no account, spends nothing");
    match Version::said(said) {
        Some(version) if agent.known.contains(&version) => ok(AREA, id, format!("{version}, which posse knows")),
        Some(version) if known.is_empty() => {
            ok(AREA, id, format!("{version}; its manifest names no versions, so try it before you rely on it"))
        }
        Some(version) => warn(AREA, id, format!("{version} is new to posse, which knows {}", known.join(", ")), fits),
        None => warn(AREA, id, format!("its version is unknown: it says {said:?}"), fits),
    }
}

fn account(agent: &Agent) -> Line {
    const AREA: &str = "agents";
    let what = format!("{} account", agent.id);
    match &agent.account {
        Account::Signed(Sign::File(file)) => {
            ok(AREA, what, format!("signed in, it seems: {} is there", file.display()))
        }
        Account::Signed(Sign::Variable(name)) => ok(AREA, what, format!("a key is set: {name}")),
        Account::NoSign { sign_in } => {
            let advice = format!("if you have not signed in: {sign_in}");
            warn(AREA, what, "unknown: no sign of one was found", advice)
        }
        Account::Unknown => line(AREA, what, Verdict::Ok, "unknown", Some("start it once by hand to see".into())),
    }
}

fn git(said: Option<&str>) -> Line {
    const AREA: &str = "programs";
    let advice = format!("plans and commits need git {GIT} or newer: install or update it");
    let Some(said) = said else { return warn(AREA, "git", "not installed", advice) };
    let (version, needed) = (Version::said(said), GIT.parse::<Version>().ok());
    match version {
        Some(version) if needed.is_some_and(|needed| version >= needed) => ok(AREA, "git", version.to_string()),
        Some(version) => warn(AREA, "git", format!("{version} is too old"), advice),
        None => warn(AREA, "git", format!("its version is unknown: it says {said:?}"), advice),
    }
}

fn characters(locale: Option<&str>) -> Line {
    const AREA: &str = "terminal";
    let advice = "set LANG=C.UTF-8 or another UTF-8 locale: agents draw with such characters";
    match locale.filter(|locale| !locale.is_empty()) {
        Some(locale) if ["UTF-8", "utf-8", "utf8", "UTF8"].iter().any(|ending| locale.ends_with(ending)) => {
            ok(AREA, "characters", locale)
        }
        Some(locale) => warn(AREA, "characters", format!("{locale} is not UTF-8"), advice),
        None => warn(AREA, "characters", "no locale is set", advice),
    }
}

fn directory(directory: &Directory) -> Line {
    let path = directory.path.display().to_string();
    match &directory.found {
        Found::Absent => ok("files", path, "not there yet; it is made when needed"),
        Found::Fine => ok("files", path, "yours alone"),
        Found::Refused { why, advice } => bad("files", path, why, advice),
    }
}

fn configuration(facts: &Facts) -> Vec<Line> {
    const AREA: &str = "files";
    let mut lines = vec![match &facts.configuration {
        Configuration::Absent(path) => line(
            AREA,
            path.display().to_string(),
            Verdict::Ok,
            "not there; the defaults count",
            Some("`posse config init` writes one".into()),
        ),
        Configuration::Sound(path) => ok(AREA, path.display().to_string(), "sound"),
        Configuration::Wrong(why) => {
            bad(AREA, "config.toml", why.lines().collect::<Vec<_>>().join(" "), "mend it, or move it away")
        }
    }];
    if let Some(problem) = &facts.prompts {
        let says = problem.lines().collect::<Vec<_>>().join(" ");
        lines.push(bad(
            AREA,
            "prompts",
            says,
            "mend the template, or move it away: runs and plans do not start with it",
        ));
    }
    lines.extend(facts.writable_by_others.iter().map(|Writable { path, by_all }| {
        let (verdict, who) = if *by_all { (Verdict::Bad, "everybody") } else { (Verdict::Warn, "its group") };
        let says = format!("{who} can write it, and so decide what your agents may do");
        line(AREA, path.display().to_string(), verdict, says, Some(format!("chmod go-w {}", path.display())))
    }));
    lines
}

fn limits(limits: &Limits) -> Vec<Line> {
    const AREA: &str = "limits";
    let count = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    let raise = || Some("`ulimit -n 4096`, then `posse stop --all`: what runs keeps the limit it has".to_owned());
    let files = count(limits.open_files);
    let files = match limits.open_files {
        Some(limit) if limit < FEW_OPEN_FILES => line(AREA, "open files", Verdict::Bad, files, raise()),
        Some(limit) if limit < OPEN_FILES => line(AREA, "open files", Verdict::Warn, files, raise()),
        _ => ok(AREA, "open files", files),
    };
    let processes = count(limits.processes);
    let processes = match limits.processes {
        Some(limit) if limit < PROCESSES => {
            warn(AREA, "processes", processes, "threads count too: `ulimit -u 4096` before agents are started")
        }
        _ => ok(AREA, "processes", processes),
    };
    let advice = || Some("end some, or raise /proc/sys/kernel/pty/max".to_owned());
    let terminals = match limits.terminals {
        None => ok(AREA, "terminals", "unknown"),
        Some((used, most)) => {
            let says = format!("{used} of {most} in use on this machine");
            match most.saturating_sub(used) {
                0 => line(AREA, "terminals", Verdict::Bad, says, advice()),
                left if left < TERMINALS => line(AREA, "terminals", Verdict::Warn, says, advice()),
                _ => ok(AREA, "terminals", says),
            }
        }
    };
    let input = if limits.types_into_itself {
        let says = "a process in a terminal can type into it, and so answer what its agent asks (TIOCSTI)";
        warn(AREA, "terminal input", says, "`sysctl dev.tty.legacy_tiocsti=0` as root, from Linux 6.2 on")
    } else {
        ok(AREA, "terminal input", "only from outside the terminal")
    };
    vec![files, processes, terminals, input]
}

fn daemon(daemon: &Daemon, keeper: &Process, ours: &str) -> Line {
    const AREA: &str = "posse";
    match (daemon, keeper) {
        (Daemon::Answers { problem: Some(problem), .. }, _) => bad(AREA, "daemon", problem, SEE_LOG),
        (Daemon::Answers { pid, version, problem: None }, _) => {
            let says = format!("process {pid}, version {version}");
            match ours.split(' ').next() {
                Some(number) if number == version => ok(AREA, "daemon", says),
                _ => warn(
                    AREA,
                    "daemon",
                    format!("{says}; this is {ours}"),
                    "an older one is replaced by the next command; with a newer one, update this program",
                ),
            }
        }
        (Daemon::Silent { holder, why }, _) => {
            let pid = holder.as_ref().map(|holder| holder.pid.to_string());
            let advice = format!(
                "see posse.log in posse's home; `kill {}` ends it, and another one is started: terminals go on",
                pid.as_deref().unwrap_or("PID")
            );
            let pid = pid.map(|pid| format!("process {pid} ")).unwrap_or_default();
            bad(AREA, "daemon", format!("{pid}does not answer: {why}"), advice)
        }
        (Daemon::Unknown(why), _) => bad(AREA, "daemon", why, SEE_LOG),
        (Daemon::Off, Process::Runs(_) | Process::Stopped(_)) => {
            line(AREA, "daemon", Verdict::Ok, "not running; terminals go on", Some("`posse ls` starts it".into()))
        }
        (Daemon::Off, _) => ok(AREA, "daemon", "not running; every command that needs it starts it"),
    }
}

fn keeper(keeper: &Process) -> Line {
    const AREA: &str = "posse";
    match keeper {
        Process::Off => ok(AREA, "keeper", "not running; it is started with the first terminal"),
        Process::Runs(holder) => ok(AREA, "keeper", holder.as_ref().map_or_else(|| "runs".to_owned(), since)),
        Process::Stopped(holder) => {
            let says = format!("process {} is stopped: no terminal can be started, typed to or ended", holder.pid);
            bad(AREA, "keeper", says, format!("`kill -CONT {}` continues it", holder.pid))
        }
        Process::Unknown(why) => bad(AREA, "keeper", why, SEE_LOG),
    }
}

fn database(condition: &DatabaseCondition) -> Line {
    const AREA: &str = "posse";
    match condition {
        DatabaseCondition::Absent => ok(AREA, "database", "not there yet"),
        DatabaseCondition::Sound => ok(AREA, "database", "can be read from end to end"),
        DatabaseCondition::Damaged(why) => bad(
            AREA,
            "database",
            format!("damaged: {why}"),
            "`posse doctor --repair` sets it aside and goes on with a new one; running terminals are kept",
        ),
        DatabaseCondition::Unusable(why) => {
            bad(AREA, "database", why, "nothing is lost: put that right, and posse goes on")
        }
    }
}

fn since(holder: &Holder) -> String {
    format!("process {}, since {}", holder.pid, holder.started.strftime("%F %T UTC"))
}

fn disk(disk: &Disk) -> Vec<Line> {
    const AREA: &str = "disk";
    let mut lines: Vec<Line> = disk.parts.iter().map(|(what, size)| ok(AREA, *what, bytes(*size))).collect();
    let advice = || Some("make room: with a full disk new terminals are refused".to_owned());
    lines.push(match disk.free {
        None => ok(AREA, "free", "unknown"),
        Some(free) if free < ALMOST_NOTHING => line(AREA, "free", Verdict::Bad, bytes(free), advice()),
        Some(free) if free < ROOM => line(AREA, "free", Verdict::Warn, bytes(free), advice()),
        Some(free) => ok(AREA, "free", bytes(free)),
    });
    lines
}
