//! A home of posse of its own, with its own daemon, for the demo and for checks of agents.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use posse_term::paths::Paths;
use tempfile::TempDir;

use crate::client::Client;
use crate::error::Error;

/// The paths of a home below a directory that exists.
pub(crate) struct ScratchHome {
    pub(crate) paths: Paths,
}

impl ScratchHome {
    pub(crate) fn new(home: &Path) -> Result<Self, Error> {
        let value = home.as_os_str().to_owned();
        let paths = Paths::resolve(|name| (name == "POSSE_HOME").then(|| value.clone()))?;
        paths.prepare()?;
        Ok(Self { paths })
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

/// Creates a directory that only its owner may enter, and that is removed again.
pub(crate) fn temporary(prefix: &str) -> Result<TempDir, Error> {
    let private = Permissions::from_mode(0o700);
    let made = tempfile::Builder::new().prefix(prefix).permissions(private).tempdir();
    made.map_err(Error::io("cannot make a directory"))
}
