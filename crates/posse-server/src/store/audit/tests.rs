use std::os::unix::fs::PermissionsExt;

use posse_core::audit::{Answering, Ended, FlawKind, Who};
use posse_core::delivery::{Verified, Wish};
use posse_core::ids::TerminalId;
use posse_core::time::Wall;

use super::super::Change;
use super::super::testing::{Home, write, written};
use super::*;
use crate::disk::DISK;

impl Home {
    fn head(&self) -> PathBuf {
        self.0.path().join("audit.head")
    }

    /// Another program that has removed the guards of the audit.
    fn tamperer(&self) -> Connection {
        let other = self.other();
        for trigger in ["audit_is_not_changed", "audit_is_not_shortened", "audit_is_not_replaced"] {
            other.execute(&format!("DROP TRIGGER {trigger}"), []).unwrap();
        }
        other
    }

    fn flaws(&self) -> Vec<Flaw> {
        verify_audit(DISK, &self.database()).unwrap().flaws
    }

    fn all(&self) -> Vec<AuditEntry> {
        self.read(&AuditQuery::default())
    }

    fn read(&self, query: &AuditQuery) -> Vec<AuditEntry> {
        read_audit(DISK, &self.database(), query).unwrap()
    }
}

fn note(terminal: u32, step: Step) -> Note {
    let run = (terminal == 1).then(|| "r1".to_owned());
    let who = Who { run, ..Who::person() };
    Note { at: Wall(1000 + i64::from(terminal)), terminal: TerminalId::from_random(terminal), name: None, who, step }
}

fn answering(terminal: u32) -> Change {
    let tail = vec!["Do it? [y/n]".to_owned()];
    let answering = Answering::new(Wish::Accept, None, tail, vec!["y".into(), "enter".into()]);
    Change::Audit(Box::new(note(terminal, Step::Answering(Box::new(answering)))))
}

fn outcome(terminal: u32, of: i64) -> Change {
    Change::Audit(Box::new(note(terminal, Step::Outcome(Ended::answered(of, Verified::Closed, vec!["y".into()])))))
}

/// Two answers with their outcomes.
fn four(home: &Home) {
    let (writer, _) = home.open();
    for (terminal, of) in [(1, 1), (2, 3)] {
        assert_eq!(written(&writer, vec![answering(terminal)]), [of]);
        assert_eq!(written(&writer, vec![outcome(terminal, of)]), [of + 1]);
    }
}

#[test]
fn entries_hang_together_over_restarts_and_retention() {
    let home = Home::new();
    drop(home.open());
    assert_eq!(home.flaws(), [], "an audit without entries is intact");
    four(&home);
    let (writer, _) = home.open();
    assert_eq!(written(&writer, vec![answering(3), outcome(3, 5)]), [5, 6], "several at once");
    written(&writer, vec![Change::Trim { before: i64::MAX, keep: 0 }, Change::Drop(TerminalId::from_random(1))]);
    drop(writer);
    let checked = verify_audit(DISK, &home.database()).unwrap();
    assert_eq!((checked.entries, checked.flaws), (6, vec![]));
    assert_eq!(home.all().iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(std::fs::metadata(home.head()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_part_of_it_can_be_read() {
    let home = Home::new();
    four(&home);
    let seqs = |query: AuditQuery| home.read(&query).iter().map(|entry| entry.seq).collect::<Vec<_>>();
    let all = AuditQuery::default();
    let since = |at| Some(Timestamp::from_millisecond(at).unwrap());
    assert_eq!(seqs(AuditQuery { run: Some("r1".into()), ..all.clone() }), [1, 2]);
    assert_eq!(seqs(AuditQuery { terminal: Some(TerminalId::from_random(2).to_string()), ..all.clone() }), [3, 4]);
    assert_eq!(seqs(AuditQuery { since: since(1002), ..all.clone() }), [3, 4]);
    assert_eq!(seqs(AuditQuery { since: since(1003), ..all.clone() }), [0; 0]);
    assert_eq!(seqs(AuditQuery { limit: Some(3), ..all }), [2, 3, 4], "the newest, in order");
}

#[test]
fn the_database_itself_refuses_to_change_it() {
    let home = Home::new();
    four(&home);
    for sql in [
        "UPDATE audit SET entry = '{}' WHERE seq = 2",
        "DELETE FROM audit WHERE seq = 4",
        "DELETE FROM audit",
        "INSERT OR REPLACE INTO audit VALUES (2, '{}', '', '')",
    ] {
        let refused = home.other().execute(sql, []).unwrap_err().to_string();
        assert!(refused.contains("the audit"), "{sql}: {refused}");
    }
    assert_eq!(home.flaws(), []);
}

#[test]
fn who_takes_away_the_guard_is_found_out() {
    for (sql, flaw) in [
        ("UPDATE audit SET entry = replace(entry, 'person', 'run') WHERE seq = 3", Flaw::of(FlawKind::Changed, 3)),
        ("UPDATE audit SET entry = 'nonsense' WHERE seq = 1", Flaw::of(FlawKind::Changed, 1)),
        (
            "UPDATE audit SET entry = CAST(x'ff00' AS TEXT), hash = CAST(x'ff' AS TEXT) WHERE seq = 4",
            Flaw::of(FlawKind::Changed, 4),
        ),
        ("DELETE FROM audit WHERE seq = 2", Flaw::range(FlawKind::Missing, 2, 2)),
        ("DELETE FROM audit WHERE seq = 4", Flaw::range(FlawKind::Missing, 4, 4)),
        ("DELETE FROM audit", Flaw::range(FlawKind::Missing, 1, 4)),
        ("UPDATE audit SET seq = 9 WHERE seq = 1", Flaw::moved(9, 1)),
    ] {
        let home = Home::new();
        four(&home);
        home.tamperer().execute(sql, []).unwrap();
        assert_eq!(home.flaws(), std::slice::from_ref(&flaw), "{sql}");
        // The damage is still reported after posse continues.
        let (writer, _) = home.open();
        written(&writer, vec![answering(3)]);
        assert_eq!(home.flaws(), [flaw], "{sql}");
        assert!(!home.all().is_empty(), "what can be read is shown");
    }
}

#[test]
fn a_missing_head_is_not_made_up_for() {
    let home = Home::new();
    four(&home);
    let remove = |head: PathBuf| std::fs::remove_file(head);
    let damage = |head: PathBuf| std::fs::write(head, "nonsense");
    for spoil in [remove as fn(PathBuf) -> io::Result<()>, damage] {
        spoil(home.head()).unwrap();
        let last = home.all().len() as i64;
        assert!(home.flaws().contains(&Flaw::of(FlawKind::Unvouched, last)));
        let (writer, _) = home.open();
        written(&writer, vec![answering(3)]);
        assert_eq!(home.flaws(), [Flaw::of(FlawKind::Unvouched, last)]);
    }
}

#[test]
fn rows_put_in_while_posse_runs_do_not_stop_it() {
    let home = Home::new();
    four(&home);
    let (writer, _) = home.open();
    home.other().execute("INSERT INTO audit SELECT 5, entry, previous, hash FROM audit WHERE seq = 1", []).unwrap();
    assert_eq!(written(&writer, vec![answering(3)]), [6]);
    let flaws = home.flaws();
    assert!(flaws.contains(&Flaw::moved(5, 1)), "{flaws:?}");
}

/// The two moments in which posse may be cut off while it writes an entry: before the commit, and after it.
#[test]
fn a_crash_while_writing_leaves_an_intact_audit() {
    let home = Home::new();
    four(&home);
    let before = std::fs::read(home.head()).unwrap();
    let (writer, _) = home.open();
    written(&writer, vec![answering(3)]);
    drop(writer);
    let (was, is): (Chain, Chain) = (
        serde_json::from_slice(&before).unwrap(),
        serde_json::from_slice(&std::fs::read(home.head()).unwrap()).unwrap(),
    );
    let announced = serde_json::to_vec(&is.after(&was)).unwrap();
    std::fs::write(home.head(), &announced).unwrap();
    assert_eq!(home.flaws(), [], "committed");
    home.tamperer().execute("DELETE FROM audit WHERE seq = 5", []).unwrap();
    assert_eq!(home.flaws(), [], "not committed");
    let (writer, _) = home.open();
    assert_eq!(written(&writer, vec![answering(4)]), [5], "its number is free");
    assert_eq!(home.flaws(), []);
}

#[test]
fn answers_without_an_outcome_are_found_after_a_crash() {
    let home = Home::new();
    four(&home);
    let (writer, found) = home.open();
    assert!(found.unfinished.is_empty());
    written(&writer, vec![answering(3)]);
    written(&writer, vec![answering(4)]);
    written(&writer, vec![outcome(3, 5)]);
    drop(writer);
    let (writer, found) = home.open();
    assert_eq!(found.unfinished.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [6]);
    written(&writer, vec![outcome(4, 6)]);
    drop(writer);
    assert!(home.open().1.unfinished.is_empty());
}

/// A directory in its place: the head cannot be written, however full the disk is.
#[test]
fn without_a_head_nothing_is_written() {
    let home = Home::new();
    four(&home);
    let (writer, _) = home.open();
    let (head, aside) = (home.head(), home.0.path().join("aside"));
    std::fs::rename(&head, &aside).unwrap();
    std::fs::create_dir(&head).unwrap();
    assert!(matches!(write(&writer, vec![answering(3)]), Err(why) if why.to_string().contains("audit.head")));
    assert_eq!(home.all().len(), 4);
    std::fs::remove_dir(&head).unwrap();
    std::fs::rename(&aside, &head).unwrap();
    assert_eq!(written(&writer, vec![answering(3)]), [5]);
    assert_eq!(home.flaws(), []);
}
