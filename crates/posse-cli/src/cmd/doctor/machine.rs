//! Programs, files, limits and disk space of this machine. Starts only `git --version` and changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use posse_agents::version::Version;
use posse_files::disk::Disk;
use posse_files::providers::prompt_templates;
use posse_files::versions;
use posse_term::paths::{Paths, PathsError};
use rustix::fs::{Access, access};
use rustix::process::{Resource, getrlimit};

use super::line::{ReportLine, line};
use crate::config;
use crate::ui::bytes;

/// The oldest git that merges without a checkout (`merge-tree --write-tree`).
const GIT: &str = "2.38";
/// A keeper with a hundred terminals, and what agents open, fit into this.
const OPEN_FILES: u64 = 1024;
/// With fewer not even a few terminals can be kept.
const FEW_OPEN_FILES: u64 = 128;
/// With less on the disk journals and recordings will soon be in need; with almost nothing new terminals are refused.
const ROOM: u64 = 1 << 30;
const ALMOST_NOTHING: u64 = 32 << 20;

pub(super) async fn git_version(environment: &BTreeMap<String, String>) -> Option<String> {
    let program = versions::locate(&Disk::of_this_thread(), "git", environment.get("PATH")?)?;
    versions::ask(&program, environment).await
}

pub(super) fn git(said: Option<&str>) -> ReportLine {
    let advice = format!("plans and commits need git {GIT} or newer: install or update it");
    let Some(said) = said else { return line("git", "not installed").warn(advice) };
    let needed = GIT.parse::<Version>().ok();
    match Version::said(said) {
        Some(version) if needed.is_some_and(|needed| version >= needed) => line("git", version.to_string()),
        Some(version) => line("git", format!("{version} is too old")).warn(advice),
        None => line("git", format!("its version is unknown: it says {said:?}")).warn(advice),
    }
}

/// The locale decides the character set.
pub(super) fn characters(environment: &BTreeMap<String, String>) -> ReportLine {
    let advice = "set LANG=C.UTF-8 or another UTF-8 locale: agents draw with such characters";
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| environment.get(*name));
    match locale.filter(|locale| !locale.is_empty()) {
        Some(locale) if ["UTF-8", "utf-8", "utf8", "UTF8"].iter().any(|ending| locale.ends_with(ending)) => {
            line("characters", locale)
        }
        Some(locale) => line("characters", format!("{locale} is not UTF-8")).warn(advice),
        None => line("characters", "no locale is set").warn(advice),
    }
}

pub(super) fn files(paths: &Paths) -> Vec<ReportLine> {
    let mut lines: Vec<ReportLine> =
        paths.inspect().iter().map(|(path, found)| directory(path, found.as_ref())).collect();
    lines.push(configuration(&paths.config_file(), config::load().err().map(|error| error.to_string())));
    if let Err(problem) = prompt_templates(&paths.prompts()) {
        let advice = "mend the template, or move it away: runs and plans do not start with it";
        lines.push(line("prompts", one_line(&problem.to_string())).bad(advice));
    }
    // What the user has written, and by which agents are guarded.
    let manifests = fs::read_dir(paths.providers()).into_iter().flatten().flatten().map(|file| file.path());
    let guards = [paths.config.clone(), paths.config_file(), paths.providers()].into_iter().chain(manifests);
    lines.extend(guards.filter_map(|path| writable_by_others(&path, fs::metadata(&path).ok()?.permissions().mode())));
    lines
}

/// A directory of posse's, and how it was found; `None` if it will be made when it is needed.
fn directory(path: &Path, found: Option<&Result<(), PathsError>>) -> ReportLine {
    let may_write = |path: &Path| access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    let says = |says: &str| line(shown(path), says);
    let other_home = "set POSSE_HOME to a directory of your own";
    match found {
        Some(Ok(())) if may_write(path) => says("yours alone"),
        Some(Ok(())) => says("you cannot write in it").bad(format!("chmod u+rwx {}", path.display())),
        Some(Err(PathsError::Open(_))) => says("others can enter it").bad(format!("chmod 700 {}", path.display())),
        Some(Err(PathsError::NotADirectory(_))) => says("it is no directory").bad("move it away"),
        Some(Err(PathsError::Foreign(_))) => says("it belongs to another user").bad(other_home),
        Some(Err(error)) => says(&error.to_string()).bad("see to it that you may use it"),
        None => match path.ancestors().skip(1).find(|above| above.exists()) {
            Some(above) if !may_write(above) => {
                says(&format!("it cannot be made: you cannot write in {}", above.display())).bad(other_home)
            }
            _ => says("not there yet; it is made when needed"),
        },
    }
}

fn configuration(path: &Path, problem: Option<String>) -> ReportLine {
    match problem {
        Some(why) => line("config.toml", one_line(&why)).bad("mend it, or move it away"),
        None if path.exists() => line(shown(path), "sound"),
        None => line(shown(path), "not there; the defaults count").advise("`posse config init` writes one"),
    }
}

fn writable_by_others(path: &Path, mode: u32) -> Option<ReportLine> {
    let advice = format!("chmod go-w {}", path.display());
    let by = |who: &str| line(shown(path), format!("{who} can write it, and so decide what your agents may do"));
    match mode {
        mode if mode & 0o002 != 0 => Some(by("every user").bad(advice)),
        mode if mode & 0o020 != 0 => Some(by("its group").warn(advice)),
        _ => None,
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(" ")
}

/// Checks the kernel's limits for this shell.
pub(super) fn limits() -> Vec<ReportLine> {
    let number = |file: &str| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    vec![
        open_files(getrlimit(Resource::Nofile).current),
        // Kernels before 6.2 have no such file, and always allow it.
        terminal_input(number("/proc/sys/dev/tty/legacy_tiocsti") != Some(0)),
    ]
}

fn open_files(limit: Option<u64>) -> ReportLine {
    let advice = "`ulimit -n 4096`, then `posse stop --all`: what runs keeps the limit it has";
    let says = limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    line("open files", says).left(limit, FEW_OPEN_FILES, OPEN_FILES, advice)
}

fn terminal_input(types_into_itself: bool) -> ReportLine {
    if !types_into_itself {
        return line("terminal input", "only from outside the terminal");
    }
    let says = "a process in a terminal can type into it, and so answer what its agent asks (TIOCSTI)";
    line("terminal input", says).warn("`sysctl dev.tty.legacy_tiocsti=0` as root, from Linux 6.2 on")
}

pub(super) fn disk(paths: &Paths) -> Vec<ReportLine> {
    let existing = paths.home.ancestors().find(|path| path.exists());
    let room = existing.and_then(|path| rustix::fs::statvfs(path).ok()).map(|disk| disk.f_bavail * disk.f_frsize);
    vec![line("posse", bytes(size(&paths.home))), free(room)]
}

fn free(room: Option<u64>) -> ReportLine {
    let free = line("free", room.map_or_else(|| "unknown".into(), bytes));
    free.left(room, ALMOST_NOTHING, ROOM, "make room: with a full disk new terminals are refused")
}

/// Of a file, or of everything in a directory. Links are not followed, and what cannot be read counts as nothing.
fn size(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path())).sum()
        }
        Ok(found) => found.len(),
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::ReportVerdict::{Bad, Ok as Fine, Warn};
    use super::super::line::assert_lines;
    use super::*;

    fn locale(name: &str, value: &str) -> ReportLine {
        characters(&BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn programs_are_judged() {
        assert_lines([
            (git(Some("git version 2.47.3")), Fine, "2.47.3", ""),
            (git(Some("git version 2.38.0")), Fine, "2.38.0", ""),
            (git(Some("git version 2.37.9")), Warn, "2.37.9 is too old", "2.38 or newer"),
            (git(Some("got")), Warn, "unknown", "2.38 or newer"),
            (git(None), Warn, "not installed", "2.38 or newer"),
            (locale("LANG", "en_GB.UTF-8"), Fine, "en_GB.UTF-8", ""),
            (locale("LC_ALL", "C.utf8"), Fine, "C.utf8", ""),
            (locale("LC_CTYPE", "C"), Warn, "C is not UTF-8", "LANG=C.UTF-8"),
            (locale("LANG", ""), Warn, "no locale", "LANG=C.UTF-8"),
        ]);
    }

    #[test]
    fn files_are_judged() {
        let place = tempfile::tempdir().unwrap();
        let here = place.path();
        let found = |found| directory(here, found);
        let absent = here.join("config.toml");
        let writable = |mode| writable_by_others("/p.toml".as_ref(), mode);
        assert!(writable(0o755).is_none());
        assert_lines([
            (found(Some(&Ok(()))), Fine, "yours alone", ""),
            (directory(&absent, None), Fine, "not there yet", ""),
            (found(Some(&Err(PathsError::Open(here.into())))), Bad, "others can enter it", "chmod 700 /"),
            (found(Some(&Err(PathsError::NotADirectory(here.into())))), Bad, "no directory", "move it away"),
            (found(Some(&Err(PathsError::Foreign(here.into())))), Bad, "another user", "POSSE_HOME"),
            (configuration(&absent, None), Fine, "the defaults count", "posse config init"),
            (configuration(here, None), Fine, "sound", ""),
            (configuration(here, Some("line 1\nodd".into())), Bad, "line 1 odd", "mend it"),
            (writable(0o666).unwrap(), Bad, "every user can write it", "chmod go-w /p.toml"),
            (writable(0o664).unwrap(), Warn, "its group can write it", "chmod go-w /p.toml"),
        ]);
    }

    #[test]
    fn limits_and_disk_are_judged() {
        assert_lines([
            (open_files(Some(1024)), Fine, "1024", ""),
            (open_files(None), Fine, "unlimited", ""),
            (open_files(Some(1023)), Warn, "1023", "ulimit -n"),
            (open_files(Some(127)), Bad, "127", "ulimit -n"),
            (terminal_input(false), Fine, "only from outside", ""),
            (terminal_input(true), Warn, "TIOCSTI", "legacy_tiocsti=0"),
            (free(Some(40 << 30)), Fine, "42 GB", ""),
            (free(Some(900_000_000)), Warn, "900 MB", "make room"),
            (free(Some(1_000_000)), Bad, "1000 kB", "make room"),
            (free(None), Fine, "unknown", ""),
        ]);
    }
}
