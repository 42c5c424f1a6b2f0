//! `posse provider check --live`: does what the manifest says still fit the agent that is installed? The agent is started
//! in a home of its own, talks to a scripted model on loopback, and plays a few short conversations. Nothing of the user's
//! is touched but their manifests, which are read; nothing is spent; nothing stays behind.

mod conversation;
mod finding;
mod scratch;
mod stage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_agents::Manifest;
use posse_agents::version::Version;
use posse_files::providers::{Listed, Providers};
use posse_files::versions;
use posse_sim::home::Maker;

use crate::client;
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui};
use conversation::Conversation;
use finding::{Expectation, Finding, Report};
use scratch::{Agent, Scratch};

/// How long an agent may take to start, and to ask its model for the first time. The largest takes 15 s when nothing of it
/// is in memory yet, and in a new home some of them have things to unpack.
const START: Duration = Duration::from_secs(60);
/// How long an agent may take to go on with its turn, to run a small command, or to leave.
const GOES_ON: Duration = Duration::from_secs(20);

/// Checks these providers. `asked`: the user named them.
pub(super) fn run(listed: &[Listed], asked: bool, keep: Option<&Path>, ui: &Ui) -> Result<Exit, Error> {
    let providers = Providers::new(client::paths()?.providers());
    if let Some(keep) = keep {
        std::fs::create_dir_all(keep).map_err(Error::io(format!("cannot use {}", keep.display())))?;
    }
    let mut scratch = Scratch::new()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::io("cannot start"))?;
    let reports = runtime.block_on(async {
        let result = tokio::select! {
            result = check_all(&providers, listed, asked, &mut scratch, ui) => result,
            ended = super::super::asked_to_end() => Err(ended),
        };
        // Whatever happened, nothing stays behind. Recordings are complete only then.
        let tidied = scratch.end().await;
        if let Some(keep) = keep {
            scratch.keep(keep)?;
        }
        result.and_then(|reports| tidied.map(|()| reports))
    });
    // A thread may still wait for a model.
    runtime.shutdown_background();
    let reports = reports?;
    if ui.json() {
        ui.answer(&reports, String::new);
    } else if reports.iter().any(Report::differs) {
        ui.print(&advice(&reports, keep, &client::paths()?.providers(), ui));
    }
    Ok(exit(&reports))
}

fn exit(reports: &[Report]) -> Exit {
    if reports.iter().any(Report::differs) {
        Exit::Failed
    } else if reports.is_empty() || reports.iter().any(|report| report.program.is_none()) {
        Exit::Missing
    } else {
        Exit::Ok
    }
}

async fn check_all(
    providers: &Providers,
    listed: &[Listed],
    asked: bool,
    scratch: &mut Scratch,
    ui: &Ui,
) -> Result<Vec<Report>, Error> {
    let mut reports = Vec::new();
    let mut missing = Vec::new();
    for one in listed {
        let provider = providers.load(&one.id).map_err(|error| Error::Usage(error.to_string()))?;
        let found = find(&provider.manifest);
        if found.is_none() && !asked {
            missing.push(one.id.as_str());
            continue;
        }
        let report = check(one, &provider.manifest, found, scratch, ui).await?;
        if !ui.json() && (report.differs() || !ui.quiet()) {
            ui.print(&report.text(ui));
        }
        reports.push(report);
    }
    if reports.is_empty() {
        ui.warn(&format!("none of these is installed: {}", missing.join(", ")));
    }
    Ok(reports)
}

/// The program, found as a shell would.
fn find(manifest: &Manifest) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    versions::locate(&manifest.launch.as_ref()?.program, &path)
}

async fn check(
    listed: &Listed,
    manifest: &Manifest,
    program: Option<PathBuf>,
    scratch: &mut Scratch,
    ui: &Ui,
) -> Result<Report, Error> {
    let mut report = Report {
        provider: listed.id.clone(),
        manifest: listed.from.clone(),
        program: program.as_ref().map(|program| program.display().to_string()),
        version: None,
        known_versions: manifest.versions.clone(),
        notes: Vec::new(),
        findings: Vec::new(),
    };
    let Some(program) = program else {
        report.notes.extend(manifest.launch.as_ref().map(|launch| format!("to get it: {}", launch.install)));
        return Ok(report);
    };
    let environment = environment(scratch.home());
    let said = versions::ask(&program, &environment).await;
    report.version = said.as_deref().and_then(Version::said);
    report.findings.push(runs(said.as_deref(), &program).await);
    report.notes.extend(unknown(report.version.as_ref(), &manifest.versions));
    if said.is_none() {
        return Ok(report);
    }
    let Some(maker) = Maker::of_provider(&listed.id) else {
        let note = "posse has no scripted model for it: nothing more can be checked without an account";
        report.notes.push(note.into());
        return Ok(report);
    };
    ui.say(&format!("{} is checked; this takes half a minute …", listed.id));
    scratch.lay_over(&listed.id, &client::paths()?.providers())?;
    let version = report.version.as_ref().map(Version::to_string).unwrap_or_default();
    let agent = Agent { provider: &listed.id, maker, program: &program, version: &version, environment };
    for conversation in Conversation::ALL {
        let findings = match conversation.is_hopeless(&report.findings) {
            true => conversation.unplayed(),
            false => scratch.play(&agent, conversation).await?,
        };
        report.take(findings);
    }
    Ok(report)
}

/// Whether it can be run at all, in a home that is not the user's.
async fn runs(said: Option<&str>, program: &Path) -> Finding {
    let expectation = Expectation::Runs;
    if let Some(said) = said {
        return Finding::fits(expectation, said);
    }
    let own: BTreeMap<String, String> = super::super::launch::environment();
    let seen = match versions::ask(program, &own).await {
        Some(_) => "it runs only in your own home: is it a link of a version manager? Put the real program into PATH",
        None => "`--version` fails",
    };
    Finding::differs(expectation, seen, finding::Evidence::default())
}

/// What to say of a version that the manifest does not name.
fn unknown(version: Option<&Version>, known: &[Version]) -> Option<String> {
    let version = version.filter(|version| !known.is_empty() && !known.contains(version))?;
    let known: Vec<String> = known.iter().map(Version::to_string).collect();
    Some(format!("its manifest was written for {}, not for {version}", known.join(", ")))
}

/// What the agent gets of the user's environment: where programs are and what language is spoken, and no account, no
/// proxy, no settings.
fn environment(home: &Path) -> BTreeMap<String, String> {
    const KEPT: [&str; 14] = [
        "PATH",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "USER",
        "LOGNAME",
        "SHELL",
        "NVM_DIR",
        "VOLTA_HOME",
        "ASDF_DIR",
        "ASDF_DATA_DIR",
        "MISE_DATA_DIR",
        "FNM_DIR",
    ];
    let mut environment = super::super::launch::environment();
    environment.retain(|name, _| KEPT.contains(&name.as_str()));
    let home = home.display().to_string();
    environment.extend([("HOME".to_owned(), home.clone()), ("POSSE_HOME".to_owned(), home)]);
    environment
}

/// What to do about what does not fit.
fn advice(reports: &[Report], keep: Option<&Path>, directory: &Path, ui: &Ui) -> String {
    let mut text = format!("\n{}\n", ui.paint("What to do next", Colour::Bold));
    for report in reports.iter().filter(|report| report.differs()) {
        let Report { provider, .. } = report;
        let file = directory.join(format!("{provider}.toml"));
        let file = file.display();
        match keep {
            Some(keep) => {
                let keep = keep.display();
                text += &format!("  posse explain --provider {provider} --screen {keep}/{provider}-accept.txt\n");
                text += &format!("  posse explain --provider {provider} --recording {keep}/{provider}-accept.cast\n");
                text += "      say which rule reads a screen, on which text, and what lost\n";
            }
            None => {
                text += &format!("  posse provider check --live {provider} --keep DIRECTORY\n");
                text += "      keeps screens and recordings, for `posse explain` and for a bug report\n";
            }
        }
        if report.manifest.len() > 1 {
            text += &format!("  Rules of yours are laid over ours in {file}: do these still fit?\n");
        } else {
            text += &format!("  Rules are laid over ours in {file}, one by one.\n");
        }
    }
    text + "  docs/adding-an-agent.md says how rules are written.\n"
}

#[cfg(test)]
mod tests {
    use super::finding::Verdict;
    use super::*;

    fn report(program: Option<&str>, verdict: Option<Verdict>) -> Report {
        let finding = |verdict| Finding { verdict, ..Finding::fits(Expectation::Starts, "") };
        Report {
            provider: "mole".into(),
            manifest: Vec::new(),
            program: program.map(str::to_owned),
            version: None,
            known_versions: Vec::new(),
            notes: Vec::new(),
            findings: verdict.map(finding).into_iter().collect(),
        }
    }

    #[test]
    fn exit_codes() {
        let (fits, differs) = (report(Some("/a"), Some(Verdict::Fits)), report(Some("/a"), Some(Verdict::Differs)));
        let unchecked = report(Some("/a"), Some(Verdict::Unchecked));
        let missing = report(None, None);
        assert_eq!(exit(&[fits.clone(), unchecked]), Exit::Ok);
        assert_eq!(exit(&[fits.clone(), missing.clone()]), Exit::Missing);
        assert_eq!(exit(&[missing, differs]), Exit::Failed, "what does not fit is worse");
        assert_eq!(exit(&[]), Exit::Missing);
    }

    #[test]
    fn what_to_do_next_names_the_file_and_the_commands() {
        let theirs = Report {
            manifest: vec!["built in".into(), "/c/providers/mole.toml".into()],
            ..report(Some("/a"), Some(Verdict::Differs))
        };
        let text = |report: &Report, keep: Option<&str>| {
            advice(std::slice::from_ref(report), keep.map(Path::new), Path::new("/c/providers"), &Ui::dull())
        };
        let first = text(&theirs, None);
        for part in ["--live mole --keep", "/c/providers/mole.toml: do these still fit", "docs/adding-an-agent.md"] {
            assert!(first.contains(part), "{first}");
        }
        let kept = text(&report(Some("/a"), Some(Verdict::Differs)), Some("k"));
        assert!(kept.contains("posse explain --provider mole --recording k/mole-accept.cast"), "{kept}");
        assert_eq!(text(&report(Some("/a"), Some(Verdict::Fits)), None).lines().count(), 3);
    }

    #[test]
    fn a_version_that_nobody_tried_is_told() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        let known = [version("0.145.0"), version("0.166.0")];
        assert_eq!(unknown(Some(&version("0.166.0")), &known), None);
        assert!(unknown(Some(&version("0.170.1")), &known).unwrap().contains("0.145.0, 0.166.0, not for 0.170.1"));
        assert_eq!(unknown(Some(&version("1.0")), &[]), None);
    }
}
