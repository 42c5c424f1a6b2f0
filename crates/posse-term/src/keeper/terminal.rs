//! One program of the keeper: its output so far, its queued input, and its exit.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use posse_core::ids::{TerminalId, WriterId};
use posse_core::screen::Size;
use posse_core::status::Exit;
use rustix::io::Errno;

use super::ring::Ring;
use super::spawn::Spawned;
use crate::wire::{InputRefusal, MAX_INPUT, OutputStream, ProgramSpec, TerminalSummary, Wiring};

/// Writers remembered per terminal, so that repeated input is recognised. A writer must be remembered for the seconds it
/// takes to reconnect.
const WRITERS: usize = 1024;
/// Inputs that may wait for a program that does not read, whatever their length.
const RECEIPTS: usize = 4096;

/// One readable descriptor and the output read from it.
pub(super) struct ProgramOutput {
    /// `None` once the output has ended.
    pub(super) fd: Option<OwnedFd>,
    pub(super) ring: Ring,
    /// Not being read, because the ring holds only output that a healthy daemon has not acknowledged.
    pub(super) paused: bool,
    /// No process holds the other side of this terminal, but its program runs and may open it again.
    pub(super) deserted: bool,
}

impl ProgramOutput {
    fn new(fd: OwnedFd, capacity: usize) -> Self {
        Self { fd: Some(fd), ring: Ring::new(capacity), paused: false, deserted: false }
    }

    /// Reads the available output into the ring, at most `limit` bytes. Returns true if the output has ended.
    fn read(&mut self, buffer: &mut [u8], limit: u64) -> bool {
        let Some(fd) = &self.fd else { return true };
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
                // A terminal reports with EIO that no process holds its other side any more.
                Err(_) => break true,
            }
        };
        self.ring.push(&buffer[..filled]);
        ended
    }
}

/// The peer to notify when the input before the receipt has been written.
#[derive(PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) peer: u32,
    pub(super) writer: WriterId,
    pub(super) sequence: u64,
}

/// Input that waits to be written to the program.
#[derive(Default)]
struct InputQueue {
    queue: VecDeque<u8>,
    /// The number of bytes ever put into `queue`.
    accepted: u64,
    /// How many of those bytes must have been written before each receipt is due, in order.
    receipts: VecDeque<(u64, Receipt)>,
    /// The highest sequence number of each writer, and when it was used last.
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
    pub(super) main: ProgramOutput,
    pub(super) error: Option<ProgramOutput>,
    pub(super) checkpoint: Option<(u64, Vec<u8>)>,
    pub(super) exit: Option<Exit>,
    /// The program has exited; its last output may arrive until this time.
    pub(super) drain_until: Option<Instant>,
    /// Final offsets, once the exit has been announced.
    pub(super) announced: Option<(u64, u64)>,
    wiring: Wiring,
    marks: VecDeque<SizeMark>,
    input: InputQueue,
    label: Vec<u8>,
}

impl KeptTerminal {
    pub(super) fn new(id: TerminalId, program: ProgramSpec, spawned: Spawned) -> Self {
        let size = match program.wiring {
            Wiring::Terminal(size) => size,
            Wiring::Pipes => Size::DEFAULT,
        };
        let ring = program.ring as usize;
        Self {
            id,
            pid: spawned.pid,
            main: ProgramOutput::new(spawned.main, ring),
            error: spawned.error.map(|fd| ProgramOutput::new(fd, ring)),
            checkpoint: None,
            exit: None,
            drain_until: None,
            announced: None,
            wiring: program.wiring,
            marks: VecDeque::from([SizeMark { offset: 0, size, serial: 1 }]),
            input: InputQueue::default(),
            label: program.label,
        }
    }

    pub(super) fn summary(&self) -> TerminalSummary {
        let range = |output: &ProgramOutput| (output.ring.start(), output.ring.end());
        TerminalSummary {
            id: self.id,
            pid: self.pid,
            wiring: match self.wiring {
                Wiring::Terminal(_) => Wiring::Terminal(self.size()),
                Wiring::Pipes => Wiring::Pipes,
            },
            main: range(&self.main),
            error: self.error.as_ref().map_or((0, 0), range),
            checkpoint: self.checkpoint.as_ref().map(|(offset, _)| *offset),
            exit: self.exit,
            ring: self.main.ring.capacity() as u32,
            label: self.label.clone(),
        }
    }

    pub(super) fn output(&self, stream: OutputStream) -> Option<&ProgramOutput> {
        match stream {
            OutputStream::Main => Some(&self.main),
            OutputStream::Error => self.error.as_ref(),
        }
    }

    pub(super) fn output_mut(&mut self, stream: OutputStream) -> Option<&mut ProgramOutput> {
        match stream {
            OutputStream::Main => Some(&mut self.main),
            OutputStream::Error => self.error.as_mut(),
        }
    }

    /// When the wait for the last output of an exited program ends. `None` while the output is paused.
    pub(super) fn drained_at(&self) -> Option<Instant> {
        let paused = self.main.paused || self.error.as_ref().is_some_and(|error| error.paused);
        self.drain_until.filter(|_| !paused)
    }

    pub(super) fn outputs_ended(&self) -> bool {
        self.main.fd.is_none() && self.error.as_ref().is_none_or(|error| error.fd.is_none())
    }

    /// Reads one output, at most `limit` bytes.
    pub(super) fn read(&mut self, stream: OutputStream, buffer: &mut [u8], limit: u64) {
        // Programs close their terminal a moment before they exit, and some continue without it. Closing our side then
        // would send them SIGHUP: they would die of a signal instead of exiting.
        let hold = self.exit.is_none() && self.wiring != Wiring::Pipes;
        let Some(output) = self.output_mut(stream) else { return };
        let ended = output.read(buffer, limit);
        output.deserted = ended && hold;
        if ended && !hold {
            output.fd = None;
        }
    }

    fn size(&self) -> Size {
        self.marks.back().map_or(Size::DEFAULT, |mark| mark.size)
    }

    /// Sets the size of the terminal. Returns false if the program has no terminal.
    pub(super) fn resize(&mut self, size: Size) -> bool {
        let (Wiring::Terminal(_), Some(fd)) = (self.wiring, &self.main.fd) else { return false };
        if size == self.size() {
            return true;
        }
        let winsize = rustix::termios::Winsize { ws_row: size.rows(), ws_col: size.cols(), ws_xpixel: 0, ws_ypixel: 0 };
        if rustix::termios::tcsetwinsize(fd, winsize).is_err() {
            return false;
        }
        let offset = self.main.ring.end();
        let serial = self.marks.back().map_or(1, |mark| mark.serial + 1);
        // Of several sizes with no output between them only the last one matters.
        if self.marks.back().is_some_and(|mark| mark.offset == offset) {
            self.marks.pop_back();
        }
        self.marks.push_back(SizeMark { offset, size, serial });
        let start = self.main.ring.start();
        while self.marks.get(1).is_some_and(|second| second.offset <= start) {
            self.marks.pop_front();
        }
        true
    }

    /// The mark in force at `offset`.
    pub(super) fn mark_at(&self, offset: u64) -> Option<SizeMark> {
        self.marks.iter().rev().find(|mark| mark.offset <= offset).or(self.marks.front()).copied()
    }

    /// The first mark after `serial`.
    pub(super) fn mark_after(&self, serial: u64) -> Option<SizeMark> {
        self.marks.iter().find(|mark| mark.serial > serial).copied()
    }

    pub(super) fn accept_input(&mut self, bytes: &[u8], receipt: Receipt) -> Result<AcceptedInput, InputRefusal> {
        if self.exit.is_some() || self.main.fd.is_none() || self.main.deserted || self.wiring == Wiring::Pipes {
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
        !self.input.queue.is_empty() && self.main.fd.is_some()
    }

    /// Writes as much input as the program takes, and passes the receipts that are due to `done`.
    pub(super) fn write_input(&mut self, mut done: impl FnMut(Receipt)) {
        let Some(fd) = &self.main.fd else { return };
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
        if let Some(foreground) = self.main.fd.as_ref().and_then(|fd| rustix::termios::tcgetpgrp(fd).ok()) {
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
