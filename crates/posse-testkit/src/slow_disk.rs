//! Simulates a slow or hanging disk for one process, with a shim between the program and libc. `slow_disk/shim.c`
//! documents which operations the shim intercepts.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

const SHIM: &str = include_str!("slow_disk/shim.c");

pub struct SlowDisk {
    directory: TempDir,
    /// The lock file: a process under the shim takes a shared lock before every file operation.
    gate: File,
}

impl SlowDisk {
    pub fn new() -> io::Result<Self> {
        let directory = TempDir::with_prefix("posse-slow-disk-")?;
        let source = directory.path().join("shim.c");
        std::fs::write(&source, SHIM)?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(directory.path().join("shim.so")).arg(&source).arg("-ldl");
        if !compiler.stdin(Stdio::null()).status()?.success() {
            return Err(io::Error::other("cc cannot compile slow_disk/shim.c"));
        }
        let gate = File::create(directory.path().join("gate"))?;
        Ok(Self { directory, gate })
    }

    /// Delays each file operation of the command by this time, but not of programs that it starts.
    pub fn slow<'c>(&self, command: &'c mut Command, delay: Duration) -> &'c mut Command {
        command.env("LD_PRELOAD", self.path("shim.so")).env("SLOW_DISK", self.directory.path());
        command.env("SLOW_DISK_MS", delay.as_millis().to_string())
    }

    /// Blocks every file operation until `release` is called.
    pub fn hang(&self) -> io::Result<()> {
        self.gate.lock()
    }

    pub fn release(&self) -> io::Result<()> {
        self.gate.unlock()
    }

    /// Returns the operations so far, including blocked ones: `THREAD OPERATION PATH`, where the thread is `main` or
    /// `other`.
    pub fn operations(&self) -> io::Result<Vec<String>> {
        let log = std::fs::read(self.path("log"))?;
        Ok(String::from_utf8_lossy(&log).lines().map(str::to_owned).collect())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        Path::new(self.directory.path()).join(name)
    }
}
