//! The callbacks of vt100, and the queue of signals that they fill.

use posse_core::signal::Signal;

use super::history::{History, HistoryLimit};

/// The maximum number of signals kept from one call of `feed`.
pub(super) const SIGNALS_MAX: usize = 1024;

pub(super) struct EmulatorCallbacks {
    pub(super) signals: SignalQueue,
    pub(super) history: History,
    /// The number of rows that scroll off next and are not kept, see `bulk_lines`.
    pub(super) blank_rows: usize,
}

impl EmulatorCallbacks {
    pub(super) fn new(limit: HistoryLimit) -> Self {
        Self { signals: SignalQueue::default(), history: History::new(limit), blank_rows: 0 }
    }
}

impl vt100::Callbacks for EmulatorCallbacks {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.signals.push(Signal::Bell);
    }

    fn visual_bell(&mut self, _: &mut vt100::Screen) {
        self.signals.push(Signal::Bell);
    }

    /// vt100 knows the sequences it is given; this one has a parameter that it does not know.
    fn unhandled_csi(&mut self, _: &mut vt100::Screen, i1: Option<u8>, i2: Option<u8>, parameters: &[&[u16]], c: char) {
        // An attribute that cannot be shown (blinking, struck out) is no signal.
        if c == 'm' {
            return;
        }
        let parameters: Vec<_> =
            parameters.iter().map(|p| p.iter().map(u16::to_string).collect::<Vec<_>>().join(":")).collect();
        let (private, intermediates): (Vec<_>, Vec<_>) = [i1, i2].into_iter().flatten().partition(|b| *b >= b'<');
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let sequence = format!("{}{}{}{c}", text(private), parameters.join(";"), text(intermediates));
        self.signals.push(Signal::UnknownCsi { sequence });
    }

    fn on_scroll(&mut self, row: vt100::capture::RowContents<'_>, alternate_screen: bool) {
        if self.blank_rows > 0 {
            self.blank_rows -= 1;
        } else if !alternate_screen {
            self.history.push(&row);
        }
    }
}

/// Signals in order, never more than [`SIGNALS_MAX`].
#[derive(Default)]
pub(super) struct SignalQueue {
    list: std::collections::VecDeque<Signal>,
    unknown: usize,
}

impl SignalQueue {
    pub(super) fn push(&mut self, signal: Signal) {
        let unknown = is_unknown(&signal);
        if self.list.len() >= SIGNALS_MAX {
            if unknown {
                return;
            }
            if self.unknown > 0 {
                self.list.retain(|signal| !is_unknown(signal));
                self.unknown = 0;
            } else {
                // Signals are edges: the last title matters more than the first.
                self.list.pop_front();
            }
        }
        self.unknown += usize::from(unknown);
        self.list.push_back(signal);
    }

    pub(super) fn take(&mut self) -> Vec<Signal> {
        self.unknown = 0;
        std::mem::take(&mut self.list).into()
    }
}

fn is_unknown(signal: &Signal) -> bool {
    matches!(signal, Signal::UnknownOsc { .. } | Signal::UnknownCsi { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(n: usize) -> Signal {
        Signal::Title { title: n.to_string() }
    }

    fn unknown() -> Signal {
        Signal::UnknownOsc { payload: "8;;".to_owned() }
    }

    #[test]
    fn of_a_flood_the_unknown_go_first_then_the_oldest() {
        let mut signals = SignalQueue::default();
        for n in 0..SIGNALS_MAX / 2 {
            signals.push(title(n));
            signals.push(unknown());
        }
        signals.push(unknown());
        signals.push(title(7));
        let mut expected: Vec<_> = (0..SIGNALS_MAX / 2).map(title).collect();
        expected.push(title(7));
        assert_eq!(signals.take(), expected);

        (0..SIGNALS_MAX + 3).for_each(|n| signals.push(title(n)));
        let kept = signals.take();
        assert_eq!(
            (kept.len(), kept.first(), kept.last()),
            (SIGNALS_MAX, Some(&title(3)), Some(&title(SIGNALS_MAX + 2)))
        );
    }
}
