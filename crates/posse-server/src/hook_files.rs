//! The files by which some agents are made to report to us: what their manifests say, written where they find it. The same
//! for every terminal, so they are written only when they are others than before.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use posse_agents::Provider;
use posse_term::paths::Paths;

use crate::disk::{self, Disk};

/// Writes them, and says where they are. `None`: there are none, or they cannot be written; then the screen alone tells.
pub(crate) async fn lay_out(paths: &Paths, provider: Arc<Provider>) -> Option<String> {
    let has_files = |provider: &Provider| {
        let hooks = provider.manifest.launch.as_ref().and_then(|launch| launch.hooks.as_ref());
        hooks.is_some_and(|hooks| !hooks.files.is_empty())
    };
    if !has_files(&provider) {
        return None;
    }
    let directory = paths.hook_files(&provider.manifest.id);
    let place = directory.to_str()?.to_owned();
    match disk::at(directory, move |disk, directory| write(disk, directory, &provider)).await {
        Ok(()) => Some(place),
        Err(error) => {
            tracing::warn!("{place}: {error}; agents that need what is there are started without their hooks");
            None
        }
    }
}

/// Agents are started several at a time, and these files are the same for all of them.
static WRITING: Mutex<()> = Mutex::new(());

fn write(disk: &Disk, directory: &Path, provider: &Provider) -> io::Result<()> {
    let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    disk.create_private_dir(directory)?;
    let hooks = provider.manifest.launch.as_ref().and_then(|launch| launch.hooks.as_ref());
    for (name, text) in hooks.iter().flat_map(|hooks| &hooks.files) {
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        if !plain {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is no name for a file")));
        }
        let path = directory.join(name);
        if disk.read(&path).ok().as_deref() != Some(text.as_bytes()) {
            disk.write_private(&path, text.as_bytes())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    use crate::disk::DISK;

    fn provider(name: &str, text: &str) -> Provider {
        let manifest = format!(
            "id = 'mole'\nname = 'Mole'\n[launch]\nprogram = 'mole'\ninstall = 'x'\n[launch.modes]\nask = {{}}\n\
             [launch.hooks]\nfiles = {{ '{name}' = '{text}' }}\n[screen]\n"
        );
        Provider::parse(&manifest).unwrap()
    }

    #[test]
    fn files_are_written_once_and_for_their_owner_only() {
        let temp = tempfile::tempdir().unwrap();
        let directory = temp.path().join("hooks/mole");
        write(DISK, &directory, &provider("mole.js", "one")).unwrap();
        let path = directory.join("mole.js");
        let first = std::fs::metadata(&path).unwrap();
        assert_eq!(first.permissions().mode() & 0o777, 0o600);
        write(DISK, &directory, &provider("mole.js", "one")).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), first.ino(), "it is the same");
        write(DISK, &directory, &provider("mole.js", "two")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        for name in ["../mole.js", "/mole.js", ".mole"] {
            assert!(write(DISK, &directory, &provider(name, "three")).is_err(), "{name}");
        }
    }
}
