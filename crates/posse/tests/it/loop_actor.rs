//! The scripted agent in the loop's roles, read by posse: what a test of the loop scripts is what the loop will see.

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
        let id = launch(&env, provider, "a");
        let mut scene = Scene { env, log, id, events };
        scene.until("idle");
        scene
    }

    fn answer_file(&self, name: &str) -> PathBuf {
        self.env.work().join(".tmp/agent-responses").join(name)
    }

    fn send(&self, message: &str) -> posse_testkit::http::Answer {
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

    /// The statuses the terminal had, up to and with the one that is waited for.
    #[track_caller]
    fn until(&mut self, status: &str) -> Vec<String> {
        self.until_any(&[status])
    }

    #[track_caller]
    fn until_any(&mut self, statuses: &[&str]) -> Vec<String> {
        let mut seen: Vec<String> = Vec::new();
        while seen.last().is_none_or(|last| !statuses.contains(&last.as_str())) {
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

fn launch(env: &TestEnv, provider: &str, name: &str) -> String {
    let launched = env.run(["launch", provider, "--trust", "--name", name, "--json"]).json();
    assert_eq!(launched["status"], "idle", "{launched}");
    launched["id"].as_str().unwrap().to_owned()
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
        let asked = scene.records("asked", 1);
        assert_eq!(asked[0]["hash"], posse_sim::agent::hash(&prompt), "it came as it was sent");
        assert_eq!((&asked[0]["key"], &asked[0]["length"]), (&json!("tester"), &json!(prompt.len())));
        assert_eq!(asked[0]["terminal"], scene.id);
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
        let mut taken: Vec<Value> = (prompts.iter().zip(&sent))
            .filter(|(_, sent)| **sent)
            .map(|(prompt, _)| json!(posse_sim::agent::hash(prompt)))
            .collect();
        assert!(!taken.is_empty(), "{provider}: one of them is the first");
        let mut asked: Vec<Value> =
            scene.records("asked", taken.len()).iter().map(|record| record["hash"].clone()).collect();
        taken.sort_by_key(Value::to_string);
        asked.sort_by_key(Value::to_string);
        assert_eq!(asked, taken, "{provider}");
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
        assert_eq!(scene.records("asked", 1)[0]["hash"], posse_sim::agent::hash(&long), "{provider}");
    }
}

/// The whole of a run, without any time to think. How long it takes is the actor's own account, at its best: this
/// machine may have other things to do.
#[test]
fn nine_turns_at_once() {
    for (provider, look) in PROVIDERS {
        let mut scene = Scene::open(provider, look, "");
        let files = [
            ("analyst_summary.md", "ANALYST_SUMMARY:"),
            ("analyst_review.md", "REVIEW_RESULT: REVISE"),
            ("analyst_summary.md", "ANALYST_SUMMARY:"),
            ("analyst_review.md", "REVIEW_RESULT: APPROVED"),
            ("programmer_summary.md", "PROGRAMMER_SUMMARY:"),
            ("programmer_review.md", "REVIEW_RESULT: REVISE"),
            ("programmer_summary.md", "PROGRAMMER_SUMMARY:"),
            ("programmer_review.md", "REVIEW_RESULT: APPROVED"),
            ("test_result.md", "RESULT: PASS"),
        ];
        for (file, head) in files {
            scene.ask_for(file);
            scene.until("completed");
            let answer = fs::read_to_string(scene.answer_file(file)).unwrap();
            assert_eq!(answer.lines().next(), Some(head), "{provider} {file}");
            fs::remove_file(scene.answer_file(file)).unwrap();
        }
        for event in ["submitted", "turn_ended"] {
            assert_eq!(scene.records(event, files.len()).len(), files.len(), "{provider}: {event}");
        }
    }
}

#[test]
fn permissions_have_a_plain_yes_and_each_is_accounted_for() {
    for (provider, look) in PROVIDERS {
        let mut scene = Scene::open(provider, look, "[loop]\npermissions = 3\nthink = \"200ms\"");
        scene.ask_for("programmer_summary.md");
        for number in 1..=3 {
            // What is on the screen counts: it may be announced before.
            while scene.shown()["dialog"]["subject"].as_str().is_none_or(|it| !it.contains(&format!("check-{number}")))
            {
                scene.until("waiting_user_answer");
            }
            assert_eq!(scene.shown()["waiting_kind"], "permission");
            let accepted = scene.send("y");
            assert_eq!(accepted.status, 200, "{provider} {number}: {accepted:?}");
        }
        scene.until("completed");
        assert!(scene.answer_file("programmer_summary.md").exists());
        let closed = scene.records("dialog_closed", 3);
        assert!(closed.iter().all(|closed| closed["accepted"] == true && closed["choice"] == 1), "{closed:?}");
        scene.records("submitted", 1);
    }
}

#[test]
fn a_refusal_ends_the_turn_without_an_answer() {
    for (provider, look) in PROVIDERS {
        let mut scene = Scene::open(provider, look, "[loop]\npermissions = 1\nthink = \"200ms\"");
        scene.ask_for("programmer_summary.md");
        while scene.shown()["dialog"] == Value::Null {
            scene.until("waiting_user_answer");
        }
        scene.env.run(["deny", "a"]).ok();
        scene.until_any(&["idle", "completed"]);
        assert!(!scene.answer_file("programmer_summary.md").exists());
        assert_eq!(scene.records("turn_ended", 1)[0]["outcome"], "interrupted");
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
fn an_answer_may_be_forgotten_come_late_or_in_pieces() {
    let turns = r#"
        [[turn]]
        nth = 1
        steps = [{ say = "Done." }]
        [[turn]]
        nth = 2
        steps = [{ answer = { late = "700ms" } }, { say = "Done." }]
        [[turn]]
        nth = 3
        steps = [{ answer = { text = "one two three", pieces = 3, gap = "150ms" } }, { say = "Done." }]
    "#;
    for (provider, look) in PROVIDERS {
        let mut scene = Scene::open(provider, look, turns);
        let file = scene.answer_file("test_result.md");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        scene.ask_for("test_result.md");
        scene.until("completed");
        assert!(!file.exists(), "forgotten");
        scene.ask_for("test_result.md");
        scene.until("completed");
        let answer = || fs::read_to_string(&file).ok().filter(|text| !text.is_empty());
        let answer = when_changed(file.parent().unwrap(), "the answer", PATIENCE, answer);
        assert!(answer.starts_with("RESULT: PASS"), "{answer}");
        let (ended, wrote) = (&scene.records("turn_ended", 2)[1], &scene.records("wrote", 1)[0]);
        assert!(ended["ns"].as_u64() < wrote["ns"].as_u64(), "{provider}: written after the turn");
        fs::remove_file(&file).unwrap();
        scene.ask_for("test_result.md");
        scene.until("completed");
        assert_eq!(fs::read_to_string(&file).unwrap(), "one two three");
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

#[test]
fn who_replaces_a_dead_agent_carries_on() {
    for (provider, look) in PROVIDERS {
        for ending in ["crash = 9", "exit = 3"] {
            let state = tempfile::tempdir().unwrap();
            let turn = format!(
                "[loop]\nstate_dir = {:?}\n[[turn]]\nkey = \"analyst_review\"\nnth = 2\nsteps = [{{ think = \"100ms\" }}, {{ {ending} }}]",
                state.path()
            );
            let mut scene = Scene::open(provider, look, &turn);
            scene.ask_for("analyst_review.md");
            scene.until("completed");
            fs::remove_file(scene.answer_file("analyst_review.md")).unwrap();
            scene.ask_for("analyst_review.md");
            scene.env.run(["wait", "a", "--until", "exited", "--timeout", "300s"]).ok();
            assert!(!scene.answer_file("analyst_review.md").exists());

            scene.id = launch(&scene.env, provider, "b");
            scene.ask_for("analyst_review.md");
            scene.until("completed");
            let answer = fs::read_to_string(scene.answer_file("analyst_review.md")).unwrap();
            assert!(answer.starts_with("REVIEW_RESULT: APPROVED"), "{provider} {ending}: {answer}");
            let asked = scene.records("asked", 3);
            let numbers: Vec<u64> = asked.iter().map(|asked| asked["nth"].as_u64().unwrap()).collect();
            assert_eq!(numbers, [1, 2, 3]);
            assert_ne!(asked[1]["pid"], asked[2]["pid"]);
        }
    }
}
