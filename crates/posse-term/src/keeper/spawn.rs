//! Starts programs directly, without a shell in between.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::wire::{ProgramSpec, SpawnRefusal};

pub(super) struct Spawned {
    pub(super) pid: u32,
    /// The terminal's master side.
    pub(super) terminal: OwnedFd,
}

pub(super) type Refusal = (SpawnRefusal, String);

pub(super) fn spawn(program: &ProgramSpec) -> Result<Spawned, Refusal> {
    let Some((name, arguments)) = program.arguments.split_first() else {
        return Err((SpawnRefusal::ProgramMissing, "no program was given".into()));
    };
    let directory = Path::new(OsStr::from_bytes(&program.directory));
    if !directory.is_dir() {
        return Err((SpawnRefusal::DirectoryMissing, format!("{} is not a directory", directory.display())));
    }
    let name = OsStr::from_bytes(name);
    let mut command = Command::new(name);
    command
        .args(arguments.iter().map(|a| OsStr::from_bytes(a)))
        .env_clear()
        .envs(program.environment.iter().map(|(k, v)| (OsStr::from_bytes(k), OsStr::from_bytes(v))))
        .current_dir(directory);
    let spawn = || -> pty_process::Result<Spawned> {
        let (pty, pts) = pty_process::blocking::open()?;
        pty.resize(pty_process::Size::new(program.size.rows(), program.size.cols()))?;
        let child = pty_process::blocking::Command::from(command).spawn(pts)?;
        let terminal: OwnedFd = pty.into();
        set_nonblocking(&terminal)?;
        Ok(Spawned { pid: child.id(), terminal })
    };
    spawn().map_err(|error| match error {
        pty_process::Error::Io(error) => refusal(&error, name),
        pty_process::Error::Rustix(error) => refusal(&error.into(), name),
    })
}

fn set_nonblocking(fd: impl AsFd) -> rustix::io::Result<()> {
    let flags = fcntl_getfl(&fd)?;
    fcntl_setfl(&fd, flags | OFlags::NONBLOCK)
}

/// The refusal for a program that would leave too few descriptors.
pub(super) fn no_spare(error: &io::Error) -> Refusal {
    refusal(error, OsStr::new("descriptors"))
}

fn refusal(error: &io::Error, name: &OsStr) -> Refusal {
    use rustix::io::Errno;
    let shown = name.to_string_lossy();
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => (SpawnRefusal::ProgramMissing, format!("{shown}: no such program")),
        Some(Errno::ACCESS | Errno::NOEXEC) => (SpawnRefusal::NotExecutable, format!("{shown}: {error}")),
        Some(Errno::AGAIN) => (SpawnRefusal::LimitReached, format!("too many processes (raise `ulimit -u`): {error}")),
        Some(Errno::MFILE | Errno::NFILE) => {
            (SpawnRefusal::LimitReached, format!("too many open files (raise `ulimit -n`): {error}"))
        }
        Some(Errno::NOSPC | Errno::IO) => {
            (SpawnRefusal::LimitReached, format!("no terminal left (raise /proc/sys/kernel/pty/max): {error}"))
        }
        Some(Errno::NOMEM) => (SpawnRefusal::LimitReached, format!("out of memory: {error}")),
        _ => (SpawnRefusal::Other, format!("{shown}: {error}")),
    }
}
