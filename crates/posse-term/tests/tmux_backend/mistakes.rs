//! What must not happen: names that become commands, options that are not ours, a tmux that will not do.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use posse_core::status::Exit;
use posse_term::tmux::{self, TmuxError};
use posse_term::wire::Request;

use crate::stage::{Stage, id, script};

/// Each tries to make a file in another way, or to end tmux.
fn nasty(file: &str) -> Vec<String> {
    vec![
        format!("#(touch {file})"),
        format!("#{{l:#(touch {file})}}"),
        format!("##(touch {file})"),
        format!("'; run-shell 'touch {file}'; '"),
        format!("\"; run-shell \"touch {file}\"; \""),
        format!("\n run-shell 'touch {file}'\n"),
        format!("$(touch {file})`touch {file}`"),
        format!("a;kill-server;b"),
        "; kill-server".into(),
        "-d".into(),
        "$0".into(),
        "=x:y.z".into(),
        "{end}".into(),
        "%H ~ ${HOME} #H #{host} #[fg=red]".into(),
        "\u{1b}]2;title\u{7}\\".into(),
        String::new(),
        "ünïcödé".into(),
    ]
}

#[tokio::test]
async fn names_and_directories_are_only_text() {
    let Some(stage) = Stage::new() else { return };
    let touched = stage.path("touched");
    let mut client = stage.connect().await;
    for (number, name) in (1..).zip(nasty(touched.to_str().unwrap())) {
        let mut program = script("echo started; exec cat");
        program.label = serde_json::json!({ "name": name, "session": name }).to_string().into_bytes();
        let directory = stage.path(&format!("{number} {}", name.replace(['/', '\0'], "_")));
        std::fs::create_dir(&directory).unwrap();
        program.directory = directory.clone().into_os_string().into_encoded_bytes();
        client.spawn(id(number), program).await;
        client.until_text(id(number), "started").await;
        let path = std::fs::read_link(format!("/proc/{}/cwd", stage.value(id(number), "#{pane_pid}"))).unwrap();
        assert!(path == directory || name.contains('\n'), "{path:?} is not {directory:?}");
    }
    let names = stage.tmux(&["list-windows", "-a", "-F", "#{session_name} #{window_name}"]);
    assert!(names.contains("ünïcödé ünïcödé"), "{names}");
    assert!(!touched.exists(), "something ran");
}

#[tokio::test]
async fn a_state_directory_with_an_impossible_name() {
    let Some(stage) = Stage::new() else { return };
    let touched = stage.path("touched");
    let name = format!("state #(touch {}) '\"; $HOME #{{pid}} ü", touched.file_name().unwrap().to_str().unwrap());
    let mut settings = stage.settings();
    settings.state = stage.path(&name);
    let mut client = stage.client(tmux::start(settings).await.unwrap());
    let got = stage.path("got");
    client.spawn(id(1), script(&format!("stty raw -echo; printf ready; head -c 5000 > '{}'", got.display()))).await;
    client.until_text(id(1), "ready").await;
    client.type_in(id(1), &[b'x'; 5000]).await.unwrap();
    assert_eq!(client.until_exit(id(1)).await, Exit::Code(0));
    assert_eq!(std::fs::read(got).unwrap().len(), 5000);
    assert!(!touched.exists() && !PathBuf::from("touched").exists(), "something ran");
}

#[tokio::test]
async fn a_users_own_server_keeps_its_options() {
    let Some(stage) = Stage::of_a_user() else { return };
    let global = || ["-g", "-s", "-gw"].map(|which| stage.tmux(&["show-options", which]));
    stage.tmux(&["new-session", "-d", "-s", "theirs", "cat"]);
    stage.tmux(&["set-option", "-g", "detach-on-destroy", "off"]);
    stage.tmux(&["set-option", "-g", "remain-on-exit", "on"]);
    let before = (global(), stage.tmux(&["show-options", "-t", "theirs"]));
    let mut client = stage.connect().await;
    let mut program = script("echo started; read -r; exit 3");
    program.label = br#"{"name":"name","session":"theirs"}"#.to_vec();
    client.spawn(id(1), program).await;
    client.until_text(id(1), "started").await;
    client.spawn(id(2), script("echo started; exec cat")).await;
    client.until_text(id(2), "started").await;
    assert_eq!((global(), stage.tmux(&["show-options", "-t", "theirs"])), before);
    client.type_in(id(1), b"\r").await.unwrap();
    assert_eq!(client.until_exit(id(1)).await, Exit::Code(3));
    client.link.send(Request::Forget { id: id(1) });
    let windows = || stage.tmux(&["list-windows", "-t", "theirs", "-F", "x"]);
    client.until_outside("the window is closed", || windows() == "x").await;
    // Their option would move our connection elsewhere when our session is closed.
    let sessions = stage.tmux(&["list-sessions", "-F", "#{session_name}"]);
    let anchor = sessions.lines().find(|name| name.starts_with("_posse_")).unwrap().to_owned();
    stage.tmux(&["kill-session", "-t", &anchor]);
    client.until(id(2), |mirror| mirror.checkpoints == 1).await;
}

#[tokio::test]
async fn terminals_of_another_home_on_the_same_server_are_not_touched() {
    let Some(stage) = Stage::new() else { return };
    let mut ours = stage.connect().await;
    let mut settings = stage.settings();
    settings.state = stage.path("other");
    let mut theirs = stage.client(tmux::start(settings).await.unwrap());
    ours.spawn(id(1), script("echo ours; exec cat")).await;
    theirs.spawn(id(2), script("echo theirs; exec cat")).await;
    ours.until_text(id(1), "ours").await;
    theirs.until_text(id(2), "theirs").await;
    assert_eq!(ours.list().await.iter().map(|summary| summary.id).collect::<Vec<_>>(), [id(1)]);
    drop(ours);
    theirs.type_in(id(2), b"still\r").await.unwrap();
    theirs.until_text(id(2), "still\nstill").await;
    let mut ours = stage.connect().await;
    assert_eq!(ours.list().await.iter().map(|summary| summary.id).collect::<Vec<_>>(), [id(1)]);
}

#[tokio::test]
async fn a_tmux_that_will_not_do_is_named_with_what_to_do() {
    let Some(stage) = Stage::new() else { return };
    let start = async |tmux: &str| match tmux::start_with(tmux.as_ref(), stage.settings()).await {
        Ok(_) => panic!("{tmux} was taken"),
        Err(error) => error,
    };
    let fake = |name: &str, text: &str| {
        let path = stage.path(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let missing = start("/nowhere/tmux").await;
    assert!(matches!(missing, TmuxError::Missing), "{missing:?}");
    assert_eq!(missing.to_string(), "tmux is not installed: install tmux, or use the embedded backend");
    let old = start(&fake("old", "echo tmux 3.1c")).await;
    assert_eq!(
        old.to_string(),
        "tmux 3.1c is too old, 3.2 or newer is needed: update tmux, or use the embedded backend"
    );
    let odd = start(&fake("odd", "echo screen 5")).await;
    assert!(matches!(&odd, TmuxError::UnknownVersion(said) if said == "screen 5"), "{odd:?}");
    let broken =
        start(&fake("broken", "[ \"$1\" = -V ] && echo tmux 3.3a && exit; echo no such luck >&2; exit 1")).await;
    assert_eq!(broken.to_string(), "cannot start tmux: no such luck");

    let mut settings = stage.settings();
    std::fs::create_dir(stage.path("open")).unwrap();
    std::fs::set_permissions(stage.path("open"), std::fs::Permissions::from_mode(0o755)).unwrap();
    settings.state = stage.path("open");
    let open = tmux::start(settings).await.map(|_| ()).unwrap_err();
    assert!(matches!(open, TmuxError::State { .. }), "{open:?}");
}
