//! Whole runs, while at random moments the daemon is killed, or the command that follows the run, or a part specific to
//! this kind of run. Then a person looks, and continues. The run must reach the same end as without kills.
//!
//! A part of it runs with the other tests. All of it, 200 kills of each kind and some minutes:
//!
//! ```text
//! cargo test -p posse --test it kills -- --ignored --nocapture
//! ```
//!
//! Every run prints its seed; `POSSE_KILLS_SEED=…` begins with that one. The moments are then the same as far as they depend
//! on the test; the machine may make something else of them.

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use posse_api::{Health, JournalView};
use posse_testkit::files::when;
use posse_testkit::{PATIENCE, TestEnv, env, process};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A run of some kind, and a person who wants it done.
pub(crate) trait Killable: Sync {
    const KIND: &'static str;
    /// More kills in one run, and it is more often dead than alive.
    const KILLS_PER_RUN: u32;
    /// The entries of the journal around which something is between the journal and the world.
    const MOMENTS: &'static [&'static str];

    /// Makes what the run needs. A seed may choose between several.
    fn open(seed: u64) -> Self;

    fn env(&self) -> &TestEnv;

    /// Returns the person's next command, as long as the run is not over. Fails the test if the run has failed.
    fn next(&self) -> Option<Command>;

    /// Kills something that only a run of this kind has. Returns the number of kills.
    fn kill_special(&self, random: &mut Random) -> u32;

    /// Milliseconds from the entry to the kill, or without an entry from the kill before.
    fn pause(entry: Option<&str>, random: &mut Random) -> u64 {
        match entry {
            Some(_) => random.below(100) * random.below(2),
            None => random.below(800),
        }
    }

    /// Something else that happens until the run is over.
    fn meanwhile(&self, _is_over: &AtomicBool) {}

    /// Returns other details that help to understand a failure.
    fn details(&self) -> String {
        String::new()
    }

    /// Checks a run that is over.
    fn check(&self, disturbed: bool);

    /// The runs, the newest first. Asks until a daemon answers.
    fn runs<T: DeserializeOwned>(&self) -> Vec<T> {
        when("the runs", || {
            self.env().run(["serve"]);
            self.env().http().get(&format!("/runs?kind={}", Self::KIND)).ok()
        })
    }

    /// The journals of all runs, the oldest first.
    fn journals(&self) -> Vec<JournalView> {
        let runs: Vec<Value> = self.runs();
        let journal = |run: &Value| -> Vec<JournalView> {
            let path = format!("/runs/{}/journal", run["id"].as_str().unwrap());
            self.env().http().get(&path).unwrap_or_default()
        };
        runs.iter().rev().flat_map(journal).collect()
    }

    /// Everything that helps to understand a failure.
    fn report(&self) -> String {
        let entry = |it: &JournalView| {
            let mut entry = serde_json::to_string(&it.entry).unwrap();
            entry.truncate((0..=300).rev().find(|at| entry.is_char_boundary(*at)).unwrap_or(0));
            format!("{} {} {entry}\n", it.seq, it.at)
        };
        let journal: String = self.journals().iter().map(entry).collect();
        let (followed, daemon) = (tail(&followed(self.env())), tail(&self.env().paths().log()));
        format!("journal:\n{journal}\nfollowed:\n{followed}\ndaemon:\n{daemon}\n{}", self.details())
    }
}

/// Plays a run without kills as the reference. Then plays runs until `enough` kills have hit: on a fast machine a run
/// may be over before it was disturbed often enough.
pub(crate) fn until_killed<K: Killable>(enough: u32) {
    let (mut kills, mut seed) = (0, first_seed());
    assert_eq!(play::<K>(seed, 0), 0);
    while kills < enough {
        kills += play::<K>(seed, K::KILLS_PER_RUN);
        seed += 1;
    }
    println!("{kills} kills in {} runs", seed - first_seed());
}

fn first_seed() -> u64 {
    std::env::var("POSSE_KILLS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// Plays a run: a person sees it through while it is killed, at most so often. Returns the kills.
fn play<K: Killable>(seed: u64, most: u32) -> u32 {
    println!("seed {seed}: up to {most} kills");
    let (run, begun, mut random) = (K::open(seed), Instant::now(), Random::new(seed));
    let follower = Follower { output: followed(run.env()), child: Mutex::default(), over: AtomicBool::new(false) };
    let (tell, entries) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| follower.listen(run.env(), &tell));
        scope.spawn(|| run.meanwhile(&follower.over));
        let person = scope.spawn(|| {
            see_it_through(&run, &follower);
            follower.over.store(true, Ordering::Relaxed);
        });
        let kills = disturb(&run, &follower, most, &mut random, &entries);
        let end = person.join();
        follower.over.store(true, Ordering::Relaxed);
        println!("seed {seed}: {kills} kills, {:.1} s", begun.elapsed().as_secs_f64());
        let checked = end.and_then(|()| catch_unwind(AssertUnwindSafe(|| run.check(most > 0))));
        // The listener ends with the daemon.
        run.env().run(["stop", "--all"]);
        checked.unwrap_or_else(|panic| {
            println!("{}", run.report());
            resume_unwind(panic)
        });
        kills
    })
}

fn see_it_through<K: Killable>(run: &K, follower: &Follower) {
    let give_up = Instant::now() + PATIENCE;
    while let Some(mut command) = run.next() {
        let ended = follower.follow(&mut command, give_up);
        assert!(ended && Instant::now() < give_up, "it does not come to an end");
    }
}

/// Kills so often, or until the run is over. Returns the kills.
fn disturb<K: Killable>(
    run: &K,
    follower: &Follower,
    most: u32,
    random: &mut Random,
    entries: &Receiver<String>,
) -> u32 {
    let mut kills = 0;
    while kills < most && !follower.is_over() {
        let wanted = (random.below(3) > 0).then(|| K::MOMENTS[random.below(K::MOMENTS.len() as u64) as usize]);
        let pause = Duration::from_millis(K::pause(wanted, random));
        let victim = random.below(20);
        if let Some(wanted) = wanted {
            until_entry(entries, wanted, Duration::from_millis(1200));
        }
        std::thread::sleep(pause);
        kills += match victim {
            0..=11 => kill_daemon(run.env()),
            // As often as it comes back.
            12 | 13 => (0..3).map(|_| kill_daemon_that_comes_back(run.env())).sum(),
            14..=16 => follower.kill(),
            17 | 18 => run.kill_special(random),
            _ => run.kill_special(random) + kill_daemon(run.env()),
        };
        // A person looks at once, or something else has to bring the daemon back.
        if random.below(4) > 0 {
            run.env().run(["serve"]);
        }
        // Entries from before the kill.
        while entries.try_recv().is_ok() {}
    }
    kills
}

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
}

/// Kills the daemon, if there is one. Returns the number of kills.
pub(crate) fn kill_daemon(env: &TestEnv) -> u32 {
    let Ok(Health { pid, .. }) = env.http().get::<Health>("/health") else { return 0 };
    env::kill(pid);
    let _ = process::ends(pid);
    1
}

fn kill_daemon_that_comes_back(env: &TestEnv) -> u32 {
    env.run(["serve"]);
    kill_daemon(env)
}

/// Waits a while for this entry of the journal.
fn until_entry(entries: &Receiver<String>, wanted: &str, patience: Duration) {
    let until = Instant::now() + patience;
    while let Ok(entry) = entries.recv_timeout(until.saturating_duration_since(Instant::now())) {
        if entry == wanted {
            return;
        }
    }
}

/// Returns the name of the entry that an event is about: an input or an effect of the machine.
fn entry_name(event: &Value) -> Option<String> {
    let data = &event["data"];
    let happened = data["event"].as_object().and_then(|event| event.keys().next().cloned());
    let name = happened.or_else(|| data["event"].as_str().map(str::to_owned));
    let name = name.or_else(|| data["entry"].as_str().map(str::to_owned));
    name.filter(|_| event["kind"] == "run_entry")
}

/// Returns the file to which the commands that follow the run print.
fn followed(env: &TestEnv) -> PathBuf {
    env.paths().home.join("followed")
}

/// The commands that follow a run, one after the other.
struct Follower {
    output: PathBuf,
    child: Mutex<Option<Child>>,
    over: AtomicBool,
}

impl Follower {
    /// Runs a command to its end, which may be a kill. Returns whether it ended in time.
    fn follow(&self, command: &mut Command, give_up: Instant) -> bool {
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
    fn kill(&self) -> u32 {
        self.child.lock().unwrap().as_mut().map_or(0, |child| u32::from(child.kill().is_ok()))
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Sends the entries of the journal as they come, although the connection is lost all the time. Ends after the run,
    /// with the daemon.
    fn listen(&self, env: &TestEnv, entries: &Sender<String>) {
        while !self.is_over() {
            let Ok(mut events) = env.http().events(None) else {
                // No daemon listens for a few milliseconds, and there is nothing to wait on for that.
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            while let Ok(Some(event)) = events.next_event() {
                if let Some(name) = entry_name(&event) {
                    let _ = entries.send(name);
                }
                if self.is_over() {
                    return;
                }
            }
        }
    }
}

/// Returns the end of a file.
fn tail(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}
