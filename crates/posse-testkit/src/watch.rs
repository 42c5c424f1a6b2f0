//! Looks at a terminal's screen through the daemon, each time something was printed.

use std::time::{Duration, Instant};

use posse_core::ids::TerminalId;
use posse_core::screen::Screen;

use crate::TestEnv;
use crate::stream::Stream;

/// Of what a terminal shows.
pub struct Watch<'a> {
    env: &'a TestEnv,
    pub id: TerminalId,
    /// Signs of life. The screens come from the daemon, as it sees them.
    stream: Stream,
}

impl<'a> Watch<'a> {
    #[track_caller]
    pub fn new(env: &'a TestEnv, id: TerminalId) -> Self {
        let stream = Stream::open(&env.http(), id, None, 1).unwrap_or_else(|error| panic!("no stream: {error}"));
        Self { env, id, stream }
    }

    #[track_caller]
    pub fn screen(&self) -> Screen {
        let screen = self.env.http().get(&format!("/terminals/{}/screen", self.id));
        screen.unwrap_or_else(|error| panic!("no screen: {error}"))
    }

    /// Waits until the screen fits. `None`: it did not in time.
    pub fn fits_within(&mut self, patience: Duration, fits: impl Fn(&Screen) -> bool) -> Option<Screen> {
        let give_up = Instant::now() + patience;
        loop {
            let screen = self.screen();
            if fits(&screen) {
                return Some(screen);
            }
            let left = give_up.saturating_duration_since(Instant::now());
            // What was printed before this screen was taken may come now; then we look once more than needed.
            if left.is_zero() || self.stream.set_timeout(left).is_err() || self.stream.next_item().is_err() {
                let screen = self.screen();
                return fits(&screen).then_some(screen);
            }
        }
    }

    /// Waits until the screen fits; it has to.
    #[track_caller]
    pub fn until(&mut self, what: &str, patience: Duration, fits: impl Fn(&Screen) -> bool) -> Screen {
        if let Some(screen) = self.fits_within(patience, fits) {
            return screen;
        }
        let screen = self.screen();
        panic!("never came: {what}; title {:?}, the terminal shows:\n{}", screen.title, screen.text());
    }

    /// Pastes text, without Enter.
    #[track_caller]
    pub fn paste(&self, text: &str) {
        self.env.run(["send", "--no-enter", self.id.as_str(), text]).ok();
    }

    /// Presses a key, by its name.
    #[track_caller]
    pub fn press(&self, key: &str) {
        self.env.run(["send", self.id.as_str(), "--key", key]).ok();
    }
}
