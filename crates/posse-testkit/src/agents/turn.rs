//! Real agents run one at a time.

use std::cell::RefCell;
use std::fs::File;
use std::sync::{Arc, Weak};

use super::install;

/// A machine-wide lock, held until the last clone of its `Arc` is dropped. The kernel also releases it with the process.
#[derive(Debug)]
pub(super) struct AgentTurnLock {
    _lock: File,
}

thread_local! {
    static HELD: RefCell<Weak<AgentTurnLock>> = const { RefCell::new(Weak::new()) };
}

impl AgentTurnLock {
    /// Returns the turn this thread already has, or waits for one.
    #[track_caller]
    pub(super) fn of_this_thread() -> Arc<Self> {
        if let Some(held) = HELD.with_borrow(Weak::upgrade) {
            return held;
        }
        let path = install::cache().join("turn.lock");
        let lock = File::create(&path).and_then(|file| file.lock().map(|()| file));
        let lock = lock.unwrap_or_else(|error| panic!("cannot lock {}: {error}", path.display()));
        let turn = Arc::new(Self { _lock: lock });
        HELD.set(Arc::downgrade(&turn));
        turn
    }
}
