//! Functions of the daemon that some commands call in their own process: to become the daemon, and to look at its files while
//! it cannot answer.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use posse_api::{AuditVerdict, DatabaseCondition};
use posse_term::lock::LockError;
use posse_term::paths::Paths;

type AnyError = Box<dyn Error + Send + Sync>;

/// Reads what was anchored of the audit.
pub type ReadAnchor<'a> = &'a dyn Fn() -> io::Result<String>;

/// The binary provides these, so that this crate does not link the daemon.
#[derive(Clone, Copy, Debug)]
pub struct DaemonFunctions {
    /// Runs the daemon until it is stopped. The second argument is this program.
    pub serve: fn(Paths, PathBuf) -> Result<(), ServeFailure>,
    /// Reads the whole database. Blocking.
    pub inspect_database: fn(&Path) -> DatabaseCondition,
    /// Renames the database and returns its new name.
    pub set_database_aside: fn(&Path) -> io::Result<PathBuf>,
    /// Checks the audit against what was anchored of it. Blocking.
    pub verify_audit: fn(&Paths, ReadAnchor<'_>) -> Result<AuditVerdict, AnyError>,
    /// Records that the user trusts the repository of this directory as it is now.
    pub confirm_repository: fn(&Paths, &Path) -> Result<(), AnyError>,
}

/// The reason why the daemon ended or did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeFailure {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Other(AnyError),
}

static PROVIDED: OnceLock<DaemonFunctions> = OnceLock::new();

pub(crate) fn provide(functions: DaemonFunctions) {
    let _ = PROVIDED.set(functions);
}

/// The functions that the binary provided. `main` does that before anything else.
pub(crate) fn functions() -> &'static DaemonFunctions {
    PROVIDED.get().expect("main provides the functions before it runs a command")
}
