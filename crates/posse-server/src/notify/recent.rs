//! Which notices are told: whoever says the same thing all the time is heard once a minute.

use std::collections::VecDeque;
use std::time::Duration;

use posse_core::rounds::config::Notifications;
use posse_core::time::Mono;

use super::Notice;

/// The same words are not told again so soon.
const SAME: Duration = Duration::from_secs(60);
/// So many may be on their way. Each takes some seconds at most, so more of them are a mistake.
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Recent {
    /// What was told last, the oldest first.
    told: VecDeque<(Mono, Notifications, Notice)>,
    on_their_way: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    Yes,
    Same,
    TooMany,
}

impl Recent {
    /// Whether this is told. If so, `told` is due when it is through.
    pub(super) fn admit(&mut self, channels: &Notifications, notice: &Notice, now: Mono) -> Admitted {
        while self.told.front().is_some_and(|(at, ..)| *at + SAME <= now) {
            self.told.pop_front();
        }
        if self.told.iter().any(|(_, where_to, what)| (where_to, what) == (channels, notice)) {
            return Admitted::Same;
        }
        if self.on_their_way >= MOST {
            return Admitted::TooMany;
        }
        self.on_their_way += 1;
        self.told.push_back((now, channels.clone(), notice.clone()));
        Admitted::Yes
    }

    pub(super) fn told(&mut self) {
        self.on_their_way -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(text: &str) -> Notice {
        Notice { event: "failed", priority: 3, title: "plan".into(), text: text.into(), run: Some("r1".into()) }
    }

    #[test]
    fn the_same_words_are_told_once_a_minute() {
        let mut recent = Recent::default();
        let (here, there) =
            (Notifications::default(), Notifications { webhook: "https://there".into(), ..Default::default() });
        let other_run = Notice { run: Some("r2".into()), ..notice("a") };
        for (seconds, channels, notice, admitted) in [
            (0, &here, notice("a"), Admitted::Yes),
            (1, &here, notice("a"), Admitted::Same),
            (1, &here, notice("b"), Admitted::Yes),
            (1, &here, other_run, Admitted::Yes),
            (1, &there, notice("a"), Admitted::Yes),
            (59, &here, notice("a"), Admitted::Same),
            // A minute after it was told, not after it was said last.
            (60, &here, notice("a"), Admitted::Yes),
            (60, &here, notice("b"), Admitted::Same),
        ] {
            let now = Mono(Duration::from_secs(seconds));
            assert_eq!(recent.admit(channels, &notice, now), admitted, "{seconds} {notice:?}");
        }
    }

    #[test]
    fn not_too_many_at_a_time() {
        let (mut recent, channels, now) = (Recent::default(), Notifications::default(), Mono(Duration::ZERO));
        let tell = |recent: &mut Recent, n: usize| recent.admit(&channels, &notice(&n.to_string()), now);
        assert!((0..MOST).all(|n| tell(&mut recent, n) == Admitted::Yes));
        assert_eq!(tell(&mut recent, MOST), Admitted::TooMany);
        recent.told();
        assert_eq!(tell(&mut recent, MOST), Admitted::Yes, "what was not told is not taken for told");
    }
}
