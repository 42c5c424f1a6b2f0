//! Bugs found by code review that lacked a test.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use posse_api::{StreamMessage, StreamRequest};
use posse_core::screen::Size;
use posse_testkit::process;
use posse_testkit::stream::{Item, Stream};

use crate::tcp::{asking, listen, status, upgraded};
use crate::{env, text_when};

#[test]
fn ended_terminals_do_not_stay_in_memory() {
    let env = env();
    env.run(["ls"]).ok();
    let before = process::memory(env.daemon_pid()).unwrap();
    for _ in 0..20 {
        let id = env.launch(&["seq", "1", "30000"]);
        env.run(["wait", id.as_str(), "--until", "exited", "--timeout", "300s"]).ok();
        assert!(env.run(["output", id.as_str()]).ok().ends_with("29999\n30000\n"));
    }
    let grown = process::memory(env.daemon_pid()).unwrap().saturating_sub(before);
    assert!(grown < 12 << 20, "20 ended terminals cost {grown} bytes");
}

#[test]
fn who_falls_behind_keeps_its_window() {
    let env = env();
    let id = env.launch(&["sh", "-c", "read go; seq 1 300000; echo END; exec sleep 1000"]);
    let mut slow = Stream::open(&env.http(), id, None, 5).unwrap();
    slow.ask(&StreamRequest::View { size: Some(Size::clamped(33, 77)) }).unwrap();
    loop {
        if let Item::Word(StreamMessage::Resized { size, .. }) = slow.next_item().unwrap() {
            assert_eq!(size, Size::clamped(33, 77));
            break;
        }
    }
    env.run(["send", id.as_str(), "go"]).ok();
    text_when(&env, id, |text| text.contains("END"));
    // Only now it reads again, and is given a fresh picture somewhere on the way.
    slow.set_timeout(Duration::from_secs(2)).unwrap();
    while slow.next_item().is_ok() {}
    let size = &env.run(["ls", "--json"]).json()[0]["size"];
    assert_eq!((&size["rows"], &size["cols"]), (&33.into(), &77.into()));
}

#[test]
fn a_closed_door_is_closed_for_those_inside_too() {
    let env = env();
    let id = env.launch(&["cat"]);
    let listening = listen(&env, &["--no-auth"]);
    let ask = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut inside = asking(listening, ask);
    assert_eq!(status(&mut inside), "200");
    let mut watching = upgraded(listening, id);
    assert_eq!(status(&mut watching), "101");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = taken.local_addr().unwrap().to_string();
    assert_eq!(env.run(["serve", "--listen", &elsewhere]).code, Some(1), "somebody else's port");
    assert!(TcpStream::connect(listening).is_ok(), "what worked goes on working");

    env.run(["serve", "--listen", &listening.to_string()]).ok(); // with a token now
    let mut rest = Vec::new();
    let _ = inside.read_to_end(&mut rest);
    let _ = inside.write_all(ask.as_bytes());
    let mut answer = Vec::new();
    let _ = inside.read_to_end(&mut answer);
    assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    let _ = watching.read_to_end(&mut rest); // ends, instead of going on
}

/// The end of a program may overtake its output on the way to the daemon that has just started it.
#[test]
fn what_a_program_prints_before_it_ends_at_once_is_not_lost() {
    let env = env();
    env.run(["ls"]).ok();
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let env = &env;
            scope.spawn(move || {
                for nth in 0..8 {
                    let name = format!("short-{worker}-{nth}");
                    env.run(["launch", "--name", &name, "--", "/bin/echo", "hello"]).ok();
                    env.run(["wait", &name, "--until", "exited", "--timeout", "300s"]).ok();
                    assert!(env.run(["output", &name]).ok().contains("hello"), "{name}");
                }
            });
        }
    });
}
