//! A stranger on the machine cannot reach a terminal.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::env;

#[test]
fn sockets_and_state_are_private() {
    let env = env();
    let id = env.launch(&["sh", "-c", "exit 0"]);
    env.run(["wait", id.as_str(), "--until", "exited", "--timeout", "300s"]).ok();
    let (home, runtime) = (&env.paths().home, &env.paths().runtime);
    let mut open = Vec::new();
    let mut look = vec![home.clone(), runtime.clone(), runtime.parent().unwrap().to_owned()];
    while let Some(path) = look.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        let mode = found.permissions().mode() & 0o777;
        // A socket's own mode does not matter inside a private directory.
        let inside_private = path.parent() == Some(runtime);
        if mode & 0o077 != 0 && !inside_private {
            open.push((path.clone(), format!("{mode:o}")));
        }
        assert_eq!(found.uid(), rustix::process::getuid().as_raw());
        if found.is_dir() && path != runtime.parent().unwrap() {
            look.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(open.is_empty(), "others may read: {open:?}");
}

#[test]
fn the_environment_is_passed_on_and_never_stored() {
    let env = env();
    let secret = "s3cr3t-value-for-a-test";
    let mut launch = env.command(["launch", "--", "sh", "-c", "echo got $TOKEN; exec sleep 1000"]);
    let output = launch.env("TOKEN", secret).output().unwrap();
    let id = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    crate::text_when(&env, id, |text| text.contains(&format!("got {secret}")));
    env.run(["stop"]).ok();
    for file in
        fs::read_dir(&env.paths().home).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
    {
        let bytes = fs::read(&file).unwrap();
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{} holds the environment of a program", file.display());
    }
}
