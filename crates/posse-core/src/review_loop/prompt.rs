//! What the user wants: a text of two parts under fixed header lines. The first part, the explore summary, says what is
//! to be built; the second, the scenario, says how it will be tested.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The header of the first part.
pub const EXPLORE_HEADER: &str = "*** ORIGINAL EXPLORE SUMMARY ***";
/// The header of the second part.
pub const SCENARIO_HEADER: &str = "*** SCENARIO TEST ***";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Prompt {
    pub explore: String,
    pub scenario: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error(
        "there is no prompt: give `prompt_file` or `prompt`, with the two sections `{EXPLORE_HEADER}` and `{SCENARIO_HEADER}`"
    )]
    Blank,
    #[error("the prompt has no line `{0}`")]
    NoHeader(&'static str),
    #[error("the prompt has the line `{0}` twice (lines {1} and {2}): keep one")]
    Twice(&'static str, usize, usize),
    #[error(
        "the sections of the prompt are in the wrong order: `{EXPLORE_HEADER}` (line {explore}) has to come before `{SCENARIO_HEADER}` (line {scenario})"
    )]
    Order { explore: usize, scenario: usize },
    #[error("the section under `{0}` is blank: write there {1}")]
    BlankSection(&'static str, &'static str),
}

impl Prompt {
    /// Parses a prompt. Foreign line ends and blanks after a header are accepted. Text above the first header is the
    /// user's own note, and is left out.
    pub fn parse(text: &str) -> Result<Self, PromptError> {
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
        if text.trim().is_empty() {
            return Err(PromptError::Blank);
        }
        let lines: Vec<&str> = text.split('\n').collect();
        let explore = only_line(&lines, EXPLORE_HEADER)?;
        let scenario = only_line(&lines, SCENARIO_HEADER)?;
        if scenario < explore {
            return Err(PromptError::Order { explore: explore + 1, scenario: scenario + 1 });
        }
        let section = |lines: &[&str], header, wanted| {
            let text = lines.join("\n").trim_matches('\n').trim_end().to_owned();
            if text.trim().is_empty() { Err(PromptError::BlankSection(header, wanted)) } else { Ok(text) }
        };
        Ok(Self {
            explore: section(&lines[explore + 1..scenario], EXPLORE_HEADER, "what is to be built")?,
            scenario: section(&lines[scenario + 1..], SCENARIO_HEADER, "how it is tested, step by step")?,
        })
    }
}

/// Formats the prompt as a file that `parse` reads.
impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{EXPLORE_HEADER}\n{}\n\n{SCENARIO_HEADER}\n{}", self.explore, self.scenario)
    }
}

fn only_line(lines: &[&str], header: &'static str) -> Result<usize, PromptError> {
    let mut found = lines.iter().enumerate().filter(|(_, line)| line.trim_end() == header).map(|(at, _)| at);
    let first = found.next().ok_or(PromptError::NoHeader(header))?;
    found.next().map_or(Ok(first), |second| Err(PromptError::Twice(header, first + 1, second + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explore_and_scenario(text: &str) -> Result<(String, String), String> {
        Prompt::parse(text).map(|prompt| (prompt.explore, prompt.scenario)).map_err(|error| error.to_string())
    }

    #[test]
    fn two_headers_make_two_sections() {
        let expected = Ok(("Goal:\n\n  add x".to_owned(), "1. run it".to_owned()));
        for text in [
            "*** ORIGINAL EXPLORE SUMMARY ***\nGoal:\n\n  add x\n*** SCENARIO TEST ***\n1. run it",
            "\u{feff}a note\r\n*** ORIGINAL EXPLORE SUMMARY ***  \r\n\r\nGoal:\r\n\r\n  add x\r\n\r\n*** SCENARIO TEST ***\t\r\n1. run it\r\n\r\n",
        ] {
            assert_eq!(explore_and_scenario(text), expected, "{text:?}");
        }
        let prompt = Prompt { explore: "a\nb".into(), scenario: "c".into() };
        assert_eq!(Prompt::parse(&prompt.to_string()), Ok(prompt));
    }

    #[test]
    fn s_204_a_prompt_that_lacks_something_says_what() {
        let (explore, scenario) = (EXPLORE_HEADER, SCENARIO_HEADER);
        for (text, why) in [
            (" \n\n".to_owned(), "there is no prompt"),
            (format!("do it\n{scenario}\nx"), "no line `*** ORIGINAL EXPLORE SUMMARY ***`"),
            (format!("{explore}\nx"), "no line `*** SCENARIO TEST ***`"),
            (format!("text {explore}\nx\n{scenario}\ny"), "no line `*** ORIGINAL EXPLORE SUMMARY ***`"),
            (format!("{scenario}\ny\n{explore}\nx"), "wrong order: `*** ORIGINAL EXPLORE SUMMARY ***` (line 3)"),
            (format!("{explore}\n \n{scenario}\ny"), "`*** ORIGINAL EXPLORE SUMMARY ***` is blank"),
            (format!("{explore}\nx\n{scenario}\n\t\n"), "`*** SCENARIO TEST ***` is blank"),
            (format!("{explore}\nx\n{scenario}\ny\n{scenario}\nz"), "twice (lines 3 and 5)"),
        ] {
            let error = explore_and_scenario(&text).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
