//! `posse keep`: the keeper process. Started by posse itself, never by people.

use std::io::Write;
use std::time::Duration;

use crate::error::{Error, Exit};

pub(crate) fn run() -> Result<Exit, Error> {
    let paths = crate::client::paths()?;
    paths.prepare()?;
    posse_term::lock::acquire(&paths.keeper_lock(), Duration::from_secs(1))?.until_exit();
    posse_term::keeper::run(paths.keeper_socket(), say_ready).map_err(Error::io("the keeper cannot go on"))?;
    // The keeper's socket is gone; the directory goes if the daemon's is too. Whoever leaves last closes the door.
    let _ = std::fs::remove_dir(&paths.runtime);
    Ok(Exit::Ok)
}

/// Whoever started us waits for this line, and for nothing after it.
fn say_ready() {
    let _ = std::io::stdout().write_all(b"ready\n").and_then(|()| std::io::stdout().flush());
    if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}
