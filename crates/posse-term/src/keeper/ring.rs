//! The last bytes of one output, addressed by absolute offset.

use std::collections::VecDeque;

/// A buffer that grows with the output up to its capacity, then overwrites the oldest bytes.
pub(super) struct Ring {
    bytes: VecDeque<u8>,
    capacity: usize,
    /// Offset of the oldest byte held.
    start: u64,
}

impl Ring {
    pub(super) fn new(capacity: usize) -> Self {
        Self { bytes: VecDeque::new(), capacity: capacity.max(1), start: 0 }
    }

    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// The offset of the next byte.
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity as u64
    }

    pub(super) fn push(&mut self, mut new: &[u8]) {
        if new.len() > self.capacity {
            let skipped = new.len() - self.capacity;
            self.start = self.end() + skipped as u64;
            self.bytes.clear();
            new = &new[skipped..];
        }
        let surplus = (self.bytes.len() + new.len()).saturating_sub(self.capacity);
        self.bytes.drain(..surplus);
        self.start += surplus as u64;
        let needed = self.bytes.len() + new.len();
        if needed > self.bytes.capacity() {
            // Doubling, but never past the capacity: 200 full rings must not take more memory than announced.
            let room = needed.max(2 * self.bytes.capacity()).clamp(4096.min(self.capacity), self.capacity);
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend(new);
    }

    /// Returns at most `limit` bytes from `offset` on, as the two halves of the ring. `offset` must be held.
    pub(super) fn slices(&self, offset: u64, limit: usize) -> (&[u8], &[u8]) {
        let skip = offset.saturating_sub(self.start) as usize;
        let (a, b) = self.bytes.as_slices();
        let (a, b) = if skip <= a.len() { (&a[skip..], b) } else { (&[][..], b.get(skip - a.len()..).unwrap_or(&[])) };
        let from_a = a.len().min(limit);
        (&a[..from_a], &b[..b.len().min(limit - from_a)])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is pushed, the ring holds the end of it, at the right offsets.
        #[test]
        fn it_is_the_tail_of_everything_pushed(capacity in 1usize..64, pushes in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..20)) {
            let mut ring = Ring::new(capacity);
            let mut all = Vec::new();
            for push in &pushes {
                ring.push(push);
                all.extend_from_slice(push);
                prop_assert_eq!(ring.end(), all.len() as u64);
                prop_assert_eq!(ring.end() - ring.start(), all.len().min(capacity) as u64);
                for offset in ring.start()..=ring.end() {
                    let (a, b) = ring.slices(offset, 7);
                    let expected = &all[offset as usize..];
                    prop_assert_eq!(&[a, b].concat()[..], &expected[..expected.len().min(7)]);
                }
            }
        }
    }
}
