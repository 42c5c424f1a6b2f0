//! Delivery delays: output to a viewer, a title to an event subscriber, a key to the program. Each is measured on an
//! idle machine and beside busy terminals.

use std::time::Duration;

use posse_core::ids::TerminalId;

use super::report::{BenchRow, ms_between};
use super::stamp::{self, Stamp};
use super::subject::{Subject, key};
use super::{Bench, BenchError, missing};

/// Interval between two lines or keys. Irregular, so that samples do not synchronize with timers.
const GAP_MS: &str = "30..70";
/// Interval between two titles: longer than the quiet time before a screen read (30 ms), even on a slow day. Titles in
/// faster succession count as one change, by design.
const TITLE_GAP_MS: &str = "90..150";
const WARM_UP: Duration = Duration::from_secs(3);

/// Numbers of busy terminals, each with the limit of the 99th percentile of titles in milliseconds.
const LOADS: [(usize, f64); 3] = [(0, 100.0), (20, 100.0), (200, 250.0)];

pub(super) fn measure(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let mut rows = Vec::new();
    for (busy, limit) in LOADS {
        let subject = Subject::start(bench)?;
        subject.launch_many(busy, &bench.probe_command(&["spin"]))?;
        if busy > 0 {
            bench.pause(WARM_UP)?;
        }
        let beside = format!("{busy} busy");
        let count = bench.choose(30, 300);
        let output = output(bench, &subject, count, GAP_MS)?;
        rows.push(row(format!("output to watcher, {beside}"), output, Some(5.0), Some(50.0)));
        let plain = titles(bench, &subject, count, &[])?;
        let overtaken = overtaken(&plain, count);
        let titles_row = row(format!("title to events, {beside}"), plain, Some(45.0), Some(limit));
        rows.push(titles_row.note(overtaken));
        let framed = titles(bench, &subject, count, &["--framed"])?;
        rows.push(row(format!("title in a frame to events, {beside}"), framed, None, None));
        let (read, answered) = keys(bench, &subject, |number| number < count)?;
        rows.push(row(format!("input call to program, {beside}"), read, None, None));
        rows.push(row(format!("input call to answer, {beside}"), answered, None, None));
    }
    Ok(rows)
}

pub(super) fn row(name: impl Into<String>, delays: Vec<f64>, p50: Option<f64>, p99: Option<f64>) -> BenchRow {
    BenchRow::samples(name, "ms", delays, &[("p50", p50), ("p99", p99), ("max", None)])
}

/// Reports titles that a newer title replaced before delivery. They have no delay.
fn overtaken(delays: &[f64], count: u32) -> String {
    match count as usize - delays.len() {
        0 => String::new(),
        missing => format!("{missing} of {count} overtaken by the next"),
    }
}

pub(super) fn output(bench: &Bench, subject: &Subject<'_>, count: u32, gap_ms: &str) -> Result<Vec<f64>, BenchError> {
    let (id, mut stream) = subject.launch_probe(&["stamp", "--every-ms", gap_ms, "--count", &count.to_string()])?;
    subject.begin(id)?;
    let delays = stream.delays(bench, count)?;
    subject.delete(id)?;
    Ok(delays)
}

/// Returns the delays of titles to an event subscriber, in milliseconds.
fn titles(bench: &Bench, subject: &Subject<'_>, count: u32, more: &[&str]) -> Result<Vec<f64>, BenchError> {
    let number = count.to_string();
    let arguments = ["stamp", "--title", "--every-ms", TITLE_GAP_MS, "--count", &number];
    let (id, _) = subject.launch_probe(&[&arguments, more].concat())?;
    let mut events = subject.http.events(None)?;
    subject.begin(id)?;
    let mut delays = Vec::new();
    loop {
        bench.go_on()?;
        let event = events.next_event()?;
        let now = stamp::now();
        let event = event.ok_or("the last title did not happen in time")?;
        let Some(Stamp { number, at }) = title_of(&event, id) else { continue };
        delays.push(ms_between(at, now));
        if number + 1 == count {
            subject.delete(id)?;
            return Ok(delays);
        }
    }
}

fn title_of(event: &serde_json::Value, id: TerminalId) -> Option<Stamp> {
    if event["kind"] != "title_changed" || event["terminal"] != id.as_str() {
        return None;
    }
    Stamp::take(&mut event["data"]["title"].as_str()?.as_bytes().to_vec())
}

/// Returns the milliseconds from just before a call to the program's read of the key, and to the answer.
pub(super) fn keys(
    bench: &Bench,
    subject: &Subject<'_>,
    mut more: impl FnMut(u32) -> bool,
) -> Result<(Vec<f64>, Vec<f64>), BenchError> {
    let log = subject.env.work().join("keys");
    let (id, _) = subject.launch_probe(&["read", "--log", &log.to_string_lossy()])?;
    let (mut called, mut answered) = (Vec::new(), Vec::new());
    for number in (0..).take_while(|number| more(*number)) {
        // From 30 to 69 ms in an order that repeats only after 40.
        bench.pause(Duration::from_millis(u64::from(30 + number * 17 % 40)))?;
        let start = stamp::now();
        subject.send(id, &key('k'))?;
        answered.push(ms_between(start, stamp::now()));
        called.push(start);
    }
    // The answer confirms that the key is in the terminal; the program may still have to read it.
    bench.pause(Duration::from_millis(100))?;
    subject.delete(id)?;
    // The program has ended, so its log is complete.
    let text = std::fs::read_to_string(&log)?;
    let read: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    if read.len() != called.len() {
        return Err(missing("keys read", read.len(), called.len()));
    }
    Ok((called.iter().zip(&read).map(|(called, read)| ms_between(*called, *read)).collect(), answered))
}
