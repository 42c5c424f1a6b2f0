//! The screens of each look and state.

use super::*;

const STORY: &str = r#"
[[turn]]
steps = [
  { think = "3s" },
  { say = { text = "one two three four five six seven eight nine ten", rate = 10 } },
  { tool = { input = "cargo test", for = "2s", output = "ok" } },
  { ask = { kind = "permission", command = "rm -r target", detail = "Remove the build" } },
  { say = "All done." },
]
"#;

fn story(look: &str, size: (u16, u16), cues: impl IntoIterator<Item = (u64, Cue)>) -> Theatre {
    play(&format!("look = \"{look}\"\n{STORY}"), size, cues).0.host
}

fn picture(scenario: &str) -> String {
    play(scenario, (50, 20), [(10, Cue::Look)]).0.host.looks.remove(0)
}

#[test]
fn claude_from_the_box_to_the_end_of_a_turn() {
    let cues = [
        (0, Cue::Look),
        (1, keys("fix it")),
        (2, Cue::Look),
        (3, keys("\r")),
        (104, Cue::Look),
        (2204, Cue::Look),
        (5204, Cue::Look),
        (8204, Cue::Look),
        (12_000, Cue::Look),
        (12_001, keys("1")),
        (12_002, Cue::Look),
    ];
    let theatre = story("claude", (40, 24), cues);
    let rows = [
        "",
        "─\n❯␣fix it\n─",
        "❯ fix it\n\n✢ Tinkering…\n\n─",
        "\n* Tinkering… (2s · esc to interrupt)\n",
        "❯ fix it\n\n● one two three four fiv\n\n────────────────────────────────────────\n❯␣\n",
        "\n\n  Bash(cargo test)\n  ⎿  Running…\n\n✻ Tinkering… (8s · esc to interrupt)\n\n─",
    ];
    for (look, rows) in theatre.looks.iter().zip(rows) {
        assert!(look.contains(rows), "{rows}\n--- on the screen:\n{look}");
    }
    insta::assert_snapshot!(theatre.looks[0]);
    insta::assert_snapshot!(theatre.looks[6]);
    insta::assert_snapshot!(theatre.looks[7]);
    assert!(!theatre.terminal.screen().hide_cursor());
    assert_eq!(theatre.terminal.screen().cursor_position(), (13, 2));
}

#[test]
fn claude_start_up_dialog_stands_alone() {
    let scenario = "look = \"claude\"\nstart = [{ ask = { kind = \"startup\", detail = \"/project\", numbered = false, options = [\"No, exit\", \"Yes, I trust this folder\"], accept = 2 } }]";
    let cues = [(0, Cue::Look), (1, keys("2y")), (2, Cue::Look), (3, keys("\x1b[B\r")), (4, Cue::Look)];
    let looks = play(scenario, (50, 20), cues).0.host.looks;
    insta::assert_snapshot!(looks[0]);
    assert!(looks[1].contains(" ❯ No, exit"), "digits and y do nothing where options have no numbers");
    assert!(looks[2].contains("❯␣"), "{}", looks[2]);
}

#[test]
fn claude_questions_begin_in_the_first_column() {
    let ask = r#"{ ask = { kind = "question", text = "Which store?", options = ["Files", "SQLite"] } }"#;
    insta::assert_snapshot!(picture(&claude(ask)));
}

#[test]
fn codex_from_the_composer_to_the_end_of_a_turn() {
    let cues = [
        (0, Cue::Look),
        (1, keys("\x1b[200~fix it\x1b[201~\r")),
        (2002, Cue::Look),
        (12_001, Cue::Look),
        (12_002, keys("y")),
        (12_003, Cue::Look),
    ];
    let looks = story("codex", (44, 26), cues).looks;
    insta::assert_snapshot!(looks[0]);
    let working = "› fix it\n\n◦ Working (2s • esc to interrupt)\n\n\n› Ask Codex to do anything\n";
    assert!(looks[1].contains(working), "{}", looks[1]);
    insta::assert_snapshot!(looks[2]);
    insta::assert_snapshot!(looks[3]);
}

#[test]
fn small_terminal_shows_the_end_of_a_dialog() {
    let cues = [(0, keys("go\r")), (12_000, Cue::Look), (12_001, Cue::Resize(60, 24)), (12_002, Cue::Look)];
    let looks = story("claude", (20, 6), cues).looks;
    insta::assert_snapshot!(looks[0]);
    assert!(looks[1].contains("\n ❯ 1. Yes\n   2. Yes, and don't ask again this session\n"));
}
