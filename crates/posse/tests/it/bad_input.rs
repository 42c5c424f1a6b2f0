//! Errors name the next step, and nothing else breaks.

use posse_testkit::process;

use crate::{env, shell_until, text_when};

#[test]
fn the_api_refuses_what_makes_no_sense() {
    let env = env();
    let id = env.launch(&["sleep", "1000"]);
    let http = env.http();
    let input = format!("/terminals/{id}/input");
    let resize = format!("/terminals/{id}/resize");
    let output = format!("/terminals/{id}/output");
    let cases: &[(&str, &str, &str, u16)] = &[
        ("GET", "/terminals/nonsense", "", 422),
        ("GET", "/terminals/..%2f..%2fetc", "", 422),
        ("GET", "/terminals/../../etc/passwd", "", 404),
        ("GET", "/terminals/%ff", "", 422),
        ("GET", "/sessions/..%2f..", "", 404),
        ("GET", "/sessions/a%00b", "", 404),
        ("GET", "/terminals/00000000", "", 404),
        ("GET", "/terminals/0000ABCD", "", 422), // S-168
        ("DELETE", "/terminals/zzzzzzzz", "", 422),
        ("GET", "/nowhere", "", 404),
        ("POST", "/terminals", "", 422),
        ("POST", "/terminals", "{", 422),
        ("POST", "/terminals", "{}", 422),
        ("POST", "/terminals", r#"{"command":[],"working_directory":"/"}"#, 400),
        ("POST", "/terminals", r#"{"command":["true"],"working_directory":"relative"}"#, 400),
        ("POST", "/terminals", r#"{"command":["a\u0000b"],"working_directory":"/"}"#, 400),
        ("POST", "/terminals", r#"{"command":["true"],"working_directory":"/","unknown":1}"#, 422),
        ("POST", "/terminals", r#"{"command":["true"],"working_directory":"/","ring_bytes":1}"#, 400),
        ("POST", "/sessions?provider=shell&agent_profile=x&wait=false", "", 201), // Does not wait for it.
        ("POST", &input, "{}", 422),
        ("POST", &input, r#"{"message":"x","writer":0,"sequence":1}"#, 400),
        ("POST", &input, r#"{"message":"x","writer":5}"#, 400),
        ("POST", &input, r#"{"message":"y","expect_status":"waiting_user_answer"}"#, 409),
        ("POST", &input, r#"{"message":"y","expect_status":"nonsense"}"#, 422),
        ("POST", &resize, r#"{"rows":0,"cols":0}"#, 422),
        ("POST", &resize, r#"{"rows":60000,"cols":60000}"#, 422),
        ("GET", &format!("{output}?mode=nonsense"), "", 422),
        ("GET", &format!("{output}?mode=tail&lines=-1"), "", 422),
        ("GET", &format!("{output}?mode=last"), "", 404),
        ("GET", &format!("/terminals/{id}/stream"), "", 400),
        ("GET", &format!("/terminals/{id}/stream?writer=0"), "", 400),
        ("POST", &format!("{resize}?rows=40&cols=100"), "", 200), // Parameters work in the query everywhere.
    ];
    for (method, path, body, status) in cases {
        let answer = http.call(method, path, body).unwrap();
        assert_eq!(answer.status, *status, "{method} {path} {body}: {answer:?}");
    }
    let answer = http.call("POST", &input, &format!(r#"{{"message":"{}"}}"#, "x".repeat(2 << 20))).unwrap();
    assert_eq!(answer.status, 413, "{answer:?}");
    assert_eq!(http.call("GET", "/health", "").unwrap().json()["status"], "ok");
}

#[test]
fn garbage_on_a_terminal_harms_nobody() {
    let env = env();
    let calm = env.launch(&["sh", "-c", "echo calm; exec sleep 1000"]);
    // Garbage may end in the middle of a sequence that swallows what follows, or leave any mode behind: CAN, and a reset.
    let script = r"head -c 3000000 /dev/urandom; printf '\030\033c'; echo END; exec sleep 1000";
    shell_until(&env, script, "END");
    text_when(&env, calm, |text| text.contains("calm"));
    let memory = process::memory(env.daemon_pid()).unwrap();
    assert!(memory < 200 << 20, "the daemon grew to {memory} bytes");
}

#[test]
fn a_killed_keeper_is_told_and_the_rest_goes_on() {
    let env = env();
    let lost = shell_until(&env, "echo before; exec sleep 1000", "before");
    let program = env.run(["ls", "--json"]).json()[0]["pid"].as_u64().unwrap() as u32;
    let stubborn = shell_until(&env, "trap '' HUP; echo before; while :; do sleep 0.1; done", "before");
    let keeper = env.keeper_pid().unwrap();
    posse_testkit::env::kill(keeper);
    let waited = env.run(["wait", lost.as_str(), "--until", "error", "--timeout", "300s"]).ok();
    assert_eq!(waited, "error (lost: its keeper is gone)\n");
    assert!(env.run(["output", lost.as_str()]).ok().contains("before"), "what was on its screen is still known");
    env.run(["send", lost.as_str(), "x"]).ends(1);
    // A new keeper takes new terminals. Processes that survived the hang-up are ended, as no terminal shows them any
    // more.
    let next = env.run(["launch", "--", "sh", "-c", "echo after; exec sleep 1000"]).ok().trim().parse().unwrap();
    text_when(&env, next, |text| text.contains("after"));
    assert_ne!(env.keeper_pid(), Some(keeper));
    assert!(!process::exists(program));
    env.run(["kill", stubborn.as_str()]).ok();
    let left: Vec<_> = process::all()
        .into_iter()
        .filter(|p| p.variable("POSSE_TERMINAL_ID").as_deref() == Some(stubborn.as_str()))
        .collect();
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn the_longest_input_fits_however_it_is_written() {
    let env = env();
    let id = shell_until(&env, "stty raw -echo; echo ready; head -c 1048576 | wc -c; exec sleep 1000", "ready");
    let path = format!("/terminals/{id}/input");
    let body = |length: usize| format!(r#"{{"raw":true,"enter":false,"message":"{}"}}"#, "\\u0041".repeat(length));
    let (longest, too_long) = (env.http().call("POST", &path, &body(1 << 20)), (1 << 20) + 1);
    assert_eq!(longest.unwrap().status, 200);
    text_when(&env, id, |text| text.contains("1048576"));
    let refused = env.http().call("POST", &path, &body(too_long)).unwrap();
    assert_eq!((refused.status, &refused.json()["kind"]), (413, &"too_much_input".into()));
}
