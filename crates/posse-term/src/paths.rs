//! The directories and sockets of posse. The only module that turns environment variables into paths.
//!
//! Configuration lives in `$POSSE_HOME`, or `$XDG_CONFIG_HOME/posse`. State lives in `$POSSE_HOME`, or
//! `$XDG_STATE_HOME/posse`. Sockets live in `/tmp/posse-UID/<hash of home>/`: socket paths are limited to about 100
//! bytes, and a logout must not remove them. If another user has taken that name, sockets live in
//! `$XDG_RUNTIME_DIR/posse`, or in `/tmp/posse-UID-N`; the file `runtime` in the home records the choice for all
//! processes. All directories are private to the user; others are refused.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::text_file;

/// Passes the directory of the user's configuration to the keeper and the daemon, which `POSSE_HOME` does not contain.
pub(crate) const CONFIG_VARIABLE: &str = "POSSE_CONFIG_HOME";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Database, logs, last screens.
    pub home: PathBuf,
    /// Sockets.
    pub runtime: PathBuf,
    /// The user's files, which posse never changes.
    pub config: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum PathsError {
    #[error("no home directory: set HOME, or POSSE_HOME to a directory for posse's state")]
    NoHome,
    #[error("{0} is not an absolute path: set POSSE_HOME to one that starts with '/'")]
    Relative(PathBuf),
    #[error("cannot use {path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{0} is not a directory: move it away")]
    NotADirectory(PathBuf),
    #[error("{0} belongs to another user: posse will not put its sockets or state there")]
    Foreign(PathBuf),
    #[error("{0} can be entered by others: `chmod 700` it")]
    Open(PathBuf),
}

impl Paths {
    pub fn resolve(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, PathsError> {
        let given = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = match (given("POSSE_HOME"), given("XDG_STATE_HOME"), given("HOME")) {
            (Some(home), ..) => home,
            (_, Some(state), _) => state.join("posse"),
            (_, _, Some(home)) => home.join(".local/state/posse"),
            _ => return Err(PathsError::NoHome),
        };
        if !home.is_absolute() {
            return Err(PathsError::Relative(home));
        }
        // Another name of the same directory must not get a second daemon.
        let home = fs::canonicalize(&home).unwrap_or(home);
        let named = given(CONFIG_VARIABLE).filter(|config| config.is_absolute());
        let config = match (given("POSSE_HOME"), given("XDG_CONFIG_HOME"), given("HOME")) {
            _ if named.is_some() => named.unwrap_or_default(),
            (None, Some(config), _) if config.is_absolute() => config.join("posse"),
            (None, _, Some(user)) => user.join(".config/posse"),
            _ => home.clone(),
        };
        let hash = Sha256::digest(home.as_os_str().as_bytes());
        let hash: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let user = rustix::process::getuid().as_raw();
        let runtime =
            common_runtime(Path::new(TEMPORARY), user, noted_runtime(&home), given("XDG_RUNTIME_DIR")).join(hash);
        Ok(Self { home, runtime, config })
    }

    /// Creates the directories as private ones, and refuses directories that are not private.
    pub fn prepare(&self) -> Result<(), PathsError> {
        if let Some(parent) = self.home.parent() {
            fs::create_dir_all(parent).map_err(|error| PathsError::Io { path: parent.to_owned(), error })?;
        }
        private_directory(&self.home)?;
        private_directory(self.common_runtime())?;
        private_directory(&self.runtime)?;
        self.note_runtime().map_err(|error| PathsError::Io { path: self.home.join(RUNTIME_NOTE), error })?;
        let inside = [self.recordings(), self.plans(), self.events(), self.screens()];
        inside.iter().try_for_each(|directory| private_directory(directory))
    }

    /// Checks these directories without creating any. `None` means that a directory does not exist yet.
    pub fn inspect(&self) -> Vec<(PathBuf, Option<Result<(), PathsError>>)> {
        let look = |path: PathBuf| {
            let found = match fs::symlink_metadata(&path) {
                Ok(found) => Some(require_private(&path, &found)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => Some(Err(PathsError::Io { path: path.clone(), error })),
            };
            (path, found)
        };
        vec![look(self.home.clone()), look(self.common_runtime().to_owned()), look(self.runtime.clone())]
    }

    /// Returns the directory for the sockets of all homes of this user.
    fn common_runtime(&self) -> &Path {
        self.runtime.parent().unwrap_or(&self.runtime)
    }

    /// Records the directory of the sockets in the home, if it is not the usual one.
    fn note_runtime(&self) -> io::Result<()> {
        let common = self.common_runtime();
        let note = self.home.join(RUNTIME_NOTE);
        let noted = noted_runtime(&self.home);
        if common == usual_runtime(Path::new(TEMPORARY), rustix::process::getuid().as_raw()) {
            return if noted.is_some() { fs::remove_file(note) } else { Ok(()) };
        }
        if noted.as_deref() == Some(common) {
            return Ok(());
        }
        let new = self.home.join(format!("{RUNTIME_NOTE}.{}", std::process::id()));
        fs::write(&new, common.as_os_str().as_bytes())?;
        fs::rename(new, note)
    }

    pub fn keeper_socket(&self) -> PathBuf {
        self.runtime.join("keeper")
    }

    pub fn daemon_socket(&self) -> PathBuf {
        self.runtime.join("daemon")
    }

    pub fn daemon_lock(&self) -> PathBuf {
        self.home.join("daemon.lock")
    }

    pub fn keeper_lock(&self) -> PathBuf {
        self.home.join("keeper.lock")
    }

    /// Returns whether there may be terminals, with or without a daemon.
    pub fn holds_terminals(&self) -> bool {
        self.keeper_socket().exists()
    }

    pub fn token(&self) -> PathBuf {
        self.home.join("token")
    }

    /// Returns the directory of the user's own manifests, and overrides of the built-in ones.
    pub fn providers(&self) -> PathBuf {
        self.config.join("providers")
    }

    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    pub fn prompts(&self) -> PathBuf {
        self.config.join("prompts")
    }

    pub fn profiles(&self) -> PathBuf {
        self.home.join("agent-store")
    }

    pub fn database(&self) -> PathBuf {
        self.home.join("posse.db")
    }

    pub fn log(&self) -> PathBuf {
        self.home.join("posse.log")
    }

    pub fn recordings(&self) -> PathBuf {
        self.home.join("recordings")
    }

    /// Returns the directory of plan runs: prompts, session output, work trees.
    pub fn plans(&self) -> PathBuf {
        self.home.join("plans")
    }

    /// Returns the directory of guarded git directories for repositories that runs have worked in.
    pub fn repositories(&self) -> PathBuf {
        self.home.join("repositories")
    }

    pub fn autos(&self) -> PathBuf {
        self.home.join("auto")
    }

    /// Returns the hook files of one provider, which make its agents report to posse.
    pub fn hook_files(&self, provider: &str) -> PathBuf {
        self.home.join("hooks").join(provider)
    }

    /// Returns the directory of event files that running agents write.
    pub fn events(&self) -> PathBuf {
        self.home.join("events")
    }

    pub fn screens(&self) -> PathBuf {
        self.home.join("screens")
    }
}

const TEMPORARY: &str = "/tmp";
/// The file in the home that names the directory of the sockets.
const RUNTIME_NOTE: &str = "runtime";
/// The number of names tried if another user has taken the usual one.
const OTHER_NAMES: u32 = 64;
/// The longest socket path that works on every system.
const LONGEST_SOCKET: usize = 100;

fn usual_runtime(temporary: &Path, user: u32) -> PathBuf {
    temporary.join(format!("posse-{user}"))
}

fn noted_runtime(home: &Path) -> Option<PathBuf> {
    let noted = text_file::read(&home.join(RUNTIME_NOTE)).ok()?;
    Some(PathBuf::from(noted)).filter(|noted| noted.is_absolute())
}

/// Returns the first directory for sockets that no other user has taken, or else the usual one, which is then refused.
/// `noted` is the one recorded in the home, `session` is `XDG_RUNTIME_DIR`.
fn common_runtime(temporary: &Path, user: u32, noted: Option<PathBuf>, session: Option<PathBuf>) -> PathBuf {
    let found = |path: &Path| fs::symlink_metadata(path).ok();
    let is_ours = |path: &Path| {
        let private = |found: fs::Metadata| found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0;
        found(path).is_some_and(private)
    };
    // A directory of the user that others may enter is not taken: it is refused later, with a hint.
    let is_free = |path: &Path| found(path).is_none_or(|found| found.is_dir() && found.uid() == user);
    if let Some(noted) = noted.filter(|noted| is_ours(noted)) {
        return noted;
    }
    let usual = usual_runtime(temporary, user);
    let fits = |common: &PathBuf| common.join("0123456789ab/daemon").as_os_str().len() <= LONGEST_SOCKET;
    let session = session.filter(|session| session.is_absolute() && is_ours(session));
    let session = session.map(|session| session.join("posse")).filter(fits);
    let others = (1..=OTHER_NAMES).map(|n| temporary.join(format!("posse-{user}-{n}")));
    let mut candidates = std::iter::once(usual.clone()).chain(session).chain(others);
    candidates.find(|common| is_free(common)).unwrap_or(usual)
}

fn private_directory(path: &Path) -> Result<(), PathsError> {
    let io = |error| PathsError::Io { path: path.to_owned(), error };
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io(error)),
    }
    require_private(path, &fs::symlink_metadata(path).map_err(io)?)
}

/// Checks that a directory is private. `found` must describe the path itself, because anyone may create links in
/// `/tmp`.
fn require_private(path: &Path, found: &fs::Metadata) -> Result<(), PathsError> {
    if !found.is_dir() {
        return Err(PathsError::NotADirectory(path.to_owned()));
    }
    if found.uid() != rustix::process::getuid().as_raw() {
        return Err(PathsError::Foreign(path.to_owned()));
    }
    if found.permissions().mode() & 0o077 != 0 {
        return Err(PathsError::Open(path.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(variables: &[(&str, &str)]) -> Result<Paths, PathsError> {
        Paths::resolve(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn home_is_the_first_given_directory() {
        let home = |variables: &[_]| resolve(variables).map(|paths| paths.home.to_string_lossy().into_owned());
        let all = [("POSSE_HOME", "/nowhere/p"), ("XDG_STATE_HOME", "/nowhere/x"), ("HOME", "/nowhere/h")];
        assert_eq!(home(&all).unwrap(), "/nowhere/p");
        assert_eq!(home(&all[1..]).unwrap(), "/nowhere/x/posse");
        assert_eq!(home(&all[2..]).unwrap(), "/nowhere/h/.local/state/posse");
        assert_eq!(home(&[("POSSE_HOME", ""), ("HOME", "/h")]).unwrap(), "/h/.local/state/posse", "empty is not set");
        assert!(matches!(home(&[]), Err(PathsError::NoHome)));
        assert!(matches!(home(&[("POSSE_HOME", "here")]), Err(PathsError::Relative(_))));
    }

    #[test]
    fn each_home_has_its_own_sockets_on_a_short_path() {
        let (a, b) =
            (resolve(&[("POSSE_HOME", "/nowhere/a")]).unwrap(), resolve(&[("POSSE_HOME", "/nowhere/b")]).unwrap());
        assert_ne!(a.runtime, b.runtime);
        assert!(a.keeper_socket().as_os_str().len() < 60);
    }

    #[test]
    fn sockets_go_elsewhere_if_another_user_has_taken_the_usual_name() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        let user = rustix::process::getuid().as_raw();
        let (usual, session) = (at(&format!("posse-{user}")), at("session"));
        let find = |user, noted: Option<&Path>, session: Option<&Path>| {
            let (noted, session) = (noted.map(Path::to_owned), session.map(Path::to_owned));
            common_runtime(temp.path(), user, noted, session)
        };
        private_directory(&session).unwrap();
        assert_eq!(find(user, None, Some(&session)), usual, "nobody has it");
        private_directory(&usual).unwrap();
        assert_eq!(find(user, None, Some(&session)), usual, "it is ours");

        // Another user sees these directories as those of another user.
        let other = user + 1;
        let name = |n| at(&format!("posse-{other}{n}"));
        private_directory(&name("")).unwrap();
        assert_eq!(find(other, None, None), name("-1"));
        assert_eq!(find(other, None, Some(&session)), name("-1"), "a session directory of another user is not used");
        private_directory(&name("-1")).unwrap();
        assert_eq!(find(other, None, None), name("-2"));

        fs::remove_dir(&usual).unwrap();
        std::os::unix::fs::symlink(&session, &usual).unwrap();
        assert_eq!(find(user, None, Some(&session)), session.join("posse"), "a link may lead anywhere");
        assert_eq!(find(user, None, Some(Path::new("session"))), at(&format!("posse-{user}-1")));
        let deep = at(&"x".repeat(100));
        private_directory(&deep).unwrap();
        assert_eq!(find(user, None, Some(&deep)), at(&format!("posse-{user}-1")), "too long for a socket");
        fs::set_permissions(&session, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(user, None, Some(&session)), at(&format!("posse-{user}-1")), "open to others");

        // A choice holds as long as the directory exists, for all processes, in any environment.
        let chosen = at("chosen");
        fs::remove_file(&usual).unwrap();
        private_directory(&chosen).unwrap();
        assert_eq!(find(user, Some(&chosen), None), chosen);
        fs::remove_dir(&chosen).unwrap();
        assert_eq!(find(user, Some(&chosen), None), usual);
    }

    #[test]
    fn directories_that_are_not_private_are_refused() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("home");
        private_directory(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(private_directory(&path), Err(PathsError::Open(_))));
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(private_directory(&link), Err(PathsError::NotADirectory(_))));
    }
}
