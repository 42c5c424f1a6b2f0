//! The manifest's rules for headless sessions: the dialect, and text patterns for facts that a tool reports in no other
//! way. Patterns are matched against errors only, never against a model's text.

use posse_core::written::Expression;
use serde::Deserialize;

use super::Dialect;
use super::event::{Limit, LimitSource};

/// `[headless]`, as written. Texts are patterns.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadlessRules {
    pub dialect: Dialect,
    /// Variables to remove, besides those of `launch`.
    #[serde(default)]
    pub unset: Vec<String>,
    /// An error about a reached account limit.
    #[serde(default)]
    limit: Vec<Expression>,
    /// An error about a missing sign-in.
    #[serde(default)]
    signed_out: Vec<Expression>,
    /// The result of a denied tool call. A group, if present, captures the reason.
    #[serde(default)]
    denied: Vec<Expression>,
    /// The same, on standard error.
    #[serde(default)]
    denied_on_stderr: Vec<Expression>,
    /// An error after which the agent retries; groups `attempt` and `of`.
    #[serde(default)]
    retry: Vec<Expression>,
    /// The HTTP status in an error; the first group.
    #[serde(default)]
    status: Vec<Expression>,
}

impl HeadlessRules {
    /// Returns the limit that an error reports. The caller ensures that the text is an error: a request's response, or
    /// the standard error of a failed session. Each line may begin with it.
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
