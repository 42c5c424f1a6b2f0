use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Barrier;

use posse_core::backlog::Status;
use posse_core::backlog::edit::set_status;

use super::*;
use crate::disk::DISK;

fn project() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    (place, root)
}

fn write(root: &Path, path: &str, text: &str) {
    fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
    fs::write(root.join(path), text).unwrap();
}

#[test]
fn t91_every_file_is_listed_with_its_state() {
    let (_place, root) = project();
    for (path, text) in [
        ("docs/defect-backlog/9-foo.md", "# Foo\n"),
        ("docs/defect-backlog/prose-name.md", ""),
        ("docs/defect-backlog/README.md", "about"),
        ("docs/defect-backlog/broken.md", "---\ntitle: [\n---\n"),
        ("docs/defect-backlog/two words.md", "# X\n"),
        ("docs/defect-backlog/.hidden.md", "# X\n"),
        ("docs/defect-backlog/picture.png", "x"),
        ("docs/defect-backlog/on-hold/8-held.md", "# X\n"),
        ("docs/defect-backlog/archive/7-old.md", "# X\n"),
        ("docs/feature-backlog/10-bar.md", "# Bar\n## Dependencies\n- 1-done\n- 2-given-up\n"),
        ("docs/completed-backlog/features/1-done.md", "# Done\n## Status: Completed\n"),
        ("docs/completed-backlog/features/1-done.report.md", "# Report\n"),
        ("docs/failed-backlog/2-given-up.md", "# X\n## Status: Exhausted\n"),
    ] {
        write(&root, path, text);
    }
    symlink("/etc/passwd", root.join("docs/defect-backlog/4-link.md")).unwrap();
    let scan = scan(DISK, &root, &BacklogDirs::default());
    let items: Vec<&str> = scan.items.iter().map(|found| found.path.as_str()).collect();
    assert_eq!(
        items,
        ["docs/defect-backlog/9-foo.md", "docs/defect-backlog/prose-name.md", "docs/feature-backlog/10-bar.md"]
    );
    let others: Vec<(&str, &str)> =
        scan.others.iter().map(|other| (other.path.rsplit('/').next().unwrap(), other.why.as_str())).collect();
    for (name, why) in [
        ("4-link.md", "it is a link"),
        ("README.md", "README"),
        ("broken.md", "not valid YAML"),
        ("two words.md", "' '"),
    ] {
        assert!(others.iter().any(|(other, said)| *other == name && said.contains(why)), "{name}: {others:?}");
    }
    assert_eq!(others.len(), 4, "{others:?}");
    assert_eq!(scan.archived.len(), 2, "{:?}", scan.archived);
    let queue = scan.queue(&BTreeSet::new(), &BTreeMap::new());
    let shown: Vec<_> = queue.iter().map(|entry| (entry.slug.as_str(), entry.held.as_deref())).collect();
    let held = Some("waits for 2-given-up, which was given up (exhausted)");
    assert_eq!(shown, [("9-foo", None), ("prose-name", None), ("10-bar", held)]);
}

#[test]
fn directories_can_be_elsewhere() {
    let (_place, root) = project();
    write(&root, "todo/feature-backlog/1-x.md", "# X\n");
    assert_eq!(scan(DISK, &root, &BacklogDirs::below("todo/")).items.len(), 1);
    assert_eq!(BacklogDirs::below(".").defects, "defect-backlog");
}

#[test]
fn edits_are_whole_and_hit_nobody() {
    let (_place, root) = project();
    write(&root, "a.md", "# X\n## Status: Open\n");
    let path = root.join("a.md");
    edit(DISK, &path, |text| set_status(text, Status::OnHold)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "# X\n## Status: On Hold\n");
    // Another process writes to the file in between.
    let mut once = std::cell::Cell::new(true);
    edit(DISK, &path, |text| {
        if once.replace(false) {
            fs::write(&path, "# X\n## Status: Open\n\nMore.\n").unwrap();
        }
        set_status(text, Status::Fixed)
    })
    .unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "# X\n## Status: Fixed\n\nMore.\n");
    assert!(!*once.get_mut());
    symlink(&path, root.join("link.md")).unwrap();
    assert!(
        edit(DISK, &root.join("link.md"), |text| set_status(text, Status::Open)).is_err(),
        "links are not followed"
    );
}

#[test]
fn numbers_are_given_once() {
    let (_place, root) = project();
    let (shelves, reserved) = (BacklogDirs::default(), root.join("state/numbers"));
    write(&root, "docs/completed-backlog/defects/12-old.md", "# X\n");
    write(&root, "docs/feature-backlog/on-hold/14-held.md", "# X\n");
    let create = |kind, title: &str| create(DISK, &root, &shelves, &reserved, kind, title, "# T\n").unwrap();
    assert_eq!(create(Kind::Defect, "The first"), "docs/defect-backlog/15-the-first.md");
    fs::remove_file(root.join("docs/defect-backlog/15-the-first.md")).unwrap();
    assert_eq!(create(Kind::Feature, "The first"), "docs/feature-backlog/16-the-first.md", "not even if it is gone");
    let barrier = Barrier::new(8);
    let mut made: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (barrier, create) = (&barrier, &create);
                scope.spawn(move || {
                    barrier.wait();
                    create(Kind::Defect, &format!("by {n}"))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    made.sort();
    let numbers: Vec<&str> =
        made.iter().map(|path| path.rsplit('/').next().unwrap().split('-').next().unwrap()).collect();
    assert_eq!(numbers, ["17", "18", "19", "20", "21", "22", "23", "24"]);
}
