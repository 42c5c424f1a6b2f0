//! Files that posse itself writes below a project. Agents work there, so a directory or a file may have become a link that
//! leads out of it.

use std::io;
use std::path::Path;

use crate::disk::Disk;

/// Resolves all links: one project or plan, one name.
pub(crate) fn real_path(disk: &Disk, path: &Path) -> io::Result<String> {
    let real = disk.canonicalize(path)?.into_os_string().into_string();
    real.map_err(|path| io::Error::other(format!("{} is not valid UTF-8", path.display())))
}

/// Makes a directory below a project, and those on the way to it. A link in place of one of them is an error.
pub(crate) fn make_directory(disk: &Disk, project: &Path, below: &Path) -> io::Result<()> {
    let mut path = project.to_owned();
    for part in below.components() {
        path.push(part);
        match disk.symlink_metadata(&path) {
            Ok(found) if found.is_dir() => {}
            Ok(found) if found.is_symlink() => return Err(is_link(&path)),
            Ok(_) => return Err(io::Error::other(format!("{} is not a directory; move it away", path.display()))),
            Err(_) => match disk.create_one_private_dir(&path) {
                // Another process created it in between; check its type again.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !disk.is_symlink(&path) => {}
                made => made?,
            },
        }
    }
    Ok(())
}

/// Makes the directory for a file that is written, below the project or elsewhere, and makes sure that the file is no link.
pub(crate) fn make_room(disk: &Disk, project: &Path, file: &Path) -> io::Result<()> {
    if let Some(parent) = file.parent() {
        match parent.strip_prefix(project) {
            Ok(below) => make_directory(disk, project, below)?,
            // The user named a place elsewhere.
            Err(_) => disk.create_dir_all(parent)?,
        }
    }
    if disk.is_symlink(file) { Err(is_link(file)) } else { Ok(()) }
}

fn is_link(path: &Path) -> io::Error {
    io::Error::other(format!("{} is a link, and posse writes only inside of the project: remove it", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    use crate::disk::DISK;

    #[test]
    fn links_out_of_the_project_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let (project, outside) = (place.path().join("project"), place.path().join("outside"));
        std::fs::create_dir_all(&project).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        make_directory(DISK, &project, Path::new(".tmp/agent-responses")).unwrap();
        make_directory(DISK, &project, Path::new(".tmp/agent-responses")).unwrap();
        make_room(DISK, &project, &project.join(".tmp/state.json")).unwrap();
        symlink(outside.join("new"), project.join(".tmp/linked.json")).unwrap();
        let error = make_room(DISK, &project, &project.join(".tmp/linked.json")).unwrap_err().to_string();
        assert!(error.contains("linked.json is a link"), "{error}");
        for link in ["a", "b"] {
            symlink(if link == "a" { &outside } else { place.path() }, project.join(link)).unwrap();
            make_directory(DISK, &project, &Path::new(link).join("deep/er")).unwrap_err();
        }
        symlink(place.path().join("missing"), project.join("dangling")).unwrap();
        make_directory(DISK, &project, Path::new("dangling")).unwrap_err();
        std::fs::write(project.join("file"), "").unwrap();
        make_directory(DISK, &project, Path::new("file/x")).unwrap_err();
        assert!(outside.read_dir().unwrap().next().is_none());
        make_room(DISK, &project, &outside.join("deep/state.json")).unwrap();
    }
}
