//! The signals of operating system commands (OSC) that are no queries.

use posse_core::signal::Signal;

/// The longest text passed on, in bytes. Titles, states and notifications are short.
pub(super) const PAYLOAD_MAX: usize = 4 << 10;

pub(super) fn signal(body: &[u8]) -> Option<Signal> {
    let (code, rest) = match body.iter().position(|b| *b == b';') {
        Some(at) => (&body[..at], &body[at + 1..]),
        None => (body, &[][..]),
    };
    Some(match code {
        b"0" | b"2" => Signal::Title { title: payload(rest).replace(char::is_control, "") },
        b"9" if rest.starts_with(b"4;") || rest == b"4" => Signal::Progress { state: progress(rest)? },
        b"9" | b"777" => Signal::Notification { payload: payload(rest) },
        b"7501" => Signal::AgentState { payload: payload(rest) },
        _ => return None,
    })
}

/// Returns the state in `4 ; state ; percent`, where both may be missing.
fn progress(rest: &[u8]) -> Option<u8> {
    match std::str::from_utf8(rest).ok()?.split(';').nth(1).unwrap_or_default() {
        "" => Some(0),
        state => state.parse().ok().filter(|state| *state <= 4),
    }
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
    fn commands_become_signals() {
        let title = |title: &str| Some(Signal::Title { title: title.to_owned() });
        let notification = |payload: &str| Some(Signal::Notification { payload: payload.to_owned() });
        for (body, expected) in [
            ("0;✳ Claude Code", title("✳ Claude Code")),
            ("2;a;b\u{9b}c", title("a;bc")),
            ("2", title("")),
            ("9;4;3;", Some(Signal::Progress { state: 3 })),
            ("9;4;1;250", Some(Signal::Progress { state: 1 })),
            ("9;4", Some(Signal::Progress { state: 0 })),
            ("9;4;9", None),
            ("9;done", notification("done")),
            ("777;notify;a;b", notification("notify;a;b")),
            ("7501;state=idle:app=codex", Some(Signal::AgentState { payload: "state=idle:app=codex".to_owned() })),
            ("8;;http://x", None),
            ("", None),
        ] {
            assert_eq!(signal(body.as_bytes()), expected, "{body:?}");
        }
    }

    #[test]
    fn payloads_are_bounded_and_always_text() {
        for long in
            [format!("2;{}", "é".repeat(PAYLOAD_MAX)).into_bytes(), [b"2;", &[0xff; 2 * PAYLOAD_MAX][..]].concat()]
        {
            let Some(Signal::Title { title }) = signal(&long) else { panic!() };
            assert!(title.len() <= PAYLOAD_MAX && !title.is_empty());
        }
    }
}
