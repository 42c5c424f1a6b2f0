//! Putting a file aside. It is moved, never deleted, and never over another.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Disk;

/// Maximum number of files put aside under the same name; more indicate another problem.
const MOST: usize = 1000;

/// Moves a file or a link into a directory, under the same relative path, or with a number appended. Returns the new
/// path.
pub(crate) fn put_aside(disk: &Disk, root: &Path, relative: &Path, directory: &Path) -> io::Result<PathBuf> {
    let from = root.join(relative);
    let wanted = directory.join(relative);
    disk.create_dir_all(wanted.parent().unwrap_or(directory))?;
    for number in 0..MOST {
        let mut to = wanted.clone().into_os_string();
        if number > 0 {
            to.push(format!(".{number}"));
        }
        let to = PathBuf::from(to);
        match move_to(disk, &from, &to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            moved => return moved.map(|()| to),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "there are too many of this name"))
}

pub(crate) fn move_to(disk: &Disk, from: &Path, to: &Path) -> io::Result<()> {
    use rustix::io::Errno;
    match disk.rename_to_new(from, to) {
        // Another disk, or one that cannot do this.
        Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => copy_and_remove(disk, from, to),
        moved => Ok(moved?),
    }
}

/// Removes the original once the copy is on the disk, unless another process has written to the original meanwhile.
fn copy_and_remove(disk: &Disk, from: &Path, to: &Path) -> io::Result<()> {
    let kind = disk.symlink_metadata(from)?;
    if kind.is_symlink() {
        disk.symlink(&disk.read_link(from)?, to)?;
    } else if kind.is_file() {
        let mut source = disk.open(from, File::options().read(true))?;
        let mut copy = disk.open(to, File::options().write(true).create_new(true))?;
        let copied = io::copy(&mut source, &mut copy)
            .and_then(|_| copy.set_permissions(kind.permissions()))
            .and_then(|()| copy.sync_all())
            .and_then(|()| match disk.symlink_metadata(from)? {
                now if (now.len(), now.modified()?) == (kind.len(), kind.modified()?) => Ok(()),
                _ => Err(io::Error::other("somebody writes to it")),
            });
        if let Err(error) = copied {
            // The half of a copy; the original is where it was.
            let _ = disk.remove_file(to);
            return Err(error);
        }
    } else {
        return Err(io::Error::other("it is neither a file nor a link"));
    }
    disk.remove_file(from)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    use crate::disk::DISK;

    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let (root, aside) = (place.path().join("root"), place.path().join("deep/aside"));
        fs::create_dir_all(root.join("d")).unwrap();
        (place, root, aside)
    }

    #[test]
    fn file_put_aside_keeps_its_path_and_overwrites_nothing() {
        let (_place, root, aside) = place();
        for (round, expected) in ["d/x = 1", "d/x = 1.1", "d/x = 1.2"].into_iter().enumerate() {
            fs::write(root.join("d/x = 1"), round.to_string()).unwrap();
            let to = put_aside(DISK, &root, Path::new("d/x = 1"), &aside).unwrap();
            assert_eq!(to, aside.join(expected));
            assert_eq!(fs::read_to_string(to).unwrap(), round.to_string());
            assert!(!root.join("d/x = 1").exists());
        }
        assert_eq!(fs::read_to_string(aside.join("d/x = 1")).unwrap(), "0");
        assert!(put_aside(DISK, &root, Path::new("d/none"), &aside).is_err());
    }

    #[test]
    fn file_is_copied_to_another_disk() {
        let (_place, root, aside) = place();
        fs::create_dir_all(&aside).unwrap();
        fs::write(root.join("a"), "content").unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("l")).unwrap();
        copy_and_remove(DISK, &root.join("a"), &aside.join("a")).unwrap();
        copy_and_remove(DISK, &root.join("l"), &aside.join("l")).unwrap();
        assert_eq!(fs::read_to_string(aside.join("a")).unwrap(), "content");
        assert_eq!(fs::read_link(aside.join("l")).unwrap(), Path::new("nowhere"));
        assert!(!root.join("a").exists() && fs::symlink_metadata(root.join("l")).is_err());

        fs::write(root.join("a"), "other").unwrap();
        let error = copy_and_remove(DISK, &root.join("a"), &aside.join("a")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "other", "nothing is lost");
        assert_eq!(fs::read_to_string(aside.join("a")).unwrap(), "content");
    }
}
