//! Checks the database, and moves a damaged one away.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use posse_api::DatabaseCondition;
use rusqlite::ErrorCode;

use crate::disk::Disk;
use crate::store::{self, StoreError};

pub fn inspect(disk: &Disk, path: &Path) -> DatabaseCondition {
    match disk.metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return DatabaseCondition::Absent,
        Err(error) => {
            return DatabaseCondition::Unusable(format!("cannot use the database {}: {error}", path.display()));
        }
        Ok(found) if found.is_file() && found.len() == 0 => return DatabaseCondition::Absent,
        Ok(_) => {}
    }
    match check(disk, path) {
        Ok(()) => DatabaseCondition::Sound,
        Err(StoreError::Damaged { why, .. }) => DatabaseCondition::Damaged(why),
        Err(error) => DatabaseCondition::Unusable(error.to_string()),
    }
}

fn check(disk: &Disk, path: &Path) -> Result<(), StoreError> {
    store::require_file(disk, path)?;
    let wrap = |error| StoreError::of(path, error);
    let connection = store::read_only(disk, path).map_err(wrap)?;
    let is_current = store::version(&connection, path)? == store::STEPS.len();
    let said: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(wrap)?;
    if said != "ok" {
        return Err(StoreError::Damaged { path: path.to_owned(), why: said });
    }
    // An older one is brought up to date by the daemon that opens it.
    if is_current {
        store::read_everything(&connection).map_err(wrap)?;
    }
    Ok(())
}

/// Returns whether an error is due to the content of the database, not to the disk or the permissions.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as E;
    match error {
        // `Unknown` is SQLite's general error: a table or column that should be there is not.
        E::SqliteFailure(failure, _) | E::SqlInputError { error: failure, .. } => {
            matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown)
        }
        E::FromSqlConversionFailure(..)
        | E::InvalidColumnType(..)
        | E::InvalidColumnName(_)
        | E::IntegralValueOutOfRange(..) => true,
        _ => false,
    }
}

/// Renames the database and its side files, so that the next daemon creates a new one. The database must be closed.
/// Returns its new name.
pub fn set_aside(disk: &Disk, path: &Path) -> io::Result<PathBuf> {
    let with = |end: &str| {
        let mut name = OsString::from(path);
        name.push(end);
        PathBuf::from(name)
    };
    let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let names = (1..).map(|n| if n == 1 { format!(".damaged-{stamp}") } else { format!(".damaged-{stamp}-{n}") });
    let free = |end: &String| !disk.exists(&with(end));
    let ending = names.into_iter().find(free).unwrap_or_default();
    // The log of SQLite goes first: a new database must never meet the log of another one.
    for part in ["-wal", "-shm", ""] {
        match disk.rename(&with(part), &with(&format!("{ending}{part}"))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
    }
    // The head of the audit is that of the audit in there.
    let head = store::audit_head(path);
    if disk.exists(&head) {
        let name = head.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        disk.rename(&head, &head.with_file_name(format!("{name}{ending}")))?;
    }
    if let Some(directory) = path.parent() {
        disk.sync_dir(directory)?;
    }
    Ok(with(&ending))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::disk::DISK;
    use crate::store::testing::Home;

    /// Creates a database with content, and closes it.
    fn database() -> (Home, PathBuf) {
        let home = Home::new();
        drop(home.open());
        let path = home.database();
        assert_eq!(inspect(DISK, &path), DatabaseCondition::Sound);
        (home, path)
    }

    #[track_caller]
    fn is_damaged((home, path): &(Home, PathBuf)) {
        assert!(matches!(inspect(DISK, path), DatabaseCondition::Damaged(_)), "{:?}", inspect(DISK, path));
        let before = fs::read(path).unwrap();
        assert!(matches!(home.try_open(), Err(StoreError::Damaged { .. })));
        assert!(
            fs::read(path).unwrap() == before || &before[..6] == b"SQLite",
            "what is no database is not overwritten"
        );
    }

    #[test]
    fn damage_is_told_from_what_is_only_in_the_way() {
        let length = fs::metadata(database().1).unwrap().len();
        let open = |path: &Path| fs::File::options().write(true).open(path).unwrap();
        type Damage<'a> = &'a dyn Fn(&Home, &Path);
        let damages: [Damage<'_>; 4] = [
            &|_, path| fs::write(path, "this was a database").unwrap(),
            &|_, path| open(path).set_len(length / 2).unwrap(),
            &|_, path| open(path).write_all_at(&vec![0xaa; length as usize - 100], 100).unwrap(),
            &|home, _| home.other().execute_batch("DROP TABLE terminals").unwrap(),
        ];
        for damage in damages {
            let damaged = database();
            damage(&damaged.0, &damaged.1);
            is_damaged(&damaged);
        }

        let (home, path) = database();
        home.other().pragma_update(None, "user_version", 10_000).unwrap();
        assert!(matches!(home.try_open(), Err(StoreError::Newer { found: 10_000, .. })));
        assert!(matches!(inspect(DISK, &path), DatabaseCondition::Unusable(why) if why.contains("newer posse")));
        let directory = home.0.path();
        assert_eq!(inspect(DISK, &directory.join("none")), DatabaseCondition::Absent);
        assert!(matches!(inspect(DISK, directory), DatabaseCondition::Unusable(why) if why.contains("not a file")));
    }

    #[test]
    fn a_database_that_is_set_aside_keeps_its_parts_and_makes_room() {
        let (home, path) = database();
        for part in ["posse.db-wal", "posse.db-shm", "audit.head"] {
            fs::write(home.0.path().join(part), part).unwrap();
        }
        fs::write(&path, "damaged").unwrap();
        let aside = set_aside(DISK, &path).unwrap();
        assert_eq!(fs::read_to_string(&aside).unwrap(), "damaged");
        assert_eq!(fs::read_dir(home.0.path()).unwrap().count(), 4, "nothing was deleted");
        assert_eq!(inspect(DISK, &path), DatabaseCondition::Absent);
        fs::write(&path, "again").unwrap();
        let again = set_aside(DISK, &path).unwrap();
        assert_ne!(aside, again);
        assert_eq!(fs::read_to_string(&again).unwrap(), "again");
    }
}
