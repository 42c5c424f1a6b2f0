//! The part of its caller's environment that a program gets.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use posse_core::ids::TerminalId;
use posse_term::lineage::TERMINAL_VARIABLE;

/// Not passed on: they describe the caller's own terminal, session or agent, and would be wrong inside.
const DROPPED: &str = "CLAUDECODE CLAUDE_CODE_ENTRYPOINT COLUMNS LINES TMUX TMUX_PANE STY WINDOW WINDOWID TERM_PROGRAM \
                       TERM_PROGRAM_VERSION TERM_SESSION_ID VTE_VERSION KITTY_WINDOW_ID KITTY_PID ALACRITTY_WINDOW_ID \
                       WEZTERM_PANE ITERM_SESSION_ID VSCODE_INJECTION NO_COLOR CAO_TERMINAL_ID";

/// The environment of a program in terminal `id`: the caller's, filtered, plus what our terminal is, plus what the
/// agent is to find. `POSSE_*` stays, but for the id, so that a nested `posse` talks to the same daemon.
pub(crate) fn for_program(
    caller: BTreeMap<String, String>,
    agent: &BTreeMap<String, String>,
    id: TerminalId,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut variables = passed_on(caller);
    let ours = [
        ("TERM", "xterm-256color"),
        ("COLORTERM", "truecolor"),
        ("TERM_PROGRAM", "posse"),
        (TERMINAL_VARIABLE, id.as_str()),
        ("CAO_TERMINAL_ID", id.as_str()),
    ];
    for (name, value) in ours {
        variables.insert(name.into(), value.into());
    }
    variables.extend(agent.clone());
    variables.into_iter().map(|(name, value)| (name.into_bytes(), value.into_bytes())).collect()
}

fn passed_on(mut caller: BTreeMap<String, String>) -> BTreeMap<String, String> {
    caller.retain(|name, value| {
        let sound = !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
        sound && !DROPPED.split(' ').any(|dropped| dropped == name)
    });
    caller
}

/// The environment of a program that runs outside a terminal on a client's behalf, such as git. It is never displayed.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Environment(Option<Arc<BTreeMap<String, String>>>);

impl Environment {
    pub(crate) fn of(caller: BTreeMap<String, String>) -> Self {
        let mut variables = passed_on(caller);
        // Ending a terminal ends every process that carries its id.
        variables.remove(TERMINAL_VARIABLE);
        Self(Some(Arc::new(variables)))
    }

    /// Returns the client's environment. `None`: none was provided, so the daemon's applies.
    pub(crate) fn variables(&self) -> Option<&BTreeMap<String, String>> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Environment(..)" } else { "Environment" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_terminal_does_not_leak_into_ours() {
        let caller = [
            ("PATH", "/bin"),
            ("TERM", "dumb"),
            ("TMUX", "/tmp/x"),
            ("CLAUDECODE", "1"),
            ("POSSE_TERMINAL_ID", "ffffffff"),
            ("BAD=NAME", "x"),
            ("NUL", "a\0b"),
        ];
        let caller = caller.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let got = for_program(caller, &BTreeMap::new(), TerminalId::from_random(1));
        let got: Vec<String> = got
            .into_iter()
            .map(|(n, v)| format!("{}={}", String::from_utf8_lossy(&n), String::from_utf8_lossy(&v)))
            .collect();
        assert_eq!(
            got,
            [
                "CAO_TERMINAL_ID=00000001",
                "COLORTERM=truecolor",
                "PATH=/bin",
                "POSSE_TERMINAL_ID=00000001",
                "TERM=xterm-256color",
                "TERM_PROGRAM=posse",
            ]
        );
    }
}
