//! The kitty keyboard protocol, by which programs choose the encoding of keys. Programs push flags and pop them when
//! they leave; the main and the alternate screen have a stack each.

use crate::sequence::Control;

/// Enough for nested programs and some that forget to pop. A push onto a full stack drops the oldest flags.
const STACK_MAX: usize = 8;

const FLAGS: u16 = 0b1_1111;

#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Keyboard {
    stacks: [Vec<u8>; 2],
}

impl Keyboard {
    pub(super) fn flags(&self, alternate: bool) -> u8 {
        self.stack(alternate).last().copied().unwrap_or(0)
    }

    /// Returns the flags, oldest first.
    pub(super) fn stack(&self, alternate: bool) -> &[u8] {
        &self.stacks[usize::from(alternate)]
    }

    /// `CSI > flags u`, `CSI < count u`, `CSI = flags ; how u`.
    pub(super) fn control(&mut self, control: &Control<'_>, alternate: bool) {
        let stack = &mut self.stacks[usize::from(alternate)];
        let flags = (control.number_or(0, 0) & FLAGS) as u8;
        match control.private {
            Some(b'>') => {
                if stack.len() >= STACK_MAX {
                    stack.remove(0);
                }
                stack.push(flags);
            }
            Some(b'<') => {
                let left = stack.len().saturating_sub(usize::from(control.number_or(0, 1)));
                stack.truncate(left);
            }
            Some(b'=') => {
                if stack.is_empty() {
                    stack.push(0);
                }
                if let Some(top) = stack.last_mut() {
                    match control.number_or(1, 1) {
                        1 => *top = flags,
                        2 => *top |= flags,
                        3 => *top &= !flags,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// Writes the sequences that give a fresh terminal this stack.
    pub(super) fn write(&self, alternate: bool, out: &mut Vec<u8>) {
        for (i, flags) in self.stack(alternate).iter().enumerate() {
            let how = if i == 0 { '=' } else { '>' };
            out.extend_from_slice(format!("\x1b[{how}{flags}u").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::{Scanner, StreamPiece};

    #[track_caller]
    fn check(sequences: &str, expected: &[u8]) {
        let mut keyboard = Keyboard::default();
        let mut scanner = Scanner::default();
        let mut rest = sequences.as_bytes();
        while let Some(piece) = scanner.next(&mut rest) {
            let StreamPiece::Control(control) = piece else { panic!("{piece:?}") };
            keyboard.control(&control, true);
        }
        assert_eq!(keyboard.stack(true), expected);
        assert_eq!(keyboard.flags(true), expected.last().copied().unwrap_or(0));
        assert_eq!(keyboard.flags(false), 0, "the other screen has a stack of its own");
    }

    #[test]
    fn flags_are_pushed_popped_and_set() {
        check("\x1b[>5u", &[5]);
        check("\x1b[>5u\x1b[>7u", &[5, 7]);
        check("\x1b[>5u\x1b[>7u\x1b[<u", &[5]);
        check("\x1b[>5u\x1b[>7u\x1b[<9u", &[]);
        check("\x1b[<u", &[]);
        check("\x1b[=3u", &[3]);
        check("\x1b[>1u\x1b[=2;2u", &[3]);
        check("\x1b[>3u\x1b[=2;3u", &[1]);
        check("\x1b[>3u\x1b[=8;9u", &[3]);
        check("\x1b[>999u", &[7]);
        check(&"\x1b[>1u".repeat(20), &[1; STACK_MAX]);
    }
}
