//! The `posse` binary. It joins the command line (`posse-cli`) with the daemon (`posse-server`), which do not link each other.

use std::path::PathBuf;
use std::process::ExitCode;

use posse_cli::{DaemonFunctions, ServeFailure};
use posse_server::{ServeError, anchor, database};
use posse_term::paths::Paths;

fn main() -> ExitCode {
    posse_cli::main(DaemonFunctions {
        serve,
        inspect_database: database::inspect,
        set_database_aside: database::set_aside,
        verify_audit: |paths, read| Ok(anchor::verify(paths, read)?),
        confirm_repository: |paths, project| Ok(posse_server::confirm_repository(paths, project)?),
    })
}

fn serve(paths: Paths, executable: PathBuf) -> Result<(), ServeFailure> {
    posse_server::serve(posse_server::Settings { paths, executable }).map_err(|error| match error {
        ServeError::Lock(error) => ServeFailure::Lock(error),
        error => ServeFailure::Other(error.into()),
    })
}
