//! Keys and values for people: the files that `init` writes, and values in tables.

use std::time::Duration;

use serde_json::Value as Json;
use textwrap::{Options, WordSeparator, WordSplitter};

use super::keys::{ConfigKey, KEYS, ProjectRule};
use crate::visible::capitalised;

/// Maximum width of comments in generated files.
const WIDTH: usize = 110;

const USER_INTRO: &str = "The configuration of posse. Every key is shown with its default; remove the # to change it.";
const PROJECT_INTRO: &str = "The configuration of this project's plans. Every key is shown with its default; remove the # to \
    change it. A run keeps the configuration with which it begins. Durations are \"90s\", \"15m\", \"1h30m\", \"7d\", or a number \
    of seconds. Agents can write this file, so it cannot widen what they may do: keys marked \"config.toml only\" belong in your \
    own config.toml, under [plans], which accepts every key of this file.";

/// Returns the config.toml of `posse config init`: every user key, commented out.
pub fn user_template() -> String {
    let keys = KEYS.iter().filter(|key| key.user && key.plan_name().is_none());
    let mut text = template(USER_INTRO, keys.map(|key| (key.path, key)));
    text.push_str("\n[plans]\n");
    comment(
        &mut text,
        "Every key of a project's .posse/config.toml, for the plans of all projects; `posse plan config --default` shows them.",
    );
    text
}

/// Returns the file of `posse plan init`: every plan key, commented out.
pub fn project_template() -> String {
    template(PROJECT_INTRO, KEYS.iter().filter_map(|key| Some((key.plan_name()?, key))))
}

fn template<'k>(intro: &str, keys: impl Iterator<Item = (&'static str, &'k ConfigKey)>) -> String {
    let mut text = String::new();
    comment(&mut text, intro);
    let mut sorted: Vec<(&str, &str, &ConfigKey)> = keys
        .map(|(path, key)| path.rsplit_once('.').map_or(("", path, key), |(section, name)| (section, name, key)))
        .collect();
    // Each section appears once, after the keys without one. Otherwise the declaration order stays.
    let order: Vec<&str> = sorted.iter().map(|(section, ..)| *section).collect();
    sorted.sort_by_key(|(section, ..)| {
        if section.is_empty() { 0 } else { 1 + order.iter().position(|known| known == section).unwrap_or(0) }
    });
    let mut current = "";
    for (section, name, key) in sorted {
        text.push('\n');
        if section != current {
            text.push_str(&format!("[{section}]\n"));
            current = section;
        }
        let narrow = match key.project {
            ProjectRule::Any => "",
            _ if key.plan_name().is_none() => "",
            ProjectRule::Never => " (config.toml only)",
            ProjectRule::OnlyTrue => " (off: config.toml only)",
            ProjectRule::OnlyNarrowest => " (others: config.toml only)",
        };
        comment(&mut text, &format!("{}{narrow}.", capitalised(key.about)));
        let value = if key.default.is_empty() { example(key) } else { key.default };
        text.push_str(&format!("#{name} = {value}\n"));
    }
    text
}

/// Returns an example value for a key without a default.
fn example(key: &ConfigKey) -> &'static str {
    match key.plan_name().unwrap_or(key.path) {
        "build_command" => r#""make""#,
        "lint_command" => r#""make lint""#,
        "test_command" => r#""make test""#,
        "e2e_command" => r#""make e2e""#,
        "claude.binary" => r#""/usr/local/bin/claude""#,
        "claude.models.haiku" => r#""haiku""#,
        "claude.models.sonnet" => r#""sonnet""#,
        "claude.models.opus" => r#""opus""#,
        "sandbox.profiles" => r#"{ DOCS = { tools = ["Read", "Grep", "Glob", "Write", "Edit"], bash = "none" } }"#,
        "sandbox.agents" => r#"{ reviewer = "READ_ONLY" }"#,
        "budget.max_quota_percent" => "100",
        "budget.window" => r#""7d""#,
        "pipeline.safety_scan_seconds" => "60",
        _ => "0",
    }
}

fn comment(text: &mut String, words: &str) {
    let options = Options::new(WIDTH).initial_indent("# ").subsequent_indent("# ").break_words(false);
    let options = options.word_separator(WordSeparator::AsciiSpace).word_splitter(WordSplitter::NoHyphenation);
    text.push_str(&textwrap::fill(words, options));
    text.push('\n');
}

/// Formats a value for a table of settings.
pub fn shown_value(value: &Json) -> String {
    match value {
        Json::Null => "unset".into(),
        Json::Object(fields) if fields.contains_key("secs") => {
            shown_duration(Duration::from_secs(fields["secs"].as_u64().unwrap_or_default()))
        }
        Json::Object(fields) => {
            let entry = |(name, value): (&String, &Json)| format!("{name} = {}", shown_value(value));
            fields.iter().map(entry).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// Formats a duration, such as `7d` or `90s`.
pub fn shown_duration(long: Duration) -> String {
    let seconds = long.as_secs();
    match seconds {
        _ if seconds > 0 && seconds.is_multiple_of(86_400) => format!("{}d", seconds / 86_400),
        _ if seconds > 0 && seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        _ if seconds > 0 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// Compares the generated end of a page in docs/reference with the file. Writes the file if POSSE_UPDATE is set.
#[cfg(test)]
#[track_caller]
pub(crate) fn check_reference(page: &str, generated: &str) {
    const MARK: &str = "<!-- generated: POSSE_UPDATE=1 cargo test -p posse-core every_key_is_documented -->\n\n";
    let path = format!("{}/../../docs/reference/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let (by_hand, committed) = text.split_once(MARK).unwrap();
    if std::env::var_os("POSSE_UPDATE").is_some() {
        std::fs::write(&path, format!("{by_hand}{MARK}{generated}")).unwrap();
    } else {
        assert!(committed == generated, "{path} is out of date: run this test with POSSE_UPDATE=1");
    }
}

#[cfg(test)]
impl ConfigKey {
    /// Returns the row of a run key in docs/reference/loop-configuration.md.
    pub(crate) fn run_row(&self) -> String {
        let default = super::layer::default_of(self);
        let variable = self.variables().pop().map(|name| format!("`{name}` ")).unwrap_or_default();
        format!("| `{}` | {variable}| `{default}` | {} |", self.run.unwrap_or_default(), self.about)
    }

    /// Returns the row of a plan key in docs/reference/configuration.md.
    pub(crate) fn plan_row(&self) -> String {
        let default = if self.default.is_empty() { String::new() } else { format!("`{}` ", self.default) };
        let yours = match self.project {
            ProjectRule::Any | ProjectRule::OnlyNarrowest => "",
            ProjectRule::Never => "; *yours*",
            ProjectRule::OnlyTrue => "; off is *yours*",
        };
        let mut also: Vec<String> = self.flag.iter().map(|flag| format!("`{flag}`")).collect();
        also.extend(self.variables().iter().map(|name| format!("`{name}`")));
        let also = if also.is_empty() { String::new() } else { format!("; also {}", also.join(", ")) };
        format!("| `{}` | {default}| {}{yours}{also} |", self.plan_name().unwrap_or_default(), self.about)
    }
}
