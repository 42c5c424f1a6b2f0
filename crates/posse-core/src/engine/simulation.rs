//! A daemon that crashes at any entry of its journal, for the simulations of all workflows.

use super::Machine;
use crate::time::Wall;

/// The moment of a crash while the daemon handles an input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dies {
    /// The input is not durable yet.
    BeforeDurable,
    /// The input is durable, but no effect was carried out.
    BeforeActing,
    /// Half of the effects were carried out.
    Midway,
    /// All effects were carried out.
    AfterActing,
}

impl Dies {
    pub(crate) const ALL: [Self; 4] = [Self::BeforeDurable, Self::BeforeActing, Self::Midway, Self::AfterActing];
}

/// The world outside the daemon, which survives a crash.
pub(crate) trait World: Sized {
    type Run: Machine<Input: Clone>;

    /// Returns the run before its first input.
    fn new_run(&self) -> Self::Run;

    /// Returns the run that a journal describes.
    fn read_back(&self, journal: &Journal<Self>) -> Self::Run {
        let mut run = self.new_run();
        for (input, at) in journal.iter().cloned() {
            run.handle(input, at);
        }
        run
    }

    /// Marks an input as durable: it is not sent again.
    fn durable(&mut self, _input: &<Self::Run as Machine>::Input) {}

    /// Checks the invariants after every input.
    fn check(&mut self, daemon: &Daemon<Self>, effects: &[<Self::Run as Machine>::Effect]);

    /// Carries out an effect, or finds that it was carried out.
    fn perform(&mut self, run: &Self::Run, effect: &<Self::Run as Machine>::Effect);

    /// Called after a restarted daemon has replayed the run.
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

    /// Handles an input. If the daemon crashes, only the journal and the world remain, and a new daemon starts.
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
