//! A value that threads share, change and wait for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
pub struct Watched<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Watched<T> {
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Condvar::new() }
    }

    pub fn look(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the value and wakes all waiting threads.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let changed = change(&mut self.look());
        self.changed.notify_all();
        changed
    }

    /// Waits until the value fits, and returns whether it did in time.
    pub fn wait(&self, patience: Duration, fits: impl Fn(&T) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.look(), patience, |value| !fits(value));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}
