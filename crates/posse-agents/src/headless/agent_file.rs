//! Agents of a project: Markdown files with a few fields on top, `.claude/agents/NAME.md`. The text is the session's
//! role prompt; the fields set its permissions.

use serde::Deserialize;

use crate::front_matter::{self, BadFrontMatter};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFile {
    pub name: String,
    pub description: String,
    /// The requested tools. The agent gets those that its profile has.
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
    /// The requested permission profile. Used only for agents that no map has.
    pub profile: Option<String>,
    pub text: String,
}

#[derive(Deserialize)]
struct AgentFields {
    name: Option<String>,
    #[serde(default)]
    description: String,
    tools: Option<ToolList>,
    model: Option<String>,
    profile: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ToolList {
    List(Vec<String>),
    Text(String),
}

impl ToolList {
    fn list(self) -> Vec<String> {
        let words = match self {
            ToolList::List(words) => words,
            ToolList::Text(text) => split_at_commas(&text),
        };
        words.iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
    }
}

/// `Read, Bash(git diff:*, git log:*)` has two entries.
fn split_at_commas(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match words.last_mut() {
            Some(word) if c != ',' || depth > 0 => word.push(c),
            _ => words.push(String::new()),
        }
    }
    words
}

impl AgentFile {
    /// Parses a file. `stem` is its name without `.md`, which plans use for the agent.
    pub fn parse(stem: &str, text: &str) -> Result<Self, BadFrontMatter> {
        let (fields, body): (AgentFields, String) = front_matter::read(text)?;
        if body.is_empty() {
            let message = "it says nothing below its fields: the text there is what the session is told";
            return Err(BadFrontMatter::at_line(text, text.lines().count(), message));
        }
        // `*` means all tools, like a missing list.
        let tools = fields.tools.map(ToolList::list).filter(|tools| !tools.iter().any(|tool| tool == "*"));
        Ok(Self {
            name: fields.name.unwrap_or_else(|| stem.to_owned()),
            description: fields.description,
            tools,
            model: fields.model.filter(|model| model != "inherit"),
            profile: fields.profile,
            text: body,
        })
    }
}

/// The built-in agents, for projects without any.
pub const BUILT_IN: [(&str, &str); 5] = [
    ("coder", include_str!("../../agents/coder.md")),
    ("validator", include_str!("../../agents/validator.md")),
    ("verifier", include_str!("../../agents/verifier.md")),
    ("planner", include_str!("../../agents/planner.md")),
    ("code-reviewer", include_str!("../../agents/code-reviewer.md")),
];

pub fn built_in(name: &str) -> Option<Result<AgentFile, BadFrontMatter>> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(name, text)| AgentFile::parse(name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_we_ship_are_right() {
        for (name, _) in BUILT_IN {
            let agent = built_in(name).unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(agent.name, name);
            assert!(!agent.description.is_empty() && agent.text.len() > 100, "{name}");
        }
    }

    #[test]
    fn tools_are_a_list_or_words() {
        for (written, tools) in [
            ("tools: Read, Grep", Some(vec!["Read", "Grep"])),
            ("tools: [Read, 'Bash(git diff:*)']", Some(vec!["Read", "Bash(git diff:*)"])),
            ("tools: Read, Bash(git diff:*, git log:*),", Some(vec!["Read", "Bash(git diff:*, git log:*)"])),
            ("tools: '*'", None),
            ("model: inherit", None),
        ] {
            let agent = AgentFile::parse("x", &format!("---\n{written}\n---\nYou do.\n")).unwrap();
            let tools = tools.map(|tools| tools.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!((agent.name.as_str(), agent.tools, agent.model), ("x", tools, None), "{written}");
        }
    }

    /// The original tool split at the first `---` anywhere.
    #[test]
    fn fields_end_at_a_line_of_three_dashes() {
        let text = "---\nname: a\ndescription: 'reads --- and writes'\nprofile: DESIGN\nwrites: docs/**\nvalidate: false\ncolor: red\n---\nA\n---\nB\n";
        let agent = AgentFile::parse("file", text).unwrap();
        assert_eq!(agent.description, "reads --- and writes");
        assert_eq!(agent.text, "A\n---\nB");
        assert_eq!(agent.profile.as_deref(), Some("DESIGN"));
    }

    #[test]
    fn what_is_no_agent_says_why() {
        for (text, why) in [
            ("You do.", "does not begin"),
            ("---\nname: x\nYou do.", "does not begin"),
            ("---\ntools: {a: 1}\n---\nYou do.", "not valid"),
            ("---\nname: x\n---\n \n", "says nothing"),
        ] {
            let error = AgentFile::parse("x", text).unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
