//! The measured system: a keeper and a daemon in a separate home, with terminals.

use std::time::Duration;

use posse_api::{Create, Input, StreamMessage, Terminal};
use posse_core::ids::TerminalId;
use posse_core::screen::Size;

use super::report::ms_between;
use super::stamp::{self, Stamp};
use super::{Bench, BenchError, READY, missing, refused};
use crate::stream::{Item, Stream};
use crate::{TestEnv, http, process};

/// Number of threads that start or end terminals.
const THREADS: usize = 8;
/// Time without any activity after which keeper and daemon count as idle.
const REST: Duration = Duration::from_millis(500);
/// Time limit for that: two hundred programs have to start first.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Subject<'a> {
    pub(super) env: TestEnv,
    pub(super) http: http::Client,
    bench: &'a Bench,
    keeper: u32,
    daemon: u32,
}

/// Processor time and wake-ups so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effort {
    pub(super) keeper_ticks: u64,
    pub(super) daemon_ticks: u64,
    pub(super) switches: u64,
}

/// Returns one key, typed without changes.
pub(super) fn key(character: char) -> Input {
    Input { message: character.into(), enter: Some(false), raw: Some(true), ..Input::default() }
}

impl<'a> Subject<'a> {
    pub(super) fn start(bench: &'a Bench) -> Result<Self, BenchError> {
        let env = TestEnv::new(&bench.posse);
        env.run(["serve"]).ok();
        Self::around(bench, env)
    }

    /// Wraps the daemon that runs there.
    pub(super) fn around(bench: &'a Bench, env: TestEnv) -> Result<Self, BenchError> {
        let (http, daemon) = (env.http(), env.daemon_pid());
        let keeper = env.keeper_pid().ok_or("the start of the keeper did not happen in time")?;
        Ok(Self { env, http, bench, keeper, daemon })
    }

    /// Starts a command; an empty one is Claude Code, for which the environment has a scripted agent.
    pub(super) fn launch(&self, command: &[&str]) -> Result<TerminalId, BenchError> {
        // The home in the environment identifies leftover processes.
        let environment = [
            ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
            ("POSSE_HOME".to_owned(), self.env.paths().home.to_string_lossy().into_owned()),
        ];
        let agent = command.is_empty();
        let create = Create {
            provider: agent.then(|| "claude_code".to_owned()),
            wait: agent.then_some(false),
            command: command.iter().map(|&word| word.to_owned()).collect(),
            working_directory: self.env.work().to_string_lossy().into_owned(),
            environment: environment.into(),
            size: Some(Size::clamped(40, 120)),
            ..Create::default()
        };
        let answer = self.http.post("/terminals", &create)?;
        if answer.status != 201 {
            return Err(refused("start a terminal", &answer));
        }
        Ok(serde_json::from_str::<Terminal>(&answer.body)?.id)
    }

    /// Starts a probe and waits until it is ready to begin.
    pub(super) fn launch_probe(&self, arguments: &[&str]) -> Result<(TerminalId, ProbeStream), BenchError> {
        let id = self.launch(&self.bench.probe_command(arguments))?;
        let mut stream = self.follow(id)?;
        stream.until(READY)?;
        Ok((id, stream))
    }

    pub(super) fn launch_many(&self, count: usize, command: &[&str]) -> Result<Vec<TerminalId>, BenchError> {
        in_parallel(count, |_| {
            self.bench.go_on()?;
            self.launch(command)
        })
    }

    pub(super) fn delete(&self, id: TerminalId) -> Result<(), BenchError> {
        let answer = self.http.call("DELETE", &format!("/terminals/{id}"), "")?;
        if answer.json()["success"] == true { Ok(()) } else { Err(refused("end a terminal", &answer)) }
    }

    pub(super) fn delete_many(&self, ids: &[TerminalId]) -> Result<(), BenchError> {
        in_parallel(ids.len(), |index| self.delete(ids[index])).map(drop)
    }

    pub(super) fn list(&self) -> Result<Vec<Terminal>, BenchError> {
        Ok(self.http.get("/terminals")?)
    }

    pub(super) fn follow(&self, id: TerminalId) -> Result<ProbeStream, BenchError> {
        let mut socket = Stream::open(&self.http, id, None, 1)?;
        loop {
            if let Item::Word(StreamMessage::Start { offset, .. }) = socket.next_item()? {
                return Ok(ProbeStream { socket, offset, waiting: Vec::new() });
            }
        }
    }

    pub(super) fn send(&self, id: TerminalId, input: &Input) -> Result<(), BenchError> {
        let answer = self.http.post(&format!("/terminals/{id}/input"), input)?;
        if answer.status == 200 { Ok(()) } else { Err(refused("type into a terminal", &answer)) }
    }

    pub(super) fn begin(&self, id: TerminalId) -> Result<(), BenchError> {
        self.send(id, &key('\r'))
    }

    /// Waits until keeper and daemon are idle.
    pub(super) fn rest(&self) -> Result<(), BenchError> {
        let mut before = None;
        self.bench.until("rest", PATIENCE, REST, || {
            let now = Some(self.effort()?.switches);
            Ok((std::mem::replace(&mut before, now) == now).then_some(()))
        })
    }

    pub(super) fn effort(&self) -> Result<Effort, BenchError> {
        let gone = || missing("processes of keeper and daemon", 1, 2);
        let (keeper_ticks, keeper_switches) = process::effort(self.keeper).ok_or_else(gone)?;
        let (daemon_ticks, daemon_switches) = process::effort(self.daemon).ok_or_else(gone)?;
        Ok(Effort { keeper_ticks, daemon_ticks, switches: keeper_switches + daemon_switches })
    }

    /// Returns the memory of the keeper and of the daemon, in bytes.
    pub(super) fn memory(&self) -> Result<(u64, u64), BenchError> {
        let of = |pid| process::memory(pid).ok_or_else(|| missing("memory", 0, 1));
        Ok((of(self.keeper)?, of(self.daemon)?))
    }
}

/// Calls a function `count` times from several threads, and returns the results.
fn in_parallel<T: Send>(
    count: usize,
    task: impl Fn(usize) -> Result<T, BenchError> + Sync,
) -> Result<Vec<T>, BenchError> {
    let task = &task;
    std::thread::scope(|scope| {
        let share = |first: usize| scope.spawn(move || (first..count).step_by(THREADS).map(task).collect::<Vec<_>>());
        let threads: Vec<_> = (0..THREADS).map(share).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().flat_map(join).collect()
    })
}

/// A terminal followed live over its WebSocket. Blocking, so that only the kernel is between a message and its receipt.
pub(super) struct ProbeStream {
    socket: Stream,
    /// The terminal's output offset at the start.
    pub(super) offset: u64,
    /// Unread output, beginning with the screen.
    waiting: Vec<u8>,
}

impl ProbeStream {
    fn next(&mut self) -> Result<(), BenchError> {
        loop {
            if let Item::Output { bytes, .. } = self.socket.next_item()? {
                self.waiting.extend_from_slice(&bytes);
                return Ok(());
            }
        }
    }

    /// Waits until the terminal has shown `text`, and discards everything up to it.
    pub(super) fn until(&mut self, text: &str) -> Result<(), BenchError> {
        loop {
            if let Some(start) = self.waiting.windows(text.len()).position(|window| window == text.as_bytes()) {
                self.waiting.drain(..start + text.len());
                return Ok(());
            }
            self.next()?;
        }
    }

    /// Returns the delays of the next `count` timestamps in milliseconds.
    pub(super) fn delays(&mut self, bench: &Bench, count: u32) -> Result<Vec<f64>, BenchError> {
        let mut delays = Vec::new();
        loop {
            bench.go_on()?;
            self.next()?;
            let now = stamp::now();
            while let Some(Stamp { number, at }) = Stamp::take(&mut self.waiting) {
                delays.push(ms_between(at, now));
                if number + 1 == count {
                    // Every byte must arrive: a missing one is a bug, not a slow sample.
                    let (found, all) = (delays.len(), count as usize);
                    return if found == all { Ok(delays) } else { Err(missing("stamps on the stream", found, all)) };
                }
            }
        }
    }
}
