//! Real agents run one at a time.

use std::cell::RefCell;
use std::fs::File;
use std::sync::{Arc, Weak};

use super::install;

thread_local! {
    static HELD: RefCell<Weak<File>> = const { RefCell::new(Weak::new()) };
}

/// Returns the machine-wide lock that this thread already has, or waits for it. It is held until the last clone is
/// dropped. The kernel also releases it with the process.
#[track_caller]
pub(super) fn lock() -> Arc<File> {
    if let Some(held) = HELD.with_borrow(Weak::upgrade) {
        return held;
    }
    let path = install::cache().join("turn.lock");
    let lock = File::create(&path).and_then(|file| file.lock().map(|()| file));
    let lock = Arc::new(lock.unwrap_or_else(|error| panic!("cannot lock {}: {error}", path.display())));
    HELD.set(Arc::downgrade(&lock));
    lock
}
