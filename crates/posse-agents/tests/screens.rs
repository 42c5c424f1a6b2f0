//! Every labelled screen, read by screen, title and foreground, and again by the screen alone; and failures of the service behind the agent.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::{Folder, Labelled, cases, check, detector, fixture, read, shown, status};
use posse_agents::manifest::built_in;
use posse_core::audit::By;
use posse_core::delivery::{Answer, Decision, Suggested, Wish, question};
use posse_core::detect::dialog::Meaning;
use posse_core::detect::{Detector, Dialog, Look, Memo, Reading};
use posse_core::screen::{Painted, Size};
use posse_core::time::Mono;
use posse_core::turn::ApiFailure;
use posse_core::turn::failure::{classify, standing};
use posse_term::emulator::{Emulator, HistoryLimit};

/// The screens that are not read as they are labelled.
fn wrong(folder: &Folder, detector: &Detector, with_title: bool) -> Vec<String> {
    let scored = folder.labelled.iter().filter(|screen| !screen.ambiguous);
    let wrong = scored.filter_map(|screen| {
        let rows = folder.rows(&screen.screen);
        let title = screen.title.as_deref().filter(|_| with_title);
        let look = Look { rows: &rows, title, foreground: screen.foreground.as_deref(), colours: None };
        let reading = detector.read(look, &mut Memo::default());
        (!agrees(screen, &reading))
            .then(|| format!("{}: {:?} by {} on {:?}", screen.screen, reading.status, reading.rule, reading.evidence))
    });
    wrong.collect()
}

/// The recorded screens by agent and version, as in `codex/0.166.0`.
fn folders() -> Vec<(String, Folder)> {
    let names = |path: &Path| {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        entries.collect::<BTreeSet<String>>()
    };
    let versions = |agent: String| names(&fixture(&agent)).into_iter().map(move |version| format!("{agent}/{version}"));
    names(&fixture("")).into_iter().flat_map(versions).map(|name| (name.clone(), Folder::open(&name))).collect()
}

fn recorded(provider: &str, version: &str, screen: &str) -> Reading {
    read(&detector(provider, None), &Folder::open(&format!("{provider}/{version}")).rows(screen))
}

fn agrees(screen: &Labelled, reading: &Reading) -> bool {
    let status = reading.status.map_or("none", |status| status.as_str());
    let kind = reading.waiting_kind.map(|kind| serde_json::to_value(kind).unwrap());
    let startup = screen.waiting_kind.is_none() == (kind != Some("startup".into()));
    startup && screen.accept.iter().any(|accepted| accepted == status)
}

/// The screens that cannot be read without their title.
const NEED_TITLE: [&str; 5] = [
    "claude_code/2.1.197/proc_stream_statusline.txt",
    "claude_code/2.1.197/proc_stream_typed_unsent.txt",
    // An answer that quotes signs of work: decision 0014.
    "codex/0.130.0/completed_quotes_signs_of_work.txt",
    "codex/0.130.0/proc_transcript.txt",
    "codex/0.145.0/proc_streaming.txt",
];

#[test]
fn every_labelled_screen_is_read_as_it_is_labelled() {
    let (mut wrong, mut without_title, mut read) = (Vec::new(), Vec::new(), 0);
    for (name, folder) in folders() {
        let detector = detector(name.split('/').next().unwrap(), None);
        let named = |line: String| format!("{name}/{line}");
        wrong.extend(self::wrong(&folder, &detector, true).into_iter().map(named));
        without_title.extend(self::wrong(&folder, &detector, false).into_iter().map(named));
        read += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let missed: Vec<&str> = without_title.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(missed, NEED_TITLE, "without title\n{}", without_title.join("\n"));
    assert!(read >= 12, "{read}");
}

#[test]
fn moments_without_a_recording_are_read() {
    for provider in ["claude_code", "codex", "opencode", "qwen", "kiro_cli"] {
        check(provider, None, &cases(include_str!("texts/derived.toml"), provider));
    }
}

/// The second option is drawn one column to the left, and without a blank after its number.
#[test]
fn options_of_a_narrow_terminal_are_read_and_answerable() {
    let dialog = |version: &str, screen: &str| {
        let reading = recorded("claude_code", version, screen);
        reading.dialog.unwrap_or_else(|| panic!("{version} {screen}: no dialog, by {}", reading.rule))
    };
    for (screen, second) in [
        ("perm_read_40x30.txt", "Yes, allow reading from etc/ during this session"),
        ("perm_webfetch_40x30.txt", "Yes, and don't ask again for 127.0.0.1"),
        ("perm_write_40x30.txt", "Yes, allow all edits during this session (shift+tab)"),
    ] {
        let dialog = dialog("2.1.120", screen);
        assert_eq!(dialog.options.len(), 3, "{screen}");
        assert_eq!(dialog.options[1].label, second);
        let meanings = dialog.options.iter().map(|option| option.meaning).collect::<Vec<_>>();
        assert_eq!(meanings, [Meaning::Accept, Meaning::Widen, Meaning::Deny], "{screen}");
    }
    let bash = dialog("2.1.120", "perm_bash_40x30.txt");
    assert!(bash.options[1].label.starts_with("Yes, and don't ask again for touch made.txt"), "{bash:?}");
    assert_eq!((bash.accepting(), bash.denying(), bash.selected()), (Some(0), Some(2), Some(0)));
    assert_eq!(dialog("2.1.310", "perm_bash_40x30.txt").accepting(), Some(0));
    assert_eq!(dialog("2.1.120", "ask_single_40x30.txt").options.len(), 4);
}

/// What `posse ls`, `posse show` and a run suggest for an open question can be carried out.
#[test]
fn hints_name_only_commands_that_can_answer() {
    let mut seen = BTreeSet::new();
    for (name, folder) in folders() {
        let provider = built_in(name.split('/').next().unwrap()).unwrap().unwrap();
        for screen in &folder.labelled {
            let rows = folder.rows(&screen.screen);
            let look = Look { rows: &rows, title: screen.title.as_deref(), ..Look::default() };
            let reading = provider.detector.read(look, &mut Memo::default());
            let Some(question) = question(&reading) else { continue };
            let suggested = Suggested::of(reading.dialog.as_ref(), reading.waiting_kind);
            seen.insert(format!("{suggested:?}"));
            let wishes = match suggested {
                Suggested::ApproveOrDeny => vec![Wish::Accept, Wish::Deny],
                Suggested::Approve => vec![Wish::Accept],
                Suggested::Choose => {
                    let options = &reading.dialog.as_ref().unwrap().options;
                    vec![Wish::Option(options.iter().position(|one| one.meaning != Meaning::Widen).unwrap())]
                }
                Suggested::Keyboard => continue,
            };
            for wish in wishes {
                let decision = Decision::new(question.clone(), wish, By::Person);
                assert_eq!(decision.check(&reading), Ok(()), "{}: {wish:?}", screen.screen);
                let keys = Answer::new(decision, provider.manifest.answer.clone(), Mono::default()).plan(&reading);
                assert!(!keys.is_empty(), "{}: {wish:?} has no keys", screen.screen);
            }
        }
    }
    assert!(seen.contains("ApproveOrDeny") && seen.contains("Choose"), "{seen:?}");
}

/// In the dialog about the folder a number only moves the cursor: Enter confirms it.
#[test]
fn the_folder_dialog_of_codex_is_confirmed_by_enter() {
    let provider = built_in("codex").unwrap().unwrap();
    let reading = recorded("codex", "0.166.0", "startup_trust_git_nodaemon.txt");
    for (wish, expected) in [(Wish::Accept, vec!["enter"]), (Wish::Deny, vec!["down", "enter"])] {
        let decision = Decision::new(question(&reading).unwrap(), wish, By::Person);
        let keys = Answer::new(decision, provider.manifest.answer.clone(), Mono::default()).plan(&reading);
        let names: Vec<String> = keys.iter().map(|key| posse_core::keys::name(key)).collect();
        assert_eq!(names, expected, "{wish:?}");
    }
}

/// Qwen Code 0.24 draws a scrollbar beside a conversation that moves, also beside the options of a dialog.
#[test]
fn a_scrollbar_is_no_part_of_an_option() {
    let bare = Folder::open("qwen/0.24.4").rows("wait_bash_confirm.txt");
    let with_bar = |(at, row): (usize, &String)| match at {
        0..29 => format!("{row}{}{}", " ".repeat(99 - row.chars().count().min(99)), if at < 4 { '│' } else { '█' }),
        _ => row.clone(),
    };
    let scrolled: Vec<String> = bare.iter().enumerate().map(with_bar).collect();
    for rows in [bare, scrolled] {
        let dialog = read(&detector("qwen", None), &rows).dialog.unwrap();
        assert_eq!(
            in_short(&dialog),
            [
                ">Yes, allow once 1 Accept",
                "Always allow run 'touch *' commands in this project 2 Widen",
                "Always allow run 'touch *' commands for this user 3 Widen",
                "No, suggest changes esc Deny"
            ]
        );
        assert_eq!((dialog.tool.as_deref(), dialog.subject.as_deref()), (Some("Shell"), Some("touch q3.txt")));
    }
}

#[test]
fn an_option_that_needs_two_rows_is_one() {
    let reading = recorded("claude_code", "2.1.197", "perm_bash_60x20_wrapped_option.txt");
    let labels: Vec<&str> = reading.dialog.iter().flat_map(|dialog| &dialog.options).map(|one| &*one.label).collect();
    assert_eq!(labels, ["Yes", "Yes, and always allow access to project/ from this project", "No"]);
}

/// A screen with its colours, and what is changed in its bytes before.
fn dialog(screen: &str, change: impl Fn(String) -> String) -> Option<Dialog> {
    let bytes = change(Folder::open("opencode/1.18.33").text(screen)).trim_end().replace('\n', "\r\n");
    let mut emulator = Emulator::new(Size::clamped(40, 120), HistoryLimit::default());
    emulator.feed(bytes.as_bytes());
    let rows = emulator.screen().rows;
    let look = Look { rows: &rows, colours: Some(&emulator as &dyn Painted), ..Look::default() };
    built_in("opencode").unwrap().unwrap().detector.read(look, &mut Memo::default()).dialog
}

fn in_short(dialog: &Dialog) -> Vec<String> {
    let option = |option: &posse_core::detect::dialog::Choosable| {
        let (mark, key) = (if option.selected { ">" } else { "" }, option.key.as_deref().unwrap_or("-"));
        format!("{mark}{} {key} {:?}", option.label, option.meaning)
    };
    dialog.options.iter().map(option).collect()
}

#[test]
fn opencode_tells_by_colours_what_is_selected() {
    let same = |text: String| text;
    let once = dialog("wait_bash_once.ansi", same).unwrap();
    assert_eq!(in_short(&once), [">Allow once - Accept", "Allow always - Widen", "Reject - Deny"]);
    assert_eq!(once.question, "△ Permission required # Shell command");
    let command = "echo made > made.txt && cat made.txt";
    assert_eq!((once.tool.as_deref(), once.subject.as_deref()), (Some("bash"), Some(command)));
    for (screen, options) in [
        ("wait_bash_always.ansi", ["Allow once - Accept", ">Allow always - Widen", "Reject - Deny"]),
        ("wait_bash_reject.ansi", ["Allow once - Accept", "Allow always - Widen", ">Reject - Deny"]),
    ] {
        let moved = dialog(screen, same).unwrap();
        assert_eq!(in_short(&moved), options, "{screen}");
        assert_eq!(moved.id, once.id, "it is the same question wherever its cursor is");
    }
    let always = dialog("wait_always_confirm.ansi", same).unwrap();
    assert_eq!(in_short(&always), [">Confirm - Widen", "Cancel - Other"]);
    assert_eq!(always.accepting(), None, "nothing in it allows just this once");
    let text = dialog("wait_bash_once.txt", same).unwrap();
    assert_eq!((text.accepting(), text.selected()), (Some(0), None), "without colours nothing is selected");
}

/// It draws the frame of the question first. Nothing may be allowed by that alone.
#[test]
fn opencode_question_without_its_command_is_cut() {
    let full = dialog("wait_bash_once.ansi", |text| text).unwrap();
    assert!(!full.cut && !full.is_half_drawn());
    for description in ["Shell command", "List files"] {
        let described = |text: String| text.replace("Shell command", description);
        let captioned = dialog("wait_bash_once.ansi", described).unwrap();
        assert_eq!(captioned.subject, full.subject, "{description}");
        let without = |text: String| described(text).replace("$ echo made > made.txt && cat made.txt", "");
        let half = dialog("wait_bash_once.ansi", without).unwrap();
        assert!(half.cut && half.is_half_drawn(), "{description}: {half:?}");
    }
}

#[test]
fn opencode_asks_for_more_than_permissions() {
    let same = |text: String| text;
    let question = dialog("wait_question.ansi", same).unwrap();
    assert_eq!(question.question, "Which colour do you like?");
    assert_eq!(in_short(&question), ["Red Warm 1 Other", "Blue Cold 2 Other", "Type your own answer 3 Other"]);
    let reason = dialog("wait_reject_reason.ansi", same).unwrap();
    assert_eq!(in_short(&reason), ["Reject enter Deny", "Cancel esc Other"]);
    assert!(reason.options.iter().all(|option| !option.then_enter && option.meaning != Meaning::Accept));
    let turning = dialog("wait_reject_reason.ansi", |text| text.replace('⠧', "⠇")).unwrap();
    assert_eq!(turning.id, reason.id, "what turns above it is not part of it");
}

fn failure_word(failure: Option<ApiFailure>) -> String {
    match failure {
        None => "nothing".into(),
        Some(ApiFailure::UsageLimit { resets }) => format!("limit, {}", resets.as_deref().unwrap_or("no time")),
        Some(ApiFailure::Server(_)) => "server".into(),
        Some(ApiFailure::Dropped) => "dropped".into(),
        Some(ApiFailure::Other(_)) => "other".into(),
    }
}

/// A turn is failed early for words on the screen of an agent that is not in `error`: they must not be found by accident.
#[test]
fn failures_are_read_where_they_are_labelled_and_nowhere_else() {
    let mut failures = 0;
    for (name, folder) in folders() {
        for screen in &folder.labelled {
            let text = folder.text(&screen.screen);
            if let Some(expected) = &screen.failure {
                failures += 1;
                assert_eq!(failure_word(classify(&text)), *expected, "{name}/{}\n{text}", screen.screen);
            }
            if !screen.accept.iter().any(|status| status == "error") {
                assert_eq!(standing(&text), None, "{name}/{}\n{text}", screen.screen);
            }
        }
    }
    assert_eq!(failures, 26);
}

/// Screens of agents that cannot be installed here, where someone has put them. They are not ours to copy.
fn check_references(provider: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference").join(provider);
    let Ok(files) = std::fs::read_dir(&folder) else {
        println!("skipped: there is no {}", folder.display());
        return;
    };
    let mut wrong = Vec::new();
    for file in files {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let expected = match () {
            () if name.contains("trust_all") => "waiting_user_answer/startup",
            () if name.contains("stale") || name.contains("completed") => "completed",
            () if name.contains("permission") => "waiting_user_answer/permission",
            () if name.contains("idle") => "idle",
            () if name.contains("error") => "error",
            () => "processing",
        };
        let rows = shown(&std::fs::read_to_string(&path).unwrap());
        // `[name]` in the prompt tells the profile.
        let named = rows.iter().rev().find_map(|row| Some(row.strip_prefix('[')?.split_once(']')?.0));
        for profile in [None, named] {
            let detector = detector(provider, profile);
            let reading = read(&detector, &rows);
            if status(&reading) != expected {
                wrong.push(format!("{name} ({profile:?}): {} by {}", status(&reading), reading.rule));
            }
            if expected == "completed" && detector.last_answer(&rows).is_none() {
                wrong.push(format!("{name}: completed, and no answer"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn q_cli_references() {
    check_references("q_cli");
}

#[test]
fn kiro_cli_references() {
    check_references("kiro_cli");
}
