use super::*;
use crate::delivery::{Decision, NotAnswered};
use crate::detect::Reading;
use crate::detect::dialog::{Choosable, Meaning};
use crate::question::QuestionReport;
use crate::status::{Source, WaitingKind};

fn dialog() -> Dialog {
    let option = |label: &str, meaning, selected| {
        let key = Some(if selected { "1" } else { "2" }.to_owned());
        Choosable { label: label.into(), meaning, key, selected, ..Choosable::default() }
    };
    Dialog {
        id: "0123456789abcdef".into(),
        kind: WaitingKind::Permission,
        title: "Bash command".into(),
        question: "Do you want to proceed?".into(),
        detail: vec!["rm -r target".into()],
        tool: Some("Bash".into()),
        subject: Some("rm -r target".into()),
        options: vec![option("Yes", Meaning::Accept, true), option("No", Meaning::Deny, false)],
        ..Dialog::default()
    }
}

fn note(step: Step) -> Note {
    let (role, run) = (Some("developer".into()), Some("r-1".into()));
    let who = Who { by: By::Run, role, run, turn: Some(3), count: Some((2, 20)), ..Who::person() };
    Note { at: Wall(1_700_000_000_123), terminal: TerminalId::from_random(0xc0ffee), name: None, who, step }
}

fn answering() -> Note {
    let tail = vec!["Bash command".into(), "❯ 1. Yes".into()];
    note(Step::Answering(Box::new(Answering::new(Wish::Accept, Some(&dialog()), tail, vec!["1".into()]))))
}

/// Creates an audit of this many entries, alternating answers and outcomes.
fn written(entries: i64) -> (Vec<Row>, Chain) {
    let mut chain = Chain::resume(None, Mark::BEGINNING);
    let next = |seq: i64| match seq % 2 {
        1 => answering(),
        _ => note(Step::Outcome(Ended::answered(seq - 1, Verified::Closed, vec!["1".into()]))),
    };
    let rows = (1..=entries).map(|seq| chain.append(next(seq), seq).unwrap()).collect();
    (rows, chain)
}

fn verify(rows: &[Row], head: Option<&Chain>) -> Vec<Flaw> {
    let mut verifier = Verifier::default();
    rows.iter().for_each(|row| verifier.add(row));
    verifier.finish(head)
}

fn entry(row: &Row) -> Entry {
    serde_json::from_str(&row.text).unwrap()
}

#[test]
fn an_entry_is_read_as_it_was_written() {
    let (rows, _) = written(2);
    assert_eq!(entry(&rows[0]), Entry { seq: 1, note: answering() });
    let Step::Outcome(ended) = entry(&rows[1]).note.step else { panic!("no outcome") };
    assert_eq!((ended.of, ended.end), (1, End::Answered));
    assert_eq!(rows[1].previous, rows[0].hash);
    assert_eq!(rows[0].previous, "0".repeat(64));
}

/// S-9, the seed's four fields: role, terminal, count, and up to five lines of the tail.
#[test]
fn audit_log_content() {
    let rows = ["● Running", "", "Bash command", "  rm -r target", " ", "Proceed?", "❯ 1. Yes", "  2. No", "Esc", ""];
    for (shown, expected) in [
        (&rows[..], "\n  |   rm -r target\n  | Proceed?\n  | ❯ 1. Yes\n  |   2. No\n  | Esc"),
        (&rows[4..8], "\n  | Proceed?\n  | ❯ 1. Yes\n  |   2. No"),
    ] {
        let shown: Vec<String> = shown.iter().map(|row| (*row).to_owned()).collect();
        let answering = Answering::new(Wish::Accept, None, tail(&shown), vec!["1".into()]);
        let line = Entry { seq: 1, note: note(Step::Answering(Box::new(answering))) }.to_string();
        assert_eq!(line, format!("audit 1: developer, terminal 00c0ffee, 2/20, accept with 1{expected}"));
    }
    let line = entry(&written(1).0[0]).to_string();
    assert_eq!(
        line,
        "audit 1: developer, terminal 00c0ffee, 2/20, accept with 1\n  | Bash rm -r target\n  | Do you want to proceed?",
        "the command, not the options"
    );
    let person = Note { who: Who::person(), ..answering() };
    assert!(Entry { seq: 4, note: person }.to_string().starts_with("audit 4: person, terminal 00c0ffee, accept"));
    let ended = Ended::failed(4, Unanswered { why: NotAnswered::StillOpen, presses: 1 }, vec!["1".into()]);
    let line = Entry { seq: 5, note: note(Step::Outcome(ended)) }.to_string();
    assert!(line.ends_with("2/20, uncertain (4): the question is still open after the answer"), "{line}");
}

#[test]
fn s_150_a_screen_that_cannot_be_read_is_said_to_be_empty_and_keeps_nothing_back() {
    let blind = Answering::new(Wish::Accept, None, vec![], vec!["y".into(), "enter".into()]);
    let mut chain = Chain::resume(None, Mark::BEGINNING);
    let row = chain.append(note(Step::Answering(Box::new(blind))), 1).unwrap();
    let line = entry(&row).to_string();
    assert_eq!(line, "audit 1: developer, terminal 00c0ffee, 2/20, accept with y enter\n  (nothing is on the screen)");
}

#[test]
fn what_is_chosen_is_named() {
    let chosen = |wish| {
        let answering = Answering::new(wish, Some(&dialog()), vec![], vec![]);
        (answering.wish, answering.chosen.unwrap_or_default())
    };
    assert_eq!(chosen(Wish::Accept), ("accept".into(), "Yes".into()));
    assert_eq!(chosen(Wish::Deny), ("deny".into(), "No".into()));
    assert_eq!(chosen(Wish::Option(1)), ("option 2".into(), "No".into()));
    assert_eq!(chosen(Wish::Option(7)), ("option 8".into(), String::new()));
}

#[test]
fn a_run_answers_permissions_and_nothing_else() {
    use WaitingKind::{Permission, Plan, Question, Startup};
    let check = |by: By, kind| {
        let reading = Reading { dialog: Some(Dialog { kind, ..dialog() }), ..Reading::default() };
        Decision::new(dialog().id, Wish::Accept, by).check(&reading)
    };
    assert_eq!(check(By::Run, Permission), Ok(()));
    for kind in [Question, Plan, Startup] {
        assert_eq!(check(By::Run, kind), Err(NotAnswered::Kind(kind)));
        assert_eq!([By::Person, By::Startup].map(|by| check(by, kind)), [Ok(()), Ok(())]);
    }
}

#[test]
fn only_an_answering_key_makes_it_uncertain() {
    let end = |presses| Ended::failed(1, Unanswered { why: NotAnswered::Gone, presses }, vec![]).end;
    assert_eq!((end(0), end(1)), (End::Refused, End::Uncertain));
    assert_eq!(Ended::cut_off(7).end, End::Uncertain);
}

#[test]
fn an_audit_nobody_touched_is_intact() {
    assert_eq!(verify(&[], None), []);
    for entries in 1..6 {
        let (rows, head) = written(entries);
        assert_eq!(verify(&rows, Some(&head)), [], "{entries} entries");
    }
}

/// Rewrites a row with a matching hash.
fn rehash(row: &mut Row) {
    row.hash = Hash::of(row.previous.parse().unwrap(), &row.text).to_string();
}

type Tampering = fn(&mut Vec<Row>);

#[test]
fn whatever_is_done_to_entries_is_found_and_named() {
    let swap_places: Tampering = |rows| {
        (rows[2].seq, rows[3].seq) = (rows[3].seq, rows[2].seq);
    };
    let swap_texts: Tampering = |rows| {
        let text = rows[2].text.clone();
        rows[2].text = std::mem::replace(&mut rows[3].text, text);
    };
    let change: Tampering = |rows| rows[2].text = rows[2].text.replace("rm -r target", "ls");
    let rewrite: Tampering = |rows| {
        rows[2].text = rows[2].text.replace("rm -r target", "ls");
        rehash(&mut rows[2]);
    };
    let rewrite_all_later: Tampering = |rows| {
        rows[2].text = rows[2].text.replace("rm -r target", "ls");
        for at in 2..rows.len() {
            rows[at].previous = rows[at - 1].hash.clone();
            rehash(&mut rows[at]);
        }
    };
    let append: Tampering = |rows| {
        let last = rows[5].clone();
        let mut chain = Chain::resume(None, Mark { seq: 6, hash: last.hash.parse().unwrap() });
        rows.push(chain.append(answering(), 7).unwrap());
    };
    let table: &[(&str, Tampering, &[&str])] = &[
        ("the text", change, &["entry 3 was changed"]),
        ("its hash", |rows| rows[2].hash = Hash::BEGINNING.to_string(), &["entry 3 was changed"]),
        ("no hash at all", |rows| rows[2].hash = "x".into(), &["entry 3 was changed"]),
        ("what it follows", |rows| rows[2].previous = rows[0].hash.clone(), &["entry 3 was changed"]),
        ("no JSON", |rows| rows[2].text.push('}'), &["entry 3 was changed"]),
        ("a space", |rows| rows[2].text.push(' '), &["entry 3 was changed"]),
        ("text and hash", rewrite, &["entry 3 is not the one that was written"]),
        ("all later hashes too", rewrite_all_later, &["entry 6 is not the one that was written"]),
        ("drop the first", |rows| drop(rows.remove(0)), &["entry 1 is missing"]),
        ("drop one in the middle", |rows| drop(rows.remove(2)), &["entry 3 is missing"]),
        ("drop two in the middle", |rows| drop(rows.drain(2..4)), &["entries 3 to 4 are missing"]),
        ("drop the last", |rows| drop(rows.pop()), &["entry 6 is missing"]),
        ("drop all", Vec::clear, &["entries 1 to 6 are missing"]),
        ("drop two apart", |rows| drop((rows.remove(1), rows.remove(3))), &["entry 2 is", "entry 5 is"]),
        ("swap", swap_places, &["entry 4 stands at place 3", "entry 3 stands at place 4"]),
        ("swap texts", swap_texts, &["entry 3 was changed", "entry 4 was changed"]),
        ("copy", |rows| rows.push(Row { seq: 7, ..rows[2].clone() }), &["entry 3 stands at place 7"]),
        ("move to the end", |rows| rows[2].seq = 7, &["entry 3 stands at place 7"]),
        ("append", append, &["entry 7 was added"]),
        ("one before the first", |rows| rows.push(Row { seq: 0, ..rows[0].clone() }), &["entry 1 stands at place 0"]),
    ];
    for (what, tamper, expected) in table {
        let (mut rows, head) = written(6);
        tamper(&mut rows);
        rows.sort_by_key(|row| row.seq);
        let flaws: Vec<String> = verify(&rows, Some(&head)).into_iter().map(|flaw| flaw.text).collect();
        assert_eq!(flaws.len(), expected.len(), "{what}: {flaws:?}");
        assert!(expected.iter().all(|said| flaws.iter().any(|flaw| flaw.starts_with(said))), "{what}: {flaws:?}");
    }
}

#[test]
fn what_happened_to_the_head_is_found() {
    let (rows, head) = written(4);
    assert_eq!(verify(&rows, None), [Flaw::of(FlawKind::Unvouched, 4)]);
    // The next daemon remembers the flaw.
    let last = Mark { seq: 4, hash: rows[3].hash.parse().unwrap() };
    let mut chain = Chain::resume(None, last);
    let mut more = rows.clone();
    more.push(chain.append(answering(), 5).unwrap());
    assert_eq!(verify(&more, Some(&chain)), [Flaw::of(FlawKind::Unvouched, 4)]);
    let resumed = Chain::resume(Some(&chain), Mark { seq: 5, hash: more[4].hash.parse().unwrap() });
    assert_eq!(resumed, chain);
    let (older, _) = written(3);
    assert_eq!(verify(&older, Some(&head)), [Flaw::range(FlawKind::Missing, 4, 4)]);
}

/// posse may be interrupted between writing the entries and the head.
#[test]
fn a_crash_while_writing_is_no_tampering() {
    let (rows, head) = written(2);
    let before = Chain::resume(Some(&head), head.end);
    let mut chain = before;
    let more: Vec<Row> = (3..5).map(|seq| chain.append(answering(), seq).unwrap()).collect();
    let ahead = chain.after(&before);
    assert_eq!(verify(&rows, Some(&ahead)), [], "not committed");
    assert_eq!(Chain::resume(Some(&ahead), head.end), before);
    let all = [rows, more].concat();
    assert_eq!(verify(&all, Some(&ahead)), [], "committed");
    assert_eq!(Chain::resume(Some(&ahead), chain.end), chain);
    assert_eq!(verify(&all[..1], Some(&ahead)), [Flaw::range(FlawKind::Missing, 2, 2)]);
    assert_eq!(verify(&all[..3], Some(&ahead)), [Flaw::range(FlawKind::Missing, 4, 4)], "all or nothing is committed");
    let text = serde_json::to_string(&ahead).unwrap();
    assert_eq!(serde_json::from_str::<Chain>(&text).unwrap(), ahead);
}

/// Entries cut off or added while posse was down stay visible after it resumes.
#[test]
fn going_on_hides_nothing() {
    let (mut rows, head) = written(4);
    rows.truncate(2);
    let mut chain = Chain::resume(Some(&head), Mark { seq: 2, hash: rows[1].hash.parse().unwrap() });
    assert_eq!(chain.next(), 5);
    rows.push(chain.append(answering(), 5).unwrap());
    assert_eq!(verify(&rows, Some(&chain)), [Flaw::range(FlawKind::Missing, 3, 4)]);

    let (mut rows, head) = written(4);
    let mut forger = Chain::resume(None, head.end);
    rows.extend((5..7).map(|seq| forger.append(answering(), seq).unwrap()));
    let mut chain = Chain::resume(Some(&head), forger.end);
    rows.push(chain.append(answering(), 7).unwrap());
    assert_eq!(verify(&rows, Some(&chain)), [Flaw::range(FlawKind::Added, 5, 6)]);

    let (mut rows, head) = written(4);
    rows[3].text = rows[3].text.replace("gone", "open");
    rehash(&mut rows[3]);
    let mut chain = Chain::resume(Some(&head), Mark { seq: 4, hash: rows[3].hash.parse().unwrap() });
    rows.push(chain.append(answering(), 5).unwrap());
    assert_eq!(verify(&rows, Some(&chain)), [Flaw::of(FlawKind::Rewritten, 4)]);
}

#[test]
fn a_hash_is_64_digits() {
    let hash = Hash::of(Hash::BEGINNING, "");
    // SHA-256 of 32 zero bytes.
    assert_eq!(hash.to_string(), "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925");
    assert_eq!(hash.to_string().parse(), Ok(hash));
    for bad in ["", "66", &"g".repeat(64), &"A".repeat(64), &"é".repeat(32)] {
        assert_eq!(bad.parse::<Hash>(), Err(BadHash), "{bad:?}");
    }
}

/// Commands contain secrets, and the report contains text that scrolled off.
#[test]
fn the_audit_has_the_whole_command_without_secrets() {
    let secret = format!("sk-ant-{}", "a1".repeat(20));
    let command = format!("curl -H 'x-api-key: {secret}' x\n{}", "echo\n".repeat(91));
    let report = QuestionReport {
        source: Source::Hook,
        number: 1,
        kind: None,
        tool: "Bash".into(),
        text: command.clone(),
        caption: Some(format!("uses {secret}")),
        input_bytes: 600,
        input_sha256: Hash::of_text(&command),
        parts: Default::default(),
    };
    let detail = vec!["echo".to_owned(); 20];
    let dialog = Dialog { detail, tool: None, subject: None, report: Some(Box::new(report)), ..dialog() };
    let answering = Answering::new(Wish::Accept, Some(&dialog), vec!["tail".into()], vec!["1".into()]);
    let written = serde_json::to_string(&answering).unwrap();
    assert!(!written.contains(&secret) && written.contains("sk-ant-[masked]"), "{written}");
    assert!(written.contains(&Hash::of_text(&command).to_string()), "the hash is of the whole");
    assert!(answering.tail[0].starts_with("Bash curl -H") && answering.tail.len() == 5, "{:?}", answering.tail);
    assert_eq!(answering.dialog.unwrap().report.unwrap().text.lines().count(), 92);
}
