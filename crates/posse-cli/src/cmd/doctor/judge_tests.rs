use std::path::PathBuf;

use posse_agents::account::Sign;
use posse_api::DatabaseCondition;
use posse_term::lock::Holder;

use super::gather::{Account, Agent, Configuration, Daemon, Directory, Disk, Facts, Found, Limits, Process, Writable};
use super::judge::{Line, Verdict, judge};

/// A machine on which all is well.
fn well() -> Facts {
    Facts {
        version: "0.1.0 (0123456789)".into(),
        agents: vec![mole()],
        git: Some("git version 2.47.3".into()),
        locale: Some("en_GB.UTF-8".into()),
        home_problem: None,
        directories: vec![Directory { path: "/home/me/posse".into(), found: Found::Fine }],
        prompts: None,
        configuration: Configuration::Absent("/home/me/config.toml".into()),
        writable_by_others: Vec::new(),
        limits: Limits {
            open_files: Some(1024),
            processes: None,
            terminals: Some((12, 4096)),
            types_into_itself: false,
        },
        daemon: Daemon::Answers { pid: 7, version: "0.1.0".into(), problem: None },
        keeper: Process::Runs(Some(holder())),
        database: DatabaseCondition::Sound,
        disk: Disk { parts: vec![("recordings", 81_000_000)], free: Some(40 << 30) },
    }
}

fn mole() -> Agent {
    Agent {
        id: "mole".into(),
        is_broken: false,
        program: Some("/usr/bin/mole".into()),
        install: "npm install -g mole".into(),
        said: Some("mole 1.2.3".into()),
        known: vec!["1.2.3".parse().unwrap(), "1.3.0".parse().unwrap()],
        account: Account::Signed(Sign::File("/home/me/.mole/auth.json".into())),
    }
}

fn holder() -> Holder {
    Holder { pid: 42, started: jiff::Timestamp::UNIX_EPOCH, purpose: None }
}

/// The line about something.
#[track_caller]
fn about(facts: &Facts, what: &str) -> Line {
    let lines = judge(facts);
    lines.iter().find(|line| line.what == what).unwrap_or_else(|| panic!("nothing about {what}: {lines:#?}")).clone()
}

/// What differs from a machine that is well, and what is said of it.
struct Case {
    change: fn(&mut Facts),
    what: &'static str,
    verdict: Verdict,
    says: &'static str,
    advice: &'static str,
}

const fn case(
    change: fn(&mut Facts),
    what: &'static str,
    verdict: Verdict,
    says: &'static str,
    advice: &'static str,
) -> Case {
    Case { change, what, verdict, says, advice }
}

use Verdict::{Bad, Ok as Fine, Warn};

const CASES: &[Case] = &[
    case(|_| {}, "version", Fine, "0.1.0 (0123456789)", ""),
    // Agents.
    case(|_| {}, "mole", Fine, "1.2.3, which posse knows", ""),
    case(
        |f| f.agents[0].said = Some("1.4.0".into()),
        "mole",
        Warn,
        "1.4.0 is new to posse, which knows 1.2.3, 1.3.0",
        "provider check --live mole",
    ),
    case(|f| f.agents[0].said = Some("hello".into()), "mole", Warn, "unknown", "--live mole"),
    case(|f| f.agents[0].known.clear(), "mole", Fine, "names no versions", ""),
    case(|f| f.agents[0].said = None, "mole", Bad, "/usr/bin/mole --version fails", "install it anew"),
    case(|f| f.agents[0].program = None, "mole", Fine, "not installed", "npm install -g mole"),
    case(|f| f.agents[0].program = None, "any", Warn, "none is installed; `posse demo` works", "install one"),
    case(|f| f.agents[0].is_broken = true, "mole", Bad, "manifest is broken", "provider check mole"),
    case(|_| {}, "mole account", Fine, "/home/me/.mole/auth.json is there", ""),
    case(
        |f| f.agents[0].account = Account::Signed(Sign::Variable("MOLE_KEY".into())),
        "mole account",
        Fine,
        "a key is set: MOLE_KEY",
        "",
    ),
    case(
        |f| f.agents[0].account = Account::NoSign { sign_in: "mole login".into() },
        "mole account",
        Warn,
        "unknown",
        "mole login",
    ),
    case(|f| f.agents[0].account = Account::Unknown, "mole account", Fine, "unknown", "by hand"),
    // Programs.
    case(|_| {}, "git", Fine, "2.47.3", ""),
    case(|f| f.git = Some("git version 2.38.0".into()), "git", Fine, "2.38.0", ""),
    case(|f| f.git = Some("git version 2.37.9".into()), "git", Warn, "2.37.9 is too old", "2.38 or newer"),
    case(|f| f.git = Some("got".into()), "git", Warn, "unknown", "2.38 or newer"),
    case(|f| f.git = None, "git", Warn, "not installed", "2.38 or newer"),
    case(|_| {}, "characters", Fine, "en_GB.UTF-8", ""),
    case(|f| f.locale = Some("C.utf8".into()), "characters", Fine, "C.utf8", ""),
    case(|f| f.locale = Some("C".into()), "characters", Warn, "C is not UTF-8", "LANG=C.UTF-8"),
    case(|f| f.locale = None, "characters", Warn, "no locale", "LANG=C.UTF-8"),
    // Files.
    case(|_| {}, "/home/me/posse", Fine, "yours alone", ""),
    case(|f| found(f, Found::Absent), "/home/me/posse", Fine, "not there yet", ""),
    case(
        |f| found(f, Found::Refused { why: "open".into(), advice: "shut it".into() }),
        "/home/me/posse",
        Bad,
        "open",
        "shut it",
    ),
    case(|f| f.home_problem = Some("no home directory".into()), "home", Bad, "no home directory", "POSSE_HOME"),
    case(|_| {}, "/home/me/config.toml", Fine, "the defaults count", "posse config init"),
    case(|f| f.configuration = Configuration::Sound("/c.toml".into()), "/c.toml", Fine, "sound", ""),
    case(|f| f.configuration = Configuration::Wrong("line 1\nodd".into()), "config.toml", Bad, "line 1 odd", "mend it"),
    case(|f| f.prompts = Some("tester.j2\nodd".into()), "prompts", Bad, "tester.j2 odd", "mend the template"),
    case(|f| writable(f, true), "/p.toml", Bad, "everybody can write it", "chmod go-w /p.toml"),
    case(|f| writable(f, false), "/p.toml", Warn, "its group can write it", "chmod go-w /p.toml"),
    // Limits.
    case(|_| {}, "open files", Fine, "1024", ""),
    case(|f| f.limits.open_files = None, "open files", Fine, "unlimited", ""),
    case(|f| f.limits.open_files = Some(1023), "open files", Warn, "1023", "ulimit -n"),
    case(|f| f.limits.open_files = Some(127), "open files", Bad, "127", "ulimit -n"),
    case(|_| {}, "processes", Fine, "unlimited", ""),
    case(|f| f.limits.processes = Some(999), "processes", Warn, "999", "ulimit -u"),
    case(|_| {}, "terminals", Fine, "12 of 4096", ""),
    case(|f| f.limits.terminals = Some((4090, 4096)), "terminals", Warn, "4090 of 4096", "pty/max"),
    case(|f| f.limits.terminals = Some((4096, 4096)), "terminals", Bad, "4096 of 4096", "pty/max"),
    case(|f| f.limits.terminals = None, "terminals", Fine, "unknown", ""),
    case(|_| {}, "terminal input", Fine, "only from outside", ""),
    case(|f| f.limits.types_into_itself = true, "terminal input", Warn, "TIOCSTI", "legacy_tiocsti=0"),
    // Daemon and keeper.
    case(|_| {}, "daemon", Fine, "process 7, version 0.1.0", ""),
    case(|f| f.daemon = answers("0.0.9", None), "daemon", Warn, "this is 0.1.0", "replaced by the next command"),
    case(|f| f.daemon = answers("0.1.0", Some("the disk is full")), "daemon", Bad, "the disk is full", "posse.log"),
    case(|f| f.daemon = silent(Some(holder())), "daemon", Bad, "process 42 does not answer: too slow", "`kill 42`"),
    case(|f| f.daemon = silent(None), "daemon", Bad, "does not answer: too slow", "`kill PID`"),
    case(|f| f.daemon = Daemon::Unknown("cannot read it".into()), "daemon", Bad, "cannot read it", "posse.log"),
    case(|f| f.daemon = Daemon::Off, "daemon", Fine, "not running; terminals go on", "`posse ls` starts it"),
    case(|f| (f.daemon, f.keeper) = (Daemon::Off, Process::Off), "daemon", Fine, "every command that needs it", ""),
    case(|_| {}, "keeper", Fine, "process 42, since 1970-01-01", ""),
    case(|f| f.keeper = Process::Off, "keeper", Fine, "not running", ""),
    case(|f| f.keeper = Process::Runs(None), "keeper", Fine, "runs", ""),
    case(|f| f.keeper = Process::Unknown("cannot read it".into()), "keeper", Bad, "cannot read it", "posse.log"),
    // Disk.
    case(|_| {}, "recordings", Fine, "81 MB", ""),
    case(|_| {}, "free", Fine, "42 GB", ""),
    case(|f| f.disk.free = Some(900_000_000), "free", Warn, "900 MB", "make room"),
    case(|f| f.disk.free = Some(1_000_000), "free", Bad, "1000 kB", "make room"),
    case(|f| f.disk.free = None, "free", Fine, "unknown", ""),
];

fn found(facts: &mut Facts, found: Found) {
    facts.directories = vec![Directory { path: "/home/me/posse".into(), found }];
}

fn writable(facts: &mut Facts, by_all: bool) {
    facts.writable_by_others = vec![Writable { path: PathBuf::from("/p.toml"), by_all }];
}

fn answers(version: &str, problem: Option<&str>) -> Daemon {
    Daemon::Answers { pid: 7, version: version.into(), problem: problem.map(str::to_owned) }
}

fn silent(holder: Option<Holder>) -> Daemon {
    Daemon::Silent { holder, why: "too slow".into() }
}

#[test]
fn each_fact_has_its_verdict_and_what_to_do() {
    for (number, case) in CASES.iter().enumerate() {
        let mut facts = well();
        (case.change)(&mut facts);
        let line = about(&facts, case.what);
        let context = format!("case {number}: {line:#?}");
        assert_eq!(line.verdict, case.verdict, "{context}");
        assert!(line.says.contains(case.says), "{context}");
        let advice = line.advice.unwrap_or_default();
        assert!(advice.contains(case.advice) && advice.is_empty() == case.advice.is_empty(), "{context}");
    }
}

/// What is not in order and does not say what to do is no help.
#[test]
fn whatever_is_not_in_order_says_what_to_do() {
    for case in CASES {
        let mut facts = well();
        (case.change)(&mut facts);
        for line in judge(&facts).iter().filter(|line| line.verdict != Verdict::Ok) {
            assert!(line.advice.is_some(), "{line:#?}");
        }
    }
}

#[test]
fn nothing_is_said_of_an_account_with_what_is_not_there() {
    let mut facts = well();
    facts.agents[0].program = None;
    assert!(judge(&facts).iter().all(|line| line.what != "mole account"));
}

#[test]
fn a_machine_on_which_all_is_well() {
    assert!(judge(&well()).iter().all(|line| line.verdict == Verdict::Ok), "{:#?}", judge(&well()));
}
