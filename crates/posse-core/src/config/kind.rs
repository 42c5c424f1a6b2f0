//! The types of configuration values.

use std::time::Duration as Time;

use serde_json::{Value as Json, json};

use super::tree::{Typed, describe, typed};
use crate::file_problem::{FileProblem, TextSpan};
use crate::nearest;
use crate::plan::yaml::{Node, YamlEntry};
use crate::plan::{cannot_fail, duration};

/// The type of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A single value, kept as the text in the file. A blank value counts as unset.
    Scalar,
    /// A list of scalars. A single value is a list of one.
    Scalars,
    /// May be empty.
    Text,
    /// A blank text counts as none.
    OptionalText,
    /// Not blank.
    Name,
    Bool,
    /// A boolean whose variable is on only if it is exactly `1`.
    OptIn,
    Whole {
        min: u32,
        max: u32,
    },
    /// A whole number; a negative one counts as 0.
    Clamped,
    OneOf(&'static [&'static str]),
    /// The id of an agent.
    Provider,
    /// A program and its arguments.
    Arguments,
    /// A list of words that are not blank.
    Words,
    /// A path, `syslog`, or a program and its arguments.
    Anchor,
    /// A directory below the project.
    Directory,
    /// A directory below the project that agents cannot write to.
    StateDirectory,
    /// A command line for a shell.
    Command,
    /// A number, 0 or more.
    Amount,
    /// Positive, unless `zero`.
    Duration {
        zero: bool,
    },
    /// A table: agent, permission profile.
    ProfileOfAgent,
    Profiles,
}

/// The commands of a permission profile, unless they are a list of rules.
const POLICIES: [&str; 3] = ["none", "read_only", "full"];

impl ValueKind {
    /// Checks a value and returns its stored form. `subject` names the key in messages; `providers` are the known
    /// agents, if they are to be checked.
    pub(crate) fn check(
        self,
        node: &Node,
        subject: &str,
        providers: Option<&[&str]>,
        warnings: &mut Vec<FileProblem>,
    ) -> Result<Json, FileProblem> {
        let wrong = |wanted: &str| wrong(node, subject, wanted);
        let value = typed(node);
        let text = text_of(node);
        match self {
            Self::Scalar => {
                let text = node.as_scalar().ok_or_else(|| wrong("text"))?;
                Ok(if text.trim().is_empty() { Json::Null } else { text.into() })
            }
            Self::Scalars => {
                let items = if let Typed::List(items) = value { items } else { std::slice::from_ref(node) };
                let word = |item: &Node| match item.as_scalar().filter(|_| !item.is_null()) {
                    Some(word) => Ok(Json::from(word)),
                    None => Err(self::wrong(item, subject, "a list of words")),
                };
                items.iter().map(word).collect::<Result<Vec<_>, _>>().map(Json::from)
            }
            Self::Text => text.map(Json::from).ok_or_else(|| wrong("a text")),
            Self::OptionalText => match text {
                Some(text) if text.trim().is_empty() => Ok(Json::Null),
                _ => text.map(Json::from).ok_or_else(|| wrong("a text")),
            },
            Self::Name => not_blank(text).map(Json::from).ok_or_else(|| wrong("a text")),
            Self::Bool | Self::OptIn => match value {
                Typed::Bool(on) => Ok(on.into()),
                _ => Err(wrong("true or false, without quotes")),
            },
            Self::Whole { min, max } => {
                let within = whole(value).and_then(|number| u32::try_from(number).ok());
                let within = within.filter(|number| (min..=max).contains(number));
                within.map(Json::from).ok_or_else(|| match max {
                    u32::MAX => wrong(&format!("a whole number, {min} or more")),
                    max => wrong(&format!("a whole number, {min} to {max}")),
                })
            }
            Self::Clamped => {
                let number = whole(value).ok_or_else(|| wrong("a whole number"))?;
                Ok(u32::try_from(number.max(0)).unwrap_or(u32::MAX).into())
            }
            Self::OneOf(names) => one_of(node, subject, names),
            Self::Provider => match (providers, text) {
                (Some(known), _) => one_of(node, subject, known),
                (None, Some(name)) => Ok(name.into()),
                (None, None) => Err(wrong("the id of an agent")),
            },
            Self::Arguments => list(node, subject, "a list of texts: a program and its arguments", |_| true),
            Self::Words => words(node, subject),
            Self::Anchor => {
                let wanted = "a path that begins with `/`, \"syslog\", or a list of a program and its arguments";
                match text {
                    Some(text) if matches!(text, "" | "syslog") || text.starts_with(['/']) => Ok(text.into()),
                    Some(text) if text.starts_with("syslog:") => Ok(text.into()),
                    Some(_) => Err(wrong(wanted)),
                    None => match Self::Arguments.check(node, subject, providers, warnings)? {
                        Json::Array(words) if words.first().is_none_or(|program| program == "") => Err(wrong(wanted)),
                        words => Ok(words),
                    },
                }
            }
            Self::Directory | Self::StateDirectory => {
                let text = text.ok_or_else(|| wrong("a directory of the project, in quotes"))?;
                self.directory(node, subject, text)
            }
            Self::Command => {
                let command = not_blank(text)
                    .ok_or_else(|| wrong("a command line in quotes").hint("leave it out if there is none"))?;
                if let Some(why) = cannot_fail(command) {
                    warnings.push(FileProblem::new(node.at, format!("this gate cannot fail: {why}")));
                }
                Ok(command.into())
            }
            Self::Amount => match value {
                Typed::Whole(number) if number >= 0 => Ok(json!(number as f64)),
                Typed::Fraction(number) if number.is_finite() && number >= 0.0 => Ok(json!(number)),
                _ => Err(wrong("a number, 0 or more")),
            },
            Self::Duration { zero } => {
                let long = match value {
                    Typed::Text(text) => duration(text),
                    Typed::Whole(seconds) => u64::try_from(seconds).ok().map(Time::from_secs),
                    _ => None,
                };
                let long = long.filter(|long| zero || !long.is_zero());
                let wanted = "a duration such as \"90s\", \"15m\" or \"7d\", or a number of seconds";
                long.map(|long| json!(long)).ok_or_else(|| wrong(wanted))
            }
            Self::ProfileOfAgent => table(node, subject, "a table: an agent, and its profile", |entry, subject| {
                Self::Name.check(&entry.value, subject, providers, &mut Vec::new())
            }),
            Self::Profiles => {
                let wanted = "a table of profiles, each with `tools` and `bash`";
                table(node, subject, wanted, |entry, subject| profile(&entry.value, subject))
            }
        }
    }

    /// Parses the text of a variable. Returns `None` if a boolean is expected and the text is none; text of another
    /// type is left to `check`.
    pub(super) fn of_variable(self, text: &str) -> Option<Node> {
        let word = |text: &str| Some(Node::scalar(TextSpan::default(), text, true));
        match self {
            Self::Bool => word(&boolean(text)?.to_string()),
            Self::OptIn => word(&(text == "1").to_string()),
            Self::Whole { .. } | Self::Clamped if text.trim().parse::<i64>().is_ok() => word(text.trim()),
            _ => Some(Node::scalar(TextSpan::default(), text, false)),
        }
    }

    fn directory(self, node: &Node, subject: &str, text: &str) -> Result<Json, FileProblem> {
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if text.starts_with('/') || text.starts_with('~') || parts.contains(&"..") || parts.is_empty() {
            let problem = wrong(node, subject, "a directory below the project");
            return Err(problem.hint("write it relative to the project, without `..`"));
        }
        if self == Self::StateDirectory && parts.first() == Some(&".claude") {
            let message = format!("{subject} must not be under .claude/: Claude Code guards that directory");
            return Err(FileProblem::new(node.at, message).hint("leave it out; the default is .posse/state"));
        }
        Ok(json!(parts.join("/")))
    }
}

fn wrong(node: &Node, subject: &str, wanted: &str) -> FileProblem {
    FileProblem::new(node.at, format!("{subject} should be {wanted}, this is {}", describe(node)))
}

fn text_of(node: &Node) -> Option<&str> {
    if let Typed::Text(text) = typed(node) { Some(text) } else { None }
}

fn whole(value: Typed<'_>) -> Option<i64> {
    if let Typed::Whole(number) = value { Some(number) } else { None }
}

fn not_blank(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

fn one_of(node: &Node, subject: &str, names: &[&str]) -> Result<Json, FileProblem> {
    match text_of(node) {
        Some(name) if names.contains(&name) => Ok(name.into()),
        name => {
            let mut problem = wrong(node, subject, &format!("one of {}", names.join(", ")));
            problem.hint = name.and_then(|name| nearest::did_you_mean(name, names.iter().copied()));
            Err(problem)
        }
    }
}

fn list(node: &Node, subject: &str, wanted: &str, fits: impl Fn(&str) -> bool) -> Result<Json, FileProblem> {
    let Typed::List(items) = typed(node) else { return Err(wrong(node, subject, wanted)) };
    let text = |item: &Node| {
        text_of(item).filter(|text| fits(text)).map(Json::from).ok_or_else(|| wrong(item, subject, wanted))
    };
    items.iter().map(text).collect::<Result<Vec<_>, _>>().map(Json::from)
}

fn words(node: &Node, subject: &str) -> Result<Json, FileProblem> {
    list(node, subject, "a list of words", |word| !word.trim().is_empty())
}

fn table(
    node: &Node,
    subject: &str,
    wanted: &str,
    check: impl Fn(&YamlEntry, &str) -> Result<Json, FileProblem>,
) -> Result<Json, FileProblem> {
    let Typed::Table(entries) = typed(node) else { return Err(wrong(node, subject, wanted)) };
    let entry = |entry: &YamlEntry| {
        let name = entry.name().unwrap_or_default();
        Ok((name.to_owned(), check(entry, &format!("`{name}` in {subject}"))?))
    };
    entries.iter().map(entry).collect::<Result<serde_json::Map<_, _>, _>>().map(Json::from)
}

fn profile(node: &Node, subject: &str) -> Result<Json, FileProblem> {
    let mut profile = table(node, subject, "a table", |entry, subject| {
        match (entry.name().unwrap_or_default(), typed(&entry.value)) {
            ("tools", _) | ("bash", Typed::List(_)) => words(&entry.value, subject),
            ("bash", _) => one_of(&entry.value, subject, &POLICIES),
            (other, _) => {
                let problem = FileProblem::new(entry.key.at, format!("a profile has no `{other}`"));
                Err(problem.hint("it has `tools` and `bash`"))
            }
        }
    })?;
    if profile["tools"].as_array().is_none_or(Vec::is_empty) {
        let problem = FileProblem::new(node.at, format!("{subject} has no `tools`"));
        return Err(problem.hint("list what sessions may use, like tools = [\"Read\", \"Grep\"]"));
    }
    if profile["bash"].is_null() {
        profile["bash"] = json!("none");
    }
    Ok(profile)
}

/// The words that [`boolean`] accepts, for error messages.
pub(super) const BOOLEAN_WORDS: &str = "true, yes, on, 1, false, no, off or 0";

/// Parses the value of a boolean variable. Returns `None` if the value is not one of [`BOOLEAN_WORDS`].
///
/// Case and surrounding blanks do not matter. An empty value counts as unset; callers handle that first.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boolean_accepts_eight_words_in_any_case() {
        for (texts, expected) in [
            (&["true", "Yes", "ON", " 1 "][..], Some(true)),
            (&["FALSE", "no", "Off", "0"], Some(false)),
            (&["", "2", "01", "y", "truee", "true false"], None),
        ] {
            texts.iter().for_each(|text| assert_eq!(boolean(text), expected, "{text:?}"));
        }
    }
}
