//! One program of the keeper: its output so far, its queued input, and its exit.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use posse_core::ids::{TerminalId, WriterId};
use posse_core::screen::Size;
use posse_core::status::Exit;
use rustix::io::Errno;

use super::children::Spawned;
use crate::ring::Ring;
use crate::wire::{InputRefusal, MAX_INPUT, ProgramSpec, TerminalSummary};

/// Writers remembered per terminal, so that repeated input is recognised. A writer must be remembered for the seconds it
/// takes to reconnect.
const WRITERS: usize = 1024;
/// The maximum number of inputs of any length that wait for a program that does not read.
const RECEIPTS: usize = 4096;

/// The peer to notify when the input before the receipt has been written.
#[derive(PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) peer: u32,
    pub(super) writer: WriterId,
    pub(super) sequence: u64,
}

#[derive(Default)]
struct InputQueue {
    queue: VecDeque<u8>,
    /// The number of bytes ever put into `queue`.
    accepted: u64,
    /// The number of those bytes that must have been written before each receipt is due, in order.
    receipts: VecDeque<(u64, Receipt)>,
    /// The highest sequence number of each writer, and the time of its last use.
    writers: HashMap<WriterId, (u64, u64)>,
    uses: u64,
}

pub(super) enum AcceptedInput {
    /// Queued; the receipt follows when the input has been written.
    Queued,
    /// This sequence number was applied before, and its bytes have been written.
    Repeated,
}

/// A change of size: it holds for the output from `offset` on.
#[derive(Clone, Copy)]
pub(super) struct SizeMark {
    pub(super) offset: u64,
    pub(super) size: Size,
    /// Identifies the marks a peer has seen. Offsets do not, as two marks may have no output between them.
    pub(super) serial: u64,
}

pub(super) struct KeptTerminal {
    pub(super) id: TerminalId,
    pub(super) pid: u32,
    /// The master side of the terminal. `None` once the output has ended.
    pub(super) fd: Option<OwnedFd>,
    pub(super) ring: Ring,
    /// Not being read, because the ring holds only output that a healthy daemon has not acknowledged.
    pub(super) paused: bool,
    /// No process holds the other side of this terminal, but its program runs and may open it again.
    pub(super) deserted: bool,
    pub(super) checkpoint: Option<(u64, Vec<u8>)>,
    pub(super) exit: Option<Exit>,
    /// The program has exited; its last output may arrive until this time.
    pub(super) drain_until: Option<Instant>,
    /// The final offset, once the exit has been announced.
    pub(super) announced: Option<u64>,
    marks: VecDeque<SizeMark>,
    input: InputQueue,
    label: Vec<u8>,
}

impl KeptTerminal {
    pub(super) fn new(id: TerminalId, program: ProgramSpec, spawned: Spawned) -> Self {
        Self {
            id,
            pid: spawned.pid,
            fd: Some(spawned.terminal),
            ring: Ring::new(program.ring as usize),
            paused: false,
            deserted: false,
            checkpoint: None,
            exit: None,
            drain_until: None,
            announced: None,
            marks: VecDeque::from([SizeMark { offset: 0, size: program.size, serial: 1 }]),
            input: InputQueue::default(),
            label: program.label,
        }
    }

    pub(super) fn summary(&self) -> TerminalSummary {
        TerminalSummary {
            id: self.id,
            pid: self.pid,
            size: self.size(),
            output: (self.ring.start(), self.ring.end()),
            checkpoint: self.checkpoint.as_ref().map(|(offset, _)| *offset),
            exit: self.exit,
            ring: self.ring.capacity() as u32,
            label: self.label.clone(),
        }
    }

    /// Returns the end of the wait for the last output of an exited program. `None` while the output is paused.
    pub(super) fn drained_at(&self) -> Option<Instant> {
        self.drain_until.filter(|_| !self.paused)
    }

    /// Reads the available output into the ring, at most `limit` bytes.
    pub(super) fn read(&mut self, buffer: &mut [u8], limit: u64) {
        let Some(fd) = &self.fd else { return };
        let limit = buffer.len().min(limit as usize);
        let mut filled = 0;
        let ended = loop {
            match rustix::io::read(fd, &mut buffer[filled..limit]) {
                Ok(0) => break filled < limit,
                Ok(n) => {
                    filled += n;
                    // A terminal returns at most 4 KiB per read. A short read means that there was no more, so another
                    // read would only cost a system call.
                    if n < 2048 || filled == limit {
                        break false;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break false,
                // A terminal reports with EIO that no process holds its other side.
                Err(_) => break true,
            }
        };
        self.ring.push(&buffer[..filled]);
        // Programs close their terminal a moment before they exit, and some continue without it. Closing our side then
        // would send them SIGHUP: they would die of a signal instead of exiting.
        self.deserted = ended && self.exit.is_none();
        if ended && self.exit.is_some() {
            self.fd = None;
        }
    }

    fn size(&self) -> Size {
        self.marks.back().map_or(Size::DEFAULT, |mark| mark.size)
    }

    pub(super) fn resize(&mut self, size: Size) {
        let Some(fd) = self.fd.as_ref().filter(|_| size != self.size()) else { return };
        let winsize = rustix::termios::Winsize { ws_row: size.rows(), ws_col: size.cols(), ws_xpixel: 0, ws_ypixel: 0 };
        if rustix::termios::tcsetwinsize(fd, winsize).is_err() {
            return;
        }
        let offset = self.ring.end();
        let serial = self.marks.back().map_or(1, |mark| mark.serial + 1);
        // Of several sizes with no output between them only the last one matters.
        if self.marks.back().is_some_and(|mark| mark.offset == offset) {
            self.marks.pop_back();
        }
        self.marks.push_back(SizeMark { offset, size, serial });
        let start = self.ring.start();
        while self.marks.get(1).is_some_and(|second| second.offset <= start) {
            self.marks.pop_front();
        }
    }

    pub(super) fn mark_at(&self, offset: u64) -> Option<SizeMark> {
        self.marks.iter().rev().find(|mark| mark.offset <= offset).or(self.marks.front()).copied()
    }

    pub(super) fn mark_after(&self, serial: u64) -> Option<SizeMark> {
        self.marks.iter().find(|mark| mark.serial > serial).copied()
    }

    pub(super) fn accept_input(&mut self, bytes: &[u8], receipt: Receipt) -> Result<AcceptedInput, InputRefusal> {
        if self.exit.is_some() || self.fd.is_none() || self.deserted {
            return Err(InputRefusal::NotReading);
        }
        let input = &mut self.input;
        let last = input.writers.get(&receipt.writer).map_or(0, |(sequence, _)| *sequence);
        if receipt.sequence <= last {
            // Applied before. If the input is still queued, this peer gets its receipt together with the first one.
            let waiting =
                |(_, known): &(u64, Receipt)| known.writer == receipt.writer && known.sequence >= receipt.sequence;
            let Some(place) = input.receipts.iter().position(waiting) else { return Ok(AcceptedInput::Repeated) };
            if !input.receipts.iter().any(|(_, known)| *known == receipt) {
                let due = input.receipts[place].0;
                input.receipts.insert(place + 1, (due, receipt));
            }
            return Ok(AcceptedInput::Queued);
        }
        if input.queue.len() + bytes.len() > MAX_INPUT || input.receipts.len() >= RECEIPTS {
            return Err(InputRefusal::Full);
        }
        input.uses += 1;
        if input.writers.len() >= WRITERS
            && !input.writers.contains_key(&receipt.writer)
            && let Some(oldest) = input.writers.iter().min_by_key(|(_, (_, used))| *used).map(|(writer, _)| *writer)
        {
            input.writers.remove(&oldest);
        }
        input.writers.insert(receipt.writer, (receipt.sequence, input.uses));
        input.queue.extend(bytes);
        input.accepted += bytes.len() as u64;
        input.receipts.push_back((input.accepted, receipt));
        Ok(AcceptedInput::Queued)
    }

    pub(super) fn wants_to_write(&self) -> bool {
        !self.input.queue.is_empty() && self.fd.is_some()
    }

    /// Writes as much input as the program takes, and passes the receipts that are due to `done`.
    pub(super) fn write_input(&mut self, mut done: impl FnMut(Receipt)) {
        let Some(fd) = &self.fd else { return };
        let input = &mut self.input;
        loop {
            let (front, _) = input.queue.as_slices();
            let written = if front.is_empty() {
                0
            } else {
                match rustix::io::write(fd, front) {
                    Ok(n) => n,
                    Err(Errno::INTR) => continue,
                    // AGAIN: the program does not read. Anything else: it is gone, and its exit is reported elsewhere.
                    Err(_) => return,
                }
            };
            input.queue.drain(..written);
            let written = input.accepted - input.queue.len() as u64;
            while input.receipts.front().is_some_and(|(due, _)| *due <= written) {
                if let Some((_, receipt)) = input.receipts.pop_front() {
                    done(receipt);
                }
            }
            if input.queue.is_empty() {
                return;
            }
        }
    }

    /// Drops the queued input of an exited program and returns its receipts.
    pub(super) fn drop_input(&mut self) -> Vec<Receipt> {
        self.input.queue.clear();
        self.input.receipts.drain(..).map(|(_, receipt)| receipt).collect()
    }

    /// Sends SIGHUP to the program and to the foreground group, as closing a terminal window does.
    pub(super) fn hang_up(&self) -> io::Result<()> {
        use rustix::process::{Pid, Signal, kill_process, kill_process_group};
        if self.exit.is_some() {
            return Ok(());
        }
        if let Some(foreground) = self.fd.as_ref().and_then(|fd| rustix::termios::tcgetpgrp(fd).ok()) {
            let _ = kill_process_group(foreground, Signal::HUP);
        }
        match Pid::from_raw(self.pid as i32) {
            Some(pid) => {
                kill_process(pid, Signal::HUP)?;
                // A stopped program would never see SIGHUP.
                Ok(kill_process(pid, Signal::CONT)?)
            }
            None => Ok(()),
        }
    }
}
