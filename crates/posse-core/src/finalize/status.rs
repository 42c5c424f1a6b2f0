//! Parses the output of `git status --porcelain=v2 -z --untracked-files=all`; with `--branch` also the position of
//! HEAD.

use super::GitPath;

/// A path whose state differs between HEAD, the index and the work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub path: GitPath,
    /// HEAD does not have it.
    pub new: bool,
    /// It is in the work tree.
    pub present: bool,
    /// The index has it.
    pub tracked: bool,
    /// It is a nested repository.
    pub repository: bool,
    /// It has conflicts that are not resolved.
    pub unmerged: bool,
}

/// The result of one `git status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub changes: Vec<Change>,
    /// The commit that is checked out, or `None` before the first commit.
    pub commit: Option<String>,
    /// The branch that is checked out, or `None` if HEAD is detached.
    pub branch: Option<String>,
    /// The index differs from HEAD.
    pub staged: bool,
}

impl Status {
    pub fn read(said: &[u8]) -> Result<Self, StatusError> {
        let mut status = Self { changes: changes(said)?, ..Self::default() };
        for record in said.split(|byte| *byte == 0) {
            let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
            if let Some(value) = record.strip_prefix(b"# branch.oid ") {
                status.commit = Some(text(value)).filter(|value| value != "(initial)");
            } else if let Some(value) = record.strip_prefix(b"# branch.head ") {
                status.branch = Some(text(value)).filter(|value| value != "(detached)");
            }
            status.staged |= match record {
                [b'1' | b'2', b' ', in_index, ..] => *in_index != b'.',
                [b'u', ..] => true,
                _ => false,
            };
        }
        Ok(status)
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("git says something of a file that posse does not understand: {0:?}")]
pub struct StatusError(String);

/// The mode of an absent path, and of a repository.
const ABSENT: &[u8] = b"000000";
const GITLINK: &[u8] = b"160000";

pub fn changes(status: &[u8]) -> Result<Vec<Change>, StatusError> {
    let mut records = status.split(|byte| *byte == 0).filter(|record| !record.is_empty());
    let mut changes = Vec::new();
    while let Some(record) = records.next() {
        let nonsense = || StatusError(String::from_utf8_lossy(record).into_owned());
        let fields = |count| -> Result<Vec<&[u8]>, StatusError> {
            let fields: Vec<_> = record.splitn(count, |byte| *byte == b' ').collect();
            if fields.len() == count { Ok(fields) } else { Err(nonsense()) }
        };
        let path = |bytes: &[u8]| GitPath(bytes.to_vec());
        match record[0] {
            b'#' | b'!' => {}
            b'?' => {
                let name = fields(2)?[1];
                // For a nested repository, git names only the directory.
                let (name, repository) = name.strip_suffix(b"/").map_or((name, false), |name| (name, true));
                changes.push(Change { path: path(name), new: true, present: true, repository, ..Change::default() });
            }
            b'1' => changes.push(ordinary(&fields(9)?)),
            // Renamed or copied. Detection is off, but newer versions of git might report them.
            b'2' => {
                let fields = fields(10)?;
                let origin = records.next().ok_or_else(nonsense)?;
                changes.push(Change { new: true, ..ordinary(&fields) });
                if fields[8].starts_with(b"R") {
                    let repository = fields[3] == GITLINK;
                    changes.push(Change { path: path(origin), repository, ..Change::default() });
                }
            }
            b'u' => {
                let fields = fields(11)?;
                let (path, present) = (path(fields[10]), fields[6] != ABSENT);
                changes.push(Change { path, present, tracked: true, unmerged: true, ..Change::default() });
            }
            _ => return Err(nonsense()),
        }
    }
    Ok(changes)
}

/// Returns the ignored paths, if the status includes them.
pub fn ignored(status: &[u8]) -> Vec<GitPath> {
    let records = status.split(|byte| *byte == 0);
    let paths = records.filter_map(|record| record.strip_prefix(b"! "));
    paths.map(|path| GitPath(path.strip_suffix(b"/").unwrap_or(path).to_vec())).collect()
}

/// Parses `1 XY sub mH mI mW hH hI path`, and the same beginning in a `2`.
fn ordinary(fields: &[&[u8]]) -> Change {
    let (head, index, work) = (fields[3], fields[4], fields[5]);
    let repository = fields[2].starts_with(b"S") || [head, index, work].contains(&GITLINK);
    Change {
        path: GitPath(fields.last().unwrap_or(&&[][..]).to_vec()),
        new: head == ABSENT,
        present: work != ABSENT,
        // Announced with `git add -N`, it has an entry without content.
        tracked: index != ABSENT || fields[1] == b".A",
        repository,
        unmerged: false,
    }
}
