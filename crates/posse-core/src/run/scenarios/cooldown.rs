//! What a run accepts is counted by turns, and slowed down by terminals.

use super::*;
use crate::permission::{CAP, COOLDOWN};

impl Bench {
    /// The terminal of this turn asks for a permission.
    fn asks(&mut self, question: &str) -> Vec<String> {
        let terminal = self.run.turn().unwrap().terminal;
        self.happens(RunEvent::Status { terminal, seen: permission(question) })
    }

    /// The turn that is under way is answered, and the next one has its prompt.
    fn answered(&mut self, text: &str) {
        let turn = self.run.turns;
        self.status(Completed);
        self.turn(Event::File(Look::Ready(text.into())));
        self.happens(RunEvent::Archived { turn, name: None });
        assert_eq!(self.run.turns, turn + 1);
        self.ask();
    }

    fn since_accept(&self, terminal: TerminalId) -> Option<Duration> {
        let now = Wall(self.now.as_millis() as i64 + self.moved);
        self.run.last_accepts.get(&terminal).map(|at| now.since(*at))
    }
}

#[test]
fn s_145_s_146_accepts_are_counted_by_turns_and_cooldowns_by_terminals() {
    for dies in [false, true] {
        let mut bench = Bench::asked(r#"{"handoff": {"auto_accept_permissions": true}}"#);
        let analyst = bench.run.turn().unwrap().terminal;
        assert_eq!(bench.since_accept(analyst), None);
        for n in 1..=CAP {
            bench.now += COOLDOWN;
            assert_eq!(bench.asks(&format!("a{n}")), ["accepting", &format!("accept {n}")]);
            assert_eq!(bench.turn(Event::Accepted(Ok(()))), ["accepted"]);
        }
        let last = bench.now;
        bench.now += Duration::from_secs(1);
        assert_eq!(bench.since_accept(analyst), Some(Duration::from_secs(1)));

        // S-146: the other terminal has accepted nothing, and is not slowed down by the first.
        bench.answered("ANALYST_SUMMARY");
        let reviewer = bench.run.turn().unwrap().terminal;
        assert_ne!(reviewer, analyst);
        assert_eq!((bench.run.turn().unwrap().accepts, bench.since_accept(reviewer)), (0, None));
        assert_eq!(bench.asks("b"), ["accepting", "accept 1"]);
        bench.turn(Event::Accepted(Ok(())));
        bench.now += Duration::from_secs(1);
        let both = (bench.since_accept(analyst), bench.since_accept(reviewer));
        assert_eq!(both, (Some(Duration::from_secs(2)), Some(Duration::from_secs(1))));

        // S-145: the next turn in the first terminal counts anew, and waits as long as the last accept is young.
        bench.answered(APPROVED);
        if dies {
            bench.dies();
            bench.go(&all());
        }
        let turn = bench.run.turn().unwrap();
        assert_eq!((turn.terminal, turn.accepts), (analyst, 0));
        assert_eq!(bench.asks("c"), [""; 0], "dies: {dies}");
        bench.now = last + COOLDOWN - Duration::from_millis(1);
        assert_eq!(bench.happens(RunEvent::Time), [""; 0], "dies: {dies}");
        bench.now = last + COOLDOWN;
        assert_eq!(bench.happens(RunEvent::Time), ["accepting", "accept 1"], "dies: {dies}");
    }
}
