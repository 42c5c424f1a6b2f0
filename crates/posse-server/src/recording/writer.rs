//! Writes the items of the queue to files.

use std::io;
use std::time::Instant;

use super::reel::{self, Reel};
use super::*;
use crate::disk::Disk;

const PAUSE: Duration = Duration::from_secs(60);
/// The capacity of the buffer that is kept for the next time.
const SCRATCH: usize = 512 << 10;

pub(super) struct Writer {
    disk: Disk,
    directory: PathBuf,
    reels: HashMap<TerminalId, Reel>,
    /// Terminals that were asked for a picture and have not sent it.
    asked: BTreeSet<TerminalId>,
    /// The disk has refused, which is logged once. Nothing is tried before this time.
    refused_until: Option<Instant>,
    scratch: Vec<u8>,
}

impl Writer {
    pub(super) fn new(disk: Disk, directory: PathBuf) -> Self {
        Self {
            disk,
            directory,
            reels: HashMap::new(),
            asked: BTreeSet::new(),
            refused_until: None,
            scratch: Vec::new(),
        }
    }

    /// Returns what the daemon must know.
    pub(super) fn write(&mut self, mut items: Vec<Item>) -> BTreeSet<Word> {
        let mut words = BTreeSet::new();
        // Terminal after terminal, each in its own order.
        items.sort_by_key(|item| item.id);
        let mut items = items.into_iter().peekable();
        while let Some(item) = items.next() {
            let id = item.id;
            let last = items.peek().is_none_or(|next| next.id != id);
            if let Err(error) = self.item(item, last, &mut words) {
                self.refused(&error);
            }
        }
        if self.scratch.capacity() > SCRATCH {
            self.scratch = Vec::new();
        }
        words
    }

    fn item(&mut self, item: Item, last: bool, words: &mut BTreeSet<Word>) -> io::Result<()> {
        let Item { id, at, what } = item;
        let paused = self.refused_until.is_some_and(|until| Instant::now() < until);
        match what {
            What::Picture { size, bytes, lost } => {
                self.asked.remove(&id);
                if paused {
                    return Ok(());
                }
                let mut reel = match self.reels.remove(&id) {
                    Some(reel) => reel,
                    None => Reel::open(&self.disk, &self.directory, id, size, at)?,
                };
                if reel.is_full() {
                    reel.write(&mut self.scratch, true)?;
                    reel = reel.next(&self.disk, &reel::older_path(&self.directory, id), size, at)?;
                    words.insert(Word::Grown);
                }
                reel.picture(size, &bytes, lost, at, &mut self.scratch);
                self.reels.insert(id, reel);
            }
            What::End => {
                if let Some(mut reel) = self.reels.remove(&id) {
                    reel.write(&mut self.scratch, true)?;
                }
                self.asked.remove(&id);
                words.insert(Word::Grown);
            }
            what @ (What::Output(_) | What::Resized(_) | What::Evidence(_)) => match self.reels.get_mut(&id) {
                Some(reel) => reel.record(&what, at, &mut self.scratch),
                None => self.ask(id, paused, words),
            },
            What::Forget => {
                self.reels.remove(&id);
                self.asked.remove(&id);
                self.scratch.clear();
                for path in [reel::path(&self.directory, id), reel::older_path(&self.directory, id)] {
                    let _ = self.disk.remove_file(&path);
                }
            }
        }
        let Some(reel) = self.reels.get_mut(&id) else { return Ok(()) };
        reel.write(&mut self.scratch, last)?;
        if last && self.refused_until.take().is_some() {
            tracing::info!("terminals are recorded again");
        }
        if reel.is_full() {
            self.ask(id, paused, words);
        }
        Ok(())
    }

    fn ask(&mut self, id: TerminalId, paused: bool, words: &mut BTreeSet<Word>) {
        if !paused && self.asked.insert(id) {
            words.insert(Word::PictureWanted(id));
        }
    }

    /// Logs the first of several errors in a row.
    fn refused(&mut self, error: &io::Error) {
        if self.refused_until.is_none() {
            tracing::warn!("terminals are not recorded while the disk refuses: {error}");
        }
        self.refused_until = Some(Instant::now() + PAUSE);
        self.scratch.clear();
        self.reels.clear();
        self.asked.clear();
    }
}
