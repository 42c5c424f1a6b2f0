//! Refs and work trees as the files of a repository have them. Between two tasks most questions are about these, and a git for
//! each question takes longer than everything else. Where the files do not say it plainly, git is asked.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::guard::{Places, read_file};
use super::{GitError, WorkTree, as_line, failed};
use crate::disk::{self, Disk};

/// How many names are tried for the repository's record of a work tree.
const NAMES: u32 = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
enum RefFile {
    At(String),
    Absent,
    /// Only git can tell.
    Unknown,
}

enum HeadFile {
    Branch(String),
    Commit(String),
    Unknown,
}

fn object_id(text: &[u8]) -> Option<String> {
    let text = text.trim_ascii_end();
    let is_id = matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit);
    is_id.then(|| String::from_utf8_lossy(text).into_owned())
}

/// Reads a ref by its full name (`refs/heads/main`), if it is one that all work trees share.
fn ref_file(disk: &Disk, common: &Path, name: &str) -> RefFile {
    let is_shared = ["refs/heads/", "refs/posse/"].iter().any(|start| name.starts_with(start));
    let is_plain = is_shared && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    // Another way to keep refs, in files that only git can read.
    if !is_plain || disk.exists(&common.join("reftable")) {
        return RefFile::Unknown;
    }
    let file = common.join(name);
    match disk.symlink_metadata(&file) {
        Ok(found) if found.is_file() => {
            read_file(disk, &file).and_then(|text| object_id(&text)).map_or(RefFile::Unknown, RefFile::At)
        }
        Ok(found) if !found.is_dir() => RefFile::Unknown,
        _ => packed_ref(disk, &common.join("packed-refs"), name),
    }
}

fn packed_ref(disk: &Disk, file: &Path, name: &str) -> RefFile {
    if disk.symlink_metadata(file).is_err() {
        return RefFile::Absent;
    }
    let Some(packed) = read_file(disk, file) else { return RefFile::Unknown };
    let ending = [b" ", name.as_bytes()].concat();
    let id = packed.split(|byte| *byte == b'\n').find_map(|line| line.strip_suffix(&*ending));
    id.map_or(RefFile::Absent, |id| object_id(id).map_or(RefFile::Unknown, RefFile::At))
}

fn head_file(disk: &Disk, directory: &Path) -> HeadFile {
    let Some(text) = read_file(disk, &directory.join("HEAD")) else { return HeadFile::Unknown };
    match text.trim_ascii_end().strip_prefix(b"ref: ").map(|name| String::from_utf8(name.to_vec())) {
        Some(Ok(name)) if name.starts_with("refs/heads/") && name != "refs/heads/.invalid" => HeadFile::Branch(name),
        Some(_) => HeadFile::Unknown,
        None => object_id(&text).map_or(HeadFile::Unknown, HeadFile::Commit),
    }
}

impl WorkTree {
    /// The commit of a ref (`refs/heads/…`); `None` if there is no such ref.
    pub(crate) async fn last_of(&self, name: &str) -> Result<Option<String>, GitError> {
        let of = name.to_owned();
        match self.read(move |disk, places| ref_file(disk, &places.common, &of)).await? {
            RefFile::At(id) => Ok(Some(id)),
            RefFile::Absent => Ok(None),
            RefFile::Unknown => self.id_of(name).await,
        }
    }

    /// The commit that is checked out; `None` before the first.
    pub(crate) async fn head(&self) -> Result<Option<String>, GitError> {
        let look = |disk: &Disk, places: &Places| match head_file(disk, &places.directory) {
            HeadFile::Branch(name) => ref_file(disk, &places.common, &name),
            HeadFile::Commit(id) => RefFile::At(id),
            HeadFile::Unknown => RefFile::Unknown,
        };
        match self.read(look).await? {
            RefFile::At(id) => Ok(Some(id)),
            RefFile::Absent => Ok(None),
            RefFile::Unknown => self.id_of("HEAD^{commit}").await,
        }
    }

    /// Reads files of the repository, if git would be let near it.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Disk, &Places) -> T + Send + 'static,
    ) -> Result<T, GitError> {
        let places = self.places.clone();
        disk::run(move |disk| {
            places.guarded(disk)?;
            Ok(read(disk, &places))
        })
        .await
    }

    async fn id_of(&self, what: &str) -> Result<Option<String>, GitError> {
        let (found, said) = self.hear_either(&["rev-parse", "--verify", "--quiet", what]).await?;
        Ok(found.then(|| as_line(said)))
    }

    /// The branch that is checked out; `None` if HEAD is detached.
    pub(crate) async fn branch(&self) -> Result<Option<String>, GitError> {
        match self.read(|disk, places| head_file(disk, &places.directory)).await? {
            HeadFile::Branch(name) => Ok(name.strip_prefix("refs/heads/").map(str::to_owned)),
            HeadFile::Commit(_) => Ok(None),
            HeadFile::Unknown => {
                let (is_branch, said) = self.hear_either(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await?;
                Ok(is_branch.then(|| as_line(said)))
            }
        }
    }

    /// The roots of all work trees that the repository has a record of, and the branch that is checked out in each, as far as
    /// the files say it. They may be gone.
    pub(crate) async fn recorded(&self) -> Result<Vec<(PathBuf, Option<String>)>, GitError> {
        let (home, main) = (self.clone(), Places { directory: self.common.clone(), ..self.places.clone() });
        let list = move |disk: &Disk| {
            // Each with the directory of what belongs to it alone.
            let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
            if home.directory == home.common {
                found.push((home.root.clone(), home.directory.clone()));
            } else if home.common.file_name() == Some(OsStr::new(".git")) && !main.is_bare(disk)? {
                found.extend(home.common.parent().map(|root| (root.to_owned(), home.common.clone())));
            }
            for record in disk.read_dir(&home.common.join("worktrees")).into_iter().flatten().flatten() {
                let Some(text) = read_file(disk, &record.path().join("gitdir")) else { continue };
                let dot_git = record.path().join(OsStr::from_bytes(text.trim_ascii_end()));
                found.extend(dot_git.parent().map(|root| (root.to_owned(), record.path())));
            }
            let branch = |directory: &Path| match head_file(disk, directory) {
                HeadFile::Branch(name) => name.strip_prefix("refs/heads/").map(str::to_owned),
                HeadFile::Commit(_) | HeadFile::Unknown => None,
            };
            Ok(found.into_iter().map(|(root, directory)| (root, branch(&directory))).collect())
        };
        disk::run(list).await
    }

    /// Makes a work tree of ours without files, with a commit checked out and no branch, as `git worktree add --no-checkout`
    /// does. An earlier call may have been interrupted. Returns `false` if it takes more than files: then git has to do it.
    pub(crate) async fn add(&self, root: &Path, commit: &str) -> Result<bool, GitError> {
        let commit = commit.to_owned();
        let add = move |disk: &Disk, root: &Path, home: &Places| {
            let (records, name) = (home.common.join("worktrees"), root.file_name().unwrap_or_default());
            // Refs that are kept in another way; settings of single work trees, which git copies.
            let more = [
                home.common.join("reftable"),
                home.common.join("config.worktree"),
                home.directory.join("config.worktree"),
                home.directory.join("info/sparse-checkout"),
            ];
            if more.iter().any(|more| disk.exists(more)) {
                return Ok(false);
            }
            let dot_git = root.join(".git");
            let leads_there = |record: &Path| {
                let text = read_file(disk, &record.join("gitdir"));
                text.is_some_and(|text| text.trim_ascii_end() == dot_git.as_os_str().as_bytes())
            };
            for record in disk.read_dir(&records).into_iter().flatten().flatten() {
                if leads_there(&record.path()) {
                    disk.remove_dir_all(&record.path())?;
                }
            }
            disk.create_dir_all(root)?;
            disk.create_dir_all(&records)?;
            for number in 0..NAMES {
                let mut name = name.to_owned();
                if number > 0 {
                    name.push(number.to_string());
                }
                let record = records.join(name);
                match disk.create_dir(&record) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    made => made?,
                }
                let line = |path: &Path| [path.as_os_str().as_bytes(), b"\n"].concat();
                disk.write(&record.join("gitdir"), &line(&dot_git))?;
                disk.write(&record.join("commondir"), b"../..\n")?;
                disk.write(&record.join("HEAD"), format!("{commit}\n").as_bytes())?;
                // Last, because by this file it is a work tree.
                disk.write(&dot_git, &[b"gitdir: ", &line(&record)[..]].concat())?;
                return Ok(true);
            }
            Ok(false)
        };
        let root = root.to_owned();
        self.read(move |disk, home| add(disk, &root, home)).await?.map_err(failed("cannot make a work area"))
    }

    /// Removes a work tree of ours and the repository's record of it. What is in it goes by way of `trash`, a directory beside
    /// it: a work tree of which only some files are there would look like one with changes.
    pub(crate) async fn remove(self, trash: PathBuf) -> Result<(), GitError> {
        let remove = move |disk: &Disk| {
            if self.directory == self.common {
                return Err(io::Error::other("it has the repository itself"));
            }
            disk.rename(&self.root, &trash)?;
            disk.remove_dir_all(&self.directory)?;
            // What is left of it goes when the run is taken up again.
            let _ = disk.remove_dir_all(&trash);
            Ok(())
        };
        disk::run(remove).await.map_err(failed("cannot remove a work area"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::disk::DISK;

    #[test]
    fn refs_are_read_where_git_keeps_them() {
        let common = tempfile::tempdir().unwrap();
        let (one, two) = ("1".repeat(40), "a".repeat(40));
        let read = |name: &str| ref_file(DISK, common.path(), name);
        assert_eq!(read("refs/heads/main"), RefFile::Absent);
        fs::write(common.path().join("packed-refs"), format!("# pack-refs\n{one} refs/heads/main\n^{two}\n")).unwrap();
        assert_eq!(read("refs/heads/main"), RefFile::At(one));
        assert_eq!((read("refs/heads/ain"), read("refs/heads/main/x")), (RefFile::Absent, RefFile::Absent));
        fs::create_dir_all(common.path().join("refs/heads/empty")).unwrap();
        fs::write(common.path().join("refs/heads/main"), format!("{two}\n")).unwrap();
        assert_eq!((read("refs/heads/main"), read("refs/heads/empty")), (RefFile::At(two), RefFile::Absent));
        fs::write(common.path().join("refs/heads/other"), "ref: refs/heads/main\n").unwrap();
        std::os::unix::fs::symlink("main", common.path().join("refs/heads/link")).unwrap();
        for odd in ["refs/heads/other", "refs/heads/link", "refs/heads/../../x", "refs/tags/x", "HEAD"] {
            assert_eq!(read(odd), RefFile::Unknown, "{odd}");
        }
        fs::create_dir(common.path().join("reftable")).unwrap();
        assert_eq!(read("refs/heads/main"), RefFile::Unknown);
    }
}
