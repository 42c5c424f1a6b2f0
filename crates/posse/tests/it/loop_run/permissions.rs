//! Agents that ask in the middle of their turn.

use super::*;

/// The programmer's first turn has these steps before its answer.
fn asking(steps: &str) -> String {
    format!(
        "[[turn]]\nkey = \"programmer\"\nnth = 1\nsteps = [{{ think = \"200ms\" }}, {steps}, {{ answer = {{}} }}, {{ say = \"Done.\" }}]"
    )
}

pub(super) const PERMISSION: &str = "{ ask = { kind = \"permission\", command = \"rm -r target\" } }";
const QUESTION: &str =
    "{ ask = { kind = \"question\", text = \"Which database?\", options = [\"SQLite\", \"Postgres\"] } }";

/// The terminal that asks, when its question is on the screen.
#[track_caller]
pub(super) fn asks(play: &Play) -> Value {
    play.when_told("a question", |terminals| {
        terminals.as_array().unwrap().iter().find(|terminal| terminal["dialog"] != Value::Null).cloned()
    })
}

fn audit(play: &Play) -> Vec<Value> {
    play.env.run(["audit", "show", "--json"]).json().as_array().unwrap().clone()
}

/// S-9: two in one turn, five seconds apart, each with its entry, in the audit and in the log.
#[test]
fn permissions_are_accepted_and_audited() {
    let play = Play::new(&asking(&format!("{PERMISSION}, {{ think = \"100ms\" }}, {PERMISSION}")));
    let begun = Instant::now();
    let ran = play.begin_accepting().end().ends(0);
    // The seed's four, in the loop's own log: role, terminal, count, and lines that show what was accepted.
    let terminal = play.shown()["terminals"]["programmer"].as_str().unwrap().to_owned();
    let logged = play.env.run(["run", "log", &play.id()]).ok();
    for log in [&ran.stdout, &logged] {
        for n in [1, 2] {
            let line = format!("accepting a permission of programmer (terminal {terminal}), {n}/20:");
            let (_, rest) = log.split_once(&line).unwrap_or_else(|| panic!("{line:?} is not in {log}"));
            let snippet: Vec<&str> = rest.lines().skip(1).map_while(|line| line.trim().strip_prefix("| ")).collect();
            assert_eq!(snippet[0], "exec_command rm -r target", "{log}");
            assert!(snippet.len() <= 5, "{log}");
        }
    }
    play.passed();
    let closed = play.records("dialog_closed");
    assert_eq!(closed.len(), 2);
    assert!(closed.iter().all(|closed| closed["accepted"] == true && closed["choice"] == 1), "{closed:?}");
    let apart = closed[1]["ns"].as_u64().unwrap() - closed[0]["ns"].as_u64().unwrap();
    assert!(apart > 4_900_000_000 && begun.elapsed() > Duration::from_secs(5), "the cooldown: {apart} ns");

    let id = play.id();
    let audit = audit(&play);
    let answers: Vec<&Value> = audit.iter().filter(|entry| entry["answering"] != Value::Null).collect();
    assert_eq!(answers.len(), 2, "{audit:#?}");
    for (entry, n) in answers.iter().zip(1..) {
        assert_eq!((&entry["by"], &entry["role"], &entry["run"]), (&json!("run"), &json!("programmer"), &json!(id)));
        assert_eq!((&entry["count"], &entry["turn"]), (&json!([n, 20]), &json!(5)));
        let outcome = audit.iter().find(|other| other["outcome"]["of"] == entry["seq"]).unwrap();
        assert_eq!(outcome["outcome"]["end"], "answered", "{outcome}");
        let log = fs::read_to_string(play.env.paths().log()).unwrap();
        let terminal = entry["terminal"].as_str().unwrap();
        let line = format!("audit {}: programmer, terminal {terminal}, {n}/20, accept with ", entry["seq"]);
        let (_, logged) = log.split_once(&line).unwrap_or_else(|| panic!("{line:?} is not in {log}"));
        let tail: Vec<&str> = logged.lines().skip(1).map_while(|line| line.strip_prefix("  | ")).collect();
        assert_eq!(json!(tail), entry["answering"]["tail"]);
        assert_eq!(tail[0], "exec_command rm -r target", "the command, not only the options");
    }
    let shown = play.env.run(["audit", "show", "--run", &id]).ok();
    contains(&shown, &["programmer in run", "turn 5 1/20: accept", "2/20", "rm -r target", "answered"]);
    contains(&play.env.run(["audit", "verify"]).ok(), &["intact"]);
    contains(&play.env.run(["run", "show", &id]).ok(), &["permissions are accepted by posse"]);
}

/// S-153: what has no plain yes is for a person, however much may be accepted; the answer of the others does not suffer.
#[test]
fn s_153_a_question_is_left_to_a_person() {
    let play = Play::new(&asking(QUESTION));
    let mut followed = play.begin_accepting();
    followed.until("waits for an answer (question) and there is no plain yes to it");
    let terminal = asks(&play);
    play.env.run(["approve", terminal["id"].as_str().unwrap(), "--option", "2"]).ok();
    followed.end().ends(0);
    play.passed();
    assert_eq!(play.records("dialog_closed")[0]["choice"], 2);
}

/// S-161: the daemon dies while a permission waits. What was counted stays counted, and the question is accepted by the
/// next one.
#[test]
fn s_161_the_daemon_dies_while_a_permission_waits() {
    for accepts in ["0", "1"] {
        let steps = format!("{PERMISSION}, {{ think = \"100ms\" }}, {PERMISSION}");
        let (steps, questions) = if accepts == "1" { (steps.as_str(), 2) } else { (PERMISSION, 1) };
        let play = Play::new(&asking(steps));
        let mut command = play.command(&[]);
        command.env("AUTO_ACCEPT_PERMISSIONS", accepts);
        let mut followed = Followed::new(command);
        followed.until(if accepts == "1" { ", 1/20:" } else { "waits for an answer" });
        // The second comes within the cooldown of the first.
        play.until_recorded("dialog_drawn", questions);
        play.env.kill_daemon();
        if accepts == "0" {
            let terminal = asks(&play);
            play.env.run(["approve", terminal["id"].as_str().unwrap()]).ok();
        }
        let ran = followed.end();
        assert_eq!(ran.code, Some(0), "{accepts}: {ran:?}");
        play.passed();
        assert_eq!(play.records("dialog_closed").len(), questions);
        contains(&play.env.run(["audit", "verify"]).ok(), &["intact"]);
        assert_eq!(play.records("asked").len(), TURNS.len());
        let counted: Vec<Value> = play.journal("accepting").iter().map(|accepting| accepting["n"].clone()).collect();
        let audited: Vec<Value> = audit(&play)
            .iter()
            .filter(|entry| entry["answering"] != Value::Null)
            .map(|entry| entry["count"].clone())
            .collect();
        if accepts == "1" {
            assert_eq!(json!(counted), json!([1, 2]), "the next daemon counts on");
            assert_eq!(json!(audited), json!([[1, 20], [2, 20]]));
        } else {
            assert_eq!(
                (json!(counted), json!(audited)),
                (json!([]), json!([null])),
                "what a person accepts is not counted"
            );
        }
    }
}

/// S-106: the file is there while the agent asks; it is read when the agent is quiet.
#[test]
fn s_106_an_answer_before_a_question() {
    let steps = format!("{{ answer = \"too early\" }}, {PERMISSION}");
    let play = Play::new(&asking(&steps));
    let mut followed = play.begin();
    followed.until("waits for an answer");
    let terminal = asks(&play);
    assert_eq!(fs::read_to_string(play.response("programmer_summary.md")).unwrap(), "too early");
    play.env.run(["approve", terminal["id"].as_str().unwrap()]).ok();
    followed.end().ends(0);
    play.passed();
    let answer = fs::read_to_string(play.archive_folder().join("005-programmer.md")).unwrap();
    assert!(answer.starts_with("PROGRAMMER_SUMMARY:"), "{answer}");
}

/// S-154, S-155: auto-accept is off, and there are two questions in one turn. Each is logged at once, and one
/// notification is enough.
#[test]
fn s_154_s_155_a_person_is_told_once_in_a_turn() {
    let play = Play::new(&asking(&format!("{PERMISSION}, {{ think = \"200ms\" }}, {PERMISSION}")));
    let told = play.env.work().join("told");
    let command = json!(["sh", "-c", format!("cat >> {}; echo >> {}", told.display(), told.display())]);
    fs::write(play.env.paths().config.join("config.toml"), format!("[notifications]\ncommand = {command}\n")).unwrap();
    let mut followed = play.begin();
    for _ in 0..2 {
        followed.until("waits for an answer (permission) and accepting is off");
        let terminal = asks(&play);
        play.env.run(["approve", terminal["id"].as_str().unwrap()]).ok();
    }
    let ran = followed.end().ends(0);
    assert_eq!(ran.stdout.matches("waits for an answer").count(), 2, "{ran:?}");
    let ended = || fs::read_to_string(&told).ok().filter(|told| told.contains("\"pass\""));
    let told = when("the notification of the end", ended);
    assert_eq!(told.matches("\"waiting\"").count(), 1, "{told}");
}

/// S-151: an agent that does not react to the keys. They may have arrived, so that counts; it is tried again after the
/// cooldown. S-152: a person was quicker; nothing is typed, and nothing counted.
#[test]
fn s_151_s_152_accepts_that_come_to_nothing() {
    let play = Play::new(&asking(&format!("{PERMISSION}, {{ think = \"100ms\" }}, {PERMISSION}, {PERMISSION}")));
    let mut followed = play.begin_accepting();
    // The second question comes within the cooldown of the first.
    play.until_recorded("dialog_drawn", 2);
    let terminal = asks(&play)["id"].as_str().unwrap().to_owned();
    let agent = play.env.processes().into_iter().find(|process| {
        process.command.get(1).is_some_and(|word| word == "actor")
            && process.variable("POSSE_TERMINAL_ID").as_deref() == Some(&terminal)
    });
    let agent = Pid::from_raw(agent.unwrap().pid.try_into().unwrap()).unwrap();
    kill_process(agent, Signal::STOP).unwrap();
    followed.until(", 2/20:");
    followed.until("not accepted");
    kill_process(agent, Signal::CONT).unwrap();
    // What was typed is read now; the third question is answered by a person before the next accept is due.
    play.until_recorded("dialog_drawn", 3);
    asks(&play);
    play.env.run(["approve", &terminal]).ok();
    followed.end().ends(0);
    play.passed();
    assert_eq!(play.records("dialog_closed").len(), 3);
    let audit = audit(&play);
    let by = |who: &str| audit.iter().filter(|entry| entry["by"] == who && entry["answering"] != Value::Null).count();
    assert_eq!((by("run"), by("person")), (2, 1), "{audit:#?}");
    contains(&play.env.run(["audit", "verify"]).ok(), &["intact"]);
}
