//! Answers the queries of programs: terminal type, cursor position, colours.
//!
//! Programs wait for some of the answers before they draw anything (Codex starts 0.3 s later without them), and Claude
//! Code reports its state (OSC 7501) only to a terminal that says it supports that. Exactly one terminal may answer, and
//! it is this one: viewers' terminals are never queried.
//!
//! Pure functions from one query to the bytes of its answer. Order matters and is kept by the caller:
//! Claude Code 2.1.325 sends `CSI > 0 q`, `CSI ? u`, `OSC 7501 ; ?`, `CSI c` in one breath and takes
//! the answer to the last one as "nothing more will come".
//!
//! Queries of the title (`CSI 21 t`) and the clipboard (`OSC 52 ; … ; ?`) are deliberately not answered: printed text could
//! become input.

use super::Emulator;
use crate::sequence::{Control, Terminator, number};

/// The size of a cell in pixels, for programs that scale pictures. Any plausible ratio will do.
const CELL: (u32, u32) = (16, 8);

type Rgb = [u8; 3];

/// A dark theme: programs choose their colours by it, and most viewers use one.
const FOREGROUND: Rgb = [0xe0; 3];
const BACKGROUND: Rgb = [0x1e; 3];

/// Returns the answer to a control sequence, or `None` if it is no supported query.
pub(super) fn control(query: &Control<'_>, emulator: &Emulator) -> Option<Vec<u8>> {
    // Absolute also in origin mode, as tmux answers.
    let (row, column) = emulator.cursor();
    let (row, column) = (row + 1, column + 1);
    let (rows, columns) = (u32::from(emulator.size.rows()), u32::from(emulator.size.cols()));
    let first = query.number_or(0, 0);
    let answer = match (query.private, query.intermediates, query.last) {
        // A VT220 with colours. Programs distrust the other answers of a lesser terminal.
        (None, b"", b'c') if first == 0 => "\x1b[?62;22c".to_owned(),
        (Some(b'>'), b"", b'c') if first == 0 => "\x1b[>1;10;0c".to_owned(),
        (Some(b'='), b"", b'c') if first == 0 => "\x1bP!|00000000\x1b\\".to_owned(),
        (None, b"", b'n') if first == 5 => "\x1b[0n".to_owned(),
        (None, b"", b'n') if first == 6 => format!("\x1b[{row};{column}R"),
        (Some(b'?'), b"", b'n') if first == 6 => format!("\x1b[?{row};{column}R"),
        // Dark or light; see the colours above.
        (Some(b'?'), b"", b'n') if first == 996 => "\x1b[?997;1n".to_owned(),
        (Some(b'?'), b"$", b'p') => format!("\x1b[?{first};{}$y", mode_report(emulator.mode(first))),
        (None, b"$", b'p') => format!("\x1b[{first};{}$y", mode_report((first == 4).then_some(emulator.modes.insert))),
        (Some(b'>'), b"", b'q') if first == 0 => format!("\x1bP>|posse({})\x1b\\", env!("CARGO_PKG_VERSION")),
        (Some(b'?'), b"", b'u') => format!("\x1b[?{}u", emulator.keyboard_flags()),
        (Some(b'?'), b"", b'm') if first == 4 => format!("\x1b[>4;{}m", emulator.modes.other_keys),
        (None, b"", b't') if first == 14 => format!("\x1b[4;{};{}t", rows * CELL.0, columns * CELL.1),
        (None, b"", b't') if first == 16 => format!("\x1b[6;{};{}t", CELL.0, CELL.1),
        (None, b"", b't') if first == 18 => format!("\x1b[8;{rows};{columns}t"),
        _ => return None,
    };
    Some(answer.into_bytes())
}

fn mode_report(state: Option<bool>) -> u8 {
    match state {
        Some(true) => 1,
        Some(false) => 2,
        None => 0,
    }
}

/// Returns the answer to an operating system command, with the terminator of the query.
pub(super) fn command(body: &[u8], end: Terminator) -> Option<Vec<u8>> {
    let mut parts = body.split(|b| *b == b';');
    let code = parts.next()?;
    let rest: Vec<&[u8]> = parts.collect();
    let mut answer = Vec::new();
    let mut say = |text: String| {
        answer.extend_from_slice(b"\x1b]");
        answer.extend_from_slice(text.as_bytes());
        answer.extend_from_slice(end.bytes());
    };
    match code {
        b"10" | b"11" | b"12" if !rest.is_empty() && rest.iter().all(|part| *part == b"?") => {
            // Each further `?` asks for the next colour.
            for code in (number(code)..=12).take(rest.len()) {
                say(format!("{code};{}", rgb(if code == 11 { BACKGROUND } else { FOREGROUND })));
            }
        }
        b"4" if !rest.is_empty() => {
            for pair in rest.chunks(2) {
                let [index, b"?"] = pair else { return None };
                let index = std::str::from_utf8(index).ok()?.parse::<u8>().ok()?;
                say(format!("4;{index};{}", rgb(palette(index))));
            }
        }
        b"7501" if rest == [b"?"] => say("7501;?".to_owned()),
        _ => return None,
    }
    Some(answer)
}

/// Returns the answer to a device control string: the capability or setting is not available.
pub(super) fn device(body: &[u8]) -> Option<Vec<u8>> {
    if body.starts_with(b"+q") {
        Some(b"\x1bP0+r\x1b\\".to_vec())
    } else if body.starts_with(b"$q") {
        Some(b"\x1bP0$r\x1b\\".to_vec())
    } else {
        None
    }
}

fn rgb([red, green, blue]: Rgb) -> String {
    format!("rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}")
}

/// Returns a colour of xterm's palette.
fn palette(index: u8) -> Rgb {
    const BASE: [u32; 16] = [
        0x00_0000, 0xcd_0000, 0x00_cd00, 0xcd_cd00, 0x00_00ee, 0xcd_00cd, 0x00_cdcd, 0xe5_e5e5, 0x7f_7f7f, 0xff_0000,
        0x00_ff00, 0xff_ff00, 0x5c_5cff, 0xff_00ff, 0x00_ffff, 0xff_ffff,
    ];
    match index {
        0..=15 => {
            let [_, red, green, blue] = BASE[usize::from(index)].to_be_bytes();
            [red, green, blue]
        }
        16..=231 => {
            let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
            let index = index - 16;
            [step(index / 36), step(index / 6 % 6), step(index % 6)]
        }
        232.. => [8 + 10 * (index - 232); 3],
    }
}

#[cfg(test)]
mod tests {
    use posse_core::screen::Size;

    use super::*;
    use crate::emulator::HistoryLimit;

    /// Returns the answer to one query by a terminal of 120x40 with the cursor at row 3, column 7.
    fn answer(query: &str) -> Option<String> {
        let mut emulator = Emulator::new(Size::clamped(40, 120), HistoryLimit::default());
        emulator.feed(b"\x1b[3;7H\x1b[=5u\x1b[>4;2m");
        let replies = emulator.feed(query.as_bytes()).replies;
        assert!(replies.len() <= 1, "{query:?}");
        replies.into_iter().next().map(|reply| String::from_utf8(reply.bytes).unwrap())
    }

    #[test]
    fn queries_have_answers() {
        let version = concat!("\x1bP>|posse(", env!("CARGO_PKG_VERSION"), ")\x1b\\");
        for (query, expected) in [
            ("\x1b[c", "\x1b[?62;22c"),
            ("\x1b[0c", "\x1b[?62;22c"),
            ("\x1b[>c", "\x1b[>1;10;0c"),
            ("\x1b[=c", "\x1bP!|00000000\x1b\\"),
            ("\x1b[5n", "\x1b[0n"),
            ("\x1b[6n", "\x1b[3;7R"),
            ("\x1b[?6n", "\x1b[?3;7R"),
            ("\x1b[?996n", "\x1b[?997;1n"),
            ("\x1b[?25$p", "\x1b[?25;1$y"),
            ("\x1b[?2026$p", "\x1b[?2026;2$y"),
            ("\x1b[?2027$p", "\x1b[?2027;0$y"),
            ("\x1b[?1004$p", "\x1b[?1004;0$y"),
            ("\x1b[?2026h\x1b[?2026$p", "\x1b[?2026;1$y"),
            ("\x1b[?25l\x1b[?25$p", "\x1b[?25;2$y"),
            ("\x1b[?7$p", "\x1b[?7;1$y"),
            ("\x1b[?7l\x1b[?7$p", "\x1b[?7;2$y"),
            ("\x1b[?1049h\x1b[?1049$p", "\x1b[?1049;1$y"),
            ("\x1b[?1049h\x1b[?47$p", "\x1b[?47;1$y"),
            ("\x1b[?1002h\x1b[?1002$p", "\x1b[?1002;1$y"),
            ("\x1b[?1002h\x1b[?1000$p", "\x1b[?1000;2$y"),
            ("\x1b[?1006h\x1b[?1006$p", "\x1b[?1006;1$y"),
            ("\x1b[?2004h\x1b[?2004$p", "\x1b[?2004;1$y"),
            ("\x1b[4$p", "\x1b[4;2$y"),
            ("\x1b[20$p", "\x1b[20;0$y"),
            ("\x1b[>q", version),
            ("\x1b[>0q", version),
            ("\x1b[?u", "\x1b[?5u"),
            ("\x1b[?4m", "\x1b[>4;2m"),
            ("\x1b[14t", "\x1b[4;640;960t"),
            ("\x1b[16t", "\x1b[6;16;8t"),
            ("\x1b[18t", "\x1b[8;40;120t"),
            ("\x1b]10;?\x07", "\x1b]10;rgb:e0e0/e0e0/e0e0\x07"),
            ("\x1b]11;?\x1b\\", "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\"),
            ("\x1b]12;?\x07", "\x1b]12;rgb:e0e0/e0e0/e0e0\x07"),
            ("\x1b]10;?;?\x07", "\x1b]10;rgb:e0e0/e0e0/e0e0\x07\x1b]11;rgb:1e1e/1e1e/1e1e\x07"),
            ("\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
            ("\x1b]4;208;?;255;?\x07", "\x1b]4;208;rgb:ffff/8787/0000\x07\x1b]4;255;rgb:eeee/eeee/eeee\x07"),
            ("\x1b]7501;?\x07", "\x1b]7501;?\x07"),
            ("\x1b]7501;?\x1b\\", "\x1b]7501;?\x1b\\"),
            ("\x1bP+q4d73\x1b\\", "\x1bP0+r\x1b\\"),
            ("\x1bP$qm\x1b\\", "\x1bP0$r\x1b\\"),
        ] {
            assert_eq!(answer(query).as_deref(), Some(expected), "{query:?}");
        }
    }

    #[test]
    fn statements_and_unsafe_queries_have_no_answers() {
        for statement in [
            "\x1b[1c",
            "\x1b[7n",
            "\x1b[?1n",
            "\x1b[21t",
            "\x1b[22;0;0t",
            "\x1b[>1q",
            "\x1b[2 q",
            "\x1b]11;#000000\x07",
            "\x1b]11\x07",
            "\x1b]4;300;?\x07",
            "\x1b]4;1;#fff\x07",
            "\x1b]52;c;?\x07",
            "\x1b]7501;state=idle\x07",
            "\x1b]2;?\x07",
            "\x1bPq\x1b\\",
        ] {
            assert_eq!(answer(statement), None, "{statement:?}");
        }
    }
}
