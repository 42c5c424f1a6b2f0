//! Tells the program which commit it is made from. A clone has git, an archive or a package has a file; where there is
//! neither, the version alone will do.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Filled in by `git archive`; see .gitattributes.
const ARCHIVED: &str = "commit.txt";
/// Added by `cargo package`.
const PACKAGED: &str = ".cargo_vcs_info.json";

fn main() {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ARCHIVED}");
    let found = in_file(&package.join(ARCHIVED), "").or_else(|| in_file(&package.join(PACKAGED), "\"sha1\": \""));
    let text = match found.or_else(|| checked_out(&package)) {
        Some(commit) => format!("{version} ({})", &commit[..10]),
        None => version,
    };
    println!("cargo::rustc-env=POSSE_VERSION={text}");
}

/// The commit after this text, if there is one.
fn in_file(path: &Path, before: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let (_, rest) = text.split_once(before)?;
    commit(rest)
}

/// What is checked out here. A clone of something else that we merely lie in does not count.
fn checked_out(package: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(package).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let root = package.parent()?.parent()?.canonicalize().ok()?;
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    // Where the answer changes: another branch, another commit on it.
    let branch = git(&["symbolic-ref", "-q", "HEAD"]);
    for name in [Some("HEAD".to_owned()), branch].into_iter().flatten() {
        if let Some(path) = git(&["rev-parse", "--git-path", &name]).map(|path| package.join(path))
            && path.exists()
        {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    commit(&git(&["rev-parse", "HEAD"])?)
}

fn commit(text: &str) -> Option<String> {
    let hash: String = text.chars().take_while(char::is_ascii_hexdigit).collect();
    (hash.len() >= 40).then_some(hash)
}
