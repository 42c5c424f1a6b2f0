//! Plays a scenario with a real agent in a terminal of posse, through posse's public API, and records the events.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use posse_api::{Create, Terminal};
use posse_core::ids::TerminalId;
use posse_core::screen::Size;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::replay::{Replayed, replay};
use super::score::{DIALOG_LAG, ReportedStatus, Score, score};
use super::subject::ConformanceSubject;
use super::truth::{self, Interval, Millis, TruthEvent, TruthFact};
use super::witness::{Markers, Witness, now};
use crate::agents::{AgentHome, HomeOptions};
use crate::http::HttpAnswer;
use crate::{TestEnv, env, process};
use posse_sim::ModelServer;
use posse_sim::conformance::{ConformanceAgent, ConformanceCase, STOP_HOOK_LOG, UserAction};
use posse_sim::model::{ModelEvent, ModelLog, ModelLogEntry};

/// A cold start of the largest agent on a busy machine takes 15 s; everything else far less.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    pub posse: &'a Path,
    pub subject: ConformanceSubject,
    pub artefacts: &'a Path,
    /// Set when the run must end; cleanup still completes.
    pub stop: &'a AtomicBool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConformanceOutcome {
    pub scenario: String,
    /// The name of the subject.
    pub subject: String,
    pub score: Score,
    pub stuck: Option<String>,
    pub at: jiff::Timestamp,
    pub replayed: Option<Replayed>,
    pub timeline: String,
}

impl ConformanceOutcome {
    pub fn is_green(&self) -> bool {
        self.stuck.is_none() && self.score.is_green()
    }

    pub fn problems(&self) -> Vec<String> {
        let score = &self.score;
        let stuck = self.stuck.iter().map(|stuck| format!("stuck: {}", stuck.lines().next().unwrap_or_default()));
        let wrong = score
            .wrong
            .iter()
            .map(|wrong| format!("{} for {} ms while {} [{}]", wrong.told, wrong.lasted, wrong.during, wrong.reason));
        let missed = score.missed.iter().map(|what| format!("never reported: {what}"));
        let late = score.lags.iter().filter(|lag| lag.dialog && lag.ms > DIALOG_LAG);
        let late = late.map(|lag| format!("a dialog was seen after {} ms", lag.ms));
        let kinds = (score.other_kinds > 0).then(|| format!("{} dialogs taken for another kind", score.other_kinds));
        stuck.chain(wrong).chain(missed).chain(late).chain(kinds).collect()
    }
}

type Stuck = Box<dyn std::error::Error>;

#[derive(Default)]
struct RunFacts {
    told: Vec<ReportedStatus>,
    facts: Vec<TruthFact>,
    end: Millis,
}

/// Plays the scenario. Errors are part of the outcome, and all processes are cleaned up.
pub fn run(setup: Setup<'_>, scenario: &ConformanceCase) -> ConformanceOutcome {
    let at = jiff::Timestamp::now();
    let mut known = RunFacts::default();
    let stuck = play(setup, scenario, &mut known).err();
    let truth = truth::intervals(known.facts.clone(), known.end);
    let score = score(&truth, &known.told);
    let mut outcome = ConformanceOutcome {
        scenario: scenario.name.clone(),
        subject: setup.subject.name(),
        score,
        stuck: stuck.map(|stuck| stuck.to_string()),
        at,
        replayed: replay(setup.posse, setup.subject.provider(), &setup.artefact(scenario, "cast"), &known.told),
        timeline: String::new(),
    };
    outcome.timeline = timeline(&outcome, &known, &truth);
    keep(&setup.artefact(scenario, "txt"), &outcome.timeline);
    keep(&setup.artefact(scenario, "json"), &serde_json::to_string_pretty(&outcome).unwrap_or_default());
    outcome
}

fn keep(path: &Path, text: &str) {
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, text));
    if let Err(error) = written {
        eprintln!("cannot keep {}: {error}", path.display());
    }
}

impl Setup<'_> {
    fn artefact(&self, scenario: &ConformanceCase, kind: &str) -> PathBuf {
        self.artefacts.join(self.subject.artefact_name(scenario, kind))
    }
}

fn play(setup: Setup<'_>, scenario: &ConformanceCase, known: &mut RunFacts) -> Result<(), Stuck> {
    // A recording of an earlier run would be taken for this one's.
    let _ = std::fs::remove_file(setup.artefact(scenario, "cast"));
    let agent = setup.subject.agent().map_err(|error| format!("the agent is not installed: {error}"))?;
    let server = ModelServer::start([scenario.scenario()])?;
    let zero = now() - server.started().elapsed().as_millis() as Millis;
    let home = agent.home(&server, &HomeOptions { retries: scenario.retries, ..HomeOptions::default() });
    let env = TestEnv::new(setup.posse);
    let Terminal { id, pid, .. } = launch(&env, &home, setup, scenario)?;
    let facts = ConformanceAgent::of(setup.subject.maker);
    let witness = Witness::new(&env.http(), id, markers(scenario, &facts))?;
    let mut player = Player {
        env: &env,
        home: &home,
        server: &server,
        witness: &witness,
        agent: &facts,
        setup,
        id,
        pid,
        facts: Vec::new(),
        dialogs: 0,
    };
    let played = player.play(&scenario.actions);
    known.end = now();
    known.facts = player.facts;
    known.facts.extend(hook_facts(&home));
    let ran = env.run(["stop", "--all"]);
    if ran.code != Some(0) {
        eprintln!("cannot stop: {}", ran.stderr);
    }
    let (told, seen) = witness.finish();
    known.told = told;
    known.facts.extend(seen);
    known.facts.extend(truth::of_log(&server.log(), zero, scenario.free_tools));
    // Events during the shutdown are not part of the scenario.
    known.facts.retain(|fact| fact.at <= known.end);
    known.told.retain(|told| told.at <= known.end);
    let recording = env.paths().recordings().join(format!("{id}.cast"));
    match std::fs::read_to_string(recording) {
        Ok(recording) => keep(&setup.artefact(scenario, "cast"), &recording),
        Err(error) => eprintln!("no recording of {}: {error}", scenario.name),
    }
    played
}

fn hook_facts(home: &AgentHome) -> Vec<TruthFact> {
    let log = std::fs::read_to_string(home.directory.join(STOP_HOOK_LOG)).unwrap_or_default();
    let fact = |line: &str| {
        let (at, how) = line.split_once(' ')?;
        Some(TruthFact { at: at.parse().ok()?, what: TruthEvent::HookEnded { blocks: how == "block" } })
    };
    log.lines().filter_map(fact).collect()
}

fn launch(env: &TestEnv, home: &AgentHome, setup: Setup<'_>, scenario: &ConformanceCase) -> Result<Terminal, Stuck> {
    let (columns, rows) = scenario.size;
    let create = Create {
        provider: Some(setup.subject.provider().to_owned()),
        command: scenario.prepare(setup.subject.maker, home)?,
        size: Some(Size::clamped(rows, columns)),
        ..Create::default()
    };
    let answer = home.start(env, create)?;
    serde_json::from_str(&answer.body).map_err(|_| format!("the agent did not start: {}", answer.body).into())
}

fn markers(scenario: &ConformanceCase, facts: &ConformanceAgent) -> Markers {
    let topics = scenario.actions.iter().filter_map(|action| match action {
        UserAction::Dialog(topic) => Some(topic),
        _ => None,
    });
    topics.filter_map(|topic| Some((facts.dialogs.get(topic)?.clone(), topic.kind()))).collect()
}

struct Player<'a> {
    env: &'a TestEnv,
    home: &'a AgentHome,
    server: &'a ModelServer,
    witness: &'a Witness,
    agent: &'a ConformanceAgent,
    setup: Setup<'a>,
    id: TerminalId,
    pid: Option<u32>,
    facts: Vec<TruthFact>,
    dialogs: usize,
}

impl Player<'_> {
    fn play(&mut self, actions: &[UserAction]) -> Result<(), Stuck> {
        self.until_shown("its prompt", &self.agent.ready, true)?;
        self.note(TruthEvent::Ready);
        actions.iter().try_for_each(|action| self.act(action))
    }

    fn note(&mut self, what: TruthEvent) {
        self.facts.push(TruthFact { at: now(), what });
    }

    fn came(&self, what: &str, came: bool) -> Result<(), Stuck> {
        if came {
            return Ok(());
        }
        let screen = format!("{}\nthe model saw:\n{}", self.witness.screen_text(), self.server.log());
        Err(format!("{what} never came; the terminal shows:\n{screen}").into())
    }

    fn until_shown(&self, what: &str, text: &str, shown: bool) -> Result<(), Stuck> {
        self.came(what, self.witness.screen_within(PATIENCE, |screen| screen.text().contains(text) == shown))
    }

    fn until_logged(&self, what: &str, fits: impl Fn(&ModelLog) -> bool) -> Result<(), Stuck> {
        self.came(what, self.server.comes_within(PATIENCE, fits))
    }

    fn post(&self, what: &str, body: &Value) -> Result<(), Stuck> {
        let answer = self.env.http().post(&format!("/terminals/{}/{what}", self.id), body)?;
        if answer.status == 200 {
            return Ok(());
        }
        Err(self.refused(what, &answer))
    }

    fn press(&self, keys: &str) -> Result<(), Stuck> {
        self.post("input", &json!({ "message": keys, "raw": true, "enter": false }))
    }

    fn refused(&self, what: &str, answer: &HttpAnswer) -> Stuck {
        let screen = self.witness.screen_text();
        format!("posse refused {what}: {}\nthe terminal shows:\n{screen}", answer.body).into()
    }

    fn answer(&self, verb: &str, option: Option<u32>) -> Result<(), Stuck> {
        let asked = self.env.http().call("GET", &format!("/terminals/{}/question", self.id), "")?;
        if asked.status != 200 {
            return Err(self.refused("question", &asked));
        }
        let mut answer = json!({ "dialog": asked.json()["id"] });
        if let Some(option) = option {
            answer["option"] = option.into();
        }
        self.post(verb, &answer)
    }

    fn act(&mut self, action: &UserAction) -> Result<(), Stuck> {
        if self.setup.stop.load(Ordering::Relaxed) {
            return Err("it was stopped".into());
        }
        match action {
            UserAction::Dwell(time) => std::thread::sleep(*time),
            UserAction::Prompt(prompt) => {
                let before = self.server.log().turns().count();
                self.note(TruthEvent::Sending);
                self.post("input", &json!({ "message": prompt.text.repeat(prompt.times) }))?;
                self.until_logged("the prompt at the model", |log| log.turns().count() > before)?;
            }
            // Typed like a person: posse itself sends nothing to an agent that may open a dialog at any moment.
            UserAction::PromptWhileBusy(text) => {
                self.post("input", &json!({ "message": text, "enter": false }))?;
                self.until_shown("the text", text, true)?;
                self.post("input", &json!({ "message": "", "raw": true, "enter": true }))?;
            }
            UserAction::Gate(gate) => self.until_logged(&format!("the model at {gate}"), |log| log.waits_at(gate))?,
            UserAction::Release(gate) => self.server.release(gate),
            UserAction::TurnOver(turn) => {
                self.until_logged(&format!("the end of turn {turn}"), |log| log.ended(*turn))?;
            }
            UserAction::Dialog(topic) => {
                self.dialogs += 1;
                self.came(&format!("the dialog {topic:?}"), self.witness.drawn_within(PATIENCE, self.dialogs))?;
            }
            UserAction::Approve => self.accept(|player| player.answer("approve", None))?,
            UserAction::Choose(option) => self.accept(|player| player.answer("approve", Some(*option)))?,
            UserAction::AcceptByKey(key) => self.accept(|player| player.press(key))?,
            UserAction::Deny => {
                self.note(TruthEvent::Denying);
                self.answer("deny", None)?;
            }
            UserAction::File(name) => self.until_made(name)?,
            UserAction::Touch(name) => std::fs::write(self.home.directory.join(name), "")?,
            UserAction::ErrorShown => {
                let agent = self.agent;
                let came = self.witness.screen_within(agent.gives_up, |screen| agent.shows_error(&screen.text()));
                self.came("an error", came)?;
            }
            UserAction::Keys(typed) => {
                for keys in &typed.keys {
                    self.press(keys)?;
                    std::thread::sleep(typed.dwell);
                }
            }
            UserAction::Shown(text) => self.until_shown(&format!("the text {text:?}"), text, true)?,
            UserAction::NotShown(text) => self.until_shown(&format!("a screen without {text:?}"), text, false)?,
            UserAction::Interrupt => self.interrupt()?,
            UserAction::Kill => {
                let pid = self.pid.ok_or("no process")?;
                self.note(TruthEvent::Ended);
                env::kill(pid);
            }
            UserAction::Exit => {
                let pid = self.pid.ok_or("no process")?;
                self.note(TruthEvent::Leaving);
                self.post("exit", &json!({}))?;
                self.came("the end of the process", process::ends_within(pid, PATIENCE))?;
                self.note(TruthEvent::Ended);
            }
        }
        Ok(())
    }

    fn accept(&mut self, answer: impl FnOnce(&Self) -> Result<(), Stuck>) -> Result<(), Stuck> {
        self.note(TruthEvent::Accepting);
        answer(self)
    }

    fn until_made(&self, name: &str) -> Result<(), Stuck> {
        let path = self.home.directory.join(name);
        let end = Instant::now() + PATIENCE;
        while !path.exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.came(&format!("the file {name}"), path.exists())
    }

    fn interrupt(&mut self) -> Result<(), Stuck> {
        let agent = self.agent;
        self.note(TruthEvent::Interrupting);
        self.press("\u{1b}")?;
        if let Some(again) = &agent.interrupt_again {
            self.until_shown("the request to press it again", again, true)?;
            self.press("\u{1b}")?;
        }
        // Codex 0.130 reports the interrupt and keeps the connection.
        let Some(text) = &agent.interrupted else {
            return self.until_logged("the end of the connection", |log| {
                let lost = |entry: &&ModelLogEntry| matches!(entry.event, ModelEvent::ConnectionLost);
                let is_turn = |lost: &ModelLogEntry| log.turns().any(|(entry, _)| entry.request == lost.request);
                log.entries.iter().filter(lost).any(is_turn)
            });
        };
        self.until_shown("that it was interrupted", text, true)?;
        self.note(TruthEvent::Cut);
        Ok(())
    }
}

/// Returns truth and reports side by side, in seconds since the first fact.
fn timeline(outcome: &ConformanceOutcome, known: &RunFacts, truth: &[Interval]) -> String {
    let mut text = format!("{} {}\n", outcome.subject, outcome.scenario);
    let zero = known.facts.iter().map(|fact| fact.at).min().unwrap_or(known.end);
    let seconds = |at: Millis| (at - zero) as f64 / 1000.0;
    let mut lines: Vec<(Millis, String)> = Vec::new();
    lines.extend(known.facts.iter().map(|fact| (fact.at, format!("fact  {:?}", fact.what))));
    lines.extend(truth.iter().map(|i| (i.from, format!("TRUTH {:?} ({})", i.allowed, i.what))));
    lines.extend(known.told.iter().map(|told| {
        let kind = told.waiting.map(|kind| format!(" {kind:?}{}", if told.dialog { ", read" } else { "" }));
        (told.at, format!("  told {}{} [{}]", told.kind, kind.unwrap_or_default(), told.reason))
    }));
    lines.push((known.end, "end".into()));
    lines.sort_by_key(|(at, _)| *at);
    for (at, line) in lines {
        let _ = writeln!(text, "{:9.3} {line}", seconds(at));
    }
    let score = &outcome.score;
    let _ = writeln!(text, "right {}/{}, lags {:?}", score.right, score.total, score.lags);
    for problem in outcome.problems() {
        let _ = writeln!(text, "WRONG {problem}");
    }
    if let Some(replayed) = outcome.replayed.as_ref().filter(|replayed| !replayed.is_alike()) {
        let _ = writeln!(text, "REPLAYED {:?} instead of {:?}", replayed.replay, replayed.live);
    }
    if let Some(stuck) = &outcome.stuck {
        let _ = writeln!(text, "STUCK {stuck}");
    }
    text
}
