//! What a manifest says about sessions without a terminal: whose words are spoken, and what texts mean where a tool tells
//! something in no other way. They are looked for in errors only, never in what a model says.

use posse_core::written::Expression;
use serde::Deserialize;

use super::Dialect;
use super::event::{Limit, LimitSource};

/// `[headless]`, as written. Texts are patterns.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadlessRules {
    pub dialect: Dialect,
    /// Variables it must not find, besides those of `launch`.
    #[serde(default)]
    pub unset: Vec<String>,
    /// An error that means: the account has reached a limit.
    #[serde(default)]
    limit: Vec<Expression>,
    /// An error that means: a person has to sign in.
    #[serde(default)]
    signed_out: Vec<Expression>,
    /// The answer of a tool that was not allowed to do its work. If there is a group, it is the reason.
    #[serde(default)]
    denied: Vec<Expression>,
    /// The same, on standard error.
    #[serde(default)]
    denied_on_stderr: Vec<Expression>,
    /// An error after which it tries again; groups `attempt` and `of`.
    #[serde(default)]
    retry: Vec<Expression>,
    /// Where an error has the status of an HTTP answer; the first group.
    #[serde(default)]
    status: Vec<Expression>,
}

impl HeadlessRules {
    /// Whether an error means a limit. Whoever asks has made sure that it is an error: the answer of a request, or what a
    /// session that failed left on standard error. Each line may begin with it.
    pub fn limit(&self, error: &str) -> Option<Limit> {
        let line = error.lines().map(str::trim).find(|line| any(&self.limit, line))?;
        Some(Limit { source: LimitSource::Text, kind: None, resets_at: None, text: Some(line.to_owned()) })
    }

    pub(super) fn signed_out(&self, error: &str) -> bool {
        any(&self.signed_out, error)
    }

    pub(super) fn denied(&self, answer: &str) -> Option<String> {
        reason(&self.denied, answer)
    }

    pub(super) fn denied_on_stderr(&self, line: &str) -> Option<String> {
        reason(&self.denied_on_stderr, line)
    }

    pub(super) fn retry(&self, error: &str) -> Option<(Option<u32>, Option<u32>)> {
        let found = self.retry.iter().find_map(|pattern| pattern.captures(error))?;
        let number = |name| found.name(name).and_then(|group| group.as_str().parse().ok());
        Some((number("attempt"), number("of")))
    }

    pub(super) fn status(&self, error: &str) -> Option<u16> {
        self.status.iter().find_map(|pattern| pattern.captures(error)?.get(1)?.as_str().parse().ok())
    }
}

fn any(patterns: &[Expression], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern.is_match(text))
}

fn reason(patterns: &[Expression], text: &str) -> Option<String> {
    let found = patterns.iter().find_map(|pattern| pattern.captures(text))?;
    Some(found.get(1).map_or(text, |group| group.as_str()).trim().to_owned())
}
