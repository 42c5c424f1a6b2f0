//! The stage of the demo: a project, and a posse home with two scripted agents.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_api::{LoopIn, RunIn};
use posse_core::config::{ConfigLayer, LayerSource};
use posse_core::review_loop::Prompt;
use posse_core::review_loop::config::ResolvedRun;

use crate::client;
use crate::cmd::{launch, loop_run};
use crate::error::Error;
use crate::scratch_home::ScratchHome;

const CONFIG: &str = include_str!("loop.json");
const PROMPT: &str = include_str!("prompt.md");
const SCENARIOS: [(&str, &str); 2] =
    [("claude_code", include_str!("claude.scenario.toml")), ("codex", include_str!("codex.scenario.toml"))];

/// The length of a beat of the scenarios.
#[derive(Clone, Copy)]
pub(super) struct Beat(pub(super) Duration);

impl Beat {
    /// So that the eye can follow, and the whole takes about twenty seconds.
    pub(super) const CALM: Beat = Beat(Duration::from_millis(270));
    pub(super) const FAST: Beat = Beat(Duration::from_millis(15));

    /// A scenario with times in place of beats.
    fn set(self, scenario: &str) -> String {
        (1..=9).fold(scenario.to_owned(), |text, beats| {
            let time = format!("\"{}ms\"", self.0.as_millis() * beats);
            text.replace(&format!("\"{beats} beats\""), &time)
        })
    }
}

pub(super) struct DemoStage {
    pub(super) home: ScratchHome,
}

impl DemoStage {
    /// Builds it in a directory that is gone afterwards.
    pub(super) fn build(beat: Beat) -> Result<Self, Error> {
        let stage = Self { home: ScratchHome::new("posse-demo-")? };
        make(&stage.project())?;
        make(&stage.home.paths.providers())?;
        for (provider, scenario) in SCENARIOS {
            stage.cast(provider, &beat.set(scenario))?;
        }
        Ok(stage)
    }

    fn project(&self) -> PathBuf {
        self.home.directory.join("project")
    }

    /// The log that the agents write.
    pub(super) fn log(&self) -> PathBuf {
        self.home.paths.home.join("actors.jsonl")
    }

    /// Replaces a real agent with a scripted one: a user manifest sets the program.
    fn cast(&self, provider: &str, scenario: &str) -> Result<(), Error> {
        let file = self.home.paths.home.join(format!("{provider}.scenario.toml"));
        write(&file, &format!("log = {:?}\n{scenario}", client::absolute(&self.log())?))?;
        let manifest = format!(
            "[launch]\nprogram = {:?}\nalways = {{ arguments = [\"actor\", {:?}] }}\nmodes = {{ ask = {{ arguments = [] }} }}\n\
             hooks = {{ events = [], arguments = [] }}\ntrusted = {{ arguments = [] }}\n",
            client::absolute(&client::executable()?)?,
            client::absolute(&file)?
        );
        write(&self.home.paths.providers().join(format!("{provider}.toml")), &manifest)
    }

    /// The run that is played, as `posse loop` would ask for it. Nothing of the user's configuration or environment
    /// changes it.
    pub(super) fn run(&self) -> Result<RunIn, Error> {
        let providers: Vec<&str> = SCENARIOS.iter().map(|(name, _)| *name).collect();
        let user = ConfigLayer::empty(LayerSource::User);
        let resolved = ResolvedRun::new(Some(("demo.json", CONFIG)), &|_| None, &user, &providers);
        let config = resolved
            .map(|resolved| resolved.config)
            .map_err(|error| Error::failed(format!("the demo's configuration: {error}")))?;
        let prompt = Prompt::parse(PROMPT).map_err(|error| Error::failed(format!("the demo's prompt: {error}")))?;
        Ok(RunIn::Loop(Box::new(LoopIn {
            config,
            prompt,
            directory: client::absolute(&self.project())?,
            stamp: jiff::Zoned::now().strftime("%Y-%m-%dT%H-%M-%S").to_string(),
            state_file: client::absolute(&self.project().join(loop_run::STATE_FILE))?,
            trusted: true,
            config_hash: None,
            zone: None,
            state: None,
            environment: launch::environment(),
        })))
    }
}

fn make(path: &Path) -> Result<(), Error> {
    std::fs::DirBuilder::new().mode(0o700).create(path).map_err(Error::io(path.display().to_string()))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(Error::io(path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_for_it_can_be_played() {
        for (provider, scenario) in SCENARIOS {
            for beat in [Beat::CALM, Beat::FAST] {
                let scenario = beat.set(scenario);
                assert!(!scenario.contains("beats\""), "{provider}: {scenario}");
                posse_sim::Scenario::parse(&scenario).unwrap_or_else(|error| panic!("{provider}: {error}"));
            }
        }
    }
}
