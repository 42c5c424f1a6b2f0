//! Waiting for files: the kernel tells when something in a directory changes.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// What changes in a directory, not below it.
struct Changes {
    kernel: OwnedFd,
}

impl Changes {
    fn of(directory: &Path) -> io::Result<Self> {
        let kernel = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let all = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVE | WatchFlags::DELETE;
        inotify::add_watch(&kernel, directory, all)?;
        Ok(Self { kernel })
    }

    /// Waits for the next one, at most this long.
    fn next(&self, within: Duration) -> io::Result<()> {
        let timeout = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: i64::from(within.subsec_nanos()) };
        poll(&mut [PollFd::new(&self.kernel, PollFlags::IN)], Some(&timeout))?;
        // Several that came together are one.
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.kernel, &mut buffer);
        while reader.next().is_ok() {}
        Ok(())
    }
}

/// Looks again whenever something changes in this directory, until it is so.
#[track_caller]
pub fn when_changed<T>(directory: &Path, what: &str, patience: Duration, look: impl Fn() -> Option<T>) -> T {
    let give_up = Instant::now() + patience;
    // Before looking: what changes in between is heard.
    let changes = Changes::of(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        let left = give_up.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "{what} never came");
        changes.next(left).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}
