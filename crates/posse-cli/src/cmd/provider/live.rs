//! `posse provider check --live`: checks a manifest against the installed agent. The agent runs in a scratch home, talks to a
//! scripted model on loopback and plays a few short conversations. Of the user's files only manifests are read.

mod conversation;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use posse_agents::Manifest;
use posse_agents::version::Version;
use posse_files::disk::Disk;
use posse_files::providers::{Listed, Providers};
use posse_files::versions;
use posse_sim::home::{HomeOptions, Maker, ScriptedHome};
use posse_sim::{ModelServer, Scenario};
use serde::Serialize;

use crate::client;
use crate::cmd::{asked_to_end, launch, on_own_signals};
use crate::error::{Error, Exit};
use crate::scratch_home::ScratchHome;
use crate::ui::{Colour, Ui, plain};
use conversation::{LiveConversation, LiveStage};

/// The variables of the user's environment that the agent gets: where programs are and which language to use. No account,
/// no proxy, no settings.
const KEPT_VARIABLES: &str = "PATH LANG LC_ALL LC_CTYPE TZ USER LOGNAME SHELL NVM_DIR VOLTA_HOME ASDF_DIR ASDF_DATA_DIR \
    MISE_DATA_DIR FNM_DIR";

/// The result for one agent.
#[derive(Debug, Serialize)]
struct LiveReport {
    provider: String,
    /// The program; null if it is not installed.
    program: Option<String>,
    version: Option<Version>,
    notes: Vec<String>,
    findings: Vec<LiveFinding>,
}

/// The result of one conversation.
#[derive(Debug, Serialize)]
struct LiveFinding {
    conversation: &'static str,
    /// Null if all fits.
    difference: Option<LiveDifference>,
}

/// An expectation that was not met.
#[derive(Debug, Default, Serialize)]
struct LiveDifference {
    expected: &'static str,
    seen: String,
    /// The last status that posse reported, with its reason.
    status: Option<String>,
    /// The rule that the screen was read by.
    rule: Option<String>,
    /// The last rows of the screen.
    screen: Vec<String>,
}

impl LiveFinding {
    fn differs(conversation: &'static str, expected: &'static str, seen: impl Into<String>) -> Self {
        let difference = LiveDifference { expected, seen: seen.into(), ..LiveDifference::default() };
        Self { conversation, difference: Some(difference) }
    }
}

/// Checks these providers. `named`: the user named them.
pub(super) fn run(listed: &[Listed], named: bool, ui: &Ui) -> Result<Exit, Error> {
    on_own_signals(async {
        let mut scratch = Scratch::new()?;
        let result = tokio::select! {
            result = check_all(listed, named, &mut scratch, ui) => result,
            ended = asked_to_end() => Err(ended),
        };
        scratch.home.end().await?;
        let reports = result?;
        if ui.json() {
            ui.answer(&reports, String::new);
        }
        Ok(exit(&reports))
    })
}

fn exit(reports: &[LiveReport]) -> Exit {
    if reports.iter().any(LiveReport::differs) {
        Exit::Failed
    } else if reports.is_empty() || reports.iter().any(|report| report.program.is_none()) {
        Exit::Missing
    } else {
        Exit::Ok
    }
}

async fn check_all(listed: &[Listed], named: bool, scratch: &mut Scratch, ui: &Ui) -> Result<Vec<LiveReport>, Error> {
    let directory = client::paths()?.providers();
    let providers = Providers::new(directory.clone());
    let mut reports = Vec::new();
    for one in listed {
        let provider =
            providers.load(&Disk::of_this_thread(), &one.id).map_err(|error| Error::usage(error.to_string()))?;
        let launch = provider.manifest.launch.as_ref();
        let program = launch.and_then(|launch| {
            versions::locate(&Disk::of_this_thread(), &launch.program, &std::env::var("PATH").ok()?)
        });
        if program.is_none() && !named {
            continue;
        }
        let report = check(one, &provider.manifest, program, scratch, ui).await?;
        if !ui.json() && (report.differs() || !ui.quiet()) {
            ui.print(&report.text(&directory, ui));
        }
        reports.push(report);
    }
    if reports.is_empty() {
        let ids: Vec<&str> = listed.iter().map(|one| one.id.as_str()).collect();
        ui.warn(&format!("none of these is installed: {}", ids.join(", ")));
    }
    Ok(reports)
}

async fn check(
    listed: &Listed,
    manifest: &Manifest,
    program: Option<PathBuf>,
    scratch: &mut Scratch,
    ui: &Ui,
) -> Result<LiveReport, Error> {
    let mut report = LiveReport {
        provider: listed.id.clone(),
        program: program.as_ref().map(|program| program.display().to_string()),
        version: None,
        notes: Vec::new(),
        findings: Vec::new(),
    };
    let Some(program) = program else {
        report.notes.extend(manifest.launch.as_ref().map(|launch| format!("to get it: {}", launch.install)));
        return Ok(report);
    };
    let Some(said) = versions::ask(&program, &scratch.environment).await else {
        let seen = "`--version` fails; if it is a link of a version manager, put the program itself into PATH";
        report.findings.push(LiveFinding::differs("version", "it runs and says its version", seen));
        return Ok(report);
    };
    report.version = Version::said(&said);
    let Some(maker) = Maker::of_provider(&listed.id) else {
        report.notes.push("posse has no scripted model for it: more cannot be checked without an account".into());
        return Ok(report);
    };
    ui.say(&format!("checking {}; this takes half a minute …", listed.id));
    scratch.copy_manifest(&listed.id)?;
    let version = report.version.as_ref().map(Version::to_string).unwrap_or_default();
    for conversation in LiveConversation::ALL {
        let scenario = Scenario::parse(conversation.script()).map_err(|error| Error::failed(error.to_string()))?;
        let server = ModelServer::start([scenario]).map_err(Error::io("cannot listen on loopback"))?;
        // One retry, so that errors are seen soon.
        let options = HomeOptions { retries: Some(1), ..HomeOptions::default() };
        let home = maker.home(&program, &version, &server, &options);
        scratch.homes.push(home.map_err(Error::io("cannot create a home for the agent"))?);
        report.findings.push(scratch.play(&listed.id, conversation, server).await?);
    }
    Ok(report)
}

impl LiveReport {
    fn differs(&self) -> bool {
        self.findings.iter().any(|finding| finding.difference.is_some())
    }

    /// `directory` is where the user's manifests are.
    fn text(&self, directory: &Path, ui: &Ui) -> String {
        let name = ui.paint(&self.provider, Colour::Bold);
        let version = self.version.as_ref().map_or_else(|| "of unknown version".into(), Version::to_string);
        let mut text = match &self.program {
            Some(program) => format!("{name} {version} ({program})\n"),
            None => format!("{name} is not installed\n"),
        };
        text.extend(self.notes.iter().map(|note| format!("  {}\n", plain(note))));
        for LiveFinding { conversation, difference } in &self.findings {
            let (word, colour) = if difference.is_some() { ("differs", Colour::Red) } else { ("fits", Colour::Green) };
            text += &format!("  {} {conversation}\n", ui.paint(&format!("{word:<9}"), colour));
            let Some(difference) = difference else { continue };
            let mut add = |name: &str, value: &str| text.push_str(&format!("    {name:8} {}\n", plain(value)));
            add("expected", difference.expected);
            add("seen", &difference.seen);
            difference.status.iter().for_each(|status| add("status", status));
            difference.rule.iter().for_each(|rule| add("rule", rule));
            difference.screen.iter().for_each(|row| add("screen", &format!("│{row}")));
        }
        if self.differs() {
            let file = directory.join(format!("{}.toml", self.provider));
            text += &format!(
                "  next: docs/adding-an-agent.md says how rules are written; yours go into {}, over ours\n",
                file.display()
            );
        }
        text
    }
}

/// A home of posse with a daemon of its own, and the homes of the agents started in it.
struct Scratch {
    home: ScratchHome,
    environment: BTreeMap<String, String>,
    homes: Vec<ScriptedHome>,
}

impl Scratch {
    fn new() -> Result<Self, Error> {
        let home = ScratchHome::new("posse-check-")?;
        let mut environment = launch::environment();
        environment.retain(|name, _| KEPT_VARIABLES.split_whitespace().any(|kept| kept == name));
        environment.insert("HOME".to_owned(), client::absolute(&home.directory)?);
        environment.insert("POSSE_HOME".to_owned(), client::absolute(&home.paths.home)?);
        Ok(Self { home, environment, homes: Vec::new() })
    }

    /// Copies the user's manifest of this provider, so that it applies here too.
    fn copy_manifest(&self, provider: &str) -> Result<(), Error> {
        let name = format!("{provider}.toml");
        let from = client::paths()?.providers().join(&name);
        if !from.exists() {
            return Ok(());
        }
        let to = self.home.paths.providers();
        let copied = std::fs::create_dir_all(&to).and_then(|()| std::fs::copy(&from, to.join(&name)));
        copied.map(drop).map_err(Error::io(format!("cannot copy {}", from.display())))
    }

    /// Plays a conversation with an agent in the newest home.
    async fn play(
        &self,
        provider: &str,
        conversation: LiveConversation,
        server: ModelServer,
    ) -> Result<LiveFinding, Error> {
        let client = self.home.connect().await?;
        let mut environment = self.environment.clone();
        let home = self.homes.last().ok_or_else(|| Error::Nonsense("no home".into()))?;
        environment.extend(home.env.clone());
        match LiveStage::open(client, provider, environment, home, server).await {
            Ok(stage) => stage.play(conversation).await,
            Err(Error::Refused(problem)) => {
                Ok(LiveFinding::differs(conversation.as_str(), "it starts", problem.detail))
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(program: Option<&str>, differs: bool) -> LiveReport {
        let difference = differs.then(|| LiveDifference {
            expected: "waiting_user_answer when it asks for a permission",
            seen: "it was processing for 10 s".into(),
            status: Some("processing (a prompt was submitted)".into()),
            rule: Some("seed.otherwise".into()),
            screen: vec!["Do you want to proceed?".into(), "❯ 1. Yes\x1b[2J".into()],
        });
        LiveReport {
            provider: "mole".into(),
            program: program.map(str::to_owned),
            version: "1.2".parse().ok(),
            notes: Vec::new(),
            findings: vec![LiveFinding { conversation: "permission", difference }],
        }
    }

    #[test]
    fn exit_codes() {
        let (fits, differs, missing) =
            (|| report(Some("/a"), false), || report(Some("/a"), true), || report(None, false));
        assert_eq!(exit(&[fits()]), Exit::Ok);
        assert_eq!(exit(&[fits(), missing()]), Exit::Missing);
        assert_eq!(exit(&[missing(), differs()]), Exit::Failed);
        assert_eq!(exit(&[]), Exit::Missing);
    }

    #[test]
    fn difference_is_shown_with_its_evidence() {
        let text = report(Some("/bin/mole"), true).text(Path::new("/c"), &Ui::dull());
        for part in [
            "mole 1.2 (/bin/mole)\n  differs   permission\n    expected waiting_user_answer",
            "status   processing (a prompt",
            "rule     seed.otherwise",
            "screen   │❯ 1. Yes\\u{1b}[2J",
            "/c/mole.toml",
        ] {
            assert!(text.contains(part), "{part} is missing in:\n{text}");
        }
    }

    #[test]
    fn every_script_can_be_played() {
        for conversation in LiveConversation::ALL {
            Scenario::parse(conversation.script()).unwrap();
        }
    }
}
