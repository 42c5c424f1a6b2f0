//! The command line as users see it: every command has help with working examples, and every documented command exists.

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use posse_testkit::docs;

use super::Cli;

/// Every command that does something, with all that leads to it.
fn leaves(command: &clap::Command, path: &str, into: &mut Vec<(String, clap::Command)>) {
    let children: Vec<_> = command.get_subcommands().filter(|child| !child.is_hide_set()).collect();
    if children.is_empty() {
        into.push((path.to_owned(), command.clone()));
    }
    for child in children.into_iter().filter(|child| child.get_name() != "help") {
        leaves(child, &format!("{path} {}", child.get_name()), into);
    }
}

fn commands() -> Vec<(String, clap::Command)> {
    let mut command = Cli::command();
    command.build();
    let mut found = Vec::new();
    leaves(&command, "posse", &mut found);
    assert!(found.len() > 30, "{}", found.len());
    found
}

/// Returns the lines under `Examples:`.
fn examples(command: &clap::Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1).take_while(|line| !line.is_empty());
    // A comment is set off by at least two spaces.
    examples.map(|line| line.trim().split("  ").next().unwrap_or_default().to_owned()).collect()
}

/// Reports whether the command line parses; placeholders may be invalid.
fn is_understood(words: &[String]) -> Result<(), String> {
    match Cli::try_parse_from(words) {
        Ok(_) => Ok(()),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(()),
            _ => Err(format!("{}\n{error}", words.join(" "))),
        },
    }
}

#[test]
fn every_command_has_help_and_examples_that_work() {
    let mut wrong = Vec::new();
    for (path, command) in commands() {
        if command.get_about().is_none() {
            wrong.push(format!("{path} does not say what it is"));
        }
        let examples = examples(&command);
        if !examples.iter().any(|example| example.contains(&path)) {
            wrong.push(format!("{path} --help has no example that shows it: {examples:?}"));
        }
        for example in &examples {
            // In a pipe the command of posse's may come last.
            let typed = example.rsplit("| ").next().unwrap_or_default();
            let words = docs::words_of_posse(typed);
            let understood = words.map_or_else(|| Err(format!("{example} is nothing of ours")), |w| is_understood(&w));
            wrong.extend(understood.err().map(|error| format!("an example of {path}: {error}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_takes_json_and_quiet() {
    for (path, command) in commands() {
        for flag in ["json", "quiet"] {
            assert!(command.get_arguments().any(|argument| argument.get_long() == Some(flag)), "{path} --{flag}");
        }
    }
}

/// clap breaks lines to fit the window; a break of ours in the middle would show.
#[test]
fn exit_codes_are_one_paragraph() {
    let mut command = Cli::command();
    command.build();
    for (path, command) in commands().into_iter().chain([("posse".to_owned(), command)]) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.lines().skip_while(|line| !line.starts_with("Exit codes:")).count() <= 1, "{path}: {help}");
    }
}

#[test]
fn every_option_says_what_it_does() {
    for (path, command) in commands() {
        let silent: Vec<_> = command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set() && argument.get_help().is_none())
            .map(|argument| argument.get_id().to_string())
            .collect();
        assert!(silent.is_empty(), "{path}: {silent:?}");
    }
}

#[test]
fn every_command_in_the_documentation_is_understood() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (file, text) in docs::files() {
        for typed in docs::commands(&file, &text) {
            let Some(words) = docs::words_of_posse(&typed.text) else { continue };
            count += 1;
            wrong.extend(is_understood(&words).err().map(|error| format!("{file}:{}: {error}", typed.line)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 30, "{count}");
}

/// In the middle of a sentence names and values are left out or made up; commands and options are not.
#[test]
fn what_the_documentation_mentions_exists() {
    let mut count = 0;
    for (file, text) in docs::files() {
        for code in docs::inline(&text) {
            let Some(words) = docs::words_of_posse(&code) else { continue };
            count += 1;
            if let Err(error) = Cli::try_parse_from(&words) {
                let invented = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand, ErrorKind::ArgumentConflict];
                assert!(!invented.contains(&error.kind()), "{file}: `{code}`: {error}");
            }
        }
    }
    assert!(count > 50, "{count}");
}

/// Newcomers look there first.
#[test]
fn where_to_change_what_names_files_that_exist() {
    let text = docs::text("docs/architecture.md");
    let (_, table) = text.split_once("## Where to change what\n").unwrap();
    let paths: Vec<String> = docs::code(table).into_iter().filter(|code| code.contains('/')).collect();
    let missing: Vec<&String> = paths.iter().filter(|path| !docs::root().join(path).exists()).collect();
    assert!(missing.is_empty() && paths.len() > 15, "{missing:?} of {}", paths.len());
}

#[test]
fn what_is_wrong_is_seen_here() {
    let words = |line: &str| docs::words_of_posse(line).unwrap();
    for wrong in ["posse ls --no-such", "posse no-such", "posse run lgos 1a2b", "posse wait x --until nonsense"] {
        assert!(is_understood(&words(wrong)).is_err(), "{wrong}");
    }
}
