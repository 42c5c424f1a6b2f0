//! A private tmux server that shows what a stream of bytes looks like.

use std::cell::Cell;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use posse_core::screen::Size;

/// Seconds for one command. Far longer than tmux ever needs; only a hang reaches it.
const DEADLINE: &str = "60";

pub(crate) struct Tmux {
    directory: tempfile::TempDir,
    count: Cell<u32>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Without blanks at the end.
    pub(crate) rows: Vec<String>,
    /// Row and column; the number of columns if it waits at the margin.
    pub(crate) cursor: (u16, u16),
}

impl Tmux {
    /// `None`, and a line saying so, if there is no tmux. Where tests must not be skipped, a panic.
    pub(crate) fn start() -> Option<Self> {
        if Command::new("tmux").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            assert!(std::env::var_os("CI").is_none(), "tmux is not installed, and CI may not skip this test");
            eprintln!("skipped: tmux not installed");
            return None;
        }
        let tmux = Self { directory: tempfile::tempdir().unwrap(), count: Cell::new(0) };
        // A session that keeps the server alive between two others, and no longer than this test, even
        // if that is killed and drops nothing.
        let watch = format!("while kill -0 {} 2>/dev/null; do sleep 1; done; tmux kill-server", std::process::id());
        tmux.run(&["new-session", "-d", "-s", "anchor", &watch]);
        tmux.run(&["set-option", "-g", "status", "off"]);
        Some(tmux)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("timeout");
        command.args([DEADLINE, "tmux", "-u", "-L", "replay", "-f", "/dev/null"]);
        command.env("TMUX_TMPDIR", self.directory.path()).env("LC_ALL", "C.UTF-8").env_remove("TMUX");
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn version(&self) -> String {
        self.run(&["-V"]).trim().to_owned()
    }

    /// What a terminal of this size shows after these bytes.
    pub(crate) fn show(&self, bytes: &[u8], size: Size) -> Shown {
        self.count.set(self.count.get() + 1);
        let name = format!("show{}", self.count.get());
        let file: PathBuf = self.directory.path().join(&name);
        std::fs::write(&file, bytes).unwrap();
        // Raw, so that the bytes arrive as they are. The last one asks tmux whether it is well; its
        // answer, the only one that ends with `n`, comes when all before has been drawn.
        let script = format!(
            "stty raw -echo; cat '{}'; printf '\\033[5n'; read -r -d n; tmux wait-for -S {name}; exec sleep 100000",
            file.display()
        );
        let (columns, rows) = (size.cols().to_string(), size.rows().to_string());
        self.run(&["new-session", "-d", "-s", &name, "-x", &columns, "-y", &rows, "bash", "-c", &script]);
        self.run(&["wait-for", &name]);
        let format = "#{cursor_y} #{cursor_x} #{pane_width}x#{pane_height}";
        let state = self.run(&["display-message", "-p", "-t", &name, format]);
        let text = self.run(&["capture-pane", "-p", "-t", &name]);
        self.run(&["kill-session", "-t", &name]);
        let state: Vec<_> = state.split_whitespace().collect();
        assert_eq!(state[2], size.to_string(), "the size tmux gave");
        let mut rows: Vec<_> = text.lines().map(|row| row.trim_end_matches(' ').to_owned()).collect();
        rows.resize(usize::from(size.rows()), String::new());
        Shown { rows, cursor: (state[0].parse().unwrap(), state[1].parse().unwrap()) }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").stderr(Stdio::null()).status();
    }
}
