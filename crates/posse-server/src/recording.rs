//! Recording what terminals print: a queue for all pumps, and one thread that writes.
//!
//! A pump never waits for the disk. It puts output into the queue. If the queue is full, the pump drops output until
//! the thread has drained it; then the thread requests a picture of the screen, and recording resumes from there. The
//! same picture begins a new file, and resumes an old one after a restart. So recordings may have gaps, which are
//! marked, but the output after a gap is right.
//!
//! The thread sleeps until there is something, then lets more come for a moment: many terminals that print all the time
//! wake it four times a second, and those that do not print never.

mod reel;
mod writer;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use posse_core::ids::TerminalId;
use posse_core::screen::Size;
use posse_core::status;

use crate::disk;
use writer::Writer;

/// The setting that is remembered: "off", or nothing.
pub(crate) const SETTING: &str = "recordings";
/// The time in which the thread collects items before it writes. A crash loses this much of a recording.
const DELAY: Duration = Duration::from_millis(250);
/// Maximum number of queued bytes for one terminal. More than this in `DELAY` is unreadable anyway.
const OF_ONE: usize = 1 << 20;
const OF_ALL: usize = 16 << 20;

struct Item {
    id: TerminalId,
    /// Since 1970.
    at: Duration,
    what: What,
}

enum What {
    /// The screen from which the recording continues. Empty if nothing was printed yet.
    Picture {
        size: Size,
        bytes: Vec<u8>,
        /// The number of output bytes left out before it.
        lost: u64,
    },
    Output(Bytes),
    Resized(Size),
    /// Evidence of a status that is not in the output, as JSON.
    Evidence(String),
    End,
    Forget,
}

impl What {
    fn len(&self) -> usize {
        match self {
            What::Picture { bytes, .. } => bytes.len(),
            What::Output(bytes) => bytes.len(),
            What::Evidence(json) => json.len(),
            What::Resized(_) | What::End | What::Forget => 0,
        }
    }
}

#[derive(Default)]
struct Queue {
    items: Vec<Item>,
    waiting: HashMap<TerminalId, usize>,
    bytes: usize,
    /// Terminals for whose items there was no room.
    refused: BTreeSet<TerminalId>,
    on: bool,
    closing: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// There is something, or enough, or no more.
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Word {
    /// Recording needs a picture of this terminal's screen to resume.
    PictureWanted(TerminalId),
    /// A file was finished: there may be too much of them.
    Grown,
}

#[derive(Clone)]
pub(crate) struct Recorder(Arc<Shared>);

pub(crate) struct Thread {
    recorder: Recorder,
    thread: Option<JoinHandle<()>>,
}

pub(crate) fn start(directory: PathBuf, on: bool, tell: impl Fn(Word) + Send + 'static) -> (Recorder, Thread) {
    let shared = Arc::new(Shared { queue: Mutex::new(Queue { on, ..Queue::default() }), changed: Condvar::new() });
    let recorder = Recorder(shared.clone());
    let thread = disk::thread("recorder", move |disk| run(&shared, Writer::new(disk, directory), &tell));
    if let Err(error) = &thread {
        tracing::error!("nothing is recorded: {error}");
        recorder.0.lock().closing = true;
    }
    (recorder.clone(), Thread { recorder, thread: thread.ok() })
}

impl Thread {
    pub(crate) fn finish(mut self) {
        self.recorder.0.lock().closing = true;
        self.recorder.0.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Recorder {
    /// Puts something into the queue. Returns `false` if there is no room, or nothing is recorded. What takes no room and must
    /// not be missed is always taken.
    fn push(&self, id: TerminalId, what: What) -> bool {
        let mut queue = self.0.lock();
        let must = matches!(what, What::End | What::Forget);
        if queue.closing || !(queue.on || must) {
            return false;
        }
        let (size, before) = (what.len(), queue.bytes);
        let of_one = queue.waiting.get(&id).copied().unwrap_or(0);
        // A single thing always fits, however large a screen is.
        let too_much = |there: usize, limit: usize| there > 0 && there + size > limit;
        if size > 0 && (too_much(of_one, OF_ONE) || too_much(before, OF_ALL)) {
            queue.refused.insert(id);
            return false;
        }
        let first = queue.items.is_empty();
        *queue.waiting.entry(id).or_default() += size;
        queue.bytes += size;
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        queue.items.push(Item { id, at, what });
        let enough = before < OF_ALL / 2 && queue.bytes >= OF_ALL / 2;
        drop(queue);
        if first || enough {
            self.0.changed.notify_all();
        }
        true
    }

    /// Removes the recording of a terminal, also when nothing is recorded now.
    pub(crate) fn forget(&self, id: TerminalId) {
        self.push(id, What::Forget);
    }

    /// Starts or stops recording. On start all pumps are asked for a picture.
    pub(crate) fn switch(&self, on: bool) {
        self.0.lock().on = on;
    }
}

fn run(shared: &Shared, mut writer: Writer, tell: &impl Fn(Word)) {
    loop {
        let nothing = |queue: &mut Queue| queue.items.is_empty() && !queue.closing;
        let queue = shared.changed.wait_while(shared.lock(), nothing).unwrap_or_else(PoisonError::into_inner);
        let room = |queue: &mut Queue| queue.bytes < OF_ALL / 2 && !queue.closing;
        let waited = shared.changed.wait_timeout_while(queue, DELAY, room);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (items, closing) = (std::mem::take(&mut queue.items), queue.closing);
        let refused = std::mem::take(&mut queue.refused);
        queue.waiting.clear();
        queue.bytes = 0;
        drop(queue);
        let words = writer.write(items);
        if closing {
            return;
        }
        refused.into_iter().map(Word::PictureWanted).chain(words).for_each(tell);
    }
}

/// One terminal's side of it, in its pump.
pub(crate) struct Tape {
    recorder: Recorder,
    id: TerminalId,
    state: State,
}

enum State {
    /// Nothing was recorded yet: it is being caught up with.
    Blank,
    Following,
    /// So much was left out.
    Behind(u64),
}

impl Tape {
    pub(crate) fn new(recorder: Recorder, id: TerminalId) -> Self {
        Self { recorder, id, state: State::Blank }
    }

    pub(crate) fn output(&mut self, bytes: &Bytes) {
        self.push(What::Output(bytes.clone()));
        if let State::Behind(lost) = &mut self.state {
            *lost += bytes.len() as u64;
        }
    }

    pub(crate) fn resized(&mut self, size: Size) {
        self.push(What::Resized(size));
    }

    /// Keeps evidence of a status that the output does not contain.
    pub(crate) fn evidence(&mut self, event: &status::Event) {
        if let Ok(json) = serde_json::to_string(event) {
            self.push(What::Evidence(json));
        }
    }

    fn push(&mut self, what: What) {
        if matches!(self.state, State::Following) && !self.recorder.push(self.id, what) {
            self.state = State::Behind(0);
        }
    }

    /// Resumes from this screen.
    pub(crate) fn picture(&mut self, size: Size, bytes: Vec<u8>) {
        let lost = if let State::Behind(lost) = self.state { lost } else { 0 };
        let taken = self.recorder.push(self.id, What::Picture { size, bytes, lost });
        self.state = if taken { State::Following } else { State::Behind(lost) };
    }

    /// Reports whether recording can continue if the screen changes without output.
    pub(crate) fn is_started(&self) -> bool {
        !matches!(self.state, State::Blank)
    }

    pub(crate) fn is_behind(&self) -> bool {
        matches!(self.state, State::Behind(_))
    }

    pub(crate) fn end(&mut self) {
        if self.is_started() {
            self.recorder.push(self.id, What::End);
        }
        self.state = State::Blank;
    }
}

#[cfg(test)]
mod tests;
