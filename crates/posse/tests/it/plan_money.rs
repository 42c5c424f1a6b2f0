//! Costs of plans, and their limits.

use std::fs;

use serde_json::Value;

use crate::plan_run::{ONE, Scene, TWO, one};
use crate::project::{ended, said, says};
use crate::steps::{DONE, FINE, commit, reports, say, wait_for};

impl Scene {
    fn usage(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["usage", "--json"];
        all.extend(arguments);
        let output = self.command(&all).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(&output).1))
    }
}

/// T73: the limit of a plan holds over all its runs, and the command line overrides it, with zero too.
#[test]
fn t73_a_plan_stops_when_its_money_is_spent() {
    let meta = "name: Two\n  budget: {quota_ceiling_usd: 0.5, max_quota_percent: 80, reserved_budget_usd: 0.25}";
    let scene = Scene::new(&TWO.replace("name: Two", meta));
    scene.claude.play("1.1", commit("a", "alpha") + DONE);
    scene.claude.play("1.2", commit("b", "beta") + DONE);
    let text = scene.runs(2, 1, &[]);
    assert!(text.contains("this plan: 0.25 USD of 0.25 USD are spent"), "{text}");
    assert_eq!(scene.claude.called("1.1", 1).unwrap().flag("--max-budget-usd"), Some("0.25"), "and it was told so");
    // Another process, another day: what was spent stays spent.
    scene.env.kill_daemon();
    scene.runs(2, 1, &[]);
    scene.runs(2, 1, &["--quota-ceiling", "0", "--budget-cap", "0"]); // Nothing may be spent.
    scene.runs(0, 2, &["--quota-ceiling", "0"]); // No limit.
}

/// T77: what another plan, run by another process, spent in the last days counts.
#[test]
fn t77_the_window_is_shared_by_all_plans_and_processes() {
    let scene = Scene::new(ONE);
    scene.configure_user("[plans.budget]\nquota_ceiling_usd = 0.25\nwindow = '7d'\n");
    scene.claude.play("t", commit("a", "alpha") + DONE);
    scene.claude.play("other", commit("b", "beta") + DONE);
    scene.plan_ends(0, "run", &[]);
    scene.env.kill_daemon();
    let other = scene.other_plan("other.yaml", &ONE.replace("id: t", "id: other"));
    let text = says(2, scene.command(&["run", &other]), &[]);
    assert_eq!(scene.claude.sessions(), 1, "{text}");
    assert!(text.contains("everything in the last 7d: 0.25 USD of 0.25 USD are spent"), "{text}");
    // Of a project: only its own counts, and it has spent as much.
    scene.configure_user("");
    scene.configure("[budget]\nquota_ceiling_usd = 0.25\nwindow = '1d'\n");
    says(2, scene.command(&["run", &other]), &["this project in the last 1d"]);
    scene.configure("[budget]\nquota_ceiling_usd = 0.5\nwindow = '1d'\n");
    let text = says(0, scene.command(&["run", &other]), &[]);
    assert_eq!(scene.claude.sessions(), 2, "{text}");
}

/// T74, T75, T76: every session is in the ledger, cut short or not, and an unknown cost is not zero.
#[test]
fn t74_t75_t76_every_session_is_counted() {
    let scene = Scene::new(&one("validation: {enabled: true}"));
    scene.claude.gate("gate");
    scene.claude.play("t.1", say("thinking") + &wait_for("gate"));
    scene.claude.play("t.2", reports("completed", "and did nothing") + "cost=0.5\n");
    scene.claude.play("t.3", commit("a", "good") + DONE + "cost=null\n");
    scene.claude.play("t.4", FINE);
    let run = scene.begin_until(&[], "t", 1);
    assert_eq!(scene.plan("stop", &["now"]).0, 0);
    assert_eq!(ended(run).0, 3);
    let file = scene.plan.to_str().unwrap();
    let first = scene.usage(&[file]);
    assert_eq!(first["total"]["partial"], 1, "{first}");
    assert_eq!(first["total"]["cost_usd"], Value::Null, "unknown: {first}");
    assert_eq!(first["total"]["input_tokens"], 10, "as far as it was seen: {first}");
    assert_eq!(first["sessions"][0]["outcome"], "interrupted", "{first}");

    let text = scene.runs(0, 4, &[]);
    let used = scene.usage(&[file]);
    let total = &used["total"];
    assert_eq!((total["sessions"].as_u64(), total["cost_unknown"].as_u64()), (Some(4), Some(2)), "{used}");
    assert_eq!(total["cost_usd"], 0.75, "{used}");
    assert_eq!(used["tasks"]["t"]["sessions"], 4, "{used}");
    let outcomes: Vec<&str> =
        used["sessions"].as_array().unwrap().iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["interrupted", "failed", "done", "pass"], "{used}");
    assert_eq!(used["sessions"][3]["phase"], "validation", "{used}");
    assert!(text.contains("(0.50 USD; 0.50 USD so far)"), "{text}");
    assert!(text.contains("(unknown; 0.50 USD and one session of unknown cost so far)"), "{text}");

    // The same beside the report, for the last run alone.
    let report = text.lines().find_map(|line| line.strip_prefix("report: ")).unwrap();
    let directory = std::path::Path::new(report).parent().unwrap();
    let written = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let written = written.into_iter().find(|path| path.to_string_lossy().ends_with("-usage.json")).unwrap();
    let written: Value = serde_json::from_str(&fs::read_to_string(written).unwrap()).unwrap();
    assert_eq!((written["total"]["sessions"].as_u64(), written["total"]["cost_usd"].as_f64()), (Some(3), Some(0.75)));

    let text = says(0, scene.command(&["usage"]), &["  4         0.75 USD and 2 of unknown cost"]);
    assert!(text.contains("not what a subscription charges"), "{text}");
    assert_eq!(scene.usage(&["--since", "2001-01-01", "--all"])["total"]["sessions"], 4);
    assert_eq!(scene.usage(&["--since", "2101-01-01"])["total"]["sessions"], 0);
}

/// A session that has spent its budget has not failed.
#[test]
fn a_session_without_money_costs_no_attempt() {
    let scene = Scene::new(&ONE.replace("name: One", "name: One, budget_limit_usd: 1"));
    scene.claude.play(
        "t",
        r#"emit '{"type":"result","subtype":"error_max_budget_usd","is_error":true,"num_turns":3,"total_cost_usd":1.01,"usage":{"input_tokens":1,"output_tokens":1}}'
        exit 1"#,
    );
    scene.runs(2, 1, &[]);
    assert_eq!(scene.record("t").attempts, 0);
}
