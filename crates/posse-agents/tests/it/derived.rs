//! Moments of which we have no recording, written down from how the interfaces work.

use crate::common::{self, Case};

const RULE: &str = "────────────────────────────────────────";

/// Name, title, text, expected.
type Derived = (&'static str, Option<&'static str>, String, &'static str);

fn check(provider: &str, cases: &[Derived]) {
    let case = |(name, title, text, expected): &Derived| Case { name, title: *title, text: text.clone(), expected };
    common::check(provider, None, &cases.iter().map(case).collect::<Vec<_>>());
}

fn claude(conversation: &str, field: &str, below: &str) -> String {
    format!("{conversation}\n\n{RULE}\n{field}\n{RULE}\n{below}")
}

fn claude_dialog(body: &str) -> String {
    format!("❯ go\n\n● Bash(make)\n  ⎿  Running…\n\n{RULE}\n{body}")
}

#[test]
fn claude_code() {
    let said = "❯ go\n\n● Done.\n\n✻ Baked for 4s · done 9:07 PM";
    let asked = " Bash command\n\n   make\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, and don't ask again for: make *\n   3. No";
    check(
        "claude_code",
        &[
            (
                "transcript",
                Some("✳ x"),
                format!("{said}\n{RULE}\n  Showing detailed transcript · ctrl+o to toggle"),
                "completed",
            ),
            (
                "transcript in the middle of a turn",
                Some("✳ x"),
                format!("{said}\n\n❯ more\n\n● Text\n\n{RULE}\n  Showing detailed transcript · ctrl+o to toggle"),
                "nothing",
            ),
            (
                "transcript while it works",
                Some("◐ x"),
                format!("{said}\n{RULE}\n  Showing detailed transcript · ctrl+o"),
                "processing",
            ),
            (
                "settings",
                None,
                format!(
                    "❯ /config\n{RULE}\n  Settings:  Status  Config  Usage\n\n  ❯ Auto-compact   true\n    Show tips      false\n\n  Enter to change · Esc to exit"
                ),
                "nothing",
            ),
            ("shell mode", None, claude(said, "!\u{a0}ls", "  ! for shell mode"), "completed"),
            (
                "status line of one's own",
                Some("✳ x"),
                claude(said, "❯\u{a0}", "  ~/p  main ✗  12% ctx\n  ⏵⏵ accept edits on"),
                "completed",
            ),
            (
                "status line of one's own, working",
                Some("⠐ x"),
                claude("❯ go\n\n● Text", "❯\u{a0}", "  ~/p  main ✗  12% ctx"),
                "processing",
            ),
            (
                "name in the rule",
                None,
                claude(said, "❯\u{a0}", "").replacen(RULE, "──────────────────────── worker-7 ──", 1),
                "completed",
            ),
            ("a draft of several rows", None, claude(said, "❯\u{a0}one\n\n  two", ""), "completed"),
            (
                "commands below",
                None,
                claude(said, "❯\u{a0}/mo", "  /model   Set the model\n  /memory  Edit memory"),
                "completed",
            ),
            (
                "compacting",
                None,
                claude("❯ /compact\n\n✽ Compacting conversation… (5s · ↑ 1.2k tokens)", "❯\u{a0}", ""),
                "processing",
            ),
            (
                "other verbs and figures",
                None,
                claude("❯ go\n\n✢ Flibbertigibbeting… (1h 2m 3s · thinking)", "❯\u{a0}", ""),
                "processing",
            ),
            (
                "a task list below the spinner",
                None,
                claude("❯ go\n\n✻ Building… (3s)\n  ⎿  ☐ one\n     ☐ two", "❯\u{a0}", ""),
                "processing",
            ),
            (
                "a task list below a dialog",
                None,
                claude_dialog(&format!("{asked}\n\n Esc to cancel\n\n  2 tasks (0 done, 2 open)\n  ◻ one\n  ◻ two")),
                "waiting_user_answer/permission",
            ),
            (
                "a dialog in a narrow terminal",
                None,
                format!(
                    "{}\n Bash command\n\n   make\n\n Do you want to\n proceed?\n ❯ 1. Yes\n   2. No",
                    "─".repeat(20)
                ),
                "waiting_user_answer/permission",
            ),
            (
                "cursor on the last option",
                None,
                claude_dialog(&asked.replace(" ❯ 1", "   1").replace("   3. No", " ❯ 3. No")),
                "waiting_user_answer/permission",
            ),
            ("a dialog without footer", None, claude_dialog(asked), "waiting_user_answer/permission"),
            (
                "a question",
                None,
                claude_dialog(
                    " ☐ Scope\n\nHow far?\n\n  1. All\n❯ 2. Some\n     Only what changed\n  3. Type something.\n\nEnter to select · ↑/↓ to navigate · Esc to cancel",
                ),
                "waiting_user_answer/question",
            ),
            (
                "a plan",
                None,
                claude_dialog(
                    " Ready to code?\n\n Claude has written up a plan and is ready to execute. Would you like to proceed?\n\n ❯ 1. Yes, and auto-accept edits\n   2. Yes, and manually approve edits\n   3. No, keep planning",
                ),
                "waiting_user_answer/plan",
            ),
            (
                "a quoted dialog with its rule",
                None,
                claude(
                    &format!(
                        "❯ go\n\n● It shows:\n\n  {RULE}\n   Bash command\n   Do you want to proceed?\n   ❯ 1. Yes\n     2. No\n\n   Esc to cancel"
                    ),
                    "❯\u{a0}",
                    "",
                ),
                "completed",
            ),
            (
                "a usage limit",
                None,
                claude("❯ go\n  ⎿  You've hit your session limit · resets 3pm", "❯\u{a0}", ""),
                "error",
            ),
            (
                "an answer about errors",
                None,
                claude("❯ go\n\n● The API Error: 500 is handled now.", "❯\u{a0}", ""),
                "completed",
            ),
            (
                "after SIGKILL",
                Some("◐ x"),
                claude("❯ go\n\n✻ Baking… (3s)", "❯\u{a0}", "  esc to interrupt"),
                "processing",
            ),
        ],
    );
}

fn codex(conversation: &str, field: &str) -> String {
    format!(
        "{conversation}\n\n{field}\n\n  gpt-6 medium · /srv/p · Some title\n  ? for shortcuts          ⚠ 1 warning · f2 to view"
    )
}

#[test]
fn codex_screens() {
    let said = "› go\n\n• Done.\n\n  Worked for 5s • 19:47";
    check(
        "codex",
        &[
            ("a question", None, "› go\n\n  Question 1/2 (2 unanswered)\n  How far?\n\n  › 1. All (Recommended)  Everything\n    2. Some               Only what changed\n    3. None of the above\n\n  tab to add notes | enter to submit answer | ←/→ to navigate questions\n  esc to interrupt".into(), "waiting_user_answer/question"),
            ("notes to a question", None, "  Question 1/1\n  How far?\n\n  › 1. All\n    2. Some\n\n  › a note\n\n  tab or esc to clear notes | enter to submit answer".into(), "waiting_user_answer/question"),
            ("a question without options", None, "  Question 1/1 (1 unanswered)\n  Tell me.\n\n  › Type your answer (optional)\n\n\n  enter to submit answer | esc to interrupt".into(), "waiting_user_answer/question"),
            ("a tool of a server", Some("[ ! ] Action Required | p"), "• Calling lab.danger\n\n  Allow the lab MCP server to run tool \"danger\"?\n\n  x: 1\n\n  › 1. Allow                   Run the tool and continue.\n    2. Allow for this session  Run it and remember.\n    3. Always allow\n    4. Cancel\n\n  enter to submit | esc to cancel".into(), "waiting_user_answer/permission"),
            ("the network", None, "  Do you want to approve network access to \"example.com\"?\n\n› 1. Yes, just this once (y)\n  2. Yes, and allow this host for this session (a)\n  3. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel".into(), "waiting_user_answer/permission"),
            ("cursor on the last option", None, "  Would you like to run the following command?\n\n  $ ls\n\n  1. Yes, proceed (y)\n  2. Yes, and don't ask again (p)\n› 3. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel".into(), "waiting_user_answer/permission"),
            ("a plan", None, "• Proposed Plan\n\n  Implement this plan?\n\n› 1. Yes, implement this plan  Switch to Default and start coding.\n  2. No, stay in Plan mode\n\n  Press enter to confirm or esc to go back".into(), "waiting_user_answer/plan"),
            ("models", None, format!("{said}\n\n  Select Model and Effort\n  Access legacy models with -m\n\n› 1. gpt-6 (current)  Newest\n  2. gpt-5.5          Older\n\n  Press enter to confirm or esc to go back"), "nothing"),
            ("hooks", None, "  Hooks need review\n  2 hooks are new or changed.\n\n› 1. Review hooks\n  2. Trust all and continue\n  3. Continue without trusting (hooks won't run)\n\n  Press enter to confirm or esc to go back".into(), "waiting_user_answer/startup"),
            ("an update", None, "  ✨ Update available! 0.166.0 -> 0.167.0\n\n  Release notes: https://example.com\n\n› 1. Update now (runs `npm install -g @openai/codex`)\n  2. Skip\n  3. Skip until next version\n\n  Press enter to continue".into(), "waiting_user_answer/startup"),
            ("trust, older", None, "> You are in /srv/p\n\n  Do you trust the contents of this directory?\n\n› 1. Yes, continue\n  2. No, quit\n\n  Press enter to continue".into(), "waiting_user_answer/startup"),
            ("rate limits", None, format!("{said}\n\n  Approaching rate limits\n  Switch to gpt-mini for lower credit usage?\n\n› 1. Switch to gpt-mini\n  2. Keep current model\n\n  Press enter to confirm or esc to go back"), "waiting_user_answer/question"),
            ("transcript", Some("p"), "/ T R A N S C R I P T / / / / / / / / / / / /\n› go\n\n• Done.\n───────────────────── 100% ─\n ↑/↓ to scroll   pgup/pgdn to page\n q to quit   esc to edit prev".into(), "nothing"),
            ("transcript while it works", Some("⠋ p"), "/ T R A N S C R I P T / / / / / / / / / / / /\n› go\n\n• Text\n q to quit".into(), "processing"),
            ("commands below", Some("p"), format!("{said}\n\n› /mo\n\n  /model   choose what model and reasoning effort to use\n  /modes   choose a mode"), "completed"),
            ("about to quit", Some("p"), format!("{said}\n\n› x\n\n  ctrl + c again to quit"), "completed"),
            ("a draft that is a list", Some("p"), codex(said, "› 1. first\n  2. second"), "completed"),
            ("a draft with a blank row", Some("p"), codex(said, "› one\n\n  two"), "completed"),
            ("a status line of one's own", Some("p"), format!("{said}\n\n› x\n\n  main · 12 files"), "completed"),
            ("about to ask", Some("[ . ] Action Required | p"), codex("› go\n\n• Running ls", "› x"), "processing"),
            ("very narrow", None, "› go\n\n• Working (12s • es…\n\n› Ask Codex to do…\n\n  gpt-6 · /sr…".into(), "processing"),
            ("hours", None, codex("› go\n\n◦ Thinking about it (1h 02m 03s • esc to interrupt)", "› x"), "processing"),
            ("streaming", Some("⠋ p"), codex("› go\n\n• Text", "› x"), "processing"),
            ("an answer without a row that closes it", Some("p"), codex("› go\n\n• Text", "› x"), "completed"),
            ("a warning is no error", Some("p"), codex("› go\n\n⚠ Something odd\n\n• Done.", "› x"), "completed"),
        ],
    );
}

fn opencode(conversation: &str, below: &str) -> String {
    format!("{conversation}\n\n  ┃\n  ┃  x\n  ┃\n  ┃  Build · Model Mock\n  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\n   {below}")
}

#[test]
fn opencode_screens() {
    let said = "  ┃\n  ┃  go\n  ┃\n\n     Done.\n\n     ▣  Build · Model · 3.2s";
    let asked = "     ▣  Build · Model\n\n  ┃\n  ┃  △ Permission required\n  ┃    # List files\n  ┃\n  ┃  $ ls\n  ┃\n";
    check(
        "opencode",
        &[
            ("a command", None, format!("{asked}  ┃   Allow once   Allow always   Reject      ctrl+f fullscreen  ⇆ select  enter confirm\n  ┃"), "waiting_user_answer/permission"),
            ("a command in a narrow terminal", None, format!("{asked}  ┃   Allow once   Allow always   Reject\n  ┃\n  ┃  ctrl+f fullscreen  ⇆ select  enter confirm\n  ┃"), "waiting_user_answer/permission"),
            ("always", None, "  ┃\n  ┃  △ Always allow\n  ┃\n  ┃  This will allow the following patterns until OpenCode is restarted\n  ┃\n  ┃   Confirm   Cancel        ⇆ select  enter confirm\n  ┃".into(), "waiting_user_answer/permission"),
            ("a question", None, format!("{said}\n\n  ┃\n  ┃  How far?\n  ┃\n  ┃  1. All\n  ┃     Everything\n  ┃  2. Type your own answer\n  ┃\n  ┃  ↑↓ select  enter submit  esc dismiss\n  ┃"), "waiting_user_answer/question"),
            ("again to interrupt", None, opencode(said, "■■■⬝⬝⬝  esc again to interrupt"), "processing"),
            ("quoted", None, opencode("  ┃\n  ┃  go\n  ┃\n\n     △ Permission required\n     esc interrupt\n\n     ▣  Build · Model · 3.2s", "/p"), "completed"),
            ("interrupted", None, opencode("  ┃\n  ┃  go\n  ┃\n\n     ▣  Build · Model · interrupted", "/p"), "completed"),
            ("an error", None, opencode("  ┃\n  ┃  go\n  ┃\n\n  ┃\n  ┃  Unauthorized\n  ┃\n\n     ▣  Plan · Model", "/p"), "error"),
            ("an older error", None, opencode(&format!("  ┃\n  ┃  Unauthorized\n  ┃\n\n     ▣  Plan · Model\n\n{said}"), "/p"), "completed"),
            ("fresh", None, "             ┃\n             ┃  Ask anything... \"Fix broken tests\"\n             ┃\n             ┃  Build · Model\n             ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\n                    tab agents  ctrl+p commands".into(), "idle"),
        ],
    );
}

fn qwen(conversation: &str, field: &str) -> String {
    format!("{conversation}\n\n{RULE}\n{field}\n{RULE}\n  ? for shortcuts")
}

fn qwen_dialog(body: &str) -> String {
    let rows: Vec<String> = body.lines().map(|row| format!("  │ {row:<50} │")).collect();
    format!("  > go\n\n  ╭{RULE}╮\n{}\n  ╰{RULE}╯\n\n  ⠏ Waiting for user confirmation...", rows.join("\n"))
}

#[test]
fn qwen_screens() {
    let options = "› 1. Yes, allow once\n  2. Yes, allow always\n  3. No, suggest changes (esc)";
    check(
        "qwen",
        &[
            (
                "an edit",
                None,
                qwen_dialog(&format!("?  WriteFile Writing to a.txt ←\n\n1 + one\n\nApply this change?\n\n{options}")),
                "waiting_user_answer/permission",
            ),
            (
                "cursor elsewhere",
                None,
                qwen_dialog(&format!(
                    "?  Shell ls ←\n\nls\n\nAllow execution of: 'ls'?\n\n{}",
                    options.replace("› 1", "  1").replace("  3", "› 3")
                )),
                "waiting_user_answer/permission",
            ),
            (
                "a tool of a server",
                None,
                qwen_dialog(&format!(
                    "?  danger ←\n\nMCP Server: lab\nTool: danger\n\nAllow execution of MCP tool \"danger\" from server \"lab\"?\n\n{options}"
                )),
                "waiting_user_answer/permission",
            ),
            (
                "a plan",
                None,
                qwen_dialog(
                    "?  ExitPlanMode Plan: ←\n\nWould you like to proceed?\n\n› 1. Yes, and auto-accept edits\n  2. Yes, and manually approve edits\n  3. No, keep planning (esc)",
                ),
                "waiting_user_answer/plan",
            ),
            (
                "a dialog that is still drawn without its menu",
                None,
                "  > go\n\n  ╭──────────╮\n  │ ?  Shell │\n  ╰──────────╯\n\n  ⠏ Waiting for user confirmation..."
                    .into(),
                "waiting_user_answer/question",
            ),
            (
                "login",
                None,
                format!(
                    "  ╭{RULE}╮\n  │ Get started                                │\n  │                                            │\n  │ How would you like to authenticate?        │\n  │                                            │\n  │ › 1. Qwen OAuth                            │\n  │   2. OpenAI                                │\n  ╰{RULE}╯"
                ),
                "waiting_user_answer/startup",
            ),
            (
                "a narrow terminal",
                None,
                qwen("  > go\n\n  ⠋ Thinking\n  (12s · esc to cancel)", ">   Type your message"),
                "processing",
            ),
            (
                "quoted",
                None,
                qwen("  > go\n\n  ✦ It shows\n\n    ⠋ Thinking (2s · esc to cancel)", ">   Type your message"),
                "completed",
            ),
            (
                "minutes",
                None,
                qwen("  > go\n\n  ⠋ Thinking (1m 5s · ↓ 2.1k tokens · esc to cancel)", ">   Type your message"),
                "processing",
            ),
            ("shell mode", None, qwen("  > go\n\n  ✦ ok", "!   Type your message"), "completed"),
            (
                "after an error",
                None,
                qwen("  > go\n\n  ✕ [API Error: 500]\n\n  > again\n\n  ✦ ok", ">   Type your message"),
                "completed",
            ),
            (
                "a box",
                None,
                "  > go\n\n  ✦ ok\n\n╭──────────────────────╮\n│ >   Type your message│\n╰──────────────────────╯"
                    .into(),
                "completed",
            ),
        ],
    );
}

#[test]
fn kiro_screens() {
    let row = "developer · auto · ◔ 3%              ~/p · (main)";
    check(
        "kiro_cli",
        &[
            (
                "a draft",
                None,
                format!("{RULE}\n  go\n\n  Done.\n\n▸ Credits: 0.1 • Time: 3s\n\n{RULE}\n{row}\n\n fix the tests ↵"),
                "completed",
            ),
            ("working", None, format!("{RULE}\n  go\n\n  Text\n\n{row}\n\n Kiro is working"), "processing"),
            (
                "trouble",
                None,
                format!(
                    "{RULE}\n  go\n\n  Kiro is having trouble responding right now\n\n{row}\n\n Ask a question or describe a task ↵"
                ),
                "error",
            ),
            (
                "a menu",
                None,
                " Run this command?\n\n ❯ Yes\n   Always allow\n   No\n\n esc to cancel · ↑↓ to navigate · ↵ to select"
                    .into(),
                "waiting_user_answer/permission",
            ),
        ],
    );
}
