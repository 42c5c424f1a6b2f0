//! The signals of operating system commands (OSC) that are no queries.

use posse_core::signal::Signal;

/// The longest text passed on, in bytes. Titles, states and notifications are short; longer text is a clipboard or a
/// picture, and its beginning suffices to recognise it.
pub(super) const PAYLOAD_MAX: usize = 4 << 10;

pub(super) fn signal(body: &[u8]) -> Signal {
    let (code, rest) = match body.iter().position(|b| *b == b';') {
        Some(at) => (&body[..at], &body[at + 1..]),
        None => (body, &[][..]),
    };
    match code {
        b"0" | b"2" => Signal::Title { title: payload(rest).replace(char::is_control, "") },
        b"9" if rest.starts_with(b"4;") || rest == b"4" => {
            progress(rest).unwrap_or_else(|| Signal::UnknownOsc { payload: payload(body) })
        }
        b"9" | b"777" => Signal::Notification { payload: payload(rest) },
        b"133" => Signal::PromptMark { payload: payload(rest) },
        b"7501" => Signal::AgentState { payload: payload(rest) },
        _ => Signal::UnknownOsc { payload: payload(body) },
    }
}

/// `4 ; state ; percent`, where either may be missing.
fn progress(rest: &[u8]) -> Option<Signal> {
    let text = std::str::from_utf8(rest).ok()?;
    let mut parts = text.split(';').skip(1);
    let state = match parts.next().unwrap_or_default() {
        "" => 0,
        state => state.parse().ok().filter(|state| *state <= 4)?,
    };
    let percent = match parts.next().unwrap_or_default() {
        "" => None,
        percent => Some(percent.parse::<u16>().ok()?.min(100) as u8),
    };
    Some(Signal::Progress { state, percent })
}

fn payload(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(PAYLOAD_MAX)]).into_owned();
    text.truncate(text.floor_char_boundary(PAYLOAD_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_as_what_they_mean() {
        let text = str::to_owned;
        for (body, expected) in [
            ("0;✳ Claude Code", Signal::Title { title: text("✳ Claude Code") }),
            ("2;a;b\u{9b}c", Signal::Title { title: text("a;bc") }),
            ("2", Signal::Title { title: text("") }),
            ("9;4;3;", Signal::Progress { state: 3, percent: None }),
            ("9;4;1;250", Signal::Progress { state: 1, percent: Some(100) }),
            ("9;4", Signal::Progress { state: 0, percent: None }),
            ("9;4;0", Signal::Progress { state: 0, percent: None }),
            ("9;4;9", Signal::UnknownOsc { payload: text("9;4;9") }),
            ("9;4;1;x", Signal::UnknownOsc { payload: text("9;4;1;x") }),
            ("9;done", Signal::Notification { payload: text("done") }),
            ("777;notify;a;b", Signal::Notification { payload: text("notify;a;b") }),
            ("133;D;0", Signal::PromptMark { payload: text("D;0") }),
            ("7501;state=idle:app=codex", Signal::AgentState { payload: text("state=idle:app=codex") }),
            ("8;;http://x", Signal::UnknownOsc { payload: text("8;;http://x") }),
            ("", Signal::UnknownOsc { payload: text("") }),
        ] {
            assert_eq!(signal(body.as_bytes()), expected, "{body:?}");
        }
    }

    #[test]
    fn payloads_are_bounded_and_always_text() {
        let long = format!("2;{}", "é".repeat(PAYLOAD_MAX));
        let Signal::Title { title } = signal(long.as_bytes()) else { panic!() };
        assert!(title.len() <= PAYLOAD_MAX && title.starts_with('é'));
        let Signal::UnknownOsc { payload } = signal(&[0xff; 2 * PAYLOAD_MAX]) else { panic!() };
        assert!(payload.len() <= PAYLOAD_MAX);
    }
}
