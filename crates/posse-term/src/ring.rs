//! The last bytes of one output, addressed by absolute offset.

use std::collections::VecDeque;

/// A buffer that grows with the output up to its capacity, then overwrites the oldest bytes.
pub struct Ring {
    bytes: VecDeque<u8>,
    capacity: usize,
    start: u64,
}

impl Ring {
    pub fn new(capacity: usize) -> Self {
        Self { bytes: VecDeque::new(), capacity: capacity.max(1), start: 0 }
    }

    pub fn start(&self) -> u64 {
        self.start
    }

    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    pub fn capacity(&self) -> u64 {
        self.capacity as u64
    }

    /// Continues at `offset` although the bytes before it were lost, and drops the held bytes.
    pub fn skip_to(&mut self, offset: u64) {
        self.bytes.clear();
        self.start = offset;
    }

    pub fn push(&mut self, mut new: &[u8]) {
        if new.len() > self.capacity {
            let skipped = new.len() - self.capacity;
            self.skip_to(self.end() + skipped as u64);
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

    /// Returns at most `limit` of the bytes held from `offset` on.
    pub fn bytes(&self, offset: u64, limit: usize) -> Vec<u8> {
        let skip = offset.saturating_sub(self.start) as usize;
        let (front, back) = self.bytes.as_slices();
        let back = back.get(skip.saturating_sub(front.len())..).unwrap_or_default();
        let front = front.get(skip..).unwrap_or_default();
        let front = &front[..front.len().min(limit)];
        [front, &back[..back.len().min(limit - front.len())]].concat()
    }

    /// Returns everything from `offset` on, if all of it is held.
    pub fn since(&self, offset: u64) -> Option<Vec<u8>> {
        (self.start..=self.end()).contains(&offset).then(|| self.bytes(offset, usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ring_holds_the_end_of_all_pushed_bytes(capacity in 1usize..64, pushes in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..20)) {
            let mut ring = Ring::new(capacity);
            let mut all = Vec::new();
            for push in &pushes {
                ring.push(push);
                all.extend_from_slice(push);
                prop_assert_eq!(ring.end(), all.len() as u64);
                prop_assert_eq!(ring.end() - ring.start(), all.len().min(capacity) as u64);
                for offset in ring.start()..=ring.end() {
                    let expected = &all[offset as usize..];
                    prop_assert_eq!(&ring.bytes(offset, 7)[..], &expected[..expected.len().min(7)]);
                    prop_assert_eq!(&ring.since(offset).unwrap()[..], expected);
                }
                prop_assert_eq!(ring.since(ring.end() + 1), None);
                prop_assert!(ring.start() == 0 || ring.since(ring.start() - 1).is_none());
            }
            let end = ring.end() + 10;
            ring.skip_to(end);
            prop_assert_eq!((ring.start(), ring.end(), ring.since(end)), (end, end, Some(Vec::new())));
        }
    }
}
