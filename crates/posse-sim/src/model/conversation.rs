//! Selects the turn for a request.

use crate::model::request::{ModelRequest, RequestKind, RequestRole};
use crate::scenario::{Scenario, ScriptTurn};

pub(crate) struct ConversationScript {
    conversations: Vec<ScriptedConversation>,
}

struct ScriptedConversation {
    scenario: Scenario,
    next: usize,
    newest: Option<LastTurn>,
}

struct LastTurn {
    fingerprint: u64,
    turn: Option<usize>,
    attempts: u32,
    answered: bool,
}

impl ConversationScript {
    pub(crate) fn new(scenarios: Vec<Scenario>) -> Self {
        let mut script = Self { conversations: Vec::new() };
        script.add(scenarios);
        script
    }

    pub(crate) fn add(&mut self, scenarios: Vec<Scenario>) {
        let of = |scenario| ScriptedConversation { scenario, next: 0, newest: None };
        self.conversations.extend(scenarios.into_iter().map(of));
    }

    /// Returns the next turn. An agent repeats a request that failed: then the last turn is returned again. `None` means
    /// that the script has no turn for this request.
    pub(crate) fn take(&mut self, asked: &ModelRequest) -> (RequestRole, Option<ScriptTurn>) {
        if let RequestKind::Side { name, .. } = asked.kind {
            return (RequestRole::Side(name), None);
        }
        let Some((number, conversation)) = self.find(asked) else { return (RequestRole::Side("subagent"), None) };
        let fingerprint = asked.fingerprint();
        let repeated = conversation.newest.as_mut().filter(|n| n.fingerprint == fingerprint && !n.answered);
        let (turn, attempt) = if let Some(newest) = repeated {
            newest.attempts += 1;
            (newest.turn, newest.attempts)
        } else {
            let turn = (conversation.next < conversation.scenario.turns.len()).then_some(conversation.next);
            conversation.next += 1;
            conversation.newest = Some(LastTurn { fingerprint, turn, attempts: 1, answered: false });
            (turn, 1)
        };
        let steps = turn.and_then(|turn| conversation.scenario.turns.get(turn).cloned());
        (RequestRole::Turn { scenario: number, turn, attempt }, steps)
    }

    fn find(&mut self, asked: &ModelRequest) -> Option<(usize, &mut ScriptedConversation)> {
        let fits = |scenario: &Scenario| match &scenario.opening {
            Some(words) => asked.opening.contains(words.as_str()),
            None => asked.kind == RequestKind::Conversation,
        };
        // A scenario with this opening precedes one without an opening.
        let all = || self.conversations.iter().enumerate().filter(|(_, c)| fits(&c.scenario));
        let named = all().find(|(_, conversation)| conversation.scenario.opening.is_some());
        let number = named.or_else(|| all().next())?.0;
        Some((number, self.conversations.get_mut(number)?))
    }

    pub(crate) fn answered(&mut self, asked: &ModelRequest) {
        let RequestRole::Turn { scenario, .. } = asked.role else { return };
        let newest = self.conversations.get_mut(scenario).and_then(|conversation| conversation.newest.as_mut());
        if let Some(newest) = newest.filter(|newest| newest.fingerprint == asked.fingerprint()) {
            newest.answered = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ScriptStep;

    fn asked(user_text: &str) -> ModelRequest {
        ModelRequest { opening: "first".into(), user_text: user_text.into(), ..ModelRequest::default() }
    }

    fn turn(text: &str) -> ScriptTurn {
        ScriptTurn::of([ScriptStep::say(text)])
    }

    #[test]
    fn repeated_request_gets_its_turn_again_until_it_is_answered() {
        let mut script = ConversationScript::new(vec![Scenario::of([turn("a"), turn("b")])]);
        let take = |script: &mut ConversationScript, text| script.take(&asked(text)).0;
        let role = |turn, attempt| RequestRole::Turn { scenario: 0, turn, attempt };
        assert_eq!(take(&mut script, "one"), role(Some(0), 1));
        assert_eq!(take(&mut script, "one"), role(Some(0), 2));
        script.answered(&ModelRequest { role: role(Some(0), 2), ..asked("one") });
        assert_eq!(take(&mut script, "one"), role(Some(1), 1), "the same words again are a new prompt");
        assert_eq!(take(&mut script, "two"), role(None, 1), "the script is over");
    }

    #[test]
    fn opening_selects_the_scenario_and_side_requests_use_no_turn() {
        let named = Scenario { opening: Some("fir".into()), ..Scenario::of([turn("named")]) };
        let mut script = ConversationScript::new(vec![Scenario::of([turn("any")]), named]);
        let side = ModelRequest { kind: RequestKind::Side { name: "title", answer: "" }, ..asked("one") };
        assert_eq!(script.take(&side).0, RequestRole::Side("title"));
        assert_eq!(script.take(&asked("one")).1, Some(turn("named")));
        let other = ModelRequest { opening: "else".into(), ..asked("one") };
        assert_eq!(script.take(&other).1, Some(turn("any")));
        let helper = ModelRequest { kind: RequestKind::Subagent, opening: "else".into(), ..asked("two") };
        assert_eq!(script.take(&helper).0, RequestRole::Side("subagent"));
    }
}
