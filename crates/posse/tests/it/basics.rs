//! First steps of every user.

use posse_testkit::process;

use crate::{env, shell_until, text_when};

#[test]
fn a_terminal_from_launch_to_kill() {
    let env = env();
    let id = env.run(["launch", "--name", "shell", "--session", "night", "--", "sh"]).ok();
    let id = id.trim();

    let listed = env.run(["ls", "--json"]).json();
    let terminal = &listed[0];
    assert_eq!(terminal["id"], id);
    assert_eq!(terminal["name"], "shell");
    assert_eq!(terminal["session_name"], "posse-night");
    assert_eq!(terminal["status"], "processing");
    assert_eq!(terminal["reason"], "running");
    assert_eq!(terminal["size"]["cols"], 160);
    let pid = terminal["pid"].as_u64().unwrap() as u32;
    assert!(process::exists(pid));

    env.run(["send", "shell", "echo $((40 + 2)) $POSSE_TERMINAL_ID"]).ok();
    let text = text_when(&env, id.parse().unwrap(), |text| text.contains("\n42 "));
    assert!(text.contains(&format!("42 {id}")), "{text}");
    let last = env.run(["output", "shell", "--last"]).ok();
    assert!(last.starts_with("42 "), "only what came after the command: {last:?}");
    assert!(env.run(["output", &id[..4]]).ok().contains("42"), "the beginning of an id is enough");
    assert!(env.run(["output", "shell", "--tail", "1"]).ok().lines().count() == 1);
    let shown = env.run(["show", "shell"]).ok();
    assert!(shown.contains("processing") && shown.contains("42"), "{shown}");

    env.run(["send", "shell", "exit 3"]).ok();
    let waited = env.run(["wait", "shell", "--until", "exited", "--timeout", "300s"]).ok();
    assert_eq!(waited, "exited with 3\n");
    let listed = env.run(["ls", "--json"]).json();
    assert_eq!(listed[0]["status"], "error");
    assert_eq!(listed[0]["exit"]["code"], 3);
    assert!(env.run(["output", "shell"]).ok().contains("42"), "an ended terminal can still be read");
    env.run(["send", "shell", "hello?"]).ends(1).complains(&["ended", "hint:"]);

    env.run(["kill", "shell"]).ok();
    assert_eq!(env.run(["ls", "--json"]).json(), serde_json::json!([]));
    let log = env.run(["logs"]).ok();
    for kind in ["terminal_created", "terminal_started", "status_changed", "terminal_exited", "terminal_deleted"] {
        assert!(log.contains(kind), "{kind} is missing in the log:\n{log}");
    }
}

#[test]
fn an_ended_terminal_is_there_after_a_restart_too() {
    let env = env();
    let id = env.launch(&["sh", "-c", "seq 1 100; printf '\\033[31mred\\033[0m'; exit 7"]);
    env.run(["wait", id.as_str(), "--until", "exited", "--timeout", "300s"]).ok();
    let before = env.run(["output", id.as_str()]).ok();
    assert!(before.starts_with("1\n2\n3\n") && before.trim_end().ends_with("100\nred"), "{before}");
    env.run(["stop"]).ok();
    assert_eq!(env.keeper_pid(), None, "nothing runs, so nothing is kept");
    assert_eq!(env.run(["output", id.as_str()]).ok(), before);
    assert_eq!(env.run(["ls", "--json"]).json()[0]["exit"]["code"], 7);
}

#[test]
fn exit_asks_and_kill_does_not() {
    let env = env();
    let polite = shell_until(&env, "trap 'echo bye; exit 5' HUP; echo ready; while :; do sleep 0.05; done", "ready");
    env.run(["exit", polite.as_str()]).ok();
    let waited = env.run(["wait", polite.as_str(), "--until", "exited", "--timeout", "300s"]).ok();
    assert_eq!(waited, "exited with 5\n");

    let stubborn = shell_until(&env, "trap '' HUP TERM; echo ready; while :; do sleep 0.05; done", "ready");
    let pid = env.run(["ls", "--json"]).json()[1]["pid"].as_u64().unwrap() as u32;
    env.run(["kill", "--now", stubborn.as_str()]).ok();
    assert!(!process::exists(pid));
}

#[test]
fn keys_and_raw_text_reach_the_program_as_they_are() {
    let env = env();
    let id = shell_until(&env, "stty raw -echo; echo ready; exec od -An -c -w8", "ready");
    env.run(["send", id.as_str(), "--key", "up", "--key", "ctrl-c", "--key", "enter", "--key", "y", "--key", "f1"])
        .ok();
    // od prints whole rows of eight bytes: ESC [ A ^C CR y ESC O
    text_when(&env, id, |text| text.contains(r"033   [   A 003  \r   y 033   O"));
}

#[test]
fn a_paste_is_bracketed_where_the_program_asks_for_it() {
    let env = env();
    let script = r"stty raw -echo; printf '\033[?2004hready'; exec od -An -c -w16";
    let id = shell_until(&env, script, "ready");
    env.run(["send", id.as_str(), "a\nb"]).ok();
    text_when(&env, id, |text| text.contains(r"033   [   2   0   0   ~   a  \n   b 033   [   2   0   1   ~"));
}

#[test]
fn events_can_be_followed_and_resumed_without_a_gap() {
    let env = env();
    env.run(["ls"]).ok();
    let mut live = env.http().events(None).unwrap();
    let first = env.launch(&["sh", "-c", "exit 1"]);
    let exited = live.until(|event| event["kind"] == "terminal_exited");
    assert_eq!(exited["terminal"], first.as_str());
    drop(live);
    let second = env.launch(&["sh", "-c", "printf '\\033]2;a title\\007'; exit 2"]);
    env.run(["wait", second.as_str(), "--until", "exited", "--timeout", "300s"]).ok();
    let mut resumed = env.http().events(exited["seq"].as_i64()).unwrap();
    let mut last = exited["seq"].as_i64().unwrap();
    loop {
        let event = resumed.next_event().unwrap().unwrap();
        assert_eq!(event["seq"].as_i64(), Some(last + 1), "no event is missing or repeated: {event}");
        last += 1;
        if event["kind"] == "terminal_exited" && event["terminal"] == second.as_str() {
            break;
        }
    }
}

#[test]
fn a_title_is_told_and_shown() {
    let env = env();
    env.run(["ls"]).ok();
    let mut live = env.http().events(None).unwrap();
    let id = env.launch(&["sh", "-c", "printf '\\033]2;thinking\\007'; exec sleep 1000"]);
    let told = live.until(|event| event["kind"] == "title_changed");
    assert_eq!((&told["data"]["title"], &told["seq"]), (&"thinking".into(), &serde_json::Value::Null));
    assert_eq!(env.run(["ls", "--json"]).json()[0]["title"], "thinking");
    assert!(env.run(["ls"]).ok().contains("thinking"));
    assert_eq!(env.run(["show", id.as_str(), "--json"]).json()["screen"]["title"], "thinking");
}

#[test]
fn a_terminal_answers_what_programs_ask_it() {
    let env = env();
    // Asks where the cursor is, and prints the answer's bytes.
    let script = r"stty raw -echo; printf 'abc\033[6n'; dd bs=6 count=1 2>/dev/null | od -An -c; exec sleep 1000";
    let id = env.launch(&["sh", "-c", script]);
    text_when(&env, id, |text| text.contains(r"033   [   1   ;   4   R"));
}

#[test]
fn waiting_ends_when_it_cannot_come_true() {
    let env = env();
    let id = env.launch(&["sh", "-c", "exit 4"]);
    env.run(["wait", id.as_str(), "--until", "idle"]).ends(1).complains(&["exited with 4"]);
    let id = env.launch(&["sleep", "1000"]);
    env.run(["wait", id.as_str(), "--until", "idle,completed", "--timeout", "200ms"]).ends(1);
}

#[test]
fn plain_posse_shows_help_and_starts_nothing() {
    let env = env();
    let help = env.run([] as [&str; 0]).ok();
    assert!(help.contains("Usage: posse") && help.contains("launch"), "{help}");
    assert!(env.processes().is_empty());
    env.launch(&["sleep", "1000"]);
    assert!(env.run([] as [&str; 0]).ok().contains("sleep 1000"));
}
