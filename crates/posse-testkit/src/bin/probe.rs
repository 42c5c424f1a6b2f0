//! The benchmark's program inside a terminal: it prints at known times, records key presses, or creates a load. Started
//! by `bench`, not by people.
//!
//! Each measurement begins when the probe reads a line, so that the bench is listening by then. The probe sleeps
//! between two samples on purpose: it is the load, not the thing measured.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use posse_testkit::bench::stamp::{self, Stamp};
use posse_testkit::bench::{FRAME_LENGTH, READY};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// The program that `bench` runs inside terminals
#[derive(Debug, Parser)]
enum Probe {
    /// Print lines that say when they were printed
    Stamp {
        /// From how many to how many milliseconds lie between two
        #[arg(long, value_name = "A..B", value_parser = range)]
        every_ms: Range<u64>,
        #[arg(long)]
        count: u32,
        /// Set titles instead
        #[arg(long)]
        title: bool,
        /// Say that a frame ends after each (mode 2026), as most agents do
        #[arg(long)]
        framed: bool,
    },
    /// Note when each byte was read
    Read {
        /// A line for each byte goes here: nanoseconds of the monotonic clock
        #[arg(long)]
        log: PathBuf,
    },
    /// Print coloured lines as fast as they are taken, then exit
    Flood {
        #[arg(long)]
        bytes: u64,
    },
    /// Repaint a spinner ten times a second, as a working agent does
    Spin,
    /// Paint one full screen, then do nothing
    Idle {
        /// Print so many bytes of lines before
        #[arg(long, default_value_t = 0)]
        after: u64,
    },
}

fn range(text: &str) -> Result<Range<u64>, &'static str> {
    let numbers = text.split_once("..").and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?));
    numbers.filter(|range| !range.is_empty()).ok_or("a range is written A..B, with A less than B")
}

fn main() -> ExitCode {
    let done = match Probe::parse() {
        Probe::Stamp { every_ms, count, title, framed } => stamps(&every_ms, count, |stamp| match (title, framed) {
            (false, _) => format!("{stamp}\n"),
            (true, false) => format!("\x1b]2;{stamp}\x07"),
            (true, true) => format!("\x1b[?2026h\x1b]2;{stamp}\x07\x1b[?2026l"),
        }),
        Probe::Read { log } => read(File::create(log)),
        Probe::Flood { bytes } => flood(bytes),
        Probe::Spin => spin(),
        Probe::Idle { after } => idle(after),
    };
    // Most probes end because their terminal goes away.
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(bytes: &[u8]) -> io::Result<()> {
    // Not through `stdout()`, which would split the output at line ends.
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(rustix::stdio::stdout(), rest))?;
        rest = &rest[written..];
    }
    Ok(())
}

fn wait_to_begin() -> io::Result<()> {
    print(format!("{READY}\n").as_bytes())?;
    io::stdin().read_line(&mut String::new()).map(drop)
}

fn stamps(every_ms: &Range<u64>, count: u32, dress: impl Fn(&str) -> String) -> io::Result<()> {
    wait_to_begin()?;
    let mut state = stamp::now() | 1;
    for number in 0..count {
        // xorshift: irregular, so that samples do not synchronize with a timer of the other side.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let Range { start, end } = *every_ms;
        let microseconds = start * 1000 + state % ((end - start) * 1000);
        std::thread::sleep(Duration::from_micros(microseconds));
        print(dress(&Stamp { number, at: stamp::now() }.text()).as_bytes())?;
    }
    // Waits: the exit of a program is not measured.
    io::stdin().read_line(&mut String::new()).map(drop)
}

fn read(log: io::Result<File>) -> io::Result<()> {
    let mut log = log?;
    let mut modes = tcgetattr(io::stdin())?;
    modes.make_raw();
    tcsetattr(io::stdin(), OptionalActions::Now, &modes)?;
    print(READY.as_bytes())?;
    let mut buffer = [0; 64];
    loop {
        let count = io::stdin().lock().read(&mut buffer)?;
        let now = stamp::now();
        if count == 0 {
            return Ok(());
        }
        log.write_all(format!("{now}\n").repeat(count).as_bytes())?;
    }
}

/// Returns lines like those of a build or a test run: some colour, different lengths, now and then a wide one.
fn lines() -> Vec<u8> {
    let crates = ["parser", "syntax-tree", "io", "command-line", "network", "formatting-rules"];
    let mut text = String::new();
    let mut number = 0;
    while text.len() < 256 << 10 {
        let name = crates[number % crates.len()];
        text += &match number % 5 {
            0 => format!("test {name}::tests::case_{number} ... \x1b[32mok\x1b[0m\n"),
            1 => format!(
                "\x1b[33mwarning\x1b[0m: unused variable: `value_{number}` \x1b[2min {name}/src/lib.rs:{number}:9\x1b[0m\n"
            ),
            2 => format!(
                "    |{} {}^^^^^ not used anywhere, and the line goes on for a while to wrap at the edge of the screen\n",
                " ".repeat(number % 30),
                "-".repeat(number % 20)
            ),
            3 => "\n".to_owned(),
            _ => format!("{number:>8} │ let résumé = parse(\"→ naïve\")?; // {name}\n"),
        };
        number += 1;
    }
    text.into_bytes()
}

fn flood(bytes: u64) -> io::Result<()> {
    let lines = lines();
    wait_to_begin()?;
    print_lines(&lines, bytes)
}

fn print_lines(lines: &[u8], bytes: u64) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let piece = &lines[..lines.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        print(piece)?;
        left -= piece.len() as u64;
    }
    Ok(())
}

/// Returns the rows above the spinner and the box below it, like a working agent's screen.
fn screen() -> String {
    let mut screen = "\x1b[2J\x1b[H".to_owned();
    for row in 1..=30 {
        let colour = 30 + row % 8;
        screen += &format!(
            "\x1b[{colour}m●\x1b[0m step {row}: read src/module_{row}.rs, changed {row} lines, ran its tests\r\n"
        );
    }
    let rule = "─".repeat(118);
    screen + &format!("\r\n\r\n{rule}\r\n❯ \r\n{rule}\r\n  esc to interrupt\r\n")
}

/// Returns one repaint, always of the same length, so that received frames can be counted by their bytes.
fn frame(number: u64) -> String {
    const GLYPHS: [&str; 6] = ["✢", "✶", "✻", "✽", "✻", "✶"];
    const TITLES: [&str; 2] = ["⠂", "⠐"];
    let (glyph, seconds, tokens) = (GLYPHS[number as usize % 6], number / 10 % 10_000, number * 7 % 100_000);
    // About once a second, like Claude Code.
    let title = TITLES[(number / 10 % 2) as usize];
    format!(
        "\x1b[?2026h\x1b]0;{title} Finding out why the parser is slow\x07\x1b[32;1H\x1b[2K\x1b[38;5;174m{glyph} \
         \x1b[39mTinkering… \x1b[2m({seconds:>5}s · ↓ {tokens:>6} tokens · esc to interrupt)\x1b[22m\
         \x1b[34;3H\x1b[?2026l"
    )
}

fn spin() -> io::Result<()> {
    let between = Duration::from_millis(100);
    print(screen().as_bytes())?;
    // Two hundred probes started in a row must not paint at the same time.
    std::thread::sleep(between.mul_f64(f64::from(std::process::id() % 101) / 101.0));
    let mut next = Instant::now();
    for number in 0.. {
        let frame = frame(number);
        debug_assert_eq!(frame.len() as u64, FRAME_LENGTH);
        print(frame.as_bytes())?;
        next += between;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

fn idle(after: u64) -> io::Result<()> {
    print_lines(&lines(), after)?;
    print(screen().as_bytes())?;
    loop {
        if io::stdin().read(&mut [0; 64])? == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_has_the_same_length() {
        for number in (0..200_000).step_by(7) {
            assert_eq!(frame(number).len() as u64, FRAME_LENGTH, "{number}");
        }
    }

    #[test]
    fn ranges() {
        assert_eq!(range("30..70"), Ok(30..70));
        for wrong in ["30", "70..30", "5..5", "a..b", ""] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
