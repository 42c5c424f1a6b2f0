//! The screens of each look and state.

use crate::agent::theatre::{Theatre, assert_screen};

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

#[test]
fn claude_from_the_box_to_the_end_of_a_turn() {
    let mut theatre = story("claude", 40, 24);
    assert_screen(
        &theatre,
        "
────────────────────────────────────────
❯␣
────────────────────────────────────────
  ? for shortcuts",
    );
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
    assert_screen(
        &theatre,
        "
❯ fix it

● one two three four five six seven
  eight nine ten

● Bash(cargo test)
  ⎿  ok

────────────────────────────────────────
 Bash command
   rm -r target
   Remove the build

 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and don't ask again this
      session
   3. No

 Esc to cancel · Tab to amend",
    );
    assert!(theatre.terminal().hide_cursor());
    theatre.keys("1");
    assert_screen(
        &theatre,
        "
❯ fix it

● one two three four five six seven
  eight nine ten

● Bash(cargo test)
  ⎿  ok

● All done.

✻ Worked for 10s

────────────────────────────────────────
❯␣
────────────────────────────────────────
  ? for shortcuts",
    );
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
    assert_screen(
        &theatre,
        "
──────────────────────────────────────────────────
 Accessing workspace:
   /project

 Do you trust the files in this folder?

 ❯ No, exit
   Yes, I trust this folder

 Enter to confirm · Esc to cancel",
    );
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
    assert_screen(
        &ask(question),
        "
❯ x

──────────────────────────────────────────────────
 ☐ Question

Which store?

❯ 1. Files
  2. SQLite

Enter to select · ↑/↓ to navigate · Esc to cancel",
    );
    assert_screen(
        &ask(r#"kind = "plan", detail = "1. Read\n2. Write""#),
        "
❯ x

──────────────────────────────────────────────────
 Ready to code?
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 1. Read
 2. Write
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌

 The plan is ready. Would you like to proceed?

 ❯ 1. Yes, and use auto mode
   2. Yes, manually approve edits
   3. Tell Claude what to change

 ctrl+g to edit the plan",
    );
}

#[test]
fn codex_from_the_composer_to_the_end_of_a_turn() {
    let mut theatre = story("codex", 44, 26);
    assert_screen(
        &theatre,
        "
› Ask Codex to do anything

  actor-1 medium · /project
  ? for shortcuts",
    );
    theatre.keys("\x1b[200~fix it\x1b[201~\r");
    theatre.wait_ms(2000);
    let working = "› fix it\n\n◦ Working (2s • esc to interrupt)\n\n\n› Ask Codex to do anything\n";
    assert!(theatre.screen().contains(working), "{}", theatre.screen());
    theatre.wait_ms(10_000);
    assert_screen(
        &theatre,
        "
› fix it

• one two three four five six seven eight
  nine ten

• Ran cargo test
  └ ok


  Would you like to run the following
  command?

  Remove the build

  $ rm -r target

› 1. Yes, proceed (y)
  2. Yes, and don't ask again for commands
     like this (p)
  3. No, and tell Codex what to do
     differently (esc)

  Press enter to confirm or esc to cancel",
    );
    theatre.keys("y");
    assert_screen(
        &theatre,
        "
› fix it

• one two three four five six seven eight
  nine ten

• Ran cargo test
  └ ok

✔ You approved codex to run rm -r target
  this time

• All done.

  Worked for 12s • 12:00


› Ask Codex to do anything

  actor-1 medium · /project
  ? for shortcuts",
    );
}

#[test]
fn errors_and_refusals_have_rows_of_the_look() {
    let end = |look: &str, steps: &str, keys: &str| {
        let text = format!("look = \"{look}\"\nauto_prompt = \"x\"\n[[turn]]\nsteps = [{steps}]");
        let mut theatre = Theatre::open(&text, 60, 20);
        theatre.wait_ms(500);
        theatre.keys(keys);
        theatre.wait_ms(500);
        theatre.screen()
    };
    let error = r#"{ fail = { message = "API Error: 500 overloaded" } }"#;
    let ask = r#"{ ask = { kind = "permission", command = "make" } }"#;
    let stream = r#"{ say = { text = "some words", rate = 4 } }"#;
    for (look, steps, keys, rows) in [
        ("claude", error, "", "● API Error: 500 overloaded\n\n✻ Worked for 0s"),
        ("claude", ask, "\x1b", "● Bash(make)\n  ⎿  Interrupted · What should Claude do instead?\n\n───"),
        ("claude", ask, "3", "● Bash(make)\n  ⎿  Interrupted · What should Claude do instead?\n\n───"),
        ("claude", stream, "\x1b", "● so\n  ⎿  Interrupted · What should Claude do instead?\n\n───"),
        ("codex", error, "", "■ API Error: 500 overloaded\n\n\n› "),
        ("codex", ask, "n", "✗ You canceled the request to run make\n\n■ Conversation interrupted"),
        ("codex", stream, "\x1b", "• so\n\n■ Conversation interrupted"),
    ] {
        let screen = end(look, steps, keys);
        assert!(screen.contains(rows), "{look} {steps}\n{screen}");
    }
}

#[test]
fn small_terminal_shows_the_end_of_a_dialog() {
    let mut theatre = story("claude", 20, 6);
    theatre.keys("go\r");
    assert!(theatre.rows()[3].starts_with("❯\u{a0}"), "{}", theatre.screen());
    theatre.wait_ms(12_000);
    assert_screen(
        &theatre,
        "
      ask again this
      session
   3. No

 Esc to cancel · Tab
 to amend",
    );
    theatre.resize(60, 24);
    assert!(theatre.screen().contains("\n ❯ 1. Yes\n   2. Yes, and don't ask again this session\n"));
}
