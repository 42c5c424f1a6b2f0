//! Fields in YAML on top of a Markdown file, between two lines that are `---` and nothing else.

use posse_core::file_problem::{FileProblem, TextSpan};
use posse_core::plan::yaml;
use serde::de::DeserializeOwned;

/// The reason the fields of a file cannot be used, and the location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadFrontMatter(pub Box<FileProblem>);

impl BadFrontMatter {
    /// Returns a problem at the start of this line, counted from 1.
    pub(crate) fn at_line(text: &str, line: usize, message: impl Into<String>) -> Self {
        let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        let end = text[start..].find(['\r', '\n']).map_or(text.len(), |length| start + length);
        Self(Box::new(FileProblem::new(TextSpan::of_bytes(text, start..end), message)))
    }
}

/// Returns the fields and the text below them. Fields for other tools are allowed and ignored.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<(T, String), BadFrontMatter> {
    let missing =
        || BadFrontMatter::at_line(text, 1, "it does not begin with `---` and fields that end at a line `---`");
    let (fields, body) = split(text).ok_or_else(missing)?;
    // The first field is in the second line of the file.
    let invalid = |line, why: &dyn std::fmt::Display| {
        BadFrontMatter::at_line(text, line + 1, format!("the fields are not valid: {why}"))
    };
    let fields = yaml::to_json(&fields).map_err(|problem| invalid(problem.at.line, &problem.message))?;
    let fields = serde_json::from_value(fields).map_err(|error| invalid(1, &error))?;
    Ok((fields, body.trim().to_owned()))
}

fn split(text: &str) -> Option<(String, String)> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let rest = text.strip_prefix("---\n")?;
    let (fields, body) = match rest.split_once("\n---\n") {
        Some(parts) => parts,
        None => (rest.strip_suffix("\n---")?, ""),
    };
    Some((fields.to_owned(), body.to_owned()))
}
