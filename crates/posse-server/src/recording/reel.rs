//! The files of one recording: the one being written, and one before it. Each is replayed on its own.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use posse_term::cast::{Encoder, Header, MAX_LINE};

use super::*;
use crate::disk::Disk;

/// The size at which the next file is begun; there are two.
pub(super) const SEGMENT: u64 = 8 << 20;
const BUFFER: usize = 256 << 10;
/// Ends any unfinished sequence and clears everything: a picture assumes a fresh terminal.
const RESET: &[u8] = b"\x18\x1bc";

pub(super) struct Reel {
    path: PathBuf,
    file: File,
    length: u64,
    header: Header,
    encoder: Encoder,
    size: Size,
}

pub(super) fn path(directory: &Path, id: TerminalId) -> PathBuf {
    directory.join(format!("{id}.cast"))
}

pub(super) fn older_path(directory: &Path, id: TerminalId) -> PathBuf {
    directory.join(format!("{id}.1.cast"))
}

impl Reel {
    /// Resumes the existing recording, or starts one.
    pub(super) fn open(disk: &Disk, directory: &Path, id: TerminalId, size: Size, at: Duration) -> io::Result<Self> {
        let path = path(directory, id);
        match Self::resume(disk, &path) {
            Ok(reel) => Ok(reel),
            // Not there, or of no use.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => {
                Self::begin(disk, path, size, at)
            }
            Err(error) => Err(error),
        }
    }

    fn begin(disk: &Disk, path: PathBuf, size: Size, at: Duration) -> io::Result<Self> {
        let mut file = disk.open(&path, File::options().create(true).truncate(true).write(true).mode(0o600))?;
        let header = Header { size, began: at.as_secs() };
        let line = header.line();
        file.write_all(line.as_bytes())?;
        Ok(Self { path, file, length: line.len() as u64, header, encoder: Encoder::default(), size })
    }

    fn resume(disk: &Disk, path: &Path) -> io::Result<Self> {
        let mut file = disk.open(path, File::options().read(true).write(true))?;
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let mut line = Vec::new();
        BufReader::new(&file).take(MAX_LINE as u64).read_until(b'\n', &mut line)?;
        let header = Header::parse(&line).map_err(invalid)?;
        // The last line may have been cut by a crash.
        let whole = file.metadata()?.len();
        let begin = whole.saturating_sub(MAX_LINE as u64);
        file.seek(SeekFrom::Start(begin))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        let last = end.iter().rposition(|byte| *byte == b'\n').ok_or_else(|| invalid(no_lines()))?;
        let length = begin + last as u64 + 1;
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        let (encoder, size) = (Encoder::default(), header.size);
        Ok(Self { path: path.to_owned(), file, length, header, encoder, size })
    }

    pub(super) fn is_full(&self) -> bool {
        self.length >= SEGMENT
    }

    pub(super) fn next(self, disk: &Disk, older: &Path, size: Size, at: Duration) -> io::Result<Self> {
        disk.rename(&self.path, older)?;
        Self::begin(disk, self.path, size, at)
    }

    pub(super) fn picture(&mut self, size: Size, bytes: &[u8], lost: u64, at: Duration, out: &mut Vec<u8>) {
        let at = self.since(at);
        if bytes.is_empty() {
            return;
        }
        let missing = if lost > 0 { format!("{lost} bytes of output are missing here; ") } else { String::new() };
        self.encoder.mark(at, &format!("{missing}the screen as it was"), out);
        self.encoder.resized(at, size, out);
        self.encoder.output(at, &[RESET, bytes].concat(), out);
        self.size = size;
    }

    /// Records what happens between two pictures.
    pub(super) fn record(&mut self, what: &What, at: Duration, out: &mut Vec<u8>) {
        let at = self.since(at);
        match what {
            What::Output(bytes) => self.encoder.output(at, bytes, out),
            What::Evidence(json) => self.encoder.evidence(at, json, out),
            What::Resized(size) if std::mem::replace(&mut self.size, *size) != *size => {
                self.encoder.resized(at, *size, out);
            }
            _ => {}
        }
    }

    /// The clock may have been set back meanwhile.
    fn since(&self, at: Duration) -> Duration {
        at.saturating_sub(Duration::from_secs(self.header.began))
    }

    /// Writes what was put together, if it is enough or must be. Whole lines or nothing.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, must: bool) -> io::Result<()> {
        if out.is_empty() || (out.len() < BUFFER && !must) {
            return Ok(());
        }
        let written = self.file.write_all(out);
        match &written {
            Ok(()) => self.length += out.len() as u64,
            Err(_) => drop(self.file.set_len(self.length)),
        }
        out.clear();
        written
    }
}

fn no_lines() -> posse_term::cast::CastError {
    posse_term::cast::CastError::Header("it has no lines".into())
}
