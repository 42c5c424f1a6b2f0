//! Costs of a backlog, their limits, and reports of them.

use super::*;

/// The budget of a pipeline covers planners, tasks, validators and verifiers together, regardless of who starts them.
#[test]
fn a_cap_is_for_everything_that_is_done() {
    let scene = Scene::new(&["1-more", "2-more"]);
    scene.does("1-more");
    scene.does("2-more");
    let id = scene.begin(&json!({ "cap_usd": 0.5 }));
    let reason = scene.ends_as(&id, "budget_exhausted");
    assert_eq!(reason, "this run of the backlog: 0.50 USD of 0.50 USD are spent");
    assert_eq!(scene.claude.sessions(), 2, "planner and worker; not the validator");
    assert_eq!(scene.claude.called("plan", 1).unwrap().flag("--max-budget-usd"), Some("0.5"), "and they are told so");
    assert_eq!(scene.claude.called("do-1-more", 1).unwrap().flag("--max-budget-usd"), Some("0.25"));
    let view = scene.show(&id).unwrap();
    assert_eq!((&view["limits"][0]["limit_usd"], &view["items"][0]["attempts"]), (&json!(0.5), &json!(0)));
    // The next run has money again, and continues where it stopped: a validator, and the whole of the other item.
    scene.claude.play("do-1-more.2", FINE);
    let id = scene.begin(&json!({}));
    scene.ends(&id, "verified", "2 done");
    assert_eq!(scene.claude.sessions(), 6);
}

/// The report beside the item lists every session with its agent and cost; the notification has the sum.
#[test]
fn the_report_has_every_session_and_the_message_has_outcome_cost_and_commits() {
    let scene = Scene::new(&["1-bug"]);
    scene.does("1-bug");
    scene.claude.play("verify.1", WANTING);
    scene.does_again_and_again("1-bug");
    let told = scene.env.work().parent().unwrap().join("outside/told");
    // One write for each: several notices may be sent at once.
    let command = ["sh", "-c", &format!("text=$(cat); printf '%s\\n' \"$text\" >> {}", told.display())];
    let id = scene.begin(&json!({ "notifications": { "command": command } }));
    scene.ends(&id, "verified", "1 done");
    let report = scene.file("docs/completed-backlog/defects/1-bug.report.md").unwrap();
    let rows: Vec<Vec<&str>> = report
        .lines()
        .skip_while(|line| *line != "## Sessions")
        .filter(|line| line.starts_with("| ") && line.ends_with("USD |"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let who: Vec<String> = rows.iter().map(|row| format!("{}: {}, {}", row[0], row[1], row[4])).collect();
    assert_eq!(
        who,
        [
            "plan: planner, done",
            "task do-1-bug: coder, done",
            "validation of do-1-bug: validator, pass",
            "verification: verifier, fail",
            "plan: planner, done",
            "task do-1-bug: coder, done",
            "validation of do-1-bug: validator, pass",
            "verification: verifier, pass",
        ],
        "{report}"
    );
    assert!(report.contains("\n8 sessions, 2.00 USD.\n") && report.contains("| Cost | 2.00 USD |"), "{report}");
    let again = scene.claude.called("plan", 2).unwrap();
    assert!(again.prompt.contains("S1: it is still there"), "{}", again.prompt);
    let finished = when("it is told", || {
        let told = fs::read_to_string(&told).ok()?;
        let notices = told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        notices.into_iter().find(|notice| notice["event"] == "item_finished")
    });
    let text = finished["text"].as_str().unwrap();
    assert!(text.starts_with("1-bug: fixed (") && text.contains(", 2.00 USD)"), "{text}");
    let commit = scene.git(&["log", "--format=%H", "-1", "--", "1-bug"]);
    let commits = text.lines().find_map(|line| line.strip_prefix("commits: ")).unwrap();
    assert!(commits.split(' ').any(|named| commit.starts_with(named)), "{text} {commit}");
}

/// Some changes cause no notification. An optional periodic scan finds them.
#[test]
fn a_safety_scan_finds_what_nobody_tells_of() {
    let scene = Scene::new(&["1-more"]);
    scene.does("1-more");
    let item = scene.env.work().join("docs/feature-backlog/1-more.md");
    let text = fs::read_to_string(&item).unwrap();
    fs::write(&item, text.replacen("\n\n", "\n\n## Status: On Hold\n\n", 1)).unwrap();
    // Written through a name in another directory: the kernel reports that one only.
    let elsewhere = scene.env.work().parent().unwrap().join("outside/1-more.md");
    fs::hard_link(&item, &elsewhere).unwrap();
    let id = scene.begin(&json!({ "mode": "watch", "config": { "pipeline": { "safety_scan_seconds": 1 } } }));
    when("it is held", || (scene.show(&id)?["items"][0]["reason"] == "on hold").then_some(()));
    fs::write(&elsewhere, text).unwrap();
    scene.until_archived("1-more");
}
