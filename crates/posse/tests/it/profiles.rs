//! Profiles: the five of the loop are there for everyone, and the user's own take their place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use posse_core::rounds::{Key, Role};
use posse_testkit::TestEnv;
use posse_testkit::files::when;

use crate::env;
use crate::tcp::{OriginalClient, listen};

/// Puts a scripted agent in the place of a real one, which notes what it was started with and writes the answer it is asked
/// for.
fn scripted(env: &TestEnv, provider: &str, look: &str) {
    let directory = env.paths().providers();
    fs::create_dir_all(&directory).unwrap();
    let mut scenario = format!("look = \"{look}\"\n");
    for key in Key::ALL {
        let path = env.work().join(key.file_name());
        scenario += &format!(
            "[[turn]]\non = \"{}\"\nsteps = [{{ think = \"100ms\" }}, {{ write = {{ path = {path:?}, text = \"the answer of {key}\" }} }}, {{ say = \"Written.\" }}]\n",
            key.file_name()
        );
    }
    let (file, program) = (directory.join(format!("{provider}.scenario")), directory.join(format!("{provider}.sh")));
    fs::write(&file, scenario).unwrap();
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}'/\"$CAO_TERMINAL_ID\".arguments\nexec '{}' actor '{}'\n",
        env.work().display(),
        env.posse_path().display(),
        file.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(directory.join(format!("{provider}.toml")), format!("[launch]\nprogram = {program:?}\n")).unwrap();
}

fn profile_command(env: &TestEnv, directory: &Path) {
    let listed = env.run(["profile", "list", "--json"]).json();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|listed| listed["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["peer_programmer", "peer_system_analyst", "programmer", "system_analyst", "tester"]);
    assert!(env.run(["profile", "list"]).ok().contains("built in"));

    let shown = env.run(["profile", "show", "tester"]).ok();
    assert!(shown.starts_with("---\nname: tester\n") && shown.contains("RESULT:"), "{shown}");
    // What is shown can be laid in place of ours.
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("tester.md"), shown.replace("Then stop.", "Then rest.")).unwrap();
    let mine = env.run(["profile", "show", "tester", "--json"]).json();
    assert!(mine["text"].as_str().unwrap().contains("Then rest."), "{mine}");
    assert!(mine["from"].as_str().unwrap().ends_with("agent-store/tester.md"), "{mine}");
}

#[test]
fn profiles_are_listed_shown_and_overridden() {
    let env = env();
    let directory = env.paths().profiles();
    profile_command(&env, &directory);
    fs::write(directory.join("tester.md"), "no fields").unwrap();
    env.run(["profile", "show", "tester"]).ends(1).prints(&["no fields"]).complains(&["tester.md"]);
    assert!(env.run(["profile", "list"]).ok().contains("does not begin"));
    env.run(["profile", "show", "boss"]).ends(64).complains(&["system_analyst"]);
}

/// As a client of the original API runs the loop: five terminals by the names of their profiles, agents of both kinds, a
/// prompt to each, and the answer in a file.
#[test]
fn a_client_of_the_original_api_finds_the_five_roles() {
    let env = env();
    scripted(&env, "claude_code", "claude");
    scripted(&env, "codex", "codex");
    let own = env.paths().profiles();
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("programmer.md"), "---\nname: programmer\ndescription: mine\n---\nYou are my own programmer.")
        .unwrap();

    let client = OriginalClient(listen(&env, &["--no-auth"]));
    let work = env.work().to_string_lossy().into_owned();
    for (at, role) in Role::ALL.into_iter().enumerate() {
        let provider = if at % 2 == 0 { "claude_code" } else { "codex" };
        let mut create = vec![("provider", provider), ("agent_profile", role.profile()), ("working_directory", &work)];
        let path = if at == 0 {
            create.push(("session_name", "loop"));
            "/sessions"
        } else {
            "/sessions/posse-loop/terminals"
        };
        let terminal = client.ok("POST", path, &create);
        assert_eq!(terminal["agent_profile"], role.profile(), "{terminal}");
        let id = terminal["id"].as_str().unwrap();
        let told = fs::read_to_string(env.work().join(format!("{id}.arguments"))).unwrap();
        let expected = match role {
            Role::Analyst => "You are the analyst of a team",
            Role::PeerAnalyst => "You are the peer analyst of a team",
            Role::Programmer => "You are my own programmer.",
            Role::PeerProgrammer => "You are the peer programmer of a team",
            Role::Tester => "You are the tester of a team",
        };
        assert!(told.contains(expected), "{role} was started with\n{told}");

        let file = env.work().join(role.key().file_name());
        let message = format!("Do your part.\nWrite your answer to {}.", file.display());
        client.ok("POST", &format!("/terminals/{id}/input"), &[("message", &message)]);
        let answer = when(&format!("the answer of {role}"), || {
            let status = client.ok("GET", &format!("/terminals/{id}"), &[])["status"].clone();
            fs::read_to_string(&file).ok().filter(|_| status == "completed" || status == "idle")
        });
        assert_eq!(answer, format!("the answer of {}", role.key()));
    }
    let terminals = client.ok("GET", "/sessions/posse-loop/terminals", &[]);
    assert_eq!(terminals.as_array().unwrap().len(), 5);
    let unknown = [("provider", "codex"), ("agent_profile", "boss")];
    let (status, body) = client.call("POST", "/sessions/posse-loop/terminals", &unknown);
    assert_eq!(status, 400, "{body}");
    assert!(body["detail"].as_str().unwrap().contains("no profile \"boss\""), "{body}");
}
