//! Reads files whose names come from users, projects and agents. Such a name may lead to a pipe without a writer, a
//! device without an end or a file larger than the memory; each of them is an error at once.

use std::fs::{File, FileType, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// The largest text that is read. The largest known plans have 300 KiB.
pub const MAX_TEXT: u64 = 8 << 20;

/// Opens a regular file for reading. Never waits.
pub fn open(path: &Path) -> io::Result<File> {
    // Checked before it is opened, because opening a device may have an effect.
    require_regular(std::fs::metadata(path)?.file_type())?;
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    require_regular(file.metadata()?.file_type())?;
    Ok(file)
}

pub fn read_bytes(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    bounded(open(path)?, limit)
}

/// Reads a regular file of at most `MAX_TEXT` bytes, which must be UTF-8.
pub fn read(path: &Path) -> io::Result<String> {
    utf8(read_bytes(path, MAX_TEXT)?)
}

/// Reads a file that was named on the command line: like `read`, and from a descriptor that the shell has opened
/// (`/dev/stdin`, or `<(command)`).
pub fn read_argument(path: &Path) -> io::Result<String> {
    if !is_open_descriptor(path) {
        return read(path);
    }
    // Waits for its writer, like every program that reads from a pipe.
    utf8(bounded(File::open(path)?, MAX_TEXT)?)
}

fn is_open_descriptor(path: &Path) -> bool {
    let no_file = |found: Metadata| !found.is_file();
    let given = path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd");
    given && std::fs::metadata(path).is_ok_and(no_file)
}

fn require_regular(kind: FileType) -> io::Result<()> {
    let (error, what) = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => (ErrorKind::IsADirectory, "a directory"),
        kind if kind.is_fifo() => (ErrorKind::InvalidInput, "a named pipe"),
        kind if kind.is_socket() => (ErrorKind::InvalidInput, "a socket"),
        _ => (ErrorKind::InvalidInput, "a device"),
    };
    Err(io::Error::new(error, format!("it is {what}, not a file")))
}

fn bounded(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = file.take(limit + 1).read_to_end(&mut bytes)? as u64;
    if read <= limit {
        return Ok(bytes);
    }
    let size = if limit >= 1 << 20 { format!("{} MiB", limit >> 20) } else { format!("{limit} bytes") };
    Err(io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {size}")))
}

fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn anything_but_a_regular_file_is_an_error_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("link")).unwrap();
        for (path, says) in [
            (at("pipe"), "it is a named pipe, not a file"),
            (at("socket"), "it is a socket, not a file"),
            (at("link"), "it is a device, not a file"),
            (at("."), "it is a directory, not a file"),
        ] {
            assert_eq!(read(&path).unwrap_err().to_string(), says);
            assert_eq!(read_argument(&path).unwrap_err().to_string(), says);
        }
        assert_eq!(read(&at("missing")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn files_that_are_too_large_or_not_text_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "héllo").unwrap();
        assert_eq!(read(&path).unwrap(), "héllo");
        assert_eq!(read_bytes(&path, 6).unwrap().len(), 6);
        assert_eq!(read_bytes(&path, 5).unwrap_err().kind(), ErrorKind::FileTooLarge);
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), ErrorKind::InvalidData);
        // Sparse: the file has a size but no content.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path).unwrap_err().to_string(), "it is larger than 8 MiB");
    }

    #[test]
    fn argument_may_be_a_pipe_opened_by_the_shell() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, b"from a pipe").unwrap();
        drop(writer);
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        assert_eq!(read_argument(Path::new(&path)).unwrap(), "from a pipe");
        let endless = File::open("/dev/zero").unwrap();
        let path = format!("/dev/fd/{}", endless.as_raw_fd());
        assert_eq!(read_argument(Path::new(&path)).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
