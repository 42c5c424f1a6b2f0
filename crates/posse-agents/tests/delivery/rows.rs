//! What the simulated programs draw, as text, so that the real rules read it.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::LazyLock;

use posse_agents::Provider;
use posse_core::detect::{Look, Memo, Reading};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Claude Code 2.1.197: dialogs take keys at once; a quiet agent opens none by itself.
    #[default]
    Claude197,
    /// Claude Code 2.1.325: dialogs are deaf at first; background agents may open one at any time.
    Claude325,
    /// Codex 0.166: dialogs are announced.
    Codex,
}

/// A question, as a list in `asks.toml` has it. All of them have their cursor on the first option.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    above: Vec<String>,
    pub(crate) options: Vec<String>,
    footer: String,
    #[serde(default = "yes")]
    pub(crate) numbered: bool,
    #[serde(default)]
    flush: bool,
    #[serde(default)]
    pub(crate) letters: BTreeMap<char, usize>,
}

fn yes() -> bool {
    true
}

static ASKS: LazyLock<BTreeMap<String, Vec<Ask>>> =
    LazyLock::new(|| toml::from_str(include_str!("asks.toml")).unwrap());

impl Kind {
    pub(crate) fn asks(self) -> &'static [Ask] {
        &ASKS[if self == Kind::Codex { "codex" } else { "claude" }]
    }

    pub(crate) fn label(self, number: usize, text: &str) -> Option<String> {
        match self {
            Kind::Codex if text.len() > 1000 => Some(format!("[Pasted Content {} chars]", text.chars().count())),
            Kind::Codex => None,
            _ if text.len() > 800 => Some(format!("[Pasted text #{number} +{} lines]", text.matches('\n').count())),
            _ => None,
        }
    }
}

/// Everything that is to be seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Picture {
    pub(crate) draft: String,
    /// The question and the option under the cursor.
    pub(crate) dialog: Option<(usize, usize)>,
    pub(crate) busy: bool,
    pub(crate) echoes: Vec<String>,
    /// Only so many rows are drawn yet.
    pub(crate) cut: Option<usize>,
    pub(crate) about_to_ask: bool,
}

const RULE: &str = "────────────────────────────────────────────────────────────";

fn rows(kind: Kind, picture: &Picture) -> Vec<String> {
    let mut rows = vec![String::new()];
    let codex = kind == Kind::Codex;
    for echo in &picture.echoes {
        let mark = if codex { "› " } else { "❯ " };
        rows.extend(echo.lines().enumerate().map(|(at, line)| format!("{}{line}", if at == 0 { mark } else { "  " })));
        rows.push(String::new());
        if !(picture.busy && picture.echoes.last() == Some(echo)) {
            rows.push(if codex { "• Done." } else { "● Done." }.into());
            rows.push(String::new());
        }
    }
    if let Some((ask, cursor)) = picture.dialog {
        let ask = &kind.asks()[ask];
        if !codex {
            rows.push(RULE.into());
        }
        rows.extend(ask.above.iter().cloned());
        for (at, label) in ask.options.iter().enumerate() {
            let mark = match (codex, at == cursor) {
                (true, true) => "› ",
                (false, true) => "❯ ",
                _ => "  ",
            };
            let indent = if ask.flush { "" } else { " " };
            let number = if ask.numbered { format!("{}. ", at + 1) } else { String::new() };
            rows.push(format!("{indent}{mark}{number}{label}"));
        }
        rows.push(String::new());
        rows.push(ask.footer.clone());
    } else {
        if picture.busy {
            rows.push(if codex { "• Working (2s • esc to interrupt)" } else { "✶ Smooshing…" }.into());
            rows.push(String::new());
        }
        let shown = if picture.draft.is_empty() && codex { "Ask Codex to do anything" } else { &picture.draft };
        let mark = if codex { "› " } else { "❯\u{a0}" };
        if !codex {
            rows.push(RULE.into());
        }
        let mut lines = shown.split('\n');
        rows.push(format!("{mark}{}", lines.next().unwrap_or_default()));
        rows.extend(lines.map(|line| format!("  {line}")));
        rows.push(if codex { String::new() } else { RULE.into() });
        rows.push(if codex { "  GPT-6-Sol medium · /project" } else { "  ? for shortcuts" }.into());
    }
    if let Some(cut) = picture.cut {
        rows.truncate(cut.max(1));
    }
    rows.iter().map(|row| row.trim_end_matches(' ').to_owned()).collect()
}

/// What the rules say of a picture. Each is read once.
pub(crate) struct Eye {
    kind: Kind,
    provider: Provider,
    known: HashMap<Picture, Rc<(Reading, Option<String>)>>,
}

impl Eye {
    pub(crate) fn new(kind: Kind, provider: Provider) -> Self {
        Self { kind, provider, known: HashMap::new() }
    }

    pub(crate) fn read(&mut self, picture: &Picture) -> Rc<(Reading, Option<String>)> {
        if let Some(known) = self.known.get(picture) {
            return known.clone();
        }
        let rows = rows(self.kind, picture);
        let title = match self.kind {
            Kind::Claude197 | Kind::Claude325 => Some(if picture.busy { "⠂ Work" } else { "✳ Work" }),
            Kind::Codex => None,
        };
        let mut memo = Memo::default();
        let reading = self.provider.detector.read(Look { rows: &rows, title, ..Look::default() }, &mut memo);
        let echo = self.provider.detector.last_prompt(&memo);
        let known = Rc::new((reading, echo));
        self.known.insert(picture.clone(), known.clone());
        known
    }
}
