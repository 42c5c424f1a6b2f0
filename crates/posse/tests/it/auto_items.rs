//! Commands on a backlog that read or write it without starting anything.

use std::fs;

use posse_testkit::TestEnv;

use crate::env;

fn put(env: &TestEnv, path: &str, text: &str) {
    let file = env.work().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

#[test]
fn every_file_is_shown_with_its_state() {
    let env = env();
    put(&env, "docs/defect-backlog/9-foo.md", "# Foo\n\nWhen I export more than ten rows, the file is empty.\n");
    put(&env, "docs/defect-backlog/prose-name.md", "# Vague\n");
    put(&env, "docs/defect-backlog/broken.md", "---\ntype: bug\n---\n");
    put(&env, "docs/feature-backlog/2-bar.md", "---\npriority: high\ndepends_on: 9-foo\n---\n# Bar\n");
    put(&env, "docs/feature-backlog/3-odd.md", "# Odd\n## Status: someday\n");
    let shown = env.run(["auto", "items"]).ok();
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            "   ITEM        KIND     PRIORITY  TITLE",
            "1  9-foo       defect   medium    Foo",
            "?  prose-name  defect   medium    Vague (too vague: it will be asked about)",
            "–  2-bar       feature  high      Bar (waits for 9-foo)",
            "–  3-odd       feature  medium    Odd (its status means nothing here)",
            "docs/feature-backlog/3-odd.md:2:12: `someday` is no status: the item is not worked on (one of open, needs_clarification, \
             on_hold, in_progress, fixed, completed, failed, exhausted, duplicate)",
            "docs/defect-backlog/broken.md:2:7: `bug` is no type (one of defect, feature)",
        ]
    );
    let json = env.run(["auto", "items", "--json"]).json();
    assert_eq!(json["items"][0]["item"], "9-foo");
    assert_eq!(json["items"][0]["place"], 1);
    let unknown = ["attempts", "verifications_failed", "cost"].map(|key| json["items"][0].get(key).unwrap().is_null());
    assert_eq!(unknown, [true; 3], "no pipeline has seen it: {json}");
    assert_eq!(json["items"][2]["reason"], "waits for 9-foo");
    assert_eq!(json["others"][0]["path"], "docs/defect-backlog/broken.md");
    assert!(env.keeper_pid().is_none(), "nothing was started for that");
}

#[test]
fn items_are_made_and_answered() {
    let env = env();
    env.run(["auto", "items"]).complains(&["posse auto new defect TITLE"]);
    let made = env.run(["auto", "new", "defect", "Export", "is empty", "--backlog-dir", "todo"]).ok();
    assert_eq!(made, "todo/defect-backlog/01-export-is-empty.md\n");
    assert_eq!(
        env.run(["auto", "new", "feature", "More"]).ok(),
        "docs/feature-backlog/02-more.md\n",
        "numbers are taken once"
    );
    env.run(["run", "answer", ".", "02-more", "yes"]).complains(&["nothing is asked about this item"]);
    let file = env.work().join("docs/feature-backlog/02-more.md");
    let text = fs::read_to_string(&file).unwrap().replace("Open", "Needs Clarification");
    fs::write(&file, format!("{text}\n## Clarification\n\n**Question:** Which?\n\n**Answer:**\n")).unwrap();
    assert!(env.run(["auto", "items"]).ok().contains("waits for an answer: Which?"));
    env.run(["run", "answer", ".", "02-more.md", "the", "blue one"]).ok();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("## Status: Open") && text.ends_with("**Answer:** the blue one\n"), "{text}");
    // Directories are as configured.
    put(&env, ".posse/config.toml", "[backlog]\nfeatures = \"wishes\"\n");
    assert!(env.run(["auto", "new", "feature", "Less"]).ok().starts_with("wishes/"));
}
