//! A home of posse of its own, with its own daemon, for the demo and for checks of agents.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use posse_term::paths::Paths;
use tempfile::TempDir;

use crate::client::{self, Client};
use crate::error::Error;

/// A directory that is removed again, with a home of posse in it.
pub(crate) struct ScratchHome {
    /// Only its owner may enter it.
    pub(crate) directory: PathBuf,
    pub(crate) paths: Paths,
    _directory: TempDir,
}

impl ScratchHome {
    pub(crate) fn new(prefix: &str) -> Result<Self, Error> {
        let private = Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().prefix(prefix).permissions(private).tempdir();
        let made = made.map_err(Error::io("cannot make a directory"))?;
        let directory = client::real(made.path())?;
        let home = directory.join("home").into_os_string();
        let paths = Paths::resolve(|name| (name == "POSSE_HOME").then(|| home.clone()))?;
        paths.prepare()?;
        Ok(Self { directory, paths, _directory: made })
    }

    pub(crate) async fn connect(&self) -> Result<Client, Error> {
        Client::connect_to(self.paths.clone()).await
    }

    /// Ends the daemon and everything that runs in its terminals.
    pub(crate) async fn end(&self) -> Result<(), Error> {
        if self.paths.holds_terminals() {
            self.connect().await?.stop(true).await?;
        }
        Ok(())
    }
}

/// The sockets are in a directory of their own.
impl Drop for ScratchHome {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.paths.runtime);
    }
}
