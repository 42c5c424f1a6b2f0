//! The scripted agent in the loop's roles, read by posse: what a test of the loop scripts is what the loop will see.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use posse_core::turn::{failure, files};
use posse_testkit::PATIENCE;
use posse_testkit::TestEnv;
use posse_testkit::files::{records, when_changed};
use posse_testkit::http::Events;
use serde_json::{Value, json};

use crate::env;

const PROVIDERS: [(&str, &str); 2] = [("claude_code", "claude"), ("codex", "codex")];

/// An agent of the loop, and what posse tells of it.
struct Scene {
    env: TestEnv,
    log: PathBuf,
    id: String,
    events: Events,
}

impl Scene {
    fn open(provider: &str, look: &str, scenario: &str) -> Scene {
        let env = env();
        let log = env.script_agent(provider, &format!("look = \"{look}\"\nplay = \"loop\"\n{scenario}"));
        // Starts the daemon, so that nothing is missed of what it tells.
        env.run(["ls"]).ok();
        let events = env.http().events(None).unwrap();
        let launched = env.run(["launch", provider, "--trust", "--name", "a", "--json"]).json();
        assert_eq!(launched["status"], "idle", "{launched}");
        let id = launched["id"].as_str().unwrap().to_owned();
        let mut scene = Scene { env, log, id, events };
        scene.until("idle");
        scene
    }

    fn answer_file(&self, name: &str) -> PathBuf {
        self.env.work().join(".tmp/agent-responses").join(name)
    }

    fn send(&self, message: &str) -> posse_testkit::http::HttpAnswer {
        let path = format!("/terminals/{}/input", self.id);
        self.env.http().post(&path, &json!({ "message": message })).unwrap()
    }

    /// Sends a prompt as long and as dressed up as those of the loop.
    fn ask_for(&self, name: &str) -> String {
        let prompt = prompt(&self.answer_file(name));
        let answer = self.send(&prompt);
        assert_eq!(answer.status, 200, "{answer:?}");
        prompt
    }

    /// Returns the statuses the terminal had, up to and with this one.
    #[track_caller]
    fn until(&mut self, status: &str) -> Vec<String> {
        let mut seen: Vec<String> = Vec::new();
        while seen.last().is_none_or(|last| last != status) {
            let id = &self.id;
            let changed = |event: &Value| event["kind"] == "status_changed" && event["terminal"] == *id;
            let event = self.events.until(changed);
            seen.push(event["data"]["status"].as_str().unwrap().to_owned());
        }
        seen
    }

    fn shown(&self) -> Value {
        self.env.http().get(&format!("/terminals/{}", self.id)).unwrap()
    }

    /// What the agent wrote down of this kind, `count` of them and no more. It does so a moment after it has shown it.
    #[track_caller]
    fn records(&self, event: &str, count: usize) -> Vec<Value> {
        let records = when_changed(self.log.parent().unwrap(), event, PATIENCE, || {
            let records = records(&self.log, event);
            (records.len() >= count).then_some(records)
        });
        assert_eq!(records.len(), count, "{records:?}");
        records
    }
}

fn prompt(file: &Path) -> String {
    let background = "Read src/main.rs, don't guess; the user's words are \"as they are\".\n".repeat(60);
    let instruction = files::instruction(&Default::default(), file.to_str().unwrap(), &files::heredoc_word(0x7f3a));
    format!("You are one of five agents. Round 1, cycle 1.\n\n{background}\n{instruction}")
}

#[test]
fn a_turn_is_seen_working_and_then_completed_with_its_answer() {
    // With its state, and with no more than a title.
    for ((provider, look), osc) in PROVIDERS.into_iter().flat_map(|one| [(one, ""), (one, "osc = [\"title\"]")]) {
        let mut scene = Scene::open(provider, look, &format!("{osc}\n[loop]\nthink = \"400ms\""));
        let prompt = scene.ask_for("test_result.md");
        assert_eq!(scene.until("completed"), ["processing", "completed"], "{provider}");
        let answer = fs::read_to_string(scene.answer_file("test_result.md")).unwrap();
        assert!(answer.starts_with("RESULT: PASS\nEVIDENCE:\n"), "{answer}");
        let submitted = &scene.records("submitted", 1)[0];
        assert_eq!(submitted["prompt"], prompt, "it came as it was sent");
        assert_eq!(submitted["terminal"], scene.id);
    }
}

/// Of those who type at once each is taken whole, or told that it was not.
#[test]
fn s_163_two_inputs_at_once_are_never_mixed() {
    for (provider, look) in PROVIDERS {
        let scene = Scene::open(provider, look, "");
        let prompts = ["analyst_summary.md", "test_result.md"].map(|name| prompt(&scene.answer_file(name)));
        let (env, path) = (&scene.env, format!("/terminals/{}/input", scene.id));
        let sent: Vec<bool> = std::thread::scope(|scope| {
            let send = |prompt| env.http().post(&path, &json!({ "message": prompt })).unwrap().status == 200;
            let sending = prompts.each_ref().map(|prompt| scope.spawn(move || send(prompt)));
            sending.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let taken: BTreeSet<&str> =
            prompts.iter().zip(sent).filter(|(_, sent)| *sent).map(|(prompt, _)| prompt.as_str()).collect();
        assert!(!taken.is_empty(), "{provider}: one of them is the first");
        let submitted = scene.records("submitted", taken.len());
        let submitted: BTreeSet<&str> = submitted.iter().map(|record| record["prompt"].as_str().unwrap()).collect();
        assert_eq!(submitted, taken, "{provider}");
    }
}

#[test]
fn s_167_a_long_prompt_arrives_whole() {
    for (provider, look) in PROVIDERS {
        let mut scene = Scene::open(provider, look, "");
        let background = "Read src/main.rs, don't guess; the user's words are \"as they are\".\n".repeat(3_000);
        let long = format!("{background}{}", prompt(&scene.answer_file("test_result.md")));
        assert!(long.len() > 200 << 10);
        let answer = scene.send(&long);
        assert_eq!(answer.status, 200, "{provider}: {answer:?}");
        scene.until("completed");
        assert_eq!(scene.records("submitted", 1)[0]["prompt"], long, "{provider}");
    }
}

#[test]
fn questions_and_plans_have_no_plain_yes() {
    let question = r#"{ kind = "question", text = "Which database?", options = ["SQLite", "Postgres"] }"#;
    let plan = r#"{ kind = "plan", detail = "First this, then that." }"#;
    for (provider, look) in PROVIDERS {
        for (kind, ask) in [("question", question), ("plan", plan)] {
            let turn = format!("[[turn]]\nsteps = [{{ think = \"200ms\" }}, {{ ask = {ask} }}, {{ answer = {{}} }}]");
            let mut scene = Scene::open(provider, look, &turn);
            scene.ask_for("analyst_summary.md");
            while scene.shown()["dialog"] == Value::Null {
                scene.until("waiting_user_answer");
            }
            assert_eq!(scene.shown()["waiting_kind"], kind, "{provider}");
            let refused = scene.send("y");
            assert_eq!(refused.status, 409, "{provider} {kind}: {refused:?}");
            scene.records("dialog_closed", 0);
            scene.env.run(["approve", "a", "--option", "2"]).ok();
            scene.until("completed");
            assert!(scene.answer_file("analyst_summary.md").exists());
        }
    }
}

#[test]
fn failures_of_the_service_are_errors_and_the_next_message_goes_on() {
    for (provider, look) in PROVIDERS {
        let kinds = [
            ("500", "server"),
            ("529", "server"),
            ("401", "other"),
            ("usage_limit", "usage_limit"),
            ("dropped", "dropped"),
        ];
        let turns: String = kinds
            .iter()
            .enumerate()
            .map(|(at, (kind, _))| {
                format!(
                    "[[turn]]\nnth = {}\nsteps = [{{ think = \"150ms\" }}, {{ say = \"Well.\" }}, {{ fail = \"{kind}\" }}]\n",
                    at + 1
                )
            })
            .collect();
        // A title does not tell an error: the screen has to.
        let mut scene = Scene::open(provider, look, &format!("osc = [\"title\"]\n{turns}"));
        scene.ask_for("analyst_review.md");
        for (kind, understood) in kinds {
            assert_eq!(scene.until("error"), ["processing", "error"], "{provider} {kind}");
            let tail: Value =
                scene.env.http().get(&format!("/terminals/{}/output?mode=tail&lines=20", scene.id)).unwrap();
            let failure = serde_json::to_value(failure::classify(tail["output"].as_str().unwrap())).unwrap();
            let name = failure.as_object().and_then(|it| it.keys().next()).map(String::as_str).or(failure.as_str());
            assert_eq!(name, Some(understood), "{provider} {kind}: {failure} {tail}");
            let when = if provider == "codex" { "at 9:52 PM" } else { "3pm (UTC)" };
            assert!(kind != "usage_limit" || failure["usage_limit"]["resets"] == when, "{failure}");
            assert!(!scene.answer_file("analyst_review.md").exists());
            assert_eq!(scene.send("continue").status, 200, "{provider} {kind}");
        }
        scene.until("completed");
        assert!(scene.answer_file("analyst_review.md").exists());
    }
}

#[test]
fn an_agent_that_never_starts_stays_as_it_was() {
    for (provider, look) in PROVIDERS {
        let mut scene = Scene::open(provider, look, "[[turn]]\nnth = 1\nignore = true");
        scene.ask_for("test_result.md");
        let id = scene.id.clone();
        let told = |event: &Value| {
            event["terminal"] == *id && ["status_changed", "no_reaction"].contains(&event["kind"].as_str().unwrap())
        };
        assert_eq!(scene.events.until(told)["kind"], "no_reaction", "{provider}");
        scene.records("ignored", 1);
        assert!(!scene.answer_file("test_result.md").exists());
        scene.ask_for("test_result.md");
        scene.until("completed");
        assert!(scene.answer_file("test_result.md").exists());
    }
}
