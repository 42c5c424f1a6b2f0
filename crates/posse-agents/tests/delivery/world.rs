//! Simulated time between posse and a program: keys travel, frames are late, cut or lost, the program stalls.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use posse_core::delivery::{Answer, Effect, Event, KeyId, Prompt, Seen, Showing};
use posse_core::detect::Reading;
use posse_core::status::{Claim, Status, StatusKind};
use posse_core::time::{Mono, Wall};

use crate::program::{DEAF, Plan, Program};
use crate::rows::{Eye, Kind, Picture};

/// Whoever else types.
pub(crate) const HUMAN: usize = usize::MAX;

/// Nobody answers sooner than this.
const REACTION: u64 = 300;

/// SplitMix64.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// In so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// How bad things are in this trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// From the program's drawing to our emulator, at most.
    pub(crate) transit: u64,
    /// From our write to the program's reading, at most. Together they are less than the 200 ms for which a new dialog of
    /// Claude Code 2.1.325 is deaf: that is the assumption.
    pub(crate) travel: u64,
    /// From the emulator to a look, at most: up to 250 ms in a flood of output.
    pub(crate) frame: u64,
    /// How many of a hundred frames are not looked at.
    pub(crate) lost: u64,
    /// How many of a hundred changes of view are seen half drawn.
    pub(crate) cut: u64,
    /// How many of a hundred times it stalls between taking a key and drawing, and for how long at most.
    pub(crate) hiccup: u64,
    pub(crate) longest_stall: u64,
    /// Whether it tells us out of band that it works or asks.
    pub(crate) claims: bool,
}

#[derive(Clone, Debug)]
enum Item {
    /// There is something to read.
    Keys,
    Acked(usize, KeyId),
    Plan(Plan),
    Human,
    Redraw,
    Look,
    Frame,
    Said(Claim),
    Stall(u64),
}

/// What the emulator holds from some time on.
struct Shown {
    from: u64,
    picture: Picture,
    read: Read,
    printed: u64,
    dialog: Option<usize>,
}

type Read = Rc<(Reading, Option<String>)>;

pub(crate) enum Machine {
    Prompt(Prompt),
    Answer(Answer),
}

/// What came of it.
pub(crate) type Outcome = Result<(), posse_core::delivery::Failure>;
pub(crate) type AnswerOutcome = Result<posse_core::delivery::Answered, posse_core::delivery::Unanswered>;

pub(crate) enum Over {
    Prompt(Outcome),
    Answer(AnswerOutcome),
}

pub(crate) struct World<'e> {
    pub(crate) now: u64,
    pub(crate) dice: Dice,
    pub(crate) program: Program,
    pub(crate) trace: bool,
    eye: &'e mut Eye,
    weather: Weather,
    items: BTreeMap<(u64, u64), Item>,
    sequence: u64,
    shown: Vec<Shown>,
    arrival: u64,
    stalled: u64,
    status: Status,
    pub(crate) asked: Option<Showing>,
    order: usize,
    machine: Option<Machine>,
    over: Option<Over>,
    pub(crate) last: Option<Read>,
    /// What was typed, in order, by which order.
    unread: VecDeque<(usize, Vec<u8>)>,
}

impl<'e> World<'e> {
    pub(crate) fn new(kind: Kind, eye: &'e mut Eye, dice: Dice, weather: Weather, now: u64) -> Self {
        let status = Status { epoch: 1, ..Status::new(StatusKind::Completed, "", Wall(0)) };
        Self {
            now,
            dice,
            program: Program::new(kind, now),
            trace: false,
            eye,
            weather,
            items: BTreeMap::new(),
            sequence: 0,
            shown: Vec::new(),
            arrival: 0,
            stalled: 0,
            status,
            asked: None,
            order: 0,
            machine: None,
            over: None,
            last: None,
            unread: VecDeque::new(),
        }
    }

    pub(crate) fn longest_stall(&self) -> u64 {
        self.weather.longest_stall
    }

    fn say(&self, what: impl FnOnce() -> String) {
        if self.trace {
            println!("{:6} {}", self.now, what());
        }
    }

    fn at(&mut self, time: u64, item: Item) {
        self.sequence += 1;
        self.items.insert((time, self.sequence), item);
    }

    pub(crate) fn plan(&mut self, after: u64, plan: Plan) {
        self.at(self.now + after, Item::Plan(plan));
    }

    pub(crate) fn human(&mut self, after: u64) {
        self.at(self.now + after, Item::Human);
    }

    pub(crate) fn stall(&mut self, after: u64, length: u64) {
        self.at(self.now + after, Item::Stall(length));
    }

    /// The program has drawn something.
    pub(crate) fn drawn(&mut self) {
        let picture = self.program.picture();
        let (printed, dialog) = (self.program.printed, self.program.open_dialog().map(|(number, _)| number));
        let before = self.shown.last();
        let same = before.is_some_and(|shown| shown.picture == picture && shown.dialog == dialog);
        let turned = before.is_some_and(|shown| shown.dialog != dialog);
        let after = before.map_or(0, |shown| shown.from);
        if !same {
            let mut from = after.max(self.now + self.dice.below(self.weather.transit + 1));
            if turned && self.dice.chance(self.weather.cut) {
                let cut = Picture { cut: Some(self.dice.below(14) as usize), ..picture.clone() };
                let read = self.eye.read(&cut);
                self.shown.push(Shown { from, picture: cut, read, printed: printed - 1, dialog: None });
                from += self.dice.between(3, 15);
            }
            self.say(|| format!("drawn, seen from {from}: {picture:?}"));
            let read = self.eye.read(&picture);
            self.shown.push(Shown { from, picture, read, printed, dialog });
            if !self.dice.chance(self.weather.lost) {
                let look = from + self.dice.below(self.weather.frame + 1);
                self.at(look, Item::Frame);
            }
        }
        self.plans();
    }

    /// What it will do, and what it says.
    fn plans(&mut self) {
        for (after, plan) in std::mem::take(&mut self.program.plans) {
            if matches!(plan, Plan::Draw(_)) && self.weather.claims {
                let at = self.now + self.dice.between(1, 30);
                self.at(at, Item::Said(Claim::Asking(None)));
            }
            self.plan(after, plan);
        }
        if std::mem::take(&mut self.program.says_working) && self.weather.claims {
            let at = self.now + self.dice.between(1, 62);
            self.at(at, Item::Said(Claim::Working));
        }
    }

    fn visible(&mut self) -> &Shown {
        let now = self.now;
        let at = self.shown.iter().rposition(|shown| shown.from <= now).unwrap_or(0);
        self.shown.drain(..at);
        &self.shown[0]
    }

    /// Looks, and brings what is believed up to date.
    pub(crate) fn look(&mut self) -> (Read, bool, u64, Option<usize>) {
        let shown = self.visible();
        let (about_to_ask, printed, dialog) = (shown.picture.about_to_ask, shown.printed, shown.dialog);
        let read = shown.read.clone();
        let kind = read.0.status.unwrap_or(self.status.kind);
        if kind != self.status.kind || self.status.waiting_kind != read.0.waiting_kind {
            self.status.kind = kind;
            self.status.waiting_kind = read.0.waiting_kind;
            self.status.epoch += 1;
        }
        Showing::follow(&mut self.asked, &read.0, Mono(Duration::from_millis(self.now)));
        self.last = Some(read.clone());
        (read, about_to_ask, printed, dialog)
    }

    pub(crate) fn start(&mut self, order: usize, machine: Machine) {
        self.order = order;
        self.machine = Some(machine);
        self.over = None;
    }

    fn read(&mut self) -> Result<(), String> {
        let (read, about_to_ask, printed, _) = self.look();
        let status = self.status.clone();
        let (reading, echo) = (&read.0, read.1.as_deref());
        let seen = Seen { reading, status: &status, about_to_ask, echo, cursor_row: None, plain: false, printed };
        self.feed(Event::Read(seen))
    }

    fn feed(&mut self, event: Event<'_>) -> Result<(), String> {
        let now = Mono(Duration::from_millis(self.now));
        if self.machine.is_some() {
            self.say(|| format!("{event:?}"));
        }
        let is_time = matches!(event, Event::Time);
        let (effects, deadline) = match &mut self.machine {
            None => return Ok(()),
            Some(Machine::Prompt(prompt)) => {
                let effects = prompt.handle(event, now).into_iter().map(|effect| map(effect, Over::Prompt));
                (effects.collect::<Vec<_>>(), prompt.deadline())
            }
            Some(Machine::Answer(answer)) => {
                let effects = answer.handle(event, now).into_iter().map(|effect| map(effect, Over::Answer));
                (effects.collect(), answer.deadline())
            }
        };
        if is_time && deadline.is_some_and(|deadline| deadline <= now) {
            return Err("the deadline does not move on".into());
        }
        for effect in effects {
            if self.over.is_some() {
                return Err("an effect after the end".into());
            }
            self.carry_out(effect)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect<Over>) -> Result<(), String> {
        match effect {
            Effect::Type { id, bytes } => {
                self.say(|| format!("type {}", bytes.escape_ascii()));
                self.check_key(&bytes)?;
                let acked = self.now + self.dice.between(1, 5);
                self.at(acked, Item::Acked(self.order, id));
                self.arrival = self.arrival.max(self.now + 1 + self.dice.below(self.weather.travel));
                self.unread.push_back((self.order, bytes));
                self.at(self.arrival, Item::Keys);
            }
            Effect::Look => self.at(self.now, Item::Look),
            Effect::Over(over) => self.over = Some(over),
        }
        Ok(())
    }

    /// No key that could answer without a look that shows what it answers.
    fn check_key(&self, bytes: &[u8]) -> Result<(), String> {
        let Some(last) = &self.last else { return Err("a key without a look".into()) };
        let asked = posse_core::delivery::question(&last.0).is_some();
        match &self.machine {
            Some(Machine::Prompt(_))
                if bytes == b"\r" && (asked || last.0.draft.as_deref().is_none_or(str::is_empty)) =>
            {
                Err("Enter without a draft in sight, or with a question".into())
            }
            Some(Machine::Answer(_)) if !asked => Err("an answer without a question in sight".into()),
            _ => Ok(()),
        }
    }

    /// Runs until the machine is over, or until `until`.
    pub(crate) fn run(&mut self, until: Option<u64>) -> Result<Option<Over>, String> {
        loop {
            if let Some(over) = self.over.take() {
                self.machine = None;
                return Ok(Some(over));
            }
            let deadline = match &self.machine {
                Some(Machine::Prompt(prompt)) => prompt.deadline(),
                Some(Machine::Answer(answer)) => answer.deadline(),
                None => None,
            };
            let deadline = deadline.map_or(u64::MAX, |deadline| deadline.0.as_millis() as u64).max(self.now);
            let next = self.items.first_key_value().map_or(u64::MAX, |((at, _), _)| *at).max(self.now);
            let time = deadline.min(next);
            if until.is_some_and(|until| time > until) || time == u64::MAX {
                self.now = until.unwrap_or(self.now);
                return Ok(None);
            }
            if time > 600_000 {
                return Err("it does not end".into());
            }
            self.now = time;
            if next <= deadline {
                let (_, item) = self.items.pop_first().unwrap();
                self.happen(item)?;
            } else {
                self.feed(Event::Time)?;
            }
        }
    }

    /// Until every key has been read.
    pub(crate) fn drain(&mut self) -> Result<(), String> {
        while !self.unread.is_empty() {
            self.run(Some(self.now + 20))?;
        }
        Ok(())
    }

    fn happen(&mut self, item: Item) -> Result<(), String> {
        let of_program = matches!(item, Item::Keys | Item::Plan(_) | Item::Human | Item::Redraw);
        if of_program && self.now < self.stalled {
            // Everything else may come before or after the keys.
            let late = if matches!(item, Item::Keys) { 2 } else { self.dice.below(5) };
            let at = self.stalled + late;
            self.at(at, item);
            return Ok(());
        }
        match item {
            Item::Keys => {
                let Some((order, bytes)) = self.unread.pop_front() else { return Ok(()) };
                let (chance, facts) = (self.dice.below(100), self.program.facts.len());
                self.program.keys(order, &bytes, self.now, chance);
                if self.program.facts.len() > facts && self.dice.chance(self.weather.hiccup) {
                    // It has taken the key, and does not get round to drawing.
                    self.stalled = self.now + self.dice.between(50, self.weather.longest_stall);
                    self.at(self.stalled, Item::Redraw);
                    self.plans();
                } else {
                    self.drawn();
                }
            }
            Item::Plan(plan) => {
                self.program.carry_out(plan, self.now);
                self.drawn();
            }
            Item::Human => {
                if let Some((_, ask)) =
                    self.program.open_dialog().filter(|_| self.program.open_for(self.now) >= Some(REACTION))
                {
                    let option = self.dice.below(ask.options.len() as u64) as usize;
                    self.say(|| "the human answers".into());
                    self.program.choose(HUMAN, Some(option), self.now);
                    self.drawn();
                }
            }
            Item::Redraw => self.drawn(),
            // Not in the moment for which a new dialog is deaf: a key that is read after it would be taken, and a look
            // from before the dialog cannot know. That is the other half of the assumption.
            Item::Stall(_) if self.program.open_for(self.now).is_some_and(|age| age <= DEAF) => {}
            Item::Stall(length) => self.stalled = self.now + length,
            Item::Acked(order, id) if order == self.order => self.feed(Event::Typed(id))?,
            Item::Acked(..) => {}
            Item::Look | Item::Frame => self.read()?,
            Item::Said(claim) => self.feed(Event::Said(&claim))?,
        }
        Ok(())
    }
}

fn map<T>(effect: Effect<T>, over: impl Fn(T) -> Over) -> Effect<Over> {
    match effect {
        Effect::Type { id, bytes } => Effect::Type { id, bytes },
        Effect::Look => Effect::Look,
        Effect::Over(outcome) => Effect::Over(over(outcome)),
    }
}
