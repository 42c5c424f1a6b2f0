//! The benchmark: the cost and the speed of posse, measured from outside, on real processes in a separate home.
//!
//! One file per measurement. The benchmark checks only its stated limits and is not a test: a busy machine gives bad
//! numbers. docs/bench.md explains each row.

pub mod beside;
mod cost;
mod latency;
mod plan;
pub mod report;
mod slow_disk;
pub mod stamp;
mod subject;
mod throughput;
mod times;
mod whole_loop;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use report::BenchRow;

/// The output of a probe that is ready to begin.
pub const READY: &str = "ready";
/// The length of each repaint of `probe spin`.
pub const FRAME_LENGTH: u64 = 168;

#[derive(Clone, Copy)]
pub struct Measurement {
    pub name: &'static str,
    pub what: &'static str,
    pub run: fn(&Bench) -> Result<Vec<BenchRow>, BenchError>,
}

pub const MEASUREMENTS: &[Measurement] = &[
    Measurement { name: "start", what: "how long the daemon takes to start", run: times::start },
    Measurement { name: "cli", what: "how long commands take", run: times::commands },
    Measurement { name: "memory", what: "what idle terminals cost in memory", run: cost::memory },
    Measurement { name: "cpu", what: "what idle and busy terminals cost in processor time", run: cost::processor },
    Measurement { name: "latency", what: "how late output, titles and keys arrive", run: latency::measure },
    Measurement { name: "throughput", what: "how fast one terminal can print", run: throughput::measure },
    Measurement { name: "crowd", what: "how long it takes to start and end many terminals", run: times::crowd },
    Measurement { name: "loop", what: "what the loop takes beyond its agents", run: whole_loop::measure },
    Measurement { name: "plan", what: "what plans take beyond git and their agents", run: plan::measure },
    Measurement { name: "disk", what: "how late keys arrive while the disk is slow", run: slow_disk::measure },
];

pub type BenchError = Box<dyn std::error::Error + Send + Sync>;

fn missing(what: &str, found: usize, expected: usize) -> BenchError {
    format!("{what}: {found} of {expected}").into()
}

fn refused(what: &str, answer: &crate::http::HttpAnswer) -> BenchError {
    format!("the daemon refused to {what} ({}): {}", answer.status, answer.body).into()
}

pub struct Bench {
    posse: PathBuf,
    probe: PathBuf,
    /// Takes few samples: enough to check that everything works, with rough numbers.
    quick: bool,
    stop: Arc<AtomicBool>,
}

impl Bench {
    /// Finds the programs beside `directory`. When `stop` becomes true, each measurement ends at its next step and
    /// stops its processes.
    pub fn new(directory: &Path, quick: bool, stop: Arc<AtomicBool>) -> Result<Self, BenchError> {
        let find = |name| {
            let path = directory.join(name);
            let build = "build it with `cargo build --release -p posse -p posse-testkit`";
            if path.is_file() { Ok(path) } else { Err(format!("{} is missing; {build}", path.display())) }
        };
        Ok(Self { posse: find("posse")?, probe: find("probe")?, quick, stop })
    }

    /// Returns the same benchmark with another posse, for a comparison.
    pub fn with_posse(&self, posse: &Path) -> Result<Self, BenchError> {
        let posse = posse
            .canonicalize()
            .map_err(|error| format!("cannot use {} as an older posse: {error}", posse.display()))?;
        Ok(Self { posse, probe: self.probe.clone(), quick: self.quick, stop: self.stop.clone() })
    }

    fn choose<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    fn probe_command<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        // A path that is not UTF-8 is not supported: the API cannot carry it either.
        let probe = self.probe.to_str().unwrap_or_default();
        std::iter::once(probe).chain(arguments.iter().copied()).collect()
    }

    /// Pauses, to observe something or to space samples.
    fn pause(&self, duration: Duration) -> Result<(), BenchError> {
        const SLICE: Duration = Duration::from_millis(100);
        let mut left = duration;
        while !left.is_zero() {
            self.go_on()?;
            let slice = left.min(SLICE);
            std::thread::sleep(slice);
            left -= slice;
        }
        Ok(())
    }

    /// Runs a command repeatedly, and returns the duration of each run in milliseconds.
    fn time(&self, mut command: impl FnMut() -> Result<(), BenchError>) -> Result<Vec<f64>, BenchError> {
        // An uncounted first run loads the program from the disk.
        command()?;
        let times = (0..self.choose(10, 50)).map(|_| {
            self.go_on()?;
            let start = Instant::now();
            command()?;
            Ok(start.elapsed().as_secs_f64() * 1e3)
        });
        times.collect()
    }

    /// Polls until there is an answer.
    fn until<T>(
        &self,
        what: &str,
        patience: Duration,
        every: Duration,
        mut ask: impl FnMut() -> Result<Option<T>, BenchError>,
    ) -> Result<T, BenchError> {
        let give_up = Instant::now() + patience;
        loop {
            self.go_on()?;
            if let Some(answer) = ask()? {
                return Ok(answer);
            }
            if Instant::now() > give_up {
                return Err(format!("{what} did not happen in time").into());
            }
            std::thread::sleep(every);
        }
    }

    fn go_on(&self) -> Result<(), BenchError> {
        if self.stop.load(Ordering::Relaxed) { Err("interrupted".into()) } else { Ok(()) }
    }
}
