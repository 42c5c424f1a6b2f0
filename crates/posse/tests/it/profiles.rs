//! Profiles: the five of the loop are there for everyone, and the user's own take their place.

use std::fs;

use crate::env;

#[test]
fn profiles_are_listed_shown_and_overridden() {
    let env = env();
    let directory = env.paths().profiles();
    let listed = env.run(["profile", "list", "--json"]).json();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|listed| listed["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["peer_programmer", "peer_system_analyst", "programmer", "system_analyst", "tester"]);
    assert!(env.run(["profile", "list"]).ok().contains("built in"));

    let shown = env.run(["profile", "show", "tester"]).ok();
    assert!(shown.starts_with("---\nname: tester\n") && shown.contains("RESULT:"), "{shown}");
    // What is shown can be laid in place of ours.
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("tester.md"), shown.replace("Then stop.", "Then rest.")).unwrap();
    let mine = env.run(["profile", "show", "tester", "--json"]).json();
    assert!(mine["text"].as_str().unwrap().contains("Then rest."), "{mine}");
    assert!(mine["from"].as_str().unwrap().ends_with("agent-store/tester.md"), "{mine}");
    fs::write(directory.join("tester.md"), "no fields").unwrap();
    env.run(["profile", "show", "tester"]).ends(1).prints(&["no fields"]).complains(&["tester.md"]);
    assert!(env.run(["profile", "list"]).ok().contains("does not begin"));
    env.run(["profile", "show", "boss"]).ends(64).complains(&["system_analyst"]);
}
