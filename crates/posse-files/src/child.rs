//! A program of the user's, run to its end: git, openspec, a command that carries notices. It gets a process group of its
//! own and so much time; then it is ended with all it started. Programs in terminals are the keeper's business.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use crate::disk::Disk;

/// Maximum output of a program: the status of a very large repository.
const MOST: usize = 64 << 20;
/// The time pipes may stay open after a program exits: its children may hold them open indefinitely.
const DRAIN: Duration = Duration::from_secs(1);
/// The time that a program has to finish by itself, and then to tidy up.
const GRACE: Duration = Duration::from_secs(2);

/// The fate of a program's children that still run when the program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// Children may keep running: git tidies its store in the background. Such a program is not interrupted at once
    /// when its caller stops waiting. A signal between creating a lock file and recording it makes git leave the lock
    /// behind for good.
    Stay,
    End,
}

#[derive(Debug)]
pub struct FinishedChild {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// The output is complete. The files the program left may contain more.
    pub complete: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    #[error("there is no program {0:?}")]
    Missing(String),
    #[error("cannot run {program:?}: {error}")]
    Broken { program: String, error: io::Error },
    #[error("{program:?} did not end within {} s", .limit.as_secs())]
    Late { program: String, limit: Duration },
    #[error("{program:?} was ended")]
    Stopped { program: String },
    #[error("{program:?} says more than {} MiB", MOST >> 20)]
    TooMuch { program: String },
}

/// Runs a program with this input, no longer than `limit`. Dropping the future ends the program too.
pub async fn run(
    command: Command,
    input: &[u8],
    limit: Duration,
    leftovers: Leftovers,
) -> Result<FinishedChild, ChildError> {
    run_until(command, input, limit, leftovers, (), std::future::pending()).await
}

/// Like `run`, but ends the program with all it started as soon as `stop` is ready, and returns when it is gone. `files` are
/// files that the program uses. They are dropped when the program has ended, which may be later than this future.
pub async fn run_until(
    mut command: Command,
    input: &[u8],
    limit: Duration,
    leftovers: Leftovers,
    files: impl Send + 'static,
    stop: impl Future<Output = ()>,
) -> Result<FinishedChild, ChildError> {
    let deadline = Instant::now() + limit;
    let program = command.get_program().to_string_lossy().into_owned();
    let broken = |error| ChildError::Broken { program: program.clone(), error };
    command.process_group(0).stdin(whole(input).map_err(broken)?).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = Family::start(command, leftovers, files).await;
    let mut family = started.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ChildError::Missing(program.clone()),
        _ => broken(error),
    })?;
    let (mut stdout, mut stderr) = family.pipes().map_err(broken)?;
    let (mut out, mut err, mut complete) = (Vec::new(), Vec::new(), true);
    let ended = async {
        let pipes = async {
            tokio::join!(collect(&mut stdout, &mut out), collect(&mut stderr, &mut err));
        };
        tokio::pin!(pipes);
        let status = tokio::select! {
            status = family.ended() => status,
            () = &mut pipes => return family.ended().await,
        };
        complete = timeout(DRAIN, &mut pipes).await.is_ok();
        status
    };
    let ended = tokio::select! {
        ended = timeout_at(deadline, ended) => Some(ended),
        () = stop => None,
    };
    let Some(ended) = ended else {
        family.end().await;
        return Err(ChildError::Stopped { program });
    };
    let status = ended.map_err(|_| ChildError::Late { program: program.clone(), limit })?.map_err(broken)?;
    family.settle();
    if out.len() > MOST {
        return Err(ChildError::TooMuch { program });
    }
    Ok(FinishedChild { status, stdout: out, stderr: err, complete })
}

/// The input as a file in memory. Through a pipe, a program would take the half it got for all there is should we die or be
/// dropped meanwhile: git, half a name.
fn whole(input: &[u8]) -> io::Result<Stdio> {
    if input.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
    file.write_all(input)?;
    file.rewind()?;
    Ok(file.into())
}

/// Reads everything, so that the program is not held up, and keeps no more than shows that it is too much.
async fn collect(from: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        if into.len() <= MOST {
            into.extend_from_slice(&piece[..length]);
        }
    }
}

/// A program and what it started. Its end is seen without reaping it: as long as it is not reaped, no stranger can get the
/// number of its group.
struct Family {
    /// `None` when it has been reaped.
    child: Option<Child>,
    group: Pid,
    end: oneshot::Receiver<io::Result<ExitStatus>>,
    leftovers: Leftovers,
}

impl Family {
    /// Starts a program on the thread that then waits for its end, because starting it blocks until the kernel has read its file.
    async fn start(mut command: Command, leftovers: Leftovers, files: impl Send + 'static) -> io::Result<Self> {
        let (tell, end) = oneshot::channel();
        let (started, starts) = oneshot::channel();
        let watch = move || {
            if started.is_closed() {
                return;
            }
            let child = match Disk::of_this_thread().spawn(&mut command) {
                Ok(child) => child,
                Err(error) => return drop(started.send(Err(error))),
            };
            let group = Pid::from_child(&child);
            // If the caller is gone, dropping the child ends it.
            drop(started.send(Ok(Self { child: Some(child), group, end, leftovers })));
            let ended = wait_unreaped(group);
            drop(files);
            let _ = tell.send(ended);
        };
        std::thread::Builder::new().name("child".into()).spawn(watch)?;
        starts.await.unwrap_or_else(|gone| Err(io::Error::other(gone)))
    }

    fn pipes(&mut self) -> io::Result<(ChildStdout, ChildStderr)> {
        let missing = || io::Error::other("it has no pipe");
        let child = self.child.as_mut().ok_or_else(missing)?;
        Ok((
            ChildStdout::from_std(child.stdout.take().ok_or_else(missing)?)?,
            ChildStderr::from_std(child.stderr.take().ok_or_else(missing)?)?,
        ))
    }

    async fn ended(&mut self) -> io::Result<ExitStatus> {
        (&mut self.end).await.unwrap_or_else(|gone| Err(io::Error::other(gone)))
    }

    /// Ends it now, with all it started, and waits for that.
    async fn end(mut self) {
        let Some(child) = self.child.take() else { return };
        let group = self.group;
        let _ = kill_process_group(group, Signal::TERM);
        let _ = tokio::task::spawn_blocking(move || bury(child, group)).await;
    }

    /// After its end: reaps it, and lets what it left behind live on. Otherwise that ends when this is dropped.
    fn settle(mut self) {
        if self.leftovers == Leftovers::Stay {
            let _ = self.child.take().map(|mut child| child.wait());
        }
    }
}

/// Waits for the end of a process and leaves it to be reaped.
fn wait_unreaped(pid: Pid) -> io::Result<ExitStatus> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = retry_on_intr(|| waitid(WaitId::Pid(pid), options))?;
    let status = status.ok_or_else(|| io::Error::other("it is not ours"))?;
    // As wait(2) packs it: the code in the second byte, or the signal in the first.
    Ok(ExitStatus::from_raw(match status.exit_status() {
        Some(code) => (code & 0xff) << 8,
        None => status.terminating_signal().unwrap_or_default(),
    }))
}

fn ends_within_grace(pid: Pid) {
    let _ = pidfd_open(pid, PidfdFlags::empty()).and_then(|process| ends_within(&process, GRACE));
}

/// Waits until the process behind a pidfd ends. Returns `false` if it still runs after `limit`. A zombie has ended.
pub fn ends_within(process: &OwnedFd, limit: Duration) -> rustix::io::Result<bool> {
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    Ok(retry_on_intr(|| poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)))? > 0)
}

impl Drop for Family {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        let group = self.group;
        let finishes = self.leftovers == Leftovers::Stay;
        if !finishes {
            let _ = kill_process_group(group, Signal::TERM);
        }
        // Wait on a separate thread, so that neither the caller nor the runtime waits.
        let _ = std::thread::Builder::new().name("end-child".into()).spawn(move || {
            if finishes {
                ends_within_grace(group);
                let _ = kill_process_group(group, Signal::TERM);
            }
            bury(child, group);
        });
    }
}

/// Lets a program that was asked to end tidy up, then kills it with all it started.
fn bury(mut child: Child, group: Pid) {
    ends_within_grace(group);
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    async fn quick(command: Command, input: &[u8]) -> Result<FinishedChild, ChildError> {
        run(command, input, Duration::from_secs(20), Leftovers::Stay).await
    }

    /// Waits until the kernel reports that the process has exited or is a zombie.
    fn wait_for_end(pid: i32) {
        let Ok(end) = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()) else { return };
        assert!(ends_within(&end, Duration::from_secs(10)).unwrap(), "{pid} lives on");
    }

    #[tokio::test]
    async fn it_is_heard_and_its_end_is_told() {
        let ended = quick(sh("cat; echo oh >&2; exit 3"), b"hello").await.unwrap();
        assert!(ended.complete);
        assert_eq!((ended.stdout, ended.stderr, ended.status.code()), (b"hello".to_vec(), b"oh\n".to_vec(), Some(3)));
        let missing = quick(Command::new("posse-no-such-program"), b"").await.unwrap_err();
        assert_eq!(missing.to_string(), "there is no program \"posse-no-such-program\"");
    }

    #[tokio::test]
    async fn more_input_and_output_than_a_pipe_holds() {
        let much = vec![b'x'; 1 << 20];
        assert_eq!(quick(sh("cat"), &much).await.unwrap().stdout, much);
        assert!(quick(sh("exit 0"), &much).await.unwrap().status.success(), "it need not read");
    }

    #[tokio::test]
    async fn git_is_let_finish_and_with_all_of_its_input() {
        let directory = tempfile::tempdir().unwrap();
        let (begun, done) = (directory.path().join("begun"), directory.path().join("done"));
        assert!(Command::new("mkfifo").arg(&begun).status().unwrap().success());
        let much = vec![b'x'; 1 << 20];
        let mut command = sh("echo $$ >$BEGUN; sleep 0.3; wc -c >$DONE");
        command.env("BEGUN", &begun).env("DONE", &done);
        let pid = tokio::select! {
            _ = quick(command, &much) => panic!("it takes a while"),
            pid = tokio::task::spawn_blocking(|| std::fs::read_to_string(begun)) => pid.unwrap().unwrap(),
        };
        let pid = pid.trim().parse().unwrap();
        tokio::task::spawn_blocking(move || wait_for_end(pid)).await.unwrap();
        assert_eq!(std::fs::read_to_string(&done).unwrap().trim(), much.len().to_string());
    }

    #[tokio::test]
    async fn what_it_leaves_behind_does_not_hold_us_up() {
        let ended = quick(sh("sleep 1000 & echo $!"), b"").await.unwrap();
        assert!(!ended.complete);
        let pid = String::from_utf8(ended.stdout).unwrap().trim().parse().unwrap();
        let sleeper = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).expect("it goes on");
        rustix::process::pidfd_send_signal(sleeper, Signal::KILL).unwrap();
    }

    #[tokio::test]
    async fn when_its_time_is_over_all_of_it_ends() {
        let directory = tempfile::tempdir().unwrap();
        for (leftovers, ignoring) in
            [(Leftovers::Stay, ""), (Leftovers::Stay, "trap '' TERM;"), (Leftovers::End, "trap '' TERM;")]
        {
            let note = directory.path().join("pids");
            let mut command = sh(&format!("{ignoring} sleep 60 & echo $$ $! > \"$NOTE\"; wait"));
            command.env("NOTE", &note);
            let late = run(command, b"", Duration::from_millis(500), leftovers).await.unwrap_err();
            assert!(matches!(late, ChildError::Late { .. }), "{late}");
            let pids = std::fs::read_to_string(&note).unwrap();
            pids.split_whitespace().for_each(|pid| wait_for_end(pid.parse().unwrap()));
        }
    }

    #[tokio::test]
    async fn it_is_stopped_with_all_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let begun = directory.path().join("begun");
        assert!(Command::new("mkfifo").arg(&begun).status().unwrap().success());
        // The child does not listen; the program itself tidies up.
        let script = "(trap '' TERM; exec sleep 600) & trap 'echo tidy >\"$BEGUN.over\"; exit' TERM; echo $$ $! >\"$BEGUN\"; wait";
        let mut command = sh(script);
        command.env("BEGUN", &begun);
        let pids = std::sync::Mutex::new(String::new());
        let stop = async {
            let read = begun.clone();
            *pids.lock().unwrap() =
                tokio::task::spawn_blocking(|| std::fs::read_to_string(read)).await.unwrap().unwrap();
        };
        let stopped = run_until(command, b"", Duration::from_secs(60), Leftovers::End, (), stop).await.unwrap_err();
        assert_eq!(stopped.to_string(), "\"sh\" was ended");
        assert_eq!(std::fs::read_to_string(begun.with_extension("over")).unwrap(), "tidy\n");
        for pid in pids.into_inner().unwrap().split_whitespace() {
            wait_for_end(pid.parse().unwrap());
        }
    }

    #[tokio::test]
    async fn leftovers_end_with_it() {
        let command = sh("trap '' TERM; sleep 60 & echo $!; exit 4");
        let ended = run(command, b"", Duration::from_secs(20), Leftovers::End).await.unwrap();
        assert_eq!(ended.status.code(), Some(4));
        let pid = String::from_utf8(ended.stdout).unwrap().trim().parse().unwrap();
        tokio::task::spawn_blocking(move || wait_for_end(pid)).await.unwrap();
        let killed = run(sh("kill -9 $$"), b"", Duration::from_secs(5), Leftovers::End).await.unwrap();
        assert_eq!(killed.status.signal(), Some(9));
    }
}
