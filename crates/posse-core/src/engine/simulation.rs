//! A daemon that is killed at any place of its journal, for the simulated worlds of all workflows.

use super::Machine;
use crate::time::Wall;

/// Where the daemon dies of an input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dies {
    /// The input is not durable yet.
    BeforeDurable,
    /// It is durable, and nothing was done about it.
    BeforeActing,
    /// Half of what it asks for is done.
    Midway,
    /// All of it is done.
    AfterActing,
}

impl Dies {
    pub(crate) const ALL: [Self; 4] = [Self::BeforeDurable, Self::BeforeActing, Self::Midway, Self::AfterActing];
}

/// What is outside of the daemon and survives it.
pub(crate) trait World: Sized {
    type Run: Machine<Input: Clone>;

    /// The run before its first input.
    fn new_run(&self) -> Self::Run;

    /// The run that a journal tells of.
    fn read_back(&self, journal: &Journal<Self>) -> Self::Run {
        let mut run = self.new_run();
        for (input, at) in journal.iter().cloned() {
            run.handle(input, at);
        }
        run
    }

    /// An input is durable: nobody says it again.
    fn durable(&mut self, _input: &<Self::Run as Machine>::Input) {}

    /// Checks what must hold after every input.
    fn check(&mut self, daemon: &Daemon<Self>, effects: &[<Self::Run as Machine>::Effect]);

    /// Carries out an effect, or finds that it was done.
    fn perform(&mut self, run: &Self::Run, effect: &<Self::Run as Machine>::Effect);

    /// Another daemon has read the run back.
    fn returned(&mut self, daemon: &Daemon<Self>) {
        for effect in daemon.run.outstanding() {
            self.perform(&daemon.run, effect);
        }
    }
}

pub(crate) type Journal<W> = Vec<(<<W as World>::Run as Machine>::Input, Wall)>;

/// A daemon with one run.
pub(crate) struct Daemon<W: World> {
    pub(crate) run: W::Run,
    pub(crate) journal: Journal<W>,
}

impl<W: World<Run: Clone>> Clone for Daemon<W> {
    fn clone(&self) -> Self {
        Self { run: self.run.clone(), journal: self.journal.clone() }
    }
}

impl<W: World> Daemon<W> {
    pub(crate) fn new(world: &W) -> Self {
        Self { run: world.new_run(), journal: Vec::new() }
    }

    /// Handles an input. If the daemon dies of it, only the journal and the world are left, and another one begins.
    pub(crate) fn handle(&mut self, world: &mut W, input: <W::Run as Machine>::Input, now: Wall, dies: Option<Dies>) {
        if dies != Some(Dies::BeforeDurable) {
            world.durable(&input);
            self.journal.push((input.clone(), now));
        }
        if !matches!(dies, Some(Dies::BeforeDurable | Dies::BeforeActing)) {
            let effects = self.run.handle(input, now);
            world.check(self, &effects);
            let enough = if dies == Some(Dies::Midway) { effects.len() / 2 } else { effects.len() };
            effects[..enough].iter().for_each(|effect| world.perform(&self.run, effect));
        }
        if dies.is_some() {
            self.run = world.read_back(&self.journal);
            world.returned(self);
        }
    }
}
