//! A machine on which something is wrong: what posse says, how soon, and what it leaves alone.

use std::fs::File;
use std::os::unix::net::UnixListener;
use std::path::Path;

use posse_testkit::TestEnv;

use crate::env;

/// Puts something at `path` that is not a file of a sensible size. Gives what posse says about it.
type MakeSpecial = fn(&Path) -> &'static str;

const SPECIAL_FILES: [MakeSpecial; 4] = [
    |path| {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        "it is a named pipe, not a file"
    },
    |path| {
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
        "it is a device, not a file"
    },
    |path| {
        drop(UnixListener::bind(path).unwrap());
        "it is a socket, not a file"
    },
    |path| {
        // Sparse: it takes no room on the disk.
        File::create(path).unwrap().set_len(1 << 40).unwrap();
        "it is larger than 8 MiB"
    },
];

/// Checks that a command refuses each special file at `path`. A command that waits or reads on runs into the test's limit.
fn refuses_special_files(env: &TestEnv, path: &Path, arguments: &[&str]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    for make in SPECIAL_FILES {
        let says = make(path);
        let ran = env.run(arguments);
        assert!(ran.code != Some(0), "{arguments:?}: {ran:#?}");
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert!(text.contains(says), "{arguments:?} does not say {says:?}: {ran:#?}");
        assert!(text.contains(&*path.file_name().unwrap().to_string_lossy()), "{ran:#?}");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn special_files_are_refused_at_once_wherever_text_is_read() {
    let env = env();
    let work = env.work();
    let config = env.places().config.join("config.toml");
    refuses_special_files(&env, &config, &["config", "show"]);
    refuses_special_files(&env, &config, &["plan", "config"]);
    refuses_special_files(&env, &config, &["launch", "--", "true"]);
    refuses_special_files(&env, &work.join(".posse/config.toml"), &["plan", "config"]);
    refuses_special_files(&env, &work.join("plan.yaml"), &["plan", "check", "plan.yaml"]);
    refuses_special_files(&env, &work.join("plan.yaml"), &["plan", "run", "plan.yaml"]);
    refuses_special_files(&env, &work.join("run.json"), &["loop", "run.json"]);
    refuses_special_files(&env, &work.join("prompt.md"), &["loop", "--prompt-file", "prompt.md"]);
    refuses_special_files(&env, &env.places().providers().join("mine.toml"), &["provider", "check", "mine"]);
    refuses_special_files(&env, &env.places().profiles().join("mine.md"), &["profile", "show", "mine"]);
}
