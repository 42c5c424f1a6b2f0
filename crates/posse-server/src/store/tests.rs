use std::sync::mpsc::channel;

use posse_api::EventBody;
use posse_core::screen::Size;
use posse_core::status::{Exit, Life};
use posse_core::time::Wall;

use super::*;
use crate::anchor::Anchor;
use crate::disk::{DISK, Disk};

fn event(kind: &str, terminal: Option<TerminalId>) -> Change {
    let at = jiff::Timestamp::from_millisecond(1_700_000_000_123).unwrap();
    let body = EventBody::TitleChanged { title: kind.into() };
    Change::Event(Box::new(LogEvent { seq: None, at, terminal, offset: Some(7), body }))
}

fn titles(path: &Path, slice: Slice) -> Vec<String> {
    let title = |event: LogEvent| match event {
        LogEvent { offset: Some(7), body: EventBody::TitleChanged { title }, .. } => title,
        other => panic!("{other:?}"),
    };
    read_events(DISK, path, slice).unwrap().into_iter().map(title).collect()
}

fn record(number: u32) -> Record {
    Record {
        id: TerminalId::from_random(number),
        name: format!("t{number}").parse().unwrap(),
        session: "posse-s".parse().unwrap(),
        provider: posse_api::COMMAND.into(),
        agent_profile: None,
        confirmed: (number == 1).then(Default::default),
        directory: "/".into(),
        command: vec!["sh".into(), "-c".into(), "exit 'é'".into()],
        size: Size::DEFAULT,
        created: Wall(number.into()),
        last_active: Wall(5),
        pid: Some(7),
        exit: (number == 2).then_some(Exit::Signal(9)),
        status: Life::starting(Wall(3)).status().clone(),
    }
}

fn write(writer: &Writer, changes: Vec<Change>) -> Outcome {
    let (told, outcome) = channel();
    writer.write(changes, move |outcome| told.send(outcome).unwrap());
    outcome.recv().unwrap()
}

#[test]
fn what_is_written_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("posse.db");
    {
        let (writer, found) = open(Disk::of_this_thread(), &path, Anchor::none()).unwrap();
        assert!(found.terminals.is_empty() && found.newest == 0);
        let changes = vec![event("created", Some(record(1).id)), Change::Put(Box::new(record(1)))];
        assert!(matches!(write(&writer, changes), Outcome::Written(seqs) if seqs == [1]));
        let changes = vec![Change::Put(Box::new(record(2))), event("a", None), event("b", Some(record(2).id))];
        assert!(matches!(write(&writer, changes), Outcome::Written(seqs) if seqs == [2, 3]));
        write(&writer, vec![Change::Put(Box::new(record(3))), Change::Drop(record(3).id)]);
    }
    let (_writer, found) = open(Disk::of_this_thread(), &path, Anchor::none()).unwrap();
    assert_eq!(found.terminals, [record(1), record(2)]);
    assert_eq!(found.newest, 3);
    let kinds = |slice| titles(&path, slice);
    assert_eq!(kinds(Slice { limit: 10, ..Slice::default() }), ["created", "a", "b"]);
    assert_eq!(kinds(Slice { after: 1, limit: 1, ..Slice::default() }), ["a"]);
    assert_eq!(kinds(Slice { limit: 2, newest: true, ..Slice::default() }), ["a", "b"]);
    assert_eq!(kinds(Slice { terminal: Some(record(2).id), limit: 10, ..Slice::default() }), ["b"]);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn input_of_unknown_fate_is_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("posse.db");
    let (terminal, writer) = (record(1).id, WriterId(u64::MAX));
    let ahead = |sequence| Change::Ahead { terminal, writer, sequence };
    let settled = |sequence, arrived| Change::Settled { terminal, writer, sequence, arrived };
    {
        let (writer, _) = open(Disk::of_this_thread(), &path, Anchor::none()).unwrap();
        write(
            &writer,
            vec![ahead(1), settled(1, true), ahead(2), settled(2, true), ahead(3), settled(3, false), ahead(4)],
        );
    }
    let (store, found) = open(Disk::of_this_thread(), &path, Anchor::none()).unwrap();
    let known = |sequence, arrived| (terminal, KnownInput { writer, sequence, arrived });
    assert_eq!(found.inputs, [known(2, true), known(4, false)], "the last that arrived, and the one nobody knows of");
    write(&store, vec![Change::Drop(terminal)]);
    drop(store);
    assert!(
        open(Disk::of_this_thread(), &path, Anchor::none()).unwrap().1.inputs.is_empty(),
        "they go with their terminal"
    );
}

#[test]
fn a_newer_database_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("posse.db");
    drop(open(Disk::of_this_thread(), &path, Anchor::none()).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(open(Disk::of_this_thread(), &path, Anchor::none()), Err(StoreError::Newer { found: 99, .. })));
}

#[test]
fn what_is_no_database_is_reported_and_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("posse.db");
    std::fs::write(&path, "precious notes, not a database".repeat(100)).unwrap();
    assert!(matches!(open(Disk::of_this_thread(), &path, Anchor::none()), Err(StoreError::Damaged { .. })));
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("precious"));
}

/// A full disk, as SQLite sees it: no page more than there is.
#[test]
fn a_full_disk_refuses_one_and_keeps_the_other_for_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("posse.db");
    drop(open(Disk::of_this_thread(), &path, Anchor::none()).unwrap());
    let connection = Connection::open(&path).unwrap();
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    connection.pragma_update(None, "max_page_count", pages).unwrap();
    let ledger = audit::Ledger::open(Disk::of_this_thread(), &connection, &path, Anchor::none()).unwrap();
    let writer = Writer::start(connection, ledger);
    let big = || {
        let mut record = record(1);
        record.command = vec!["x".repeat(100_000)];
        vec![Change::Put(Box::new(record)), event("big", None)]
    };
    assert!(matches!(write(&writer, big()), Outcome::Refused(why) if why.contains("full")));
    let (told, outcome) = channel();
    writer.write_surely(big(), move |outcome| told.send(outcome).unwrap());
    assert!(matches!(outcome.recv().unwrap(), Outcome::Refused(_)));
    assert!(matches!(write(&writer, vec![event("small", None)]), Outcome::Written(_)), "the rest goes on");
    drop(writer);
    assert_eq!(titles(&path, Slice { limit: 9, ..Slice::default() }), ["small"]);
}

/// What is newer never waits in vain behind what is older, and is never written over by it.
#[test]
fn records_are_written_in_their_order_also_when_the_disk_refuses_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("posse.db");
    let (writer, _) = open(Disk::of_this_thread(), &path, Anchor::none()).unwrap();
    write(&writer, vec![Change::Put(Box::new(record(1))), Change::Put(Box::new(record(2)))]);
    let (told, heard) = channel();
    let put = |number, exit| {
        let record = Record { exit: Some(Exit::Code(exit)), ..record(number) };
        let (told, written) = (told.clone(), told.clone());
        let tell = move |outcome| told.send((exit, matches!(outcome, Outcome::Written(_)))).unwrap();
        writer
            .write_surely_then(vec![Change::Put(Box::new(record))], tell, move || written.send((exit, true)).unwrap());
    };
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    put(1, 1);
    assert_eq!(heard.recv().unwrap(), (1, false), "somebody else writes for too long");
    put(1, 2);
    put(2, 3);
    assert_eq!(heard.recv().unwrap(), (2, false), "it has to wait");
    other.execute_batch("ROLLBACK").unwrap();
    let mut rest: Vec<_> = (0..4).map(|_| heard.recv().unwrap()).collect();
    rest.sort_unstable();
    assert_eq!(rest, [(1, true), (2, true), (3, true), (3, true)], "told, and written");
    drop(writer);
    let (_writer, found) = open(Disk::of_this_thread(), &path, Anchor::none()).unwrap();
    let exits: Vec<_> = found.terminals.iter().map(|record| record.exit).collect();
    assert_eq!(exits, [Some(Exit::Code(2)), Some(Exit::Code(3))]);
}

#[test]
fn old_events_and_too_many_go() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("posse.db");
    let (writer, _) = open(Disk::of_this_thread(), &path, Anchor::none()).unwrap();
    write(&writer, (0..100).map(|_| event("x", None)).collect());
    write(&writer, vec![Change::Trim { before: 0, keep: 10 }]);
    let seqs: Vec<_> =
        read_events(DISK, &path, Slice { limit: 99, ..Slice::default() }).unwrap().iter().map(|e| e.seq).collect();
    assert_eq!(seqs, (91..=100).map(Some).collect::<Vec<_>>());
    assert_eq!(figures(DISK, &path).unwrap().events, 10);
    write(&writer, vec![Change::Trim { before: i64::MAX, keep: 10 }]);
    assert_eq!(figures(DISK, &path).unwrap().events, 0);
    assert!(matches!(write(&writer, vec![event("y", None)]), Outcome::Written(seqs) if seqs == [101]), "numbers go on");
}

/// Every total is a sum over these; none is ever changed.
#[test]
fn what_sessions_use_is_written_with_the_journal_and_stays() {
    use posse_core::plan::budget::{Phase, Total, Usage};
    use posse_core::time::Wall;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("posse.db");
    let (writer, _) = open(Disk::of_this_thread(), &path, Anchor::none()).unwrap();
    let id = |number: u32| posse_core::ids::RunId::from_random(number);
    let entry = |run: u32, seq: i64, at: i64, plan: &str, cost: Option<f64>| {
        let row = Some(RunRow {
            id: id(run),
            kind: posse_api::RunKind::Plan,
            status: "running".into(),
            state_file: plan.into(),
            created: Wall(0),
            view: "{}".into(),
        });
        let line = posse_core::plan::budget::Line {
            at: Wall(at),
            run: id(run).to_string(),
            project: Some("/p".into()),
            item: None,
            plan: Some(plan.into()),
            section: None,
            task: Some("t".into()),
            attempt: Some(1),
            phase: Phase::Task,
            agent: "coder".into(),
            model: None,
            outcome: "done".into(),
            seconds: 1.0,
            usage: Usage { cost_usd: cost, ..Usage::default() },
        };
        let entry = JournalEntry {
            run: id(run),
            seq,
            at: Wall(at),
            entry: "{}".into(),
            events: Vec::new(),
            row,
            usage: Some(line),
        };
        vec![Change::Journal(Box::new(entry))]
    };
    assert!(matches!(write(&writer, entry(1, 1, 10, "/p/a", Some(1.0))), Outcome::Written(_)));
    assert!(matches!(write(&writer, entry(1, 2, 20, "/p/a", None)), Outcome::Written(_)));
    assert!(matches!(write(&writer, entry(2, 1, 30, "/p/b", Some(0.5))), Outcome::Written(_)));
    assert!(matches!(write(&writer, entry(2, 1, 30, "/p/b", Some(9.0))), Outcome::Refused(_)), "nothing is said twice");
    let total = |of: UsageOf| Total::of(&usage(DISK, &path, &of).unwrap());
    let all = total(UsageOf::default());
    assert_eq!((all.sessions, all.cost_usd, all.cost_unknown), (3, 1.5, 1));
    assert_eq!(total(UsageOf { plan: Some("/p/a".into()), ..UsageOf::default() }).sessions, 2);
    assert_eq!(total(UsageOf { since: Some(Wall(20)), ..UsageOf::default() }).sessions, 2);
    assert_eq!(total(UsageOf { run: Some(id(2).to_string()), ..UsageOf::default() }).cost_usd, 0.5);
    assert_eq!(total(UsageOf { project: Some("/q".into()), ..UsageOf::default() }).sessions, 0);
}
