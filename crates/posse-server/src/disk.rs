//! The only module through which the daemon touches files.
//!
//! One thread serves every terminal and the API. A disk can be slow or hang (a network file system, a full queue, a drive that
//! spins up), so that thread never waits for it. A function that works on files takes a [`Disk`], and the runtime thread
//! cannot get one: [`run`] hands it to a closure on a blocking thread. `clippy.toml` rejects the functions of `std::fs` and
//! the like everywhere else in this crate.
//!
//! Closures run in parallel and in no particular order. A caller that needs an order awaits one before it starts the next.

#![expect(clippy::disallowed_methods, reason = "this is the module that touches files")]

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::thread::JoinHandle;

pub use posse_files::disk::Disk;
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

/// Tests may wait wherever they are.
#[cfg(test)]
pub(crate) const DISK: &Disk = &Disk::of_this_thread();

/// Runs `work` on a thread that may wait for the disk. If the caller is dropped, `work` still runs to its end.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce(&Disk) -> T + Send + 'static) -> T {
    let done = run_boxed(Box::new(move || Box::new(work(&Disk::of_this_thread())))).await;
    *done.downcast().expect("the result has the type that `work` returns")
}

/// The part of [`run`] that is compiled once, not for each closure.
async fn run_boxed(work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>) -> Box<dyn Any + Send> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime shuts down and is about to drop the caller.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Like `run`, for work that also awaits, such as git. It occupies a blocking thread until it ends, so it must be
/// short.
pub(crate) async fn run_async<T: Send + 'static>(work: impl AsyncFnOnce(&Disk) -> T + Send + 'static) -> T {
    let runtime = tokio::runtime::Handle::current();
    run(move |disk| {
        let work: Pin<Box<dyn Future<Output = T> + '_>> = Box::pin(work(disk));
        runtime.block_on(work)
    })
    .await
}

/// Starts a thread that serves nothing else, so that it may wait for the disk.
pub(crate) fn thread(name: &str, work: impl FnOnce(Disk) + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(move || work(Disk::of_this_thread()))
}

/// Runs one operation on one file: `disk::at(path, Disk::exists).await`.
pub(crate) async fn at<T: Send + 'static>(
    path: impl Into<PathBuf>,
    work: impl FnOnce(&Disk, &Path) -> T + Send + 'static,
) -> T {
    let path = path.into();
    run(move |disk| work(disk, &path)).await
}

/// Opens a database. Every statement on it waits for the disk.
pub(crate) fn open_database(_: &Disk, path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, flags)
}

/// Creates a private directory that is removed when its owner drops it.
pub(crate) fn scratch_dir(_: &Disk, prefix: &str) -> io::Result<ScratchDir> {
    tempfile::Builder::new().prefix(prefix).tempdir().map(|directory| ScratchDir(Some(directory)))
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
