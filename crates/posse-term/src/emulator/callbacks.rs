//! The callbacks of vt100: bells, and rows that scroll off.

use std::collections::VecDeque;

use posse_core::signal::Signal;

use super::history::{History, HistoryLimit};

/// The maximum number of signals kept from one call of `feed`.
const SIGNALS_MAX: usize = 1024;

pub(super) struct EmulatorCallbacks {
    pub(super) signals: VecDeque<Signal>,
    pub(super) history: History,
    /// The number of rows that scroll off next and are not kept, see `bulk_lines`.
    pub(super) blank_rows: usize,
}

impl EmulatorCallbacks {
    pub(super) fn new(limit: HistoryLimit) -> Self {
        Self { signals: VecDeque::new(), history: History::new(limit), blank_rows: 0 }
    }

    /// Adds a signal. Signals are edges: the last title matters more than the first.
    pub(super) fn push(&mut self, signal: Signal) {
        if self.signals.len() == SIGNALS_MAX {
            self.signals.pop_front();
        }
        self.signals.push_back(signal);
    }
}

impl vt100::Callbacks for EmulatorCallbacks {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.push(Signal::Bell);
    }

    fn visual_bell(&mut self, _: &mut vt100::Screen) {
        self.push(Signal::Bell);
    }

    fn on_scroll(&mut self, row: vt100::capture::RowContents<'_>, alternate_screen: bool) {
        if self.blank_rows > 0 {
            self.blank_rows -= 1;
        } else if !alternate_screen {
            self.history.push(&row);
        }
    }
}
