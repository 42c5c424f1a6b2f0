use futures_util::FutureExt;
use posse_api::EventBody;
use posse_core::plan::config::PlanConfig;
use posse_files::providers::Providers;

use super::*;
use crate::disk::DISK;
use crate::hub::{HubEvent, TerminalSnapshot};
use crate::record::Record;

const HOUR: Duration = Duration::from_secs(3600);

fn order(files: &Path) -> Order {
    let provider = Providers::new(files.to_owned()).load(DISK, "claude_code").unwrap();
    Order {
        name: "a-session".parse().unwrap(),
        group: "posse-plan".parse().unwrap(),
        spawn: Err(StepError::because("the session is not prepared")),
        files: files.to_owned(),
        texts: provider.manifest.headless.clone().unwrap(),
        timeout: HOUR,
        idle: 24 * HOUR,
    }
}

/// Sessions under a hub that the test plays.
fn sessions(home: &Path) -> (Sessions, mpsc::UnboundedReceiver<HubEvent>) {
    let (app, messages) = App::played(home);
    (Sessions { app, files: WatchedFiles::start(), executable: home.join("posse") }, messages)
}

/// One that began long ago.
fn record(exit: Option<Exit>) -> Record {
    Record { name: "a-session".parse().unwrap(), pid: None, exit, ..Record::sample(1) }
}

/// When the daemon restarts, the deadline of a session that ended in time may have passed. The keeper reports its exit.
#[tokio::test]
async fn only_one_that_runs_takes_too_long() {
    for (runs, expected) in [(true, Ended::TimedOut), (false, Ended::Exited(0))] {
        let directory = tempfile::tempdir().unwrap();
        let (sessions, mut messages) = sessions(directory.path());
        let (order, id) = (order(directory.path()), record(None).id);
        let (pump, mut asked) = pump::testing::played();
        let hub = async {
            let mut exit = None;
            while let Some(message) = messages.recv().await {
                match message {
                    HubEvent::Command(hub::HubCommand::Show(_, reply)) => {
                        let view = TerminalSnapshot {
                            record: record(exit),
                            title: String::new(),
                            size: posse_core::screen::Size::DEFAULT,
                            watched: false,
                        };
                        let _ = reply.send(Some(view));
                    }
                    HubEvent::Command(hub::HubCommand::Find(_, reply)) => {
                        let _ = reply.send(Some(pump.clone()));
                        let Some(pump::PumpEvent::Command(pump::PumpCommand::Alive(reply))) = asked.recv().await else {
                            panic!("nobody needs anything else");
                        };
                        let _ = reply.send(runs);
                        // Let the requester act before further events.
                        tokio::task::yield_now().await;
                        tokio::task::yield_now().await;
                        exit = Some(Exit::Code(0));
                        let at = jiff::Timestamp::now();
                        let told = LogEvent {
                            seq: None,
                            at,
                            terminal: Some(id),
                            offset: None,
                            body: EventBody::TerminalStarted { pid: 1 },
                        };
                        let _ = sessions.app.events.send(Arc::new(told));
                    }
                    _ => panic!("nobody needs anything else"),
                }
            }
        };
        let (_stop, mut stop) = watch::channel(false);
        let stream = Stream::open(&order).await;
        let mut heard = |_: &Event| {};
        tokio::select! {
            ended = sessions.follow(id, &order, &stream, &mut stop, &mut heard) => assert_eq!(ended, expected),
            () = hub => panic!("the hub does not end"),
        }
    }
}

/// A daemon that comes back hours later must not take a time of day for tomorrow's.
#[tokio::test]
async fn what_it_said_about_a_limit_is_meant_from_when_it_said_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stderr.log");
    let reset = (jiff::Timestamp::now() - 4 * HOUR).strftime("%H:%M").to_string();
    std::fs::write(&path, format!("You've hit your limit · resets {reset} (UTC)\n")).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::now() - 5 * HOUR).unwrap();
    let order = order(directory.path());
    let over = Stream::open(&order).await.over(Ended::Exited(1), &order).await;
    let hold = over.limit(0, &PlanConfig::default().rate_limit).unwrap();
    assert!(hold.known && hold.until < crate::now().after(HOUR), "{hold:?}");
}

/// A daemon with many sessions sends many events. A session must not be woken by those of the others.
#[test]
fn only_what_happens_to_it_wakes_a_session() {
    let (tell, mut events) = broadcast::channel(4);
    let (own, other) = (TerminalId::from_random(1), TerminalId::from_random(2));
    let say = |terminal| {
        let at = jiff::Timestamp::now();
        let event = LogEvent { seq: None, at, terminal, offset: None, body: EventBody::TerminalStarted { pid: 1 } };
        tell.send(Arc::new(event)).unwrap();
    };
    let mut woken = || heard_of(&mut events, own).now_or_never().is_some();
    assert!(!woken(), "nothing has happened");
    say(Some(other));
    say(None);
    assert!(!woken(), "it is not about this one");
    say(Some(own));
    say(Some(other));
    assert!(woken() && !woken(), "once");
    (0..9).for_each(|_| say(Some(other)));
    assert!(woken(), "who has missed something looks");
}
