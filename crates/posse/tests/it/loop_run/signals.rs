//! Signals to `posse loop`.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use super::*;

const THINKS: &str = "[loop]\nthink = \"400ms\"";

/// S-191, and the same for SIGTERM: the run stops where it is, is resumable, and passes.
#[test]
fn s_191_a_signal_stops_the_run() {
    for (signal, code, word) in [(Signal::INT, 130, "interrupted"), (Signal::TERM, 143, "terminated")] {
        let play = Play::new(THINKS);
        let mut followed = play.begin();
        followed.until("turn 3: analyst");
        play.until_recorded("asked", 3);
        followed.signal(signal);
        let ran = followed.end();
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let id = play.id();
        contains(&ran.stderr, &["stopping run", &format!("posse loop --resume {id}")]);
        // Saved when it is told, not a moment later.
        let state = play.state().unwrap();
        assert_eq!((&state["final_status"], &state["current_phase"]), (&json!("RUNNING"), &json!("analyst")));
        assert_eq!((&state["current_cycle"], &state["run"]), (&json!(2), &json!(id)));
        assert_eq!(state["in_flight"]["key"], "analyst");
        let run = play.shown();
        assert_eq!((&run["status"], &run["stop"]), (&json!("stopped"), &json!("asked")));
        contains(run["reason"].as_str().unwrap(), &[word]);
        contains(&play.env.run(["run", "ls"]).ok(), &["stopped", word]);

        let resumed = play.resume().end().ends(0);
        // Where it was, and not all it has been through.
        contains(&resumed.stdout, &["turn 3: analyst", "going on", "PASS in round 1"]);
        assert!(!resumed.stdout.contains("turn 1:"), "{}", resumed.stdout);
        play.passed();
        assert_eq!(play.records("asked").len(), TURNS.len());
    }
}

#[test]
fn a_person_stops_it_from_elsewhere() {
    let play = Play::new(THINKS);
    let mut followed = play.begin();
    followed.until("turn 4: analyst_review");
    let id = play.id();
    play.env.run(["run", "stop", &id]).ok();
    followed.end().ends(1).complains(&["posse run stop", &format!("posse loop --resume {id}")]);
    play.env.run(["run", "stop", &id]).ends(1).complains(&["nothing to stop"]);
    // The state file has RUNNING: the same command resumes the run (LOOP-51).
    play.run().ends(0).complains(&[&format!("going on with run {id}")]);
    play.passed();
}

/// A proxy between commands and the daemon that delays a request until released.
struct Between {
    socket: PathBuf,
    aside: PathBuf,
    held: Receiver<()>,
    /// As long as it is there.
    holds: Sender<()>,
}

impl Between {
    /// Holds back the first request that begins like this.
    fn holding(play: &Play, request: &'static str) -> Self {
        play.env.run(["serve"]).ok();
        let socket = play.env.paths().daemon_socket();
        let aside = socket.with_extension("aside");
        fs::rename(&socket, &aside).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        let (tell, held) = channel();
        let (holds, released) = channel::<()>();
        let (daemon, released) = (aside.clone(), Arc::new(Mutex::new(released)));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = UnixStream::connect(&daemon) else { return };
                let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut &server, &mut &client);
                    let _ = client.shutdown(Shutdown::Both);
                });
                let (tell, released) = (tell.clone(), released.clone());
                std::thread::spawn(move || {
                    let mut piece = vec![0; 64 << 10];
                    while let Ok(length @ 1..) = from.read(&mut piece) {
                        if piece.starts_with(request.as_bytes()) {
                            let _ = tell.send(());
                            let _ = released.lock().unwrap().recv();
                        }
                        if to.write_all(&piece[..length]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        });
        Self { socket, aside, held, holds }
    }

    #[track_caller]
    fn until_held(&self) {
        self.held.recv_timeout(PATIENCE).unwrap();
    }

    /// From now on everything goes its usual way.
    fn go_on(self) {
        fs::rename(&self.aside, &self.socket).unwrap();
        drop(self.holds);
    }
}

/// A request without an answer may still take effect: Ctrl-C waits for the answer, and stops the run.
#[test]
fn a_signal_before_the_answer_stops_what_was_asked_for() {
    for (request, resumed) in [("POST /runs HTTP", false), ("POST /runs/", true)] {
        let play = Play::new(THINKS);
        if resumed {
            play.begin().interrupted_at("turn 2: analyst_review");
        }
        let between = Between::holding(&play, request);
        let followed = if resumed { play.resume() } else { play.begin() };
        between.until_held();
        followed.signal(Signal::INT);
        assert!(!posse_testkit::process::ends_within(followed.child.id(), Duration::from_millis(300)), "it waits");
        between.go_on();
        let ran = followed.end();
        assert_eq!(ran.code, Some(130), "{request}: {ran:?}");
        let (run, id) = (play.shown(), play.id());
        assert_eq!((&run["status"], &run["stop"]), (&json!("stopped"), &json!("asked")), "{request}: {ran:?}");
        contains(&ran.stderr, &["stopped as soon as it has begun", &format!("posse loop --resume {id}")]);
        play.follow().end().ends(0);
        play.passed();
    }
}

/// A refused request has not begun, and the signal ends the command.
#[test]
fn a_signal_before_a_refusal_keeps_its_exit_code() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let play = Play::new(THINKS);
        let between = Between::holding(&play, "POST /runs HTTP");
        let followed = play.begin();
        between.until_held();
        followed.signal(signal);
        assert!(!posse_testkit::process::ends_within(followed.child.id(), Duration::from_millis(300)), "it waits");
        let aside = play.env.work().with_extension("aside");
        fs::rename(play.env.work(), &aside).unwrap();
        between.go_on();
        let ran = followed.end();
        fs::rename(&aside, play.env.work()).unwrap();
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(!play.env.work().join(STATE).exists(), "nothing has begun");
    }
}

#[test]
fn a_second_signal_before_the_answer_leaves_at_once() {
    let play = Play::new(THINKS);
    let between = Between::holding(&play, "POST /runs HTTP");
    let followed = play.begin();
    between.until_held();
    let ran = interrupted_twice(followed);
    between.go_on();
    ran.ends(130).complains(&["it may go on: `posse run ls` shows it"]);
}

/// Waits for the end of a command that waits after one signal and leaves at the next.
#[track_caller]
fn interrupted_twice(followed: Followed) -> Ran {
    let signalled_ends = || {
        followed.signal(Signal::INT);
        posse_testkit::process::ends_within(followed.child.id(), Duration::from_millis(300))
    };
    assert!(!signalled_ends(), "it waits");
    // One that comes before the first has been heard counts as the first.
    when("the end", || signalled_ends().then_some(()));
    followed.end()
}

#[test]
fn a_second_signal_leaves_at_once() {
    let play = Play::new("[loop]\nthink = \"forever\"");
    let mut followed = play.begin();
    followed.until("turn 1: analyst");
    play.until_recorded("asked", 1);
    // A suspended daemon does not answer; the first signal cannot take effect.
    let daemon = Pid::from_raw(play.env.daemon_pid().try_into().unwrap()).unwrap();
    kill_process(daemon, Signal::STOP).unwrap();
    let ran = interrupted_twice(followed);
    kill_process(daemon, Signal::CONT).unwrap();
    ran.ends(130);
}
