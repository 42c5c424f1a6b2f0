//! Timestamps sent as text through a terminal, from the probe inside to the bench outside. Both read the same clock,
//! `CLOCK_MONOTONIC`, so the difference of two timestamps is a delay.

use rustix::time::{ClockId, clock_gettime};

/// Returns nanoseconds of `CLOCK_MONOTONIC`, the same in every process.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // Never negative: this clock counts from the start of the machine.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub number: u32,
    pub at: u64,
}

impl Stamp {
    pub fn text(self) -> String {
        format!("@{}:{};", self.number, self.at)
    }

    /// Removes the first timestamp from `text`, and everything before it. Returns `None` if there is no complete one
    /// yet.
    pub fn take(text: &mut Vec<u8>) -> Option<Self> {
        loop {
            let start = text.iter().position(|byte| *byte == b'@')?;
            let end = start + text[start..].iter().position(|byte| *byte == b';')?;
            let stamp = Self::parse(&text[start + 1..end]);
            text.drain(..=end);
            if stamp.is_some() {
                return stamp;
            }
        }
    }

    fn parse(inside: &[u8]) -> Option<Self> {
        let (number, at) = std::str::from_utf8(inside).ok()?.split_once(':')?;
        Some(Self { number: number.parse().ok()?, at: at.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_found_however_the_text_is_cut() {
        let stamps = [Stamp { number: 1, at: 5 }, Stamp { number: 2, at: u64::MAX }, Stamp { number: 3, at: 0 }];
        let text: String = stamps.iter().map(|stamp| format!("{}\r\n", stamp.text())).collect();
        for size in [1, 7, 4096] {
            let (mut waiting, mut found) = (Vec::new(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                waiting.extend_from_slice(piece);
                found.extend(std::iter::from_fn(|| Stamp::take(&mut waiting)));
            }
            assert_eq!(found, stamps, "in pieces of {size}");
        }
    }

    #[test]
    fn what_only_looks_like_a_stamp_is_passed_over() {
        let mut text = b"a@b;c@1:x;@4:9;rest".to_vec();
        assert_eq!(Stamp::take(&mut text), Some(Stamp { number: 4, at: 9 }));
        assert_eq!(text, b"rest");
    }
}
