//! Which input has been applied, kept where it cannot be lost: on the pane itself.
//!
//! Each input and the note of it reach tmux in one line, and tmux does both or neither. So whoever comes after us, or
//! we after a lost connection, can repeat what they are not sure of.

use posse_core::ids::WriterId;

/// Writers remembered here. One matters for the seconds it takes to reconnect.
const REMEMBERED: usize = 256;
/// Writers written down with each input: they are sent to tmux every time.
const WRITTEN: usize = 16;

/// The highest number of each writer, the one used last at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Applied(Vec<(WriterId, u64)>);

impl Applied {
    pub(super) fn highest(&self, writer: WriterId) -> u64 {
        self.0.iter().find(|(known, _)| *known == writer).map_or(0, |(_, sequence)| *sequence)
    }

    /// Sets the highest number of a writer.
    pub(super) fn note(&mut self, writer: WriterId, sequence: u64) {
        self.0.retain(|(known, _)| *known != writer);
        self.0.push((writer, sequence));
        if self.0.len() > REMEMBERED {
            self.0.remove(0);
        }
    }

    /// As it is written on the pane. Answers to queries are left out: their numbers are offsets of output, and
    /// nothing is ever printed twice at the same one.
    pub(super) fn to_text(&self) -> String {
        let written = self.0.iter().filter(|(writer, _)| *writer != WriterId::RESPONDER).rev().take(WRITTEN);
        let written: Vec<String> = written.map(|(writer, sequence)| format!("{:x}:{sequence:x}", writer.0)).collect();
        written.join(",")
    }

    /// What makes no sense is left out.
    pub(super) fn parse(text: &str) -> Self {
        let one = |pair: &str| {
            let (writer, sequence) = pair.split_once(':')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            Some((WriterId(number(writer)?), number(sequence)?))
        };
        Self(text.split(',').rev().filter_map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_number_counts_and_is_read_back() {
        let mut applied = Applied::default();
        assert_eq!((applied.highest(WriterId(1)), applied.to_text().as_str()), (0, ""));
        applied.note(WriterId(u64::MAX), 7);
        applied.note(WriterId(1), 3);
        applied.note(WriterId(1), 4);
        applied.note(WriterId::RESPONDER, 1000);
        assert_eq!(applied.to_text(), "1:4,ffffffffffffffff:7");
        let read = Applied::parse(&applied.to_text());
        assert_eq!((read.highest(WriterId(1)), read.highest(WriterId(u64::MAX))), (4, 7));
        assert_eq!(read.to_text(), applied.to_text());
        assert_eq!(Applied::parse("x,1:,:2,1:2:3,5:6").to_text(), "5:6");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut applied = Applied::default();
        (1..=1000).for_each(|writer| applied.note(WriterId(writer), 1));
        assert_eq!(applied.0.len(), REMEMBERED);
        assert_eq!(applied.to_text().split(',').count(), WRITTEN);
        assert!(applied.to_text().starts_with("3e8:1,"), "the last one is written first");
    }
}
