//! `cargo run --release -p posse-testkit --bin conformance`: see docs/conformance.md.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use posse_sim::conformance::{cases, soak};
use posse_testkit::bench::report::machine;
use posse_testkit::conformance::run::{Setup, run};
use posse_testkit::conformance::subject::{ConformanceSubject, SUBJECTS};
use posse_testkit::conformance::{readme, report};
use posse_testkit::process;

/// Measures whether posse's statuses are right, with the real agents
///
/// Runs the `posse` beside this program, in homes of their own; nothing is left behind but recordings and timelines.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only agents whose name (such as `codex-0.166.0`) begins with this; may be given more than once. A whole name may have
    /// a version that is not played otherwise
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// Only scenarios whose name contains this; may be given more than once
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// Play long conversations with this many turns instead of the scenarios
    #[arg(long, value_name = "TURNS")]
    soak: Option<usize>,
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
}

/// The directory of recordings and timelines.
const ARTEFACTS: &str = "target/conformance";

fn main() -> ExitCode {
    run_all(&Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

fn run_all(arguments: &Arguments) -> std::io::Result<ExitCode> {
    let posse = std::env::current_exe()?.with_file_name("posse");
    if !arguments.no_run && !posse.exists() {
        return Err(std::io::Error::other("posse is missing; build it with `cargo build --release -p posse`"));
    }
    let stop = Arc::<AtomicBool>::default();
    process::set_on_signals(&stop)?;
    let (mut runs, mut failed) = (0, 0);
    let wanted = |name: &str| arguments.agent.is_empty() || arguments.agent.iter().any(|agent| name.starts_with(agent));
    let listed = SUBJECTS.into_iter().filter(|subject| wanted(&subject.name()));
    let is_other = |name: &&String| !SUBJECTS.iter().any(|subject| subject.name().starts_with(name.as_str()));
    let others = arguments.agent.iter().filter(is_other).filter_map(|name| ConformanceSubject::named(name));
    for subject in listed.chain(others).filter(|_| !arguments.no_run) {
        for scenario in arguments.soak.map_or_else(|| cases(subject.maker), soak) {
            let named = |part: &String| scenario.name.contains(part);
            if !(arguments.scenario.is_empty() || arguments.scenario.iter().any(named)) {
                continue;
            }
            let setup = Setup { posse: &posse, subject, artefacts: Path::new(ARTEFACTS), stop: &stop };
            let outcome = run(setup, &scenario);
            if stop.load(Ordering::Relaxed) {
                return Ok(ExitCode::from(130));
            }
            println!("{}", report::line(&outcome));
            runs += 1;
            failed += usize::from(subject.required && !outcome.is_green());
        }
    }
    let cannot = |file: &'static str| {
        move |error: std::io::Error| std::io::Error::other(format!("cannot write {file}: {error}"))
    };
    if arguments.write {
        write(&arguments.note).map_err(cannot("docs/conformance.md"))?;
    }
    if arguments.write || arguments.readme {
        write_readme().map_err(cannot("README.md"))?;
    }
    println!("{runs} runs, {failed} of those that must be green are not");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(note: &str) -> std::io::Result<()> {
    let date = jiff::Zoned::now().date().to_string();
    let runs = report::kept(Path::new(ARTEFACTS))?;
    std::fs::write("docs/conformance.md", report::document(&runs, &machine(), &date, note))?;
    std::fs::write("docs/reference/conformance.md", report::scenarios(&runs))
}

fn write_readme() -> std::io::Result<()> {
    let page = std::fs::read_to_string("docs/conformance.md")?;
    let table = readme::table(&page).ok_or_else(|| std::io::Error::other("docs/conformance.md has no figures"))?;
    let text = readme::put(&std::fs::read_to_string("README.md")?, &table);
    std::fs::write("README.md", text.ok_or_else(|| std::io::Error::other("it has no place for the table"))?)
}
