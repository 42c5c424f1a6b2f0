use std::sync::mpsc::channel;

use posse_api::EventBody;
use posse_core::status::Exit;

use super::testing::{Home, write};
use super::*;
use crate::anchor::Anchor;
use crate::disk::{DISK, Disk};

fn event(kind: &str, terminal: Option<TerminalId>) -> Change {
    let at = jiff::Timestamp::from_millisecond(1_700_000_000_123).unwrap();
    let body = EventBody::TitleChanged { title: kind.into() };
    Change::Event(Box::new(LogEvent { seq: None, at, terminal, offset: Some(7), body }))
}

fn titles(path: &Path, query: &LogQuery) -> Vec<String> {
    let title = |event: LogEvent| match event {
        LogEvent { offset: Some(7), body: EventBody::TitleChanged { title }, .. } => title,
        other => panic!("{other:?}"),
    };
    read_events(DISK, path, query).unwrap().into_iter().map(title).collect()
}

fn record(number: u32) -> Record {
    Record {
        command: vec!["sh".into(), "-c".into(), "exit 'é'".into()],
        exit: (number == 2).then_some(Exit::Signal(9)),
        ..Record::sample(number)
    }
}

#[test]
fn what_is_written_is_there_after_a_restart() {
    let home = Home::new();
    {
        let (writer, found) = home.open();
        assert!(found.terminals.is_empty() && found.newest == 0);
        let changes = vec![event("created", Some(record(1).id)), Change::Put(Box::new(record(1)))];
        assert!(matches!(write(&writer, changes), Ok(seqs) if seqs == [1]));
        let changes = vec![Change::Put(Box::new(record(2))), event("a", None), event("b", Some(record(2).id))];
        assert!(matches!(write(&writer, changes), Ok(seqs) if seqs == [2, 3]));
        write(&writer, vec![Change::Put(Box::new(record(3))), Change::Drop(record(3).id)]).unwrap();
    }
    let (_writer, found) = home.open();
    assert_eq!(found.terminals, [record(1), record(2)]);
    assert_eq!(found.newest, 3);
    let kinds = |terminal, after, limit| titles(&home.database(), &LogQuery { terminal, after, limit: Some(limit) });
    assert_eq!(kinds(None, Some(0), 10), ["created", "a", "b"]);
    assert_eq!(kinds(None, Some(1), 1), ["a"]);
    assert_eq!(kinds(None, None, 2), ["a", "b"]);
    assert_eq!(kinds(Some(record(2).id), None, 10), ["b"]);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs_err::metadata(home.database()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn input_of_unknown_fate_is_remembered() {
    let home = Home::new();
    let (terminal, writer) = (record(1).id, WriterId(u64::MAX));
    let ahead = |sequence| Change::Ahead { terminal, writer, sequence };
    let settled = |sequence, arrived| Change::Settled { terminal, writer, sequence, arrived };
    {
        let (writer, _) = home.open();
        write(
            &writer,
            vec![ahead(1), settled(1, true), ahead(2), settled(2, true), ahead(3), settled(3, false), ahead(4)],
        )
        .unwrap();
    }
    let (store, found) = home.open();
    let known = |sequence, arrived| (terminal, KnownInput { writer, sequence, arrived });
    assert_eq!(found.inputs, [known(2, true), known(4, false)], "the last that arrived, and the one nobody knows of");
    write(&store, vec![Change::Drop(terminal)]).unwrap();
    drop(store);
    assert!(home.open().1.inputs.is_empty(), "they go with their terminal");
}

/// A full disk, as SQLite sees it: no page more than there is.
#[test]
fn a_full_disk_refuses_one_and_keeps_the_other_for_later() {
    let home = Home::new();
    drop(home.open());
    let connection = home.other();
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    connection.pragma_update(None, "max_page_count", pages).unwrap();
    let ledger = audit::Ledger::open(Disk::of_this_thread(), &connection, &home.database(), Anchor::none()).unwrap();
    let writer = Writer::start(connection, ledger);
    let big = || {
        let mut record = record(1);
        record.command = vec!["x".repeat(100_000)];
        vec![Change::Put(Box::new(record)), event("big", None)]
    };
    assert!(matches!(write(&writer, big()), Err(why) if why.to_string().contains("full")));
    let (told, outcome) = channel();
    writer.handle.write_surely(big(), move |result| told.send(result).unwrap(), || ());
    assert!(outcome.recv().unwrap().is_err());
    assert!(write(&writer, vec![event("small", None)]).is_ok(), "the rest goes on");
    drop(writer);
    assert_eq!(titles(&home.database(), &LogQuery::default()), ["small"]);
}

/// A newer record never waits behind an older one, and is never overwritten by it.
#[test]
fn records_are_written_in_their_order_also_when_the_disk_refuses_one() {
    let home = Home::new();
    let (writer, _) = home.open();
    write(&writer, vec![Change::Put(Box::new(record(1))), Change::Put(Box::new(record(2)))]).unwrap();
    let (told, heard) = channel();
    let put = |number, exit| {
        let record = Record { exit: Some(Exit::Code(exit)), ..record(number) };
        let (told, written) = (told.clone(), told.clone());
        let tell = move |result: WriteResult| told.send((exit, result.is_ok())).unwrap();
        let changes = vec![Change::Put(Box::new(record))];
        writer.handle.write_surely(changes, tell, move || written.send((exit, true)).unwrap());
    };
    let other = home.other();
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
    let (_writer, found) = home.open();
    let exits: Vec<_> = found.terminals.iter().map(|record| record.exit).collect();
    assert_eq!(exits, [Some(Exit::Code(2)), Some(Exit::Code(3))]);
}

#[test]
fn old_events_and_too_many_go() {
    let home = Home::new();
    let (writer, _) = home.open();
    write(&writer, (0..100).map(|_| event("x", None)).collect()).unwrap();
    write(&writer, vec![Change::Trim { before: 0, keep: 10 }]).unwrap();
    let seqs = || -> Vec<Option<i64>> {
        let events = read_events(DISK, &home.database(), &LogQuery::default()).unwrap();
        events.iter().map(|event| event.seq).collect()
    };
    assert_eq!(seqs(), (91..=100).map(Some).collect::<Vec<_>>());
    write(&writer, vec![Change::Trim { before: i64::MAX, keep: 10 }]).unwrap();
    assert_eq!(seqs(), []);
    assert!(matches!(write(&writer, vec![event("y", None)]), Ok(seqs) if seqs == [101]), "numbers go on");
}

/// Every total is a sum over these; none is ever changed.
#[test]
fn what_sessions_use_is_written_with_the_journal_and_stays() {
    use posse_core::plan::budget::{Phase, Total, Usage};
    use posse_core::time::Wall;

    let home = Home::new();
    let (writer, _) = home.open();
    let id = |number: u32| posse_core::ids::RunId::from_random(number);
    let entry = |run: u32, seq: i64, at: i64, plan: &str, cost: Option<f64>| {
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
            row: None,
            usage: Some(line),
        };
        vec![Change::Journal(Box::new(entry))]
    };
    assert!(write(&writer, entry(1, 1, 10, "/p/a", Some(1.0))).is_ok());
    assert!(write(&writer, entry(1, 2, 20, "/p/a", None)).is_ok());
    assert!(write(&writer, entry(2, 1, 30, "/p/b", Some(0.5))).is_ok());
    assert!(write(&writer, entry(2, 1, 30, "/p/b", Some(9.0))).is_err(), "nothing is said twice");
    let total = |of: UsageOf| Total::of(&usage(DISK, &home.database(), &of).unwrap());
    let all = total(UsageOf::default());
    assert_eq!((all.sessions, all.cost_usd, all.cost_unknown), (3, 1.5, 1));
    assert_eq!(total(UsageOf { plan: Some("/p/a".into()), ..UsageOf::default() }).sessions, 2);
    assert_eq!(total(UsageOf { since: Some(Wall(20)), ..UsageOf::default() }).sessions, 2);
    assert_eq!(total(UsageOf { run: Some(id(2).to_string()), ..UsageOf::default() }).cost_usd, 0.5);
    assert_eq!(total(UsageOf { project: Some("/q".into()), ..UsageOf::default() }).sessions, 0);
}
