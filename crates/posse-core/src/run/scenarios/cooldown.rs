//! Accepts are counted per turn and throttled per terminal.

use super::*;
use crate::permission::{CAP, COOLDOWN};

impl Bench {
    /// Returns the turn's terminal, its number of accepts, and the age of the terminal's last accept.
    fn accepts(&self) -> (TerminalId, u32, Option<Duration>) {
        let turn = self.run.turn().unwrap();
        (turn.terminal, turn.accepts, self.since_accept(turn.terminal))
    }

    fn since_accept(&self, terminal: TerminalId) -> Option<Duration> {
        self.run.accepted.get(&terminal).map(|at| Mono(self.now).since(*at))
    }
}

#[test]
fn s_145_s_146_accepts_are_counted_by_turns_and_cooldowns_by_terminals() {
    let second = Duration::from_secs(1);
    // Whatever becomes of the clock on the wall in between.
    for (dies, moved) in [("", 0), ("", HOUR), ("", -HOUR), ("dies\ngo", 0), ("dies\ngo", -HOUR)] {
        let mut bench = play(ACCEPTS, "asked");
        let (analyst, 0, None) = bench.accepts() else { panic!("{:?}", bench.accepts()) };
        for n in 1..=CAP {
            bench.play(&format!("wait 5\nasks a{n} -> accepting, accept {n}\naccepted -> accepted"));
        }
        let last = bench.now;
        bench.play("wait 1");
        assert_eq!(bench.since_accept(analyst), Some(second));

        // S-146: the other terminal has accepted nothing, and is not slowed down by the first.
        bench.play("completed\nfile ANALYST_SUMMARY\narchived\nask");
        let (reviewer, 0, None) = bench.accepts() else { panic!("{:?}", bench.accepts()) };
        assert_ne!(reviewer, analyst);
        bench.play("asks b -> accepting, accept 1\naccepted\nwait 1");
        assert_eq!([analyst, reviewer].map(|terminal| bench.since_accept(terminal)), [Some(2 * second), Some(second)]);

        // S-145: the next turn in the first terminal counts anew, and waits as long as the last accept is young.
        bench.play("completed");
        bench.turn(Event::File(Look::Ready(APPROVED.into())));
        bench.moved = moved;
        bench.play(&format!("archived\nask\n{dies}"));
        assert_eq!((bench.accepts().0, bench.accepts().1), (analyst, 0));
        bench.play("asks c ->");
        bench.now = last + COOLDOWN - Duration::from_millis(1);
        bench.play("time ->");
        bench.now = last + COOLDOWN;
        bench.play("time -> accepting, accept 1");
    }
}
