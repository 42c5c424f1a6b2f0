//! The live followers of a terminal: a bounded stream of its bytes for each, and the size they agree on.

use std::collections::BTreeMap;

use bytes::Bytes;
use posse_api::StreamMessage;
use posse_core::screen::Size;
use posse_core::status::Exit;
use tokio::sync::mpsc;

/// The maximum number of items that wait for a watcher. A watcher that falls further behind is dropped and may begin again
/// with a picture. An item has at most 64 KiB, usually far less.
const WAITING: usize = 256;

/// The number of output bytes kept, so that a watcher can reconnect and continue where it was.
pub(crate) const TAIL: usize = 256 << 10;

#[derive(Clone, Debug)]
pub(crate) enum Item {
    Output { offset: u64, bytes: Bytes },
    Message(StreamMessage),
}

/// The beginning of a watcher's stream.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) watcher: u64,
    pub(crate) size: Size,
    /// The first bytes to show, and the offset from which the items continue.
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
    /// `bytes` is output from the offset asked for, not a picture of the screen.
    pub(crate) continued: bool,
    pub(crate) exit: Option<Exit>,
    pub(crate) items: mpsc::Receiver<Item>,
}

struct Watcher {
    items: mpsc::Sender<Item>,
    /// It looks at the terminal through a window.
    attached: bool,
    /// The size that it asks the terminal to take.
    wanted: Option<Size>,
}

#[derive(Default)]
pub(crate) struct Watchers {
    all: BTreeMap<u64, Watcher>,
    next: u64,
}

impl Watchers {
    pub(crate) fn add(&mut self) -> (u64, mpsc::Receiver<Item>) {
        let (items, receiver) = mpsc::channel(WAITING);
        self.next += 1;
        self.all.insert(self.next, Watcher { items, attached: false, wanted: None });
        (self.next, receiver)
    }

    pub(crate) fn remove(&mut self, watcher: u64) {
        self.all.remove(&watcher);
    }

    /// Sends an item to all watchers and drops those that are too far behind. Returns whether one was dropped.
    pub(crate) fn tell(&mut self, item: &Item) -> bool {
        let before = self.all.len();
        self.all.retain(|_, watcher| watcher.items.try_send(item.clone()).is_ok());
        self.all.len() != before
    }

    pub(crate) fn tell_one(&mut self, watcher: u64, item: Item) {
        if self.all.get(&watcher).is_some_and(|watcher| watcher.items.try_send(item).is_err()) {
            self.all.remove(&watcher);
        }
    }

    /// Records that this watcher looks at the terminal through a window, and the size it asks for.
    pub(crate) fn set_view(&mut self, watcher: u64, wanted: Option<Size>) {
        if let Some(watcher) = self.all.get_mut(&watcher) {
            watcher.attached = true;
            watcher.wanted = wanted;
        }
    }

    pub(crate) fn has_views(&self) -> bool {
        self.all.values().any(|watcher| watcher.attached)
    }

    pub(crate) fn wanted_size(&self) -> Option<Size> {
        self.all.values().filter_map(|watcher| watcher.wanted).reduce(Size::smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_that_does_not_read_is_let_go() {
        let mut watchers = Watchers::default();
        let (_, mut good) = watchers.add();
        let (_, _lazy) = watchers.add();
        for offset in 0..=WAITING as u64 {
            watchers.tell(&Item::Output { offset, bytes: Bytes::from_static(b"x") });
            good.recv().await.unwrap();
        }
        assert_eq!(watchers.all.len(), 1);
    }

    #[test]
    fn smallest_size_asked_for_counts_and_other_views_ask_for_none() {
        let mut watchers = Watchers::default();
        assert_eq!(watchers.wanted_size(), None);
        let (a, _a) = watchers.add();
        let (b, _b) = watchers.add();
        let (c, _c) = watchers.add();
        assert!(!watchers.has_views());
        watchers.set_view(c, None);
        assert!(watchers.has_views());
        assert_eq!(watchers.wanted_size(), None);
        watchers.set_view(a, Some(Size::clamped(50, 100)));
        assert_eq!(watchers.wanted_size(), Some(Size::clamped(50, 100)));
        watchers.set_view(b, Some(Size::clamped(40, 120)));
        assert_eq!(watchers.wanted_size(), Some(Size::clamped(40, 100)));
        watchers.remove(a);
        assert_eq!(watchers.wanted_size(), Some(Size::clamped(40, 120)));
    }
}
