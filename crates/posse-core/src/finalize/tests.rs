use super::*;

fn path(text: &str) -> GitPath {
    GitPath(text.as_bytes().to_vec())
}

/// Returns a line of git's status with these modes in HEAD, index and work tree.
fn line(modes: [&str; 3], name: &str) -> String {
    let [head, index, work] = modes;
    format!("1 .. N... {head} {index} {work} {0} {0} {name}\0", "0".repeat(40))
}

const FILE: &str = "100644";
const NONE: &str = "000000";

fn before(paths: &[&str]) -> Snapshot {
    let dirty = paths.iter().map(|text| Was { path: path(text), content: "x".into() }).collect();
    Snapshot { root: path("/r"), dirty, ignored: vec![path(".env"), path("target")] }
}

fn check(status: &str, users: &[&str], expected: &str) {
    let changes = changes(status.as_bytes()).unwrap();
    let plan = plan(&changes, &before(users), Some(&path("aside")));
    let words = |what: &str, paths: &BTreeSet<GitPath>| {
        let paths: Vec<String> = paths.iter().map(|path| format!(" {what}:{path}")).collect();
        paths.concat()
    };
    let left: Vec<String> = plan.left.iter().map(|(path, why)| format!(" {why:?}:{path}")).collect();
    let got = words("add", &plan.add)
        + &words("remove", &plan.remove)
        + &words("quarantine", &plan.quarantine)
        + &left.concat()
        + &words("vanished", &plan.vanished);
    assert_eq!(got.trim(), expected, "{status:?}");
}

#[test]
fn every_changed_path_has_its_place() {
    let (changed, added, deleted) = ([FILE, FILE, FILE], [NONE, FILE, FILE], [FILE, FILE, NONE]);
    let cases: &[(String, &[&str], &str)] = &[
        (String::new(), &[], ""),
        ("# branch.oid 1234\0! ignored\0".into(), &[], ""),
        (line(changed, "a b") + &line(added, "new") + &line(deleted, "old"), &[], "add:\"a b\" add:new remove:old"),
        ("? new\0? two\nlines\0".into(), &[], "add:new add:\"two\\nlines\""),
        // The user's paths stay: changed again, deleted, or restored.
        (line(changed, "a") + &line(changed, "b"), &["a"], "add:b UsersWork:a"),
        (line(deleted, "a"), &["a", "gone"], "UsersWork:a vanished:gone"),
        ("? mine\0? theirs\0".into(), &["mine"], "add:theirs UsersWork:mine"),
        // The run deleted it from the index, but it exists.
        (line([FILE, NONE, NONE], "a") + "? a\0", &[], "add:a"),
        (line([FILE, NONE, NONE], "a") + "? a\0", &["a"], "UsersWork:a"),
        // Only new files are suspicious, and the user's never are.
        ("? x = 1\0? [id].tsx\0".into(), &[], "add:[id].tsx quarantine:\"x = 1\""),
        (line(added, "f(x)"), &[], "quarantine:f(x)"),
        (line(changed, "f(x)"), &[], "add:f(x)"),
        (line(deleted, "f(x)"), &[], "remove:f(x)"),
        ("? x=1\0".into(), &["x=1"], "UsersWork:x=1"),
        ("? a=b/main.rs\0".into(), &[], "add:a=b/main.rs"),
        // Posse's own paths.
        (
            "? .tmp/a\0? sub/.tmp/b\0? .posse/x=1\0? docs/.posse-a.md-Ab1\0? .tmpx\0".into(),
            &[],
            "add:.tmpx Ours:.posse/x=1 Ours:.tmp/a Ours:docs/.posse-a.md-Ab1 Ours:sub/.tmp/b",
        ),
        ("? aside/x=1\0? asides\0".into(), &[], "add:asides Ours:aside/x=1"),
        // Repositories.
        ("? nested/\0".into(), &[], "Repository:nested"),
        ("1 .M S.M. 160000 160000 160000 0 0 sub\0".into(), &[], "Repository:sub"),
        ("1 A. N... 000000 160000 160000 0 0 sub\0".into(), &[], "Repository:sub"),
        // The user's file became a directory, and vice versa.
        (line(deleted, "a") + "? a/b\0? ab\0", &["a"], "add:ab UsersWork:a UsersWork:a/b"),
        (line(deleted, "a/b") + &line(deleted, "a/c") + "? a\0", &["a/b"], "remove:a/c InTheWay:a UsersWork:a/b"),
        (line(deleted, "a/b") + "? a\0", &[], "add:a remove:a/b"),
        ("? nested/x\0".into(), &["nested"], "UsersWork:nested/x vanished:nested"),
        // Ignored before the run. A committed file counts like any other.
        ("? .env\0? target/x=1\0? targets\0".into(), &[], "add:targets Ignored:.env Ignored:target/x=1"),
        (line(changed, "target/kept"), &[], "add:target/kept"),
        // Renames, in case git detects them.
        ("2 R. N... 100644 100644 100644 0 0 R100 new\0old\0".into(), &[], "add:new remove:old"),
        ("2 C. N... 100644 100644 100644 0 0 C100 new\0old\0".into(), &[], "add:new"),
        ("2 R. N... 100644 100644 100644 0 0 R100 new\0old\0".into(), &["old", "new"], "UsersWork:new UsersWork:old"),
    ];
    for (status, users, expected) in cases {
        check(status, users, expected);
    }
}

#[test]
fn what_has_an_entry_in_the_index_is_tracked() {
    let announced = format!("1 .A N... 000000 000000 100644 {0} {0} a\0", "0".repeat(40));
    let added = line([NONE, FILE, FILE], "a");
    let forgotten = format!("1 D. N... 100644 000000 000000 {0} {0} a\0", "0".repeat(40));
    for (status, tracked) in [(announced, true), (added, true), (forgotten, false), ("? a\0".into(), false)] {
        assert_eq!(changes(status.as_bytes()).unwrap()[0].tracked, tracked, "{status}");
    }
}

#[test]
fn where_head_is_and_whether_something_is_staged() {
    let changed = "1 .M N... 100644 100644 100644 1 1 a\0? b\0";
    let read = |head: &str, changes: &str| Status::read(format!("{head}{changes}").as_bytes()).unwrap();
    let on_branch = read("# branch.oid abc\0# branch.head plan/x\0# branch.upstream o/x\0", changed);
    assert_eq!((on_branch.commit.as_deref(), on_branch.branch.as_deref()), (Some("abc"), Some("plan/x")));
    assert_eq!((on_branch.changes.len(), on_branch.staged), (2, false));
    let detached = read("# branch.oid abc\0# branch.head (detached)\0", "");
    assert_eq!((detached.commit.as_deref(), detached.branch), (Some("abc"), None));
    let initial = read("# branch.oid (initial)\0# branch.head main\0", "");
    assert_eq!((initial.commit, initial.branch.as_deref()), (None, Some("main")));
    for (change, staged) in [
        ("1 M. N... 100644 100644 100644 1 2 a", true),
        ("1 MM N... 100644 100644 100644 1 2 a", true),
        ("1 D. N... 100644 000000 000000 1 0 a", true),
        ("1 .D N... 100644 100644 000000 1 1 a", false),
        // Only `git add -N`: no content would be committed.
        ("1 .A N... 000000 000000 100644 0 0 a", false),
        ("u UU N... 100644 100644 100644 100644 1 2 3 a", true),
        ("? 1 M. a", false),
    ] {
        assert_eq!(read("", &format!("{change}\0")).staged, staged, "{change}");
    }
}

#[test]
fn what_is_ignored_is_not_a_change() {
    let status = b"! .env\0! node modules/\0? a\0";
    assert_eq!(ignored(status), [path(".env"), path("node modules")]);
    assert_eq!(changes(status).unwrap().len(), 1);
}

#[test]
fn conflicts_are_seen_and_nonsense_is_an_error() {
    let unmerged = format!("u UU N... 100644 100644 100644 100644 {0} {0} {0} a b\0", "1".repeat(40));
    let unmerged = changes(unmerged.as_bytes()).unwrap();
    assert!(matches!(&unmerged[..], [change] if change.unmerged && change.path == path("a b")), "{unmerged:?}");
    for nonsense in ["x", "1 .M N...", "?", "2 R. N... 1 1 1 0 0 R100 new\0"] {
        assert!(changes(nonsense.as_bytes()).is_err(), "{nonsense}");
    }
}

#[test]
fn a_snapshot_can_be_written_down() {
    let mut snapshot = before(&["a \"b\"", "two\nlines"]);
    snapshot.dirty.push(Was { path: GitPath(b"\xff\\".to_vec()), content: "y".into() });
    let json = serde_json::to_string(&snapshot).unwrap();
    assert!(json.contains(r#""two\nlines""#) && json.contains("[255,92]"), "{json}");
    assert_eq!(serde_json::from_str::<Snapshot>(&json).unwrap(), snapshot);
}

#[test]
fn the_user_words_the_commit() {
    assert_eq!(commit_message(" fix: x\n", "r1"), "fix: x");
    assert_eq!(commit_message(" \n", "r1"), "posse: the work of run r1");
}
