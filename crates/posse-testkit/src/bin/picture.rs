//! The picture in the README: what somebody at a window sees of `posse demo`, as SVG.
//!
//! `cargo build --release && cargo run -p posse-testkit --bin picture -- target/release/posse docs/demo.svg`

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Parser;
use posse_core::screen::Size;
use posse_testkit::seat::Seat;
use posse_testkit::svg;

/// Draws what a command shows in a window
#[derive(Debug, Parser)]
struct Args {
    /// The program
    posse: PathBuf,
    /// Where the picture goes
    file: PathBuf,
    /// The moment: as soon as the window shows all of these
    #[arg(long, default_values = ["FAIL in round 1", "Running Edit"])]
    when: Vec<String>,
    #[arg(long, default_value = "100x36")]
    size: Size,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut command = Command::new(&args.posse);
    command.arg("demo").env("TERM", "xterm-256color").env("TZ", "UTC").env_remove("NO_COLOR");
    let seat = Seat::new(command, args.size);
    seat.until(|screen| args.when.iter().all(|text| screen.text().contains(text)));
    let bytes = seat.bytes();
    seat.until(|screen| screen.text().contains("Next, with"));
    if seat.exit_code() != Some(0) {
        eprintln!("the demo failed");
        return ExitCode::FAILURE;
    }
    let picture = svg::picture(&bytes, args.size, "posse demo");
    match std::fs::write(&args.file, picture) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", args.file.display());
            ExitCode::FAILURE
        }
    }
}
