//! `cargo run --release -p posse-testkit --bin bench`: see docs/bench.md.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use clap::builder::PossibleValuesParser;
use posse_testkit::bench::report::{machine, table};
use posse_testkit::bench::{Bench, BenchError, MEASUREMENTS, beside};
use posse_testkit::process;

/// Measures what posse costs and how fast it is
///
/// Runs the `posse` beside this program, in a home of its own; nothing is left behind.
#[derive(Debug, Parser)]
struct Arguments {
    /// Measure only this; may be given more than once
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(MEASUREMENTS.iter().map(|m| m.name)))]
    only: Vec<String>,
    /// Measure this older posse and the new one in turns, and print ratios
    #[arg(long, value_name = "OLD")]
    beside: Option<PathBuf>,
    /// How often each of the two is measured
    #[arg(long, value_name = "N", default_value_t = 3, requires = "beside")]
    rounds: usize,
    /// Take few samples: rough numbers soon
    #[arg(long)]
    quick: bool,
}

fn main() -> ExitCode {
    let stop = Arc::<AtomicBool>::default();
    let Err(error) = run(&Arguments::parse(), &stop) else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    if stop.load(Ordering::Relaxed) { ExitCode::from(130) } else { ExitCode::FAILURE }
}

fn run(arguments: &Arguments, stop: &Arc<AtomicBool>) -> Result<(), BenchError> {
    process::set_on_signals(stop)?;
    let executable = std::env::current_exe()?;
    let bench = Bench::new(executable.parent().unwrap_or(&executable), arguments.quick, stop.clone())?;
    let machine = machine();
    let wanted = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    let old = arguments.beside.as_ref().map(|old| bench.with_posse(old)).transpose()?;
    let mut rows = Vec::new();
    let mut comparisons = Vec::new();
    for measurement in MEASUREMENTS.iter().filter(|measurement| wanted(measurement.name)) {
        eprintln!("{}: {} …", measurement.name, measurement.what);
        match &old {
            None => rows.extend((measurement.run)(&bench)?),
            // A measurement that the older binary does not support is named and left out.
            Some(old) => match beside::compare(measurement, old, &bench, arguments.rounds) {
                Ok(found) => comparisons.extend(found),
                Err(error) if stop.load(Ordering::Relaxed) => return Err(error),
                Err(error) => println!("{} is not compared: {error}", measurement.name),
            },
        }
    }
    let quick = if arguments.quick { ", quick: rough numbers" } else { "" };
    println!("posse {} on {machine}{quick}\n", posse_api::VERSION);
    println!("{}", if old.is_some() { beside::table(&comparisons) } else { table(&rows) });
    Ok(())
}
