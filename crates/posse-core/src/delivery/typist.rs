//! Numbers typed keys and remembers whether the terminal has taken them.

use super::Effect;
use crate::time::Mono;

/// Identifies a key of one machine. Counts from 0, in the order of typing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub u64);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Typist {
    next: u64,
    pending: bool,
    taken: Mono,
}

impl Typist {
    pub(super) fn key<T>(&mut self, bytes: Vec<u8>) -> Effect<T> {
        let id = KeyId(self.next);
        self.next += 1;
        self.pending = true;
        Effect::Type { id, bytes }
    }

    fn is_last(self, id: KeyId) -> bool {
        self.pending && id.0 + 1 == self.next
    }

    /// Records that a key was typed. Returns whether it was the awaited one.
    pub(super) fn typed(&mut self, id: KeyId, now: Mono) -> bool {
        let last = self.is_last(id);
        if last {
            self.pending = false;
            self.taken = now;
        }
        last
    }

    pub(super) fn failed(&mut self, id: KeyId) -> bool {
        self.is_last(id)
    }

    /// Returns the time at which the terminal took the last key, or `None` while a key is on its way.
    pub(super) fn taken(self) -> Option<Mono> {
        (!self.pending).then_some(self.taken)
    }

    pub(super) fn has_typed(self) -> bool {
        self.next > 0
    }
}
