//! `cargo run --release -p posse-testkit --bin conformance`: see docs/conformance.md.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use posse_sim::conformance::cases;
use posse_testkit::bench::report::machine;
use posse_testkit::conformance::run::{Setup, run};
use posse_testkit::conformance::subject::{ConformanceSubject, SUBJECTS};
use posse_testkit::conformance::{readme, report};

/// Measures whether posse's statuses are right, with the real agents
///
/// Runs the `posse` beside this program, in homes of their own; nothing is left behind but recordings and timelines.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only agents whose name (such as `codex-0.166.0`) begins with this; may be given more than once. A whole name may
    /// have a version that is not played otherwise
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// Only scenarios whose name contains this; may be given more than once
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// Only what is played on every commit
    #[arg(long)]
    smoke: bool,
    /// Write docs/conformance.md, from these runs and those kept before
    #[arg(long)]
    write: bool,
    /// Write the table in README.md anew, from docs/conformance.md; `--write` does that too
    #[arg(long)]
    readme: bool,
    /// What else there is to say about the machine, for that page
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Play nothing; for `--write` from what was kept
    #[arg(long)]
    no_run: bool,
    /// Print the timelines of scenarios that are not green
    #[arg(long)]
    timelines: bool,
    /// The program under test, if it is not the one beside this program
    #[arg(long, value_name = "FILE")]
    posse: Option<PathBuf>,
    /// Where recordings and timelines are kept
    #[arg(long, value_name = "DIRECTORY", default_value = "target/conformance")]
    artefacts: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join("posse")));
    let Some(posse) = arguments.posse.clone().or(beside).filter(|path| arguments.no_run || path.exists()) else {
        eprintln!("posse is missing; build it with `cargo build --release -p posse`");
        return ExitCode::FAILURE;
    };
    let stop = Arc::<AtomicBool>::default();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        if let Err(error) = signal_hook::flag::register(signal, stop.clone()) {
            eprintln!("cannot listen for signals: {error}");
        }
    }
    let mut outcomes = Vec::new();
    let wanted = |name: &str| arguments.agent.is_empty() || arguments.agent.iter().any(|agent| name.starts_with(agent));
    let mut subjects: Vec<ConformanceSubject> =
        SUBJECTS.into_iter().filter(|subject| wanted(&subject.name())).collect();
    let other = |name: &String| !SUBJECTS.iter().any(|subject| subject.name().starts_with(name.as_str()));
    subjects
        .extend(arguments.agent.iter().filter(|name| other(name)).filter_map(|name| ConformanceSubject::named(name)));
    for subject in subjects.into_iter().filter(|_| !arguments.no_run) {
        for scenario in cases(subject.maker) {
            let named = |part: &String| scenario.name.contains(part);
            if (arguments.smoke && !scenario.smoke)
                || !(arguments.scenario.is_empty() || arguments.scenario.iter().any(named))
            {
                continue;
            }
            let artefacts = &arguments.artefacts;
            let setup = Setup { posse: &posse, subject, artefacts, stop: &stop };
            let outcome = run(setup, &scenario);
            if stop.load(Ordering::Relaxed) {
                return ExitCode::from(130);
            }
            println!("{}", report::line(&outcome));
            if arguments.timelines && !outcome.is_green() {
                println!("{}", outcome.timeline);
            }
            outcomes.push(outcome);
        }
    }
    if arguments.write
        && let Err(error) = write(&arguments.artefacts, &arguments.note)
    {
        eprintln!("cannot write docs/conformance.md: {error}");
        return ExitCode::FAILURE;
    }
    if (arguments.write || arguments.readme)
        && let Err(error) = write_readme()
    {
        eprintln!("cannot write README.md: {error}");
        return ExitCode::FAILURE;
    }
    let failed = outcomes.iter().filter(|outcome| outcome.subject.required && !outcome.is_green()).count();
    println!("{} runs, {failed} of those that must be green are not", outcomes.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn write(artefacts: &Path, note: &str) -> std::io::Result<()> {
    let date = jiff::Zoned::now().date().to_string();
    let document = report::document(&report::kept(artefacts)?, &machine(), &date, note);
    std::fs::write("docs/conformance.md", document)
}

fn write_readme() -> std::io::Result<()> {
    let page = std::fs::read_to_string("docs/conformance.md")?;
    let table = readme::table(&page).ok_or_else(|| std::io::Error::other("docs/conformance.md has no figures"))?;
    let text = readme::put(&std::fs::read_to_string("README.md")?, &table);
    std::fs::write("README.md", text.ok_or_else(|| std::io::Error::other("it has no place for the table"))?)
}
