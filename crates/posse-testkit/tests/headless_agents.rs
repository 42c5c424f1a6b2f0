//! The real agents without a terminal, started with the flags that posse builds: what they may do, what they may not, and
//! that nobody has to answer anything.
// In a test an unwrap is an assertion.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use posse_agents::headless::command::Asked;
use posse_agents::headless::event::{Event, Reason};
use posse_agents::headless::{Dialect, Sandbox};
use posse_testkit::PATIENCE;
use posse_testkit::agents::{Agent, AgentHome, CLAUDE, CODEX, Options, or_skip};
use posse_testkit::headless::{Heard, Session, Wanted, spawn};
use posse_testkit::models::ModelServer;

const PROMPT: &str = "--help me with this task";

fn wanted(dialect: Dialect, agent: &str) -> Wanted<'_> {
    let asked = Asked { prompt: PROMPT, ..Asked::default() };
    Wanted { dialect, sandbox: Sandbox::On, agent, asked }
}

fn events(dialect: Dialect, heard: &Heard) -> Vec<Event> {
    heard.events(match dialect {
        Dialect::Claude => "claude_code",
        Dialect::Codex => "codex",
    })
}

fn denials(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::ToolDenied { .. })).count()
}

/// It came to an end of its own, and a good one.
#[track_caller]
fn ended_well(home: &AgentHome, heard: &Heard, events: &[Event]) {
    assert!(heard.by_itself, "{heard:?}");
    assert_eq!(heard.code, Some(0), "{heard:?}");
    let end = events.iter().find_map(|event| if let Event::Ended(end) = event { Some(end) } else { None });
    let end = end.unwrap_or_else(|| panic!("no end in {events:?}"));
    assert_eq!((end.ok, &end.reason, end.text.as_str()), (true, &Reason::Completed, "Done."));
    assert!(home.processes().is_empty(), "nothing is left: {:?}", home.processes());
}

/// T01, T07, T10: an edit in the scope needs nobody, one outside is refused and reported, and it goes on.
fn works_in_its_scope(agent: &Agent, dialect: Dialect) {
    let server = ModelServer::script(
        "[[turn]]\nsteps = [{ write = { path = 'made.txt', content = 'made' } }]
         [[turn]]\nsteps = [{ write = { path = '../home/outside.txt', content = 'no' } }]
         [[turn]]\nsteps = [{ run = { command = 'echo no > ../home/outside.txt' } }]
         [[turn]]\nsteps = [{ run = { command = 'echo yes > ../home/results/result.json' } }]
         [[turn]]\nsteps = [{ text = 'Done.' }, { wait_for = 'a look' }]",
    );
    let home = agent.home(&server, &Options::default());
    let session = Session::start(&home, &spawn(&home, &wanted(dialect, "coder")));
    server.wait_for(|log| log.waits_at("a look"), PATIENCE);
    let stdin = std::fs::read_link(format!("/proc/{}/fd/0", session.pid())).unwrap();
    assert_eq!(stdin, Path::new("/dev/null"));
    server.release("a look");
    let heard = session.hear(PATIENCE);
    let events = events(dialect, &heard);
    ended_well(&home, &heard, &events);
    assert!(server.log().turns().next().unwrap().1.user_text.contains(PROMPT), "{}", server.log());
    assert_eq!(std::fs::read_to_string(home.directory.join("made.txt")).unwrap().trim(), "made");
    assert_eq!(std::fs::read_to_string(home.home().join("results/result.json")).unwrap().trim(), "yes");
    assert!(!home.home().join("outside.txt").exists());
    // To Codex a command that its sandbox stops is one that failed.
    assert_eq!(denials(&events), if dialect == Dialect::Claude { 2 } else { 1 }, "{events:?}");
}

/// A link in the scope does not lead out of it.
fn a_link_leads_nowhere(agent: &Agent, dialect: Dialect) {
    let server = ModelServer::script(
        "[[turn]]\nsteps = [{ write = { path = 'link/outside.txt', content = 'no' } }]
         [[turn]]\nsteps = [{ text = 'Done.' }]",
    );
    let home = agent.home(&server, &Options::default());
    std::os::unix::fs::symlink(home.home(), home.directory.join("link")).unwrap();
    let heard = Session::start(&home, &spawn(&home, &wanted(dialect, "coder"))).hear(PATIENCE);
    ended_well(&home, &heard, &events(dialect, &heard));
    assert!(!home.home().join("outside.txt").exists(), "{heard:?}");
}

/// T02: the leak of the original, whose readers could write by edits, by `touch` and by redirection.
fn who_reads_writes_nothing(agent: &Agent, dialect: Dialect) {
    let server = ModelServer::script(
        "[[turn]]\nsteps = [{ write = { path = 'made.txt', content = 'no' } }]
         [[turn]]\nsteps = [{ run = { command = 'touch made.txt' } }]
         [[turn]]\nsteps = [{ run = { command = 'ls > made.txt' } }]
         [[turn]]\nsteps = [{ run = { command = 'ls README.md' } }]
         [[turn]]\nsteps = [{ text = 'Done.' }]",
    );
    let home = agent.home(&server, &Options::default());
    let heard = Session::start(&home, &spawn(&home, &wanted(dialect, "code-reviewer"))).hear(PATIENCE);
    let events = events(dialect, &heard);
    ended_well(&home, &heard, &events);
    assert!(!home.directory.join("made.txt").exists());
    let log = server.log();
    assert!(log.tool_results().any(|result| result.text.contains("README.md")), "it may look: {log}");
    assert!(denials(&events) >= 1, "{events:?}");
}

/// T03: what is off is off.
fn without_sandbox_everything_goes(agent: &Agent, dialect: Dialect) {
    let server = ModelServer::script(
        "[[turn]]\nsteps = [{ write = { path = '../home/outside.txt', content = 'yes' } }]
         [[turn]]\nsteps = [{ text = 'Done.' }]",
    );
    let mut home = agent.home(&server, &Options::default());
    // Claude Code refuses this to root otherwise.
    home.env.insert("IS_SANDBOX".into(), "1".into());
    let wanted = Wanted { sandbox: Sandbox::Off, ..wanted(dialect, "coder") };
    let heard = Session::start(&home, &spawn(&home, &wanted)).hear(PATIENCE);
    let events = events(dialect, &heard);
    ended_well(&home, &heard, &events);
    assert!(home.home().join("outside.txt").exists(), "{heard:?}");
    assert_eq!(denials(&events), 0, "{events:?}");
}

/// One module per agent and version, one test per claim.
macro_rules! agent {
    ($name:ident, $install:expr, $dialect:expr) => {
        agent!($name, $install, $dialect, [works_in_its_scope, a_link_leads_nowhere, who_reads_writes_nothing, without_sandbox_everything_goes]);
    };
    ($name:ident, $install:expr, $dialect:expr, [$($claim:ident),+]) => {
        mod $name {
            use super::*;
            $(
                #[test]
                fn $claim() {
                    if let Some(agent) = or_skip($install) {
                        super::$claim(&agent, $dialect);
                    }
                }
            )+
        }
    };
}

agent!(claude_2_1_197, Agent::claude(CLAUDE[0]), Dialect::Claude);
agent!(claude_2_1_325, Agent::claude(CLAUDE[1]), Dialect::Claude);
agent!(codex_0_145, Agent::codex(CODEX[0]), Dialect::Codex);
agent!(codex_0_166, Agent::codex(CODEX[1]), Dialect::Codex);
