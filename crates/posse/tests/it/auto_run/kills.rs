//! Runs of a backlog with random kills: every item is planned, done and archived once, and nothing is left behind.

use posse_testkit::TestEnv;

use super::*;
use crate::kills::{Killable, Random, kill_daemon, until_killed};

const ITEMS: [&str; 3] = ["1-bug", "2-more", "3-more"];

struct BacklogKills(Scene);

impl Killable for BacklogKills {
    const KIND: &'static str = "backlog";
    const KILLS_PER_RUN: u32 = 12;
    const MOMENTS: &'static [&'static str] = &[
        "scanned",
        "intake_ended",
        "launched",
        "planner_ended",
        "plan_checked",
        "plan_begun",
        "plan_ended",
        "verifier_ended",
        "logged",
        "evidence_found",
        "retired",
    ];

    /// The items are worked on one after the other, or all at once.
    fn open(seed: u64) -> Self {
        let scene = Scene::new(&ITEMS);
        scene.configure(&format!("[pipeline]\nmax_parallel_items = {}\n", if seed.is_multiple_of(2) { 1 } else { 3 }));
        ITEMS.iter().for_each(|item| scene.does(item));
        Self(scene)
    }

    fn env(&self) -> &TestEnv {
        &self.0.env
    }

    fn next(&self) -> Option<Command> {
        match self.runs::<Value>().first() {
            None => Some(self.0.command(&["--drain"])),
            Some(run) if !is_over(run) => Some(self.0.command(&["follow"])),
            Some(run) if run["outcome"] == "verified" => None,
            Some(run) => panic!("{run:#}"),
        }
    }

    /// There is nothing else to kill.
    fn kill_special(&self, _: &mut Random) -> u32 {
        kill_daemon(&self.0.env)
    }

    fn check(&self, _: bool) {
        let scene = &self.0;
        assert_eq!(scene.claude.sessions(), 10);
        scene.archived_once(&ITEMS);
    }
}

#[test]
fn kills_do_not_change_the_end_of_a_backlog() {
    until_killed::<BacklogKills>(8);
}

#[test]
#[ignore = "takes minutes: ./test --full"]
fn two_hundred_kills_do_not_change_the_end_of_a_backlog() {
    until_killed::<BacklogKills>(200);
}
