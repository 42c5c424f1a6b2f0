//! Which turn a request gets.

use crate::log::Role;
use crate::request::{Asked, Kind};
use crate::scenario::{Scenario, Turn};

pub(crate) struct Script {
    conversations: Vec<Conversation>,
}

struct Conversation {
    scenario: Scenario,
    next: usize,
    newest: Option<Newest>,
}

/// The turn that was asked for last.
struct Newest {
    fingerprint: u64,
    turn: Option<usize>,
    attempts: u32,
    answered: bool,
}

impl Script {
    pub(crate) fn new(scenarios: Vec<Scenario>) -> Self {
        let mut script = Self { conversations: Vec::new() };
        script.add(scenarios);
        script
    }

    pub(crate) fn add(&mut self, scenarios: Vec<Scenario>) {
        let of = |scenario| Conversation { scenario, next: 0, newest: None };
        self.conversations.extend(scenarios.into_iter().map(of));
    }

    /// The next turn, or the newest one again if this repeats a request that was not answered to the end: agents
    /// repeat what failed. `None`: the script has nothing for this request.
    pub(crate) fn take(&mut self, asked: &Asked) -> (Role, Option<Turn>) {
        if let Kind::Side { name, .. } = asked.kind {
            return (Role::Side(name), None);
        }
        let Some((number, conversation)) = self.find(asked) else { return (Role::Side("subagent"), None) };
        let fingerprint = asked.fingerprint();
        let repeated = conversation.newest.as_mut().filter(|n| n.fingerprint == fingerprint && !n.answered);
        let (turn, attempt) = if let Some(newest) = repeated {
            newest.attempts += 1;
            (newest.turn, newest.attempts)
        } else {
            let turn = (conversation.next < conversation.scenario.turns.len()).then_some(conversation.next);
            conversation.next += 1;
            conversation.newest = Some(Newest { fingerprint, turn, attempts: 1, answered: false });
            (turn, 1)
        };
        let steps = turn.and_then(|turn| conversation.scenario.turns.get(turn).cloned());
        (Role::Turn { scenario: number, turn, attempt }, steps)
    }

    fn find(&mut self, asked: &Asked) -> Option<(usize, &mut Conversation)> {
        let fits = |scenario: &Scenario| match &scenario.opening {
            Some(words) => asked.opening.contains(words.as_str()),
            None => asked.kind == Kind::Conversation,
        };
        // One that names this opening is meant more than one that fits any.
        let all = || self.conversations.iter().enumerate().filter(|(_, c)| fits(&c.scenario));
        let named = all().find(|(_, conversation)| conversation.scenario.opening.is_some());
        let number = named.or_else(|| all().next())?.0;
        Some((number, self.conversations.get_mut(number)?))
    }

    /// A request was answered to its end.
    pub(crate) fn answered(&mut self, role: &Role, asked: &Asked) {
        let Role::Turn { scenario, .. } = role else { return };
        let newest = self.conversations.get_mut(*scenario).and_then(|conversation| conversation.newest.as_mut());
        if let Some(newest) = newest.filter(|newest| newest.fingerprint == asked.fingerprint()) {
            newest.answered = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Step;

    fn asked(user_text: &str) -> Asked {
        Asked { opening: "first".into(), user_text: user_text.into(), ..Asked::default() }
    }

    fn turn(text: &str) -> Turn {
        Turn::of([Step::text(text)])
    }

    #[test]
    fn what_failed_is_asked_again_and_what_was_answered_is_over() {
        let mut script = Script::new(vec![Scenario::of([turn("a"), turn("b")])]);
        let take = |script: &mut Script, text| script.take(&asked(text)).0;
        let role = |turn, attempt| Role::Turn { scenario: 0, turn, attempt };
        assert_eq!(take(&mut script, "one"), role(Some(0), 1));
        assert_eq!(take(&mut script, "one"), role(Some(0), 2));
        script.answered(&role(Some(0), 2), &asked("one"));
        assert_eq!(take(&mut script, "one"), role(Some(1), 1), "the same words again are a new prompt");
        assert_eq!(take(&mut script, "two"), role(None, 1), "the script is over");
    }

    #[test]
    fn an_opening_finds_its_scenario_and_side_requests_use_nothing_up() {
        let named = Scenario { opening: Some("fir".into()), turns: vec![turn("named")] };
        let mut script = Script::new(vec![Scenario::of([turn("any")]), named]);
        let side = Asked { kind: Kind::Side { name: "title", answer: "" }, ..asked("one") };
        assert_eq!(script.take(&side).0, Role::Side("title"));
        assert_eq!(script.take(&asked("one")).1, Some(turn("named")));
        let other = Asked { opening: "else".into(), ..asked("one") };
        assert_eq!(script.take(&other).1, Some(turn("any")));
        let helper = Asked { kind: Kind::Subagent, opening: "else".into(), ..asked("two") };
        assert_eq!(script.take(&helper).0, Role::Side("subagent"));
    }
}
