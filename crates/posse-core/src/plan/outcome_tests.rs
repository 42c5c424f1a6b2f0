//! Outcomes of different evidence.

use std::sync::LazyLock;

use super::TaskId;
use super::file_tests::id;
use super::outcome::{Denial, Ended, Evidence, Outcome, ToolResult, decide, denied_again};
use super::report::Report;
use super::verdict::{Verdict, judge};
use crate::engine::hold::Hold;
use crate::time::Wall;

const DONE: &str = r#"{"task_id":"1.1","nonce":"N","status":"completed","message":"did it"}"#;
const ASKS: &str = r#"{"task_id":"1.1","nonce":"N","status":"suspended","message":"?","question":"Which?"}"#;
const FAILS: &str = r#"{"task_id":"1.1","nonce":"N","status":"failed","message":"cannot"}"#;
const FAULT: &str = r#"{"task_id":"1.1","nonce":"N","status":"failed","message":"it is broken","verdict":"FAIL"}"#;
const NOTHING_TO_DO: &str =
    r#"{"task_id":"1.1","nonce":"N","status":"no_change_needed","message":"it was so already"}"#;

/// Returns a successful session. Cases change it.
fn good() -> Evidence<'static> {
    static TASK: LazyLock<TaskId> = LazyLock::new(|| id("1.1"));
    static DELIVERABLES: LazyLock<[String; 1]> = LazyLock::new(|| ["out/result.json".to_owned()]);
    Evidence {
        task: &TASK,
        nonce: "N",
        ended: Ended::Exited(0),
        limit: None,
        result: Some(ToolResult { turns: Some(7), ..ToolResult::default() }),
        report: Some(DONE),
        last_message: Some("I did it."),
        may_write: true,
        left_work: true,
        deliverables: &*DELIVERABLES,
    }
}

fn ended(ended: Ended) -> Evidence<'static> {
    Evidence { ended, ..good() }
}

fn reported(report: &'static str) -> Evidence<'static> {
    Evidence { report: Some(report), ..good() }
}

fn with_result(result: ToolResult) -> Evidence<'static> {
    Evidence { result: Some(result), ..good() }
}

/// Returns a session with this end and without any output.
fn silent(ended: Ended) -> Evidence<'static> {
    Evidence { ended, result: None, report: None, ..good() }
}

fn outcome(evidence: &Evidence<'_>) -> String {
    match decide(evidence) {
        Outcome::Interrupted => "interrupted".into(),
        Outcome::Limited(_) => "limited".into(),
        Outcome::Infra(failure) => format!("infra {}: {}", failure.kind, failure.message),
        Outcome::Failed(failure) => format!("{}: {}", failure.kind, failure.message),
        Outcome::Suspended { question, .. } => format!("suspended: {question}"),
        Outcome::Done(report) => format!("done: {}", report.message),
    }
}

fn refused(tool: &str, target: &str) -> Denial {
    Denial { tool: tool.into(), target: Some(target.into()) }
}

#[test]
fn the_order_of_outcomes() {
    let hold = || Some(Hold { until: Wall(1), reason: "x".into(), known: true });
    let error = ToolResult { is_error: true, text: "API Error: 500".into(), ..ToolResult::default() };
    let no_turn = ToolResult { turns: Some(0), ..ToolResult::default() };
    let denied = |target| ToolResult { turns: Some(3), denials: vec![refused("Write", target)], ..no_turn.clone() };
    let old = r#"{"task_id":"1.1","nonce":"OLD","status":"completed","message":"x"}"#;
    let foreign = r#"{"task_id":"1.2","nonce":"N","status":"completed","message":"x"}"#;
    let changed_nothing = |report| Evidence { left_work: false, ..reported(report) };
    for (name, evidence, expected) in [
        ("all is well", good(), "done: did it"),
        ("fault is found", Evidence { may_write: false, ..reported(FAULT) }, "done: it is broken"),
        ("a verdict is no excuse", reported(FAULT), "reported: it is broken"),
        ("T85: stopped", Evidence { ended: Ended::Stopped, limit: hold(), ..good() }, "interrupted"),
        ("a limit, whatever else there is", Evidence { ended: Ended::TimedOut, limit: hold(), ..good() }, "limited"),
        ("not started", ended(Ended::NotStarted("no file".into())), "infra not_started: could not be started: no file"),
        ("T45: too long", ended(Ended::TimedOut), "timeout: took too long and was ended"),
        ("T46: silent", ended(Ended::Stalled), "stalled: said nothing for too long and was ended"),
        ("T44: exit 1", ended(Ended::Exited(1)), "tool_error: exited with 1; it had reported: did it"),
        ("an error", Evidence { report: None, ..with_result(error) }, "tool_error: ended in an error: API Error: 500"),
        ("killed by somebody", silent(Ended::Killed(9)), "tool_error: was ended by signal 9"),
        ("nothing at all", silent(Ended::Exited(0)), "infra no_report: wrote no result, and ended without a word"),
        ("T40: the report of an older run", reported(old), "no_report: wrote no result"),
        ("T41: another task's report", reported(foreign), "bad_report: bad report: it is about task 1.2, not 1.1"),
        ("T87: lost after it had reported", Evidence { result: None, ..ended(Ended::Lost) }, "done: did it"),
        ("T86: lost before", silent(Ended::Lost), "infra lost: was lost before it reported"),
        ("it asks", changed_nothing(ASKS), "suspended: Which?"),
        ("it says it failed", reported(FAILS), "reported: cannot"),
        ("T42: no turn", with_result(no_turn.clone()), "no_evidence: done, but the agent took no turn"),
        ("T43: no change", changed_nothing(DONE), "no_evidence: done, but there is no commit and no changed file"),
        ("T43: nothing had to change", changed_nothing(NOTHING_TO_DO), "done: it was so already"),
        ("T11: it may not write", Evidence { left_work: false, may_write: false, ..good() }, "done: did it"),
        (
            "T13: refused what it had to write",
            with_result(denied("/w/out/result.json")),
            "no_evidence: done, but it was not allowed to write what it had to: Write /w/out/result.json (not allowed: Write /w/out/result.json)",
        ),
        ("refused something else", with_result(denied("/etc/passwd")), "done: did it"),
    ] {
        let outcome =
            outcome(&evidence).replace("no report: ", "").replace("the session ", "").replace("it says it is ", "");
        assert_eq!(outcome, expected, "{name}");
    }
}

#[test]
fn t13_the_same_refusal_twice() {
    let write = [refused("Write", "a")];
    for (now, again) in [
        (refused("Write", "a"), true),
        (refused("Edit", "a"), true),
        (refused("Write", "b"), true),
        (refused("Edit", "b"), false),
        (Denial { tool: "Write".into(), target: None }, true),
    ] {
        assert_eq!(denied_again(&write, std::slice::from_ref(&now)).is_some(), again, "{now}");
    }
    // Commands differ: one denied command proves nothing about another.
    assert_eq!(denied_again(&[refused("Bash", "git push")], &[refused("Bash", "make")]), None);
    assert_eq!(denied_again(&[], &write), None);
}

fn report(json: &str) -> Report {
    let text = format!(r#"{{"task_id":"1","status":"completed","message":"no FAIL found, all PASS",{json}}}"#);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn verdicts() {
    use Verdict::{Error, Fail, Pass, Warn};
    let weighed = "**Verdict: PASS** would be wrong\n**Verdict: PASS**\n- [FAIL] x\n\n**Verdict: FAIL**\n";
    let met =
        |met| format!(r#""verdict":"pass","findings":["[PASS] a"],"requirements_checked":7,"requirements_met":{met}"#);
    for (name, report, text, expected) in [
        ("T52: weighed and decided", None, weighed, Fail),
        ("T53: only words", Some(report(r#""findings":["x"]"#)), "no FAIL found, all PASS", Error),
        ("T54: not all requirements", Some(report(&met(6))), "", Warn),
        ("all requirements", Some(report(&met(7))), "", Pass),
        ("contradicts itself", Some(report(r#""verdict":"PASS","findings":["[FAIL] a"]"#)), "", Fail),
        ("looked at nothing", Some(report(r#""verdict":"PASS""#)), "", Warn),
        ("shows what it saw", Some(report(r#""verdict":"PASS","evidence":"ran the tests""#)), "", Pass),
        ("could not verify", Some(report(r#""verdict":"PASS","findings":["[WARN] could not verify b"]"#)), "", Warn),
        ("the report counts, not the text", Some(report(r#""verdict":"FAIL""#)), "**Verdict: PASS**", Fail),
        ("a word we do not know", Some(report(r#""verdict":"LGTM""#)), "**Verdict: PASS**", Error),
        ("in code only", None, "```\n**Verdict: PASS**\n```\n", Error),
        ("in text", None, "- [PASS] a\n**Verdict: PASS**", Pass),
        ("nothing", None, "", Error),
    ] {
        assert_eq!(judge(report.as_ref(), text).verdict, expected, "{name}");
    }
}
