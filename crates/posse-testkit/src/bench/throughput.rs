//! Output rate of one terminal that prints at full speed, compared with a bare terminal that is only drained, and the
//! delay of another terminal's output at the same time.

use std::io::{ErrorKind, Read, Write};
use std::time::Instant;

use super::report::{BenchRow, Samples};
use super::subject::Subject;
use super::{Bench, BenchError, READY, latency};

/// Interval between two lines of the other terminal: short, because the flood ends soon.
const GAP_MS: &str = "10..30";
/// Practically endless; the flood is ended before.
const ENDLESS: &str = "1000000000000";

pub(super) fn measure(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let bytes = bench.choose(8 << 20, 64 << 20);
    let subject = Subject::start(bench)?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    // Alternating, so that a slow moment of the machine affects both.
    for _ in 0..bench.choose(1, 5) {
        bench.go_on()?;
        bare.push(bare_rate(bench, bytes)?);
        ours.push(our_rate(&subject, bytes)?);
    }
    let (ours, bare) = (Samples::new(ours).median(), Samples::new(bare).median());
    let (flood, _) = subject.launch_probe(&["flood", "--bytes", ENDLESS])?;
    subject.begin(flood)?;
    let delays = latency::output(bench, &subject, bench.choose(30, 300), GAP_MS)?;
    subject.delete(flood)?;
    let rate = |name, unit, rate| BenchRow::new(name, unit).figure("", rate).larger_is_better();
    Ok(vec![
        rate("output of one terminal", "MB/s", ours),
        rate("the same on a bare terminal", "MB/s", bare),
        rate("share of a bare terminal's", "", ours / bare),
        latency::row("output of another terminal to watcher meanwhile", delays, None, None),
    ])
}

/// Measures until the daemon reports the program's exit, which follows the drawing of all output.
fn our_rate(subject: &Subject<'_>, bytes: u64) -> Result<f64, BenchError> {
    // The viewer is disconnected at once: the cost of watching a flood is a different measurement.
    let (id, _) = subject.launch_probe(&["flood", "--bytes", &bytes.to_string()])?;
    let mut events = subject.http.events(None)?;
    let start = Instant::now();
    subject.begin(id)?;
    loop {
        let event = events.next_event()?.ok_or("the end of a flood did not happen in time")?;
        if event["terminal"] != id.as_str() {
            continue;
        }
        match event["kind"].as_str() {
            Some("terminal_exited") => break,
            // Only a daemon that missed output and wants a repaint resizes the terminal. Skipped output is not
            // throughput.
            Some("resized") => return Err("output of a flood never reached the screen".into()),
            _ => {}
        }
    }
    let took = start.elapsed();
    subject.delete(id)?;
    Ok(bytes as f64 / 1e6 / took.as_secs_f64())
}

fn bare_rate(bench: &Bench, bytes: u64) -> Result<f64, BenchError> {
    let (mut pty, pts) = pty_process::blocking::open()?;
    pty.resize(pty_process::Size::new(40, 120))?;
    let command = pty_process::blocking::Command::new(&bench.probe).args(["flood", "--bytes", &bytes.to_string()]);
    let mut child = command.spawn(pts)?;
    let mut buffer = vec![0; 64 << 10];
    let mut seen = Vec::new();
    while !seen.windows(READY.len()).any(|window| window == READY.as_bytes()) {
        let count = pty.read(&mut buffer)?;
        seen.extend_from_slice(&buffer[..count]);
    }
    let start = Instant::now();
    pty.write_all(b"\r")?;
    loop {
        match pty.read(&mut buffer) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The error of a terminal whose other side is closed.
            Err(_) => break,
        }
    }
    let took = start.elapsed();
    child.wait()?;
    Ok(bytes as f64 / 1e6 / took.as_secs_f64())
}
