//! The operations on files that the daemon and the command line share.
//!
//! A disk can be slow or hang (a network file system, a full queue, a drive that spins up). A function that works on
//! files takes a [`Disk`], so its signature shows that it may block. The command line may block anywhere and creates
//! its own. The daemon hands one out on blocking threads only (`posse_server::disk`).

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, ReadDir};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use posse_term::config_files::{ConfigFileError, PlanLayers};
use posse_term::lock::{self, Lock, LockError};
use posse_term::paths::Paths;
use posse_term::text_file;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::NamedTempFile;

/// Permission to wait for the disk. Neither `Clone` nor `Copy`, so that none leaves the thread that it was made for.
///
/// Errors name the file, except those of `read_text`, `read_bounded` and `open_regular`.
#[derive(Debug)]
pub struct Disk(());

/// Tests may wait wherever they are.
#[cfg(test)]
pub(crate) const DISK: &Disk = &Disk::of_this_thread();

/// Gives [`Disk`] methods that do what a function does and nothing else.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),+) -> $result:ty = $function:expr;)+) => {
        impl Disk {
            $($(#[$doc])* pub fn $name(&self, $($argument: $type),+) -> $result {
                $function($($argument),+)
            })+
        }
    };
}

operations! {
    read(path: &Path) -> io::Result<Vec<u8>> = fs_err::read;
    read_to_string(path: &Path) -> io::Result<String> = fs_err::read_to_string;
    /// Reads a regular file of bounded size whose name comes from a user, a project or an agent (`posse_term::text_file`).
    read_text(path: &Path) -> io::Result<String> = text_file::read;
    /// Like `read_text`, for at most `limit` bytes of any kind.
    read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> = text_file::read_bytes;
    /// Opens a regular file for reading. Never waits for a writer.
    open_regular(path: &Path) -> io::Result<File> = text_file::open;
    exists(path: &Path) -> bool = Path::exists;
    is_file(path: &Path) -> bool = Path::is_file;
    is_dir(path: &Path) -> bool = Path::is_dir;
    is_symlink(path: &Path) -> bool = Path::is_symlink;
    metadata(path: &Path) -> io::Result<Metadata> = fs_err::metadata;
    symlink_metadata(path: &Path) -> io::Result<Metadata> = fs_err::symlink_metadata;
    canonicalize(path: &Path) -> io::Result<PathBuf> = fs_err::canonicalize;
    read_link(path: &Path) -> io::Result<PathBuf> = fs_err::read_link;
    /// Writes a file as `std::fs::write` does: not atomically, and with the permissions that the umask leaves.
    write(path: &Path, bytes: &[u8]) -> io::Result<()> = fs_err::write;
    create_dir(path: &Path) -> io::Result<()> = fs_err::create_dir;
    create_dir_all(path: &Path) -> io::Result<()> = fs_err::create_dir_all;
    remove_file(path: &Path) -> io::Result<()> = fs_err::remove_file;
    remove_dir(path: &Path) -> io::Result<()> = fs_err::remove_dir;
    remove_dir_all(path: &Path) -> io::Result<()> = fs_err::remove_dir_all;
    rename(from: &Path, to: &Path) -> io::Result<()> = fs_err::rename;
    symlink(target: &Path, link: &Path) -> io::Result<()> = fs_err::os::unix::fs::symlink;
    copy(from: &Path, to: &Path) -> io::Result<u64> = fs_err::copy;
    plan_layers(paths: &Paths, project: &Path) -> Result<PlanLayers, ConfigFileError> = PlanLayers::load;
    /// Takes a lock file, if its holder gives it up within `patience`.
    lock(purpose: &str, path: &Path, patience: Duration) -> Result<Lock, LockError> = lock::acquire_for;
    spawn(command: &mut Command) -> io::Result<Child> = Command::spawn;
    output(command: &mut Command) -> io::Result<Output> = Command::output;
}

impl Disk {
    /// For the command line, for code that runs before the runtime starts, and for threads of their own, such as the store's.
    /// Disallowed in the daemon except there.
    pub const fn of_this_thread() -> Self {
        Self(())
    }

    /// Like `output`, for a program that reads `input`.
    pub fn output_for(&self, command: &mut Command, input: &[u8]) -> io::Result<Output> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take();
        // At the same time, because it may print before it has read everything. Its status says whether it needed the rest.
        thread::scope(|scope| {
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output()
        })
    }

    pub fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<File> {
        options.open(path).map_err(|error| named("open", path, &error))
    }

    pub fn read_dir(&self, path: &Path) -> io::Result<ReadDir> {
        path.read_dir().map_err(|error| named("read", path, &error))
    }

    /// Replaces a file with one that only its owner may read, whole or not at all, and synced: it survives a power failure.
    pub fn write_private(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        write_whole(path, bytes, true)
    }

    /// Like `write_private`, for files that go with the journal, which may lose its last entries in a power failure too. The
    /// file survives the death of any process. Syncing takes longer than anything else between two sessions.
    pub fn write_private_unsynced(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        write_whole(path, bytes, false)
    }

    pub fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.open(path, File::options().create(true).append(true).mode(0o600))?.write_all(bytes)
    }

    /// Syncs a directory, so that what was renamed in it survives a power failure.
    pub fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs_err::File::open(path)?.sync_all()
    }

    /// Creates a directory that only its owner may enter, and its parents.
    pub fn create_private_dir(&self, path: &Path) -> io::Result<()> {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
        created.map_err(|error| named("create the directory", path, &error))
    }

    /// Creates a directory that only its owner may enter, in one that is there.
    pub fn create_one_private_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path).map_err(|error| named("create the directory", path, &error))
    }

    /// Like `remove_file`; it is no error if there is none.
    pub fn remove_file_if_exists(&self, path: &Path) -> io::Result<()> {
        self.remove_file(path).or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
    }

    pub fn rename_to_new(&self, from: &Path, to: &Path) -> rustix::io::Result<()> {
        renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
    }

    pub fn copy_with_time(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut from = fs_err::File::open(from)?;
        let mut to = fs_err::File::create(to)?;
        io::copy(&mut from, &mut to)?;
        to.file().set_modified(from.metadata()?.modified()?)
    }

    pub fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        fs_err::set_permissions(path, PermissionsExt::from_mode(mode))
    }

    pub fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    /// A file that is removed when its owner drops it, which only a thread that may wait may do.
    pub fn temporary_file(&self, directory: &Path, prefix: &str) -> io::Result<NamedTempFile> {
        tempfile::Builder::new().prefix(prefix).tempfile_in(directory)
    }

    pub fn persist(&self, file: NamedTempFile, path: &Path) -> io::Result<()> {
        file.persist(path).map(drop).map_err(|error| error.error)
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
