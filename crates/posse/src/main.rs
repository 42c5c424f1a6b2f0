//! The `posse` binary. It joins the command line (`posse-cli`) with the daemon (`posse-server`), which do not link each other.

use std::path::PathBuf;
use std::process::ExitCode;

use posse_cli::{DaemonFunctions, ServeFailure};
use posse_server::disk::Disk;
use posse_server::{ServeError, anchor, database};
use posse_term::paths::Paths;

/// The command line may wait for the disk anywhere.
const DISK: &Disk = &Disk::of_this_thread();

fn main() -> ExitCode {
    posse_cli::main(DaemonFunctions {
        serve,
        inspect_database: |path| database::inspect(DISK, path),
        set_database_aside: |path| database::set_aside(DISK, path),
        verify_audit: |paths, read| Ok(anchor::verify(DISK, paths, read)?),
        confirm_repository: |paths, project| Ok(posse_server::confirm_repository(DISK, paths, project)?),
    })
}

fn serve(paths: Paths, executable: PathBuf) -> Result<(), ServeFailure> {
    posse_server::serve(posse_server::Settings { paths, executable }).map_err(|error| match error {
        ServeError::Lock(error) => ServeFailure::Lock(error),
        error => ServeFailure::Other(error.into()),
    })
}
