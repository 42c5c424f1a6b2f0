//! The screens of each look and state.

use crate::agent::theatre::Theatre;

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

fn story(look: &str, columns: u16, rows: u16) -> Theatre {
    Theatre::open(&format!("look = \"{look}\"\n{STORY}"), columns, rows)
}

fn picture(theatre: &Theatre) -> String {
    theatre.screen().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn claude_from_the_box_to_the_end_of_a_turn() {
    let mut theatre = story("claude", 40, 24);
    insta::assert_snapshot!(picture(&theatre));
    for (keys, ms, rows) in [
        ("fix it", 0, "─\n❯␣fix it\n─"),
        ("\r", 100, "❯ fix it\n\n✢ Tinkering…\n\n─"),
        ("", 2100, "\n* Tinkering… (2s · esc to interrupt)\n"),
        ("", 3000, "❯ fix it\n\n● one two three four fiv\n\n────────────────────────────────────────\n❯␣\n"),
        ("", 3000, "\n\n  Bash(cargo test)\n  ⎿  Running…\n\n✻ Tinkering… (8s · esc to interrupt)\n\n─"),
        ("", 0, "─\n❯␣\n────────────────────────────────────────\n  esc to interrupt"),
    ] {
        theatre.keys(keys);
        theatre.wait_ms(ms);
        assert!(theatre.screen().contains(rows), "{rows}\n--- on the screen:\n{}", theatre.screen());
    }
    theatre.wait_ms(2000);
    insta::assert_snapshot!(picture(&theatre));
    assert!(theatre.terminal().hide_cursor());
    theatre.keys("1");
    insta::assert_snapshot!(picture(&theatre));
    assert!(!theatre.terminal().hide_cursor());
    assert_eq!(theatre.terminal().cursor_position(), (13, 2));
}

#[test]
fn claude_start_up_dialog_stands_alone() {
    let mut theatre = Theatre::open(
        "look = \"claude\"\nstart = [{ ask = { kind = \"startup\", detail = \"/project\", numbered = false, options = [\"No, exit\", \"Yes, I trust this folder\"], accept = 2 } }]",
        50,
        20,
    );
    insta::assert_snapshot!(picture(&theatre));
    theatre.keys("2y");
    assert!(theatre.screen().contains(" ❯ No, exit"), "digits and y do nothing where options have no numbers");
    theatre.keys("\x1b[B\r");
    assert!(theatre.screen().contains("❯␣"), "{}", theatre.screen());
}

#[test]
fn claude_questions_begin_in_the_first_column_and_plans_show_the_plan() {
    let ask = |fields: &str| {
        let text = format!("look = \"claude\"\nauto_prompt = \"x\"\n[[turn]]\nsteps = [{{ ask = {{ {fields} }} }}]");
        Theatre::open(&text, 50, 20)
    };
    let question = r#"kind = "question", text = "Which store?", options = ["Files", "SQLite"]"#;
    insta::assert_snapshot!(picture(&ask(question)));
    insta::assert_snapshot!(picture(&ask(r#"kind = "plan", detail = "1. Read\n2. Write""#)));
}

#[test]
fn codex_from_the_composer_to_the_end_of_a_turn() {
    let mut theatre = story("codex", 44, 26);
    insta::assert_snapshot!(picture(&theatre));
    theatre.keys("\x1b[200~fix it\x1b[201~\r");
    theatre.wait_ms(2000);
    let working = "› fix it\n\n◦ Working (2s • esc to interrupt)\n\n\n› Ask Codex to do anything\n";
    assert!(theatre.screen().contains(working), "{}", theatre.screen());
    theatre.wait_ms(10_000);
    insta::assert_snapshot!(picture(&theatre));
    theatre.keys("y");
    insta::assert_snapshot!(picture(&theatre));
}

#[test]
fn small_terminal_shows_the_end_of_a_dialog() {
    let mut theatre = story("claude", 20, 6);
    theatre.keys("go\r");
    assert!(theatre.rows()[3].starts_with("❯\u{a0}"), "{}", theatre.screen());
    theatre.wait_ms(12_000);
    insta::assert_snapshot!(picture(&theatre));
    theatre.resize(60, 24);
    assert!(theatre.screen().contains("\n ❯ 1. Yes\n   2. Yes, and don't ask again this session\n"));
}
