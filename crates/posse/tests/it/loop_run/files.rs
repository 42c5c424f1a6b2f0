//! Answers that come late, in pieces, dressed up, or not at all.

use super::permissions::{PERMISSION, asks};
use super::*;

/// Each turn answers in another way, and each answer is taken whole (S-101, S-105, S-107, S-108, S-109, S-112).
#[test]
fn however_an_answer_comes() {
    let play = Play::new(
        r#"
        [[turn]]
        key = "analyst"
        nth = 1
        steps = [{ answer = "" }, { think = "400ms" }, { answer = { with = ["bom", "crlf"] } }, { say = "Done." }]
        [[turn]]
        key = "analyst"
        nth = 2
        steps = [{ answer = { pieces = 3, gap = "200ms" } }, { say = "Done." }]
        [[turn]]
        key = "programmer"
        nth = 1
        steps = [{ answer = { late = "500ms" } }, { say = "Done." }]
        [[turn]]
        key = "programmer"
        nth = 2
        steps = [{ answer = "short" }, { think = "300ms" }, { answer = { pieces = 1 } }, { say = "Done." }]
        [[turn]]
        key = "programmer_review"
        nth = 1
        steps = [{ answer = { with = ["invalid"] } }, { say = "Done." }]
        "#,
    );
    // What an earlier run has left, and something that is no file.
    fs::create_dir_all(play.response("test_result.md")).unwrap();
    fs::write(play.response("analyst_summary.md"), "old").unwrap();
    play.run().ends(0).prints(&["an older answer was in the way: kept as 001-analyst-stale.md", "-tester-stale.md"]);
    play.passed();
    let answers = play.journal("answered");
    assert_eq!(answers.len(), TURNS.len());
    for (answer, key) in answers.iter().zip(TURNS) {
        let text = answer["text"].as_str().unwrap();
        let head = match key {
            "analyst" => "ANALYST_SUMMARY:",
            "programmer" => "PROGRAMMER_SUMMARY:",
            "tester" => "RESULT: PASS",
            _ => "REVIEW_RESULT: ",
        };
        assert!(text.starts_with(head) && !text.contains('\r'), "{key}: {text:?}");
        assert_eq!(answer["from"], "file");
    }
    assert!(answers[5]["text"].as_str().unwrap().contains('\u{fffd}'), "{}", answers[5]);
    assert_eq!(fs::read_to_string(play.archive_folder().join("001-analyst-stale.md")).unwrap(), "old");
}

/// S-103: the agent is quiet, and its file has been truncated to be written anew.
#[test]
fn s_103_a_file_that_is_truncated_is_waited_for() {
    let play = Play::new(
        r#"
        [[turn]]
        key = "analyst"
        nth = 1
        steps = [
          { think = "200ms" },
          { answer = { text = "first words", pieces = 1 } },
          { answer = { text = "", pieces = 1 } },
          { say = "Done." },
        ]
        "#,
    );
    play.configure(json!({ "handoff": { "idle_grace_seconds": 30 } }));
    let mut followed = play.begin();
    followed.until("turn 1: analyst");
    play.until_recorded("turn_ended", 1);
    let analyst = play.shown()["terminals"]["analyst"].clone();
    play.when_told("a quiet analyst", |terminals| {
        let quiet = |one: &&Value| one["id"] == analyst && one["status"] == "completed";
        terminals.as_array().unwrap().iter().find(quiet).map(|_| ())
    });
    // As long as the scenario takes: a scan that finds nothing has no event.
    std::thread::sleep(Duration::from_millis(300));
    let file = play.response("analyst_summary.md");
    assert_eq!(fs::read_to_string(&file).unwrap(), "", "it is where it was");
    assert_eq!(play.journal("answered").len(), 0);
    fs::write(&file, "ANALYST_SUMMARY:\n- Scope: all of it\n").unwrap();
    followed.end().ends(0);
    play.passed();
    assert_eq!(play.journal("answered")[0]["text"], "ANALYST_SUMMARY:\n- Scope: all of it");
    let kept: Vec<String> = play.archive().into_iter().filter(|name| name.starts_with("001-")).collect();
    assert_eq!(kept, ["001-analyst.md"]);
}

/// S-102: the agent forgets its file, and gets no reminder.
#[test]
fn an_answer_that_is_not_in_its_file_is_none() {
    for forgets in ["{ say = \"All done.\" }", "{ answer = \"\" }, { say = \"All done.\" }"] {
        let play =
            Play::new(&format!("[[turn]]\nkey = \"analyst\"\nnth = 1\nsteps = [{{ think = \"200ms\" }}, {forgets}]"));
        let ran = play.run().ends(1);
        contains(&ran.stderr, &["wrote no answer to", "analyst_summary.md", "more than 1 s", "posse loop --resume"]);
        // On resume the agent is prompted to continue its task.
        play.resume().end().ends(0);
        play.passed();
        contains(play.journal("turn_begun")[1]["text"].as_str().unwrap(), &["broke off"]);
    }
}

/// S-138.
#[test]
fn s_138_a_reminder_helps() {
    let play = Play::new(&first_turn("tester", "{ think = '200ms' }, { say = 'All done.' }"));
    play.configure(json!({ "handoff": { "max_file_reminders": 1 } }));
    play.run().ends(0).prints(&["reminding it (1)"]);
    play.passed();
    let asked = play.records("asked");
    assert_eq!(asked.len(), TURNS.len() + 1, "{asked:?}");
    assert_eq!(asked.last().unwrap()["terminal"], play.shown()["terminals"]["tester"]);
}

/// S-137.
#[test]
fn s_137_a_reminder_is_ignored() {
    let play = Play::new(
        "[[turn]]\nkey = \"analyst\"\nnth = [1, 2]\nsteps = [{ think = \"200ms\" }, { say = \"All done.\" }]",
    );
    play.configure(json!({ "handoff": { "max_file_reminders": 1 } }));
    play.run().ends(1).complains(&["1 reminder"]);
}

/// S-116: busy for too long, with a file that cannot be trusted.
#[test]
fn s_116_an_answer_that_comes_too_late_is_kept() {
    let play =
        Play::new(&first_turn("analyst", "{ answer = 'half' }, { think = '4s' }, { answer = {} }, { say = 'Done.' }"));
    play.configure(json!({ "handoff": { "response_timeout": 3 } }));
    let ran = play.run().ends(1).complains(&["3 s", "analyst"]);
    assert_eq!(play.journal("turn_failed")[0]["cause"], "timed_out");
    assert_eq!(play.state().unwrap()["final_status"], "RUNNING");
    // It is named in the message, and so is there.
    let kept = play.archive().into_iter().find(|name| name.ends_with("-analyst-late.md")).unwrap();
    contains(&ran.stderr, &[&kept]);
    assert_eq!(fs::read_to_string(play.archive_folder().join(kept)).unwrap(), "half");
    // It is at it all the same: resumed, it is waited for, and not asked twice.
    play.configure(json!({}));
    play.resume().end().ends(0);
    play.passed();
    assert_eq!(play.records("asked").len(), TURNS.len());
}

/// A project with blanks and quotes in its name (S-110).
#[test]
fn s_110_a_project_with_an_odd_name() {
    let play = Play::new("");
    let project = play.env.work().join("a project's \"name\"");
    fs::create_dir(&project).unwrap();
    let mut command = play.command(&["-C"]);
    command.arg(&project);
    Followed::new(command).end().ends(0);
    assert_eq!(play.shown()["status"], "passed");
    assert!(project.join(".tmp").is_dir());
}

/// S-104: it grows while the agent is quiet already, and is taken when it does no more. S-113: something without a word in it
/// comes and goes where an answer belongs. S-114: the name in the archive is taken.
#[test]
fn s_104_s_113_s_114_files_that_change_under_the_hands() {
    let play = Play::new(
        r#"
        [[turn]]
        key = "analyst"
        nth = 1
        steps = [{ think = "300ms" }, { answer = { pieces = 8, gap = "40ms", late = "100ms" } }, { say = "Done." }]
        [[turn]]
        key = "programmer_review"
        nth = 1
        steps = [{ think = "800ms" }, { answer = {} }, { say = "Done." }]
        "#,
    );
    let mut followed = play.begin();
    followed.until("turn 1: analyst");
    let taken = play.archive_folder().join("001-analyst.md");
    fs::create_dir_all(taken.parent().unwrap()).unwrap();
    fs::write(&taken, "mine").unwrap();
    followed.until("turn 5: programmer");
    let review = play.response("programmer_review.md");
    let asked = || play.records("asked").iter().any(|asked| asked["key"] == "programmer_review");
    while !asked() {
        fs::write(&review, "").unwrap();
        // The run may have moved it away.
        let _ = fs::remove_file(&review);
    }
    followed.end().ends(0);
    play.passed();
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
    let name = play.archive().into_iter().find(|name| name.starts_with("001-analyst-")).unwrap();
    let whole = fs::read_to_string(taken.with_file_name(name)).unwrap();
    assert_eq!(play.journal("answered")[0]["text"].as_str().unwrap(), whole.trim());
}

/// S-117: the answer counts although it cannot be put away.
#[test]
fn s_117_an_answer_that_cannot_be_archived_counts() {
    let play = Play::new(&format!(
        "[[turn]]\nkey = \"tester\"\nsteps = [{PERMISSION}, {{ answer = {{}} }}, {{ say = \"Done.\" }}]"
    ));
    let followed = play.begin();
    // The tester does not answer before its question is approved.
    let tester = asks(&play);
    let archive = play.archive_folder();
    fs::rename(&archive, archive.with_extension("aside")).unwrap();
    fs::write(&archive, "no directory").unwrap();
    play.env.run(["approve", tester["id"].as_str().unwrap()]).ok();
    followed.end().ends(0);
    assert_eq!(play.shown()["status"], "passed");
    assert_eq!(play.journal("archived").last().unwrap()["name"], Value::Null);
    contains(&fs::read_to_string(play.response("test_result.md")).unwrap(), &["RESULT: PASS"]);
    contains(&fs::read_to_string(play.env.paths().log()).unwrap(), &["the response file is left where it is"]);
}
