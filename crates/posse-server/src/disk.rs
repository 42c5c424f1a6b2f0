//! The only module that touches files.
//!
//! One thread serves every terminal and the API. A disk can be slow or hang (a network file system, a full queue, a drive that
//! spins up), so that thread never waits for it. A function that works on files takes a [`Disk`], and the runtime thread
//! cannot get one: [`run`] hands it to a closure on a blocking thread. `clippy.toml` rejects the functions of `std::fs` and
//! the like everywhere else in this crate.
//!
//! Closures run in parallel and in no particular order. A caller that needs an order awaits one before it starts the next.

#![expect(clippy::disallowed_methods, reason = "this is the module that touches files")]

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, ReadDir};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use posse_agents::Provider;
use posse_agents::profile::Profile;
use posse_term::lock::{self, Lock, LockError};
use posse_term::paths::Paths;
use posse_term::text_file;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::{NamedTempFile, TempDir};

use crate::confirmed_commands::{ConfirmedCommands, ConfirmedError};
use crate::operator::{Operator, OperatorError};
use crate::plan_config::{self, PlanConfig, PlanConfigError};
use crate::providers::{self, Listed, ProfileError, ProviderError, Providers};
use crate::versions;

/// Permission to wait for the disk. Neither `Clone` nor `Copy`, so that none leaves the thread that it was made for.
///
/// Errors name the file, except those of `read_text`, `read_bounded` and `open_regular`.
#[derive(Debug)]
pub struct Disk(());

/// Tests may wait wherever they are.
#[cfg(test)]
pub(crate) const DISK: &Disk = &Disk(());

/// Runs `work` on a thread that may wait for the disk. If the caller is dropped, `work` still runs to its end.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce(&Disk) -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(move || work(&Disk(()))).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime shuts down and is about to drop the caller.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Like `run`, for work that also awaits: git, say. It occupies a blocking thread until it ends, so it must not last.
pub(crate) async fn run_async<T: Send + 'static>(work: impl AsyncFnOnce(&Disk) -> T + Send + 'static) -> T {
    let runtime = tokio::runtime::Handle::current();
    run(move |disk| runtime.block_on(work(disk))).await
}

/// Runs one operation on one file: `disk::at(path, Disk::exists).await`.
pub(crate) async fn at<T: Send + 'static>(
    path: impl Into<PathBuf>,
    work: impl FnOnce(&Disk, &Path) -> T + Send + 'static,
) -> T {
    let path = path.into();
    run(move |disk| work(disk, &path)).await
}

impl Disk {
    /// For the command line, for code that runs before the runtime starts, and for threads of their own, such as the store's.
    /// Disallowed in this crate except there.
    pub fn of_this_thread() -> Self {
        Self(())
    }

    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs_err::read(path)
    }

    pub(crate) fn read_to_string(&self, path: &Path) -> io::Result<String> {
        fs_err::read_to_string(path)
    }

    /// Reads a regular file of bounded size whose name comes from a user, a project or an agent (`posse_term::text_file`).
    pub(crate) fn read_text(&self, path: &Path) -> io::Result<String> {
        text_file::read(path)
    }

    /// Like `read_text`, for at most `limit` bytes of any kind.
    pub(crate) fn read_bounded(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        text_file::read_bytes(path, limit)
    }

    /// Opens a regular file for reading. Never waits for a writer.
    pub(crate) fn open_regular(&self, path: &Path) -> io::Result<File> {
        text_file::open(path)
    }

    pub(crate) fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<File> {
        options.open(path).map_err(|error| named("open", path, &error))
    }

    pub(crate) fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    pub(crate) fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    pub(crate) fn is_dir(&self, path: &Path) -> bool {
        path.is_dir()
    }

    pub(crate) fn is_symlink(&self, path: &Path) -> bool {
        path.is_symlink()
    }

    pub(crate) fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        fs_err::metadata(path)
    }

    pub(crate) fn symlink_metadata(&self, path: &Path) -> io::Result<Metadata> {
        fs_err::symlink_metadata(path)
    }

    pub(crate) fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        fs_err::canonicalize(path)
    }

    pub(crate) fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        fs_err::read_link(path)
    }

    pub(crate) fn read_dir(&self, path: &Path) -> io::Result<ReadDir> {
        path.read_dir().map_err(|error| named("read", path, &error))
    }

    /// Replaces a file with one that only its owner may read, whole or not at all, and synced: it survives a power failure.
    pub(crate) fn write_private(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        write_whole(path, bytes, true)
    }

    /// Like `write_private`, for files that go with the journal, which may lose its last entries in a power failure too. The
    /// file survives the death of any process. Syncing takes longer than anything else between two sessions.
    pub(crate) fn write_private_unsynced(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        write_whole(path, bytes, false)
    }

    /// Writes a file as `std::fs::write` does: not atomically, and with the permissions that the umask leaves.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        fs_err::write(path, bytes)
    }

    /// Appends to a file that only its owner may read.
    pub(crate) fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.open(path, File::options().create(true).append(true).mode(0o600))?.write_all(bytes)
    }

    /// Syncs a directory, so that what was renamed in it survives a power failure.
    pub(crate) fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs_err::File::open(path)?.sync_all()
    }

    pub(crate) fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs_err::create_dir(path)
    }

    pub(crate) fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs_err::create_dir_all(path)
    }

    /// Creates a directory that only its owner may enter, and its parents.
    pub(crate) fn create_private_dir(&self, path: &Path) -> io::Result<()> {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
        created.map_err(|error| named("create the directory", path, &error))
    }

    /// Creates a directory that only its owner may enter, in one that is there.
    pub(crate) fn create_one_private_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path).map_err(|error| named("create the directory", path, &error))
    }

    pub(crate) fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs_err::remove_file(path)
    }

    /// Like `remove_file`, but succeeds if the file does not exist.
    pub(crate) fn remove_file_if_exists(&self, path: &Path) -> io::Result<()> {
        match fs_err::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    pub(crate) fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs_err::remove_dir(path)
    }

    pub(crate) fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs_err::remove_dir_all(path)
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs_err::rename(from, to)
    }

    /// Like `rename`, but never replaces a file.
    pub(crate) fn rename_to_new(&self, from: &Path, to: &Path) -> rustix::io::Result<()> {
        renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
    }

    pub(crate) fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs_err::hard_link(from, to)
    }

    pub(crate) fn symlink(&self, target: &Path, link: &Path) -> io::Result<()> {
        fs_err::os::unix::fs::symlink(target, link)
    }

    pub(crate) fn copy(&self, from: &Path, to: &Path) -> io::Result<u64> {
        fs_err::copy(from, to)
    }

    /// Copies the content and the time of the last change.
    pub(crate) fn copy_with_time(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut from = fs_err::File::open(from)?;
        let mut to = fs_err::File::create(to)?;
        io::copy(&mut from, &mut to)?;
        to.file().set_modified(from.metadata()?.modified()?)
    }

    pub(crate) fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        fs_err::set_permissions(path, PermissionsExt::from_mode(mode))
    }

    /// A provider as the user's files have it now.
    pub(crate) fn provider(&self, providers: &Providers, id: &str) -> Result<Arc<Provider>, ProviderError> {
        providers.load(id)
    }

    pub(crate) fn operator(&self, paths: &Paths) -> Result<Operator, OperatorError> {
        Operator::load(paths)
    }

    pub(crate) fn operator_or_deny(&self, paths: &Paths) -> Operator {
        Operator::load_or_deny(paths)
    }

    pub(crate) fn plan_config(&self, paths: &Paths, project: &Path) -> Result<PlanConfig, PlanConfigError> {
        plan_config::load(paths, project)
    }

    pub(crate) fn confirmed_commands(
        &self,
        paths: &Paths,
        project: &Path,
    ) -> Result<ConfirmedCommands, ConfirmedError> {
        ConfirmedCommands::load(paths, project)
    }

    pub(crate) fn providers(&self, providers: &Providers) -> Vec<Listed> {
        providers.list()
    }

    pub(crate) fn profile(&self, directory: &Path, name: &str) -> Result<Profile, ProfileError> {
        providers::profile(directory, name)
    }

    /// Where a program is, by this search path.
    pub(crate) fn locate_program(&self, program: &str, path: &str) -> Option<PathBuf> {
        versions::locate(program, path)
    }

    /// Every statement on it waits for the disk.
    pub(crate) fn open_database(&self, path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
        Connection::open_with_flags(path, flags)
    }

    /// Takes a lock file. Fails if its holder does not release it within `patience`.
    pub(crate) fn lock(&self, purpose: &str, path: &Path, patience: Duration) -> Result<Lock, LockError> {
        lock::acquire_for(purpose, path, patience)
    }

    /// Starts a program. The kernel reads its file meanwhile.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        command.spawn()
    }

    /// Runs a program to its end.
    pub(crate) fn output(&self, command: &mut Command) -> io::Result<Output> {
        command.output()
    }

    /// A file that is removed when its owner drops it, which only a closure of `run` may do.
    pub(crate) fn temporary_file(&self, directory: &Path, prefix: &str) -> io::Result<NamedTempFile> {
        tempfile::Builder::new().prefix(prefix).tempfile_in(directory)
    }

    /// Gives a temporary file its name for good.
    pub(crate) fn persist(&self, file: NamedTempFile, path: &Path) -> io::Result<()> {
        file.persist(path).map(drop).map_err(|error| error.error)
    }

    /// A private directory that is removed when its owner drops it.
    pub(crate) fn scratch_dir(&self, prefix: &str) -> io::Result<ScratchDir> {
        tempfile::Builder::new().prefix(prefix).tempdir().map(|directory| ScratchDir(Some(directory)))
    }
}

fn named(what: &str, path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what} {}: {error}", path.display()))
}

fn write_whole(path: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let _sole_writer = SoleWriter::of(&temporary);
    if temporary.is_symlink() {
        fs_err::remove_file(&temporary)?;
    }
    let mut options = fs_err::File::options();
    {
        use fs_err::os::unix::fs::OpenOptionsExt;
        // A link that an agent puts there could lead to any file of the user's.
        let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        options.create(true).truncate(true).write(true).mode(0o600).custom_flags(no_link);
    }
    let mut file = options.open(&temporary)?;
    file.write_all(bytes)?;
    if sync {
        file.sync_all()?;
    }
    fs_err::rename(&temporary, path)
}

/// Keeps other threads from writing the same file at the same time: all use the same temporary name, so that a crash leaves
/// no more than one behind.
struct SoleWriter(PathBuf);

static WRITTEN_NOW: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static WRITTEN: Condvar = Condvar::new();

impl SoleWriter {
    fn of(temporary: &Path) -> Self {
        let mut written_now = WRITTEN_NOW.lock().unwrap_or_else(PoisonError::into_inner);
        while !written_now.insert(temporary.to_owned()) {
            written_now = WRITTEN.wait(written_now).unwrap_or_else(PoisonError::into_inner);
        }
        Self(temporary.to_owned())
    }
}

impl Drop for SoleWriter {
    fn drop(&mut self) {
        WRITTEN_NOW.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        WRITTEN.notify_all();
    }
}

/// A private directory for temporary files. Async code may hold and drop it: a blocking thread removes it.
#[derive(Debug)]
pub(crate) struct ScratchDir(Option<TempDir>);

impl ScratchDir {
    pub(crate) fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), TempDir::path)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let directory = self.0.take();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(directory))),
            Err(_) => drop(directory),
        }
    }
}
