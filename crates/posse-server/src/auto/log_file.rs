//! Logs of a pipeline for other programs, one line per event: `pipeline.log`, and a file for each item beside its
//! files. They are write-only: the journal is authoritative.

use std::io;
use std::path::{Path, PathBuf};

use posse_core::backlog::Slug;
use posse_core::engine::notice::NoticeKind;
use posse_core::time::Wall;
use posse_core::turn::Level;

use crate::disk::{self, Disk};

pub(crate) fn of_pipeline(state: &Path) -> PathBuf {
    state.join("pipeline.log")
}

pub(crate) fn of_item(state: &Path, item: &Slug) -> PathBuf {
    state.join("items").join(format!("{item}.log"))
}

pub(super) async fn append(state: &Path, at: Wall, what: NoticeKind, level: Level, item: Option<&Slug>, text: &str) {
    let line = line(at, what, level, item, text);
    let files = [Some(of_pipeline(state)), item.map(|item| of_item(state, item))];
    for file in files.into_iter().flatten() {
        let line = line.clone();
        if let Err(error) = disk::at(file, move |disk, file| write(disk, file, &line)).await {
            tracing::warn!("{error}");
        }
    }
}

/// `time LEVEL EVENT item detail`, without line breaks in it.
fn line(at: Wall, what: NoticeKind, level: Level, item: Option<&Slug>, text: &str) -> String {
    let level = match level {
        Level::Detail => "DETAIL",
        Level::Info => "INFO",
        Level::Warning => "WARNING",
    };
    let item = item.map_or("-", Slug::as_str);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{} {level} {} {item} {text}\n", at.timestamp(), what.as_str())
}

fn write(disk: &Disk, file: &Path, line: &str) -> io::Result<()> {
    disk.create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
    // One write, so that concurrent readers get whole lines.
    disk.append(file, line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_for_everything_in_both_files() {
        let state = tempfile::tempdir().unwrap();
        let item: Slug = "7-foo".parse().unwrap();
        let at = Wall(1_770_732_300_000);
        append(state.path(), at, NoticeKind::ItemStarted, Level::Info, Some(&item), "begun, attempt 1 of 3").await;
        append(state.path(), at, NoticeKind::HoldBegins, Level::Warning, None, "the quota\nis used up").await;
        append(state.path(), at, NoticeKind::ItemExhausted, Level::Warning, Some(&item), "exhausted: never right")
            .await;
        let read = |name: &str| std::fs::read_to_string(state.path().join(name)).unwrap();
        let (began, held, ended) = (
            "2026-02-10T14:05:00Z INFO STARTED 7-foo begun, attempt 1 of 3\n",
            "2026-02-10T14:05:00Z WARNING RATE_LIMITED - the quota is used up\n",
            "2026-02-10T14:05:00Z WARNING EXHAUSTED 7-foo exhausted: never right\n",
        );
        assert_eq!(read("pipeline.log"), [began, held, ended].concat());
        assert_eq!(read("items/7-foo.log"), [began, ended].concat());
    }
}
