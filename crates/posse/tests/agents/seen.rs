//! What these tests look for on the agents' screens. Just enough to take part; telling an agent's status is not the
//! tests' business but posse's.

use posse_core::screen::Screen;
use posse_testkit::agents::HomeOptions;

pub(crate) struct Looks {
    /// It takes prompts.
    pub(crate) ready: fn(&Screen) -> bool,
    /// It asks whether it may run a command.
    pub(crate) dialog: fn(&Screen) -> bool,
    /// The key that says yes.
    pub(crate) allow: &'static str,
    /// The request failed for good.
    pub(crate) error: fn(&Screen) -> bool,
    /// What it can be made to ask at the start: words of the question, and how.
    pub(crate) questions: fn() -> Vec<(&'static str, HomeOptions)>,
}

fn row(screen: &Screen, fits: impl Fn(&str) -> bool) -> bool {
    screen.rows.iter().any(|row| fits(row))
}

pub(crate) const CLAUDE: Looks = Looks {
    // A no-break space: echoes of prompts and the cursors of dialogs have a plain one.
    ready: |screen| row(screen, |row| row.starts_with("❯\u{a0}")),
    dialog: |screen| row(screen, |row| row.contains("Do you want to proceed?")),
    allow: "1",
    error: |screen| row(screen, |row| row.contains("API Error") || row.contains("Invalid API key")),
    questions: || {
        let bypass = HomeOptions { bypass_dialog: true, ..HomeOptions::default() };
        vec![
            ("trust", HomeOptions { trusted: false, ..HomeOptions::default() }),
            ("API key", HomeOptions { api_key_dialog: true, ..HomeOptions::default() }),
            ("Bypass Permissions", bypass),
        ]
    },
};

pub(crate) const CODEX: Looks = Looks {
    // The row below the composer names the directory; the title is the host's name until the session is there.
    ready: |screen| row(screen, |row| row.contains(" · /")) && !screen.title.is_empty() && !is_host(&screen.title),
    dialog: |screen| row(screen, |row| row.starts_with("  Press enter to confirm or")),
    allow: "y",
    error: |screen| row(screen, |row| row.starts_with("■ ")),
    questions: || vec![("trust", HomeOptions { trusted: false, ..HomeOptions::default() })],
};

fn is_host(title: &str) -> bool {
    std::fs::read_to_string("/proc/sys/kernel/hostname").is_ok_and(|host| host.trim() == title)
}

pub(crate) const OPENCODE: Looks = Looks {
    ready: |screen| row(screen, |row| row.contains("Ask anything")),
    dialog: |screen| row(screen, |row| row.contains("Permission required")),
    allow: "enter",
    error: |_| false,
    questions: Vec::new,
};

pub(crate) const QWEN: Looks = Looks {
    ready: |screen| row(screen, |row| row.contains("Type your message")),
    dialog: |screen| row(screen, |row| row.contains("Yes, allow once")),
    allow: "1",
    error: |_| false,
    questions: Vec::new,
};
