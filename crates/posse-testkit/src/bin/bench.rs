//! `cargo run --release -p posse-testkit --bin bench`: see docs/bench.md.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use posse_testkit::bench::report::{self, Machine, Row};
use posse_testkit::bench::{Bench, BenchError, Depth, MEASUREMENTS, Measurement, beside};

/// Measures what posse costs and how fast it is
///
/// Runs the `posse` beside this program, in a home of its own; nothing is left behind.
#[derive(Debug, Parser)]
struct Arguments {
    /// Write the results to this file too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put each table into this file, between its marks: `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
    /// Measure only this; may be given more than once
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(MEASUREMENTS.iter().map(|m| m.name)))]
    only: Vec<String>,
    /// Measure this older posse and the new one in turns, and print ratios
    #[arg(long, value_name = "OLD", conflicts_with_all = ["json", "into"])]
    beside: Option<PathBuf>,
    /// How often each of the two is measured
    #[arg(long, value_name = "N", default_value_t = 3, requires = "beside")]
    rounds: usize,
    /// Take few samples: rough numbers soon
    #[arg(long)]
    quick: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if matches!(error, BenchError::Interrupted) { ExitCode::from(130) } else { ExitCode::FAILURE }
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let stop = Arc::<AtomicBool>::default();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).map_err(BenchError::io("listen for signals"))?;
    }
    let executable = std::env::current_exe().map_err(BenchError::io("find this program's own file"))?;
    let depth = if arguments.quick { Depth::Quick } else { Depth::Full };
    let bench = Bench::new(executable.parent().unwrap_or(&executable), depth, stop)?;
    let machine = Machine::this();
    let wanted = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    let chosen: Vec<Measurement> =
        MEASUREMENTS.iter().copied().filter(|measurement| wanted(measurement.name)).collect();
    if let Some(old) = &arguments.beside {
        return beside_old(&bench.with_posse(old)?, &bench, &chosen, arguments.rounds);
    }
    let mut rows: Vec<Row> = Vec::new();
    for measurement in &chosen {
        eprintln!("{}: {} …", measurement.name, measurement.what);
        let start = Instant::now();
        let measured = (measurement.run)(&bench)?;
        eprintln!("  {:.0} s", start.elapsed().as_secs_f64());
        if let Some(path) = &arguments.into {
            put(path, measurement.name, &machine, depth, &measured).map_err(BenchError::io("write the table"))?;
        }
        rows.extend(measured);
    }
    println!("posse {} on {}", posse_api::VERSION, machine.text());
    if depth == Depth::Quick {
        println!("quick: rough numbers");
    }
    println!("\n{}", report::table(&rows));
    if let Some(path) = &arguments.json {
        let text = format!("{:#}\n", report::json(&machine, depth, &rows));
        std::fs::write(path, text).map_err(BenchError::io("write the results"))?;
    }
    Ok(())
}

/// Compares an older binary with the new one. A measurement that the older one cannot take part in is named and left out.
fn beside_old(old: &Bench, new: &Bench, chosen: &[Measurement], rounds: usize) -> Result<(), BenchError> {
    let mut all = Vec::new();
    for measurement in chosen {
        eprintln!("{}: {} …", measurement.name, measurement.what);
        match beside::compare(measurement, old, new, rounds) {
            Ok(found) => all.extend(found),
            Err(BenchError::Interrupted) => return Err(BenchError::Interrupted),
            Err(error) => println!("{} is not compared: {error}", measurement.name),
        }
    }
    println!("{}, {rounds} rounds each\n\n{}", Machine::this().text(), beside::table(&all));
    Ok(())
}

/// A file without the marks stays as it is.
fn put(path: &Path, name: &str, machine: &Machine, depth: Depth, rows: &[Row]) -> std::io::Result<()> {
    let quick = if depth == Depth::Quick { ", `--quick`: rough numbers" } else { "" };
    let date = jiff::Timestamp::now().strftime("%-d %B %Y");
    let body =
        format!("\nposse {}, {date}, {}{quick}.\n\n{}\n", posse_api::VERSION, machine.text(), report::table(rows));
    match report::put_section(&std::fs::read_to_string(path)?, name, &body) {
        Some(text) => std::fs::write(path, text),
        None => Ok(()),
    }
}
