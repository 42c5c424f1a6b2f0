//! What the tests have in common that kill processes of a run at random moments.

use std::fmt::Display;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use posse_api::Health;
use posse_testkit::{TestEnv, env, process};
use serde_json::Value;

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.below(2);
        random
    }

    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }

    pub(crate) fn one_of(&mut self, names: &[&'static str]) -> &'static str {
        names[self.below(names.len() as u64) as usize]
    }
}

pub(crate) fn first_seed() -> u64 {
    std::env::var("POSSE_KILLS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// Plays runs until so many kills have hit: on a fast machine a run may be over before it was disturbed often enough.
pub(crate) fn until_killed(enough: u32, play: impl Fn(u64) -> u32) {
    let (mut kills, mut seed) = (0, first_seed());
    while kills < enough {
        kills += play(seed);
        seed += 1;
    }
    println!("{kills} kills in {} runs", seed - first_seed());
}

/// Kills the daemon, if there is one. Returns the number of kills.
pub(crate) fn kill_daemon(env: &TestEnv) -> u32 {
    let Ok(Health { pid, .. }) = env.http().get::<Health>("/health") else { return 0 };
    env::kill(pid);
    let _ = process::ends(pid);
    1
}

/// Waits a while for this entry of the journal.
pub(crate) fn until_entry(entries: &Receiver<String>, wanted: &str, patience: Duration) {
    let until = Instant::now() + patience;
    while let Ok(entry) = entries.recv_timeout(until.saturating_duration_since(Instant::now())) {
        if entry == wanted {
            return;
        }
    }
}

/// The commands that follow a run, one after the other.
pub(crate) struct Follower {
    output: PathBuf,
    child: Mutex<Option<Child>>,
    over: AtomicBool,
}

impl Follower {
    pub(crate) fn new(env: &TestEnv) -> Self {
        Self { output: env.paths().home.join("followed"), child: Mutex::default(), over: AtomicBool::new(false) }
    }

    /// Runs a command to its end, which may be a kill. Returns whether it ended in time.
    pub(crate) fn follow(&self, command: &mut Command, give_up: Instant) -> bool {
        let output = File::options().create(true).append(true).open(&self.output).unwrap();
        let child = command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap();
        let pid = child.id();
        *self.child.lock().unwrap() = Some(child);
        let ended = process::ends_within(pid, give_up.saturating_duration_since(Instant::now()));
        let child = self.child.lock().unwrap().take();
        if let Some(mut child) = child {
            let _ = child.kill().and_then(|()| child.wait());
        }
        ended
    }

    /// Kills the command. Returns the number of kills.
    pub(crate) fn kill(&self) -> u32 {
        self.child.lock().unwrap().as_mut().map_or(0, |child| u32::from(child.kill().is_ok()))
    }

    /// Plays a run: a person sees it through while `disturb` kills, and then `check` looks at it. Returns the kills.
    pub(crate) fn play<E: Send>(
        &self,
        env: &TestEnv,
        entry: fn(&Value) -> Option<String>,
        see_it_through: impl FnOnce() -> E + Send,
        disturb: impl FnOnce(&Receiver<String>) -> u32,
        check: impl FnOnce(&E, u32),
    ) -> u32 {
        let (tell, entries) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || self.listen(env, &tell, entry));
            let person = scope.spawn(|| {
                let end = see_it_through();
                self.over.store(true, Ordering::Relaxed);
                end
            });
            let kills = disturb(&entries);
            let end = person.join();
            self.over.store(true, Ordering::Relaxed);
            let checked = end.and_then(|end| catch_unwind(AssertUnwindSafe(|| check(&end, kills))));
            // The listener ends with the daemon.
            env.run(["stop", "--all"]);
            checked.unwrap_or_else(|panic| resume_unwind(panic));
            kills
        })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Sends the entries of the journal as they come, although the connection is lost all the time. Ends after the run,
    /// with the daemon.
    fn listen(&self, env: &TestEnv, entries: &Sender<String>, entry: fn(&Value) -> Option<String>) {
        while !self.is_over() {
            let Ok(mut events) = env.http().events(None) else {
                // No daemon listens for a few milliseconds, and there is nothing to wait on for that.
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            while let Ok(Some(event)) = events.next_event() {
                if let Some(name) = entry(&event) {
                    let _ = entries.send(name);
                }
                if self.is_over() {
                    return;
                }
            }
        }
    }

    /// Returns the ends of what the commands and the daemon printed.
    pub(crate) fn told(&self, env: &TestEnv) -> String {
        format!("followed:\n{}\ndaemon:\n{}", tail(&self.output), tail(&env.paths().log()))
    }
}

/// Returns the end of a file.
pub(crate) fn tail(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// Returns an entry of a journal as one line.
pub(crate) fn journal_line(seq: impl Display, at: impl Display, mut entry: String) -> String {
    entry.truncate((0..=300).rev().find(|at| entry.is_char_boundary(*at)).unwrap_or(0));
    format!("{seq} {at} {entry}\n")
}
