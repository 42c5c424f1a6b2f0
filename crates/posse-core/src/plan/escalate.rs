//! The model for each attempt.

use super::file::Escalation;

/// Model tiers, weakest first. Other names are never escalated, because their order is unknown.
const TIERS: [&str; 3] = ["haiku", "sonnet", "opus"];

fn tier(model: &str) -> Option<usize> {
    TIERS.iter().position(|tier| *tier == model)
}

/// Returns the model for an attempt, if one must be named. `wanted` is the model of the task, or else of its agent, and
/// is the minimum. `failures` are the failures that count: stops and an exhausted quota do not.
pub fn model(wanted: Option<&str>, failures: u32, escalation: &Escalation) -> Option<String> {
    if !escalation.enabled {
        return wanted.map(str::to_owned);
    }
    let base = wanted.unwrap_or(&escalation.starting_model);
    let (Some(from), Some(most)) = (tier(base), tier(&escalation.max_model)) else { return Some(base.to_owned()) };
    let up = usize::try_from(failures / escalation.after.max(1)).unwrap_or(usize::MAX);
    let reached = from.saturating_add(up).min(most).max(from);
    Some(TIERS[reached.min(TIERS.len() - 1)].to_owned())
}

/// Returns the model for a validator: never weaker than the worker's model, and never the weakest.
pub fn validator_model(wanted: Option<&str>, work: Option<&str>, escalation: &Escalation) -> Option<String> {
    let asked = wanted.or(escalation.enabled.then_some(escalation.validation_model.as_str()));
    let floor = 1.max(work.and_then(tier).unwrap_or(0));
    match asked {
        Some(model) => Some(tier(model).map_or(model, |at| TIERS[at.max(floor)]).to_owned()),
        // No model is set: the worker's tier counts, but at least the middle one.
        None => work.map(|work| tier(work).map_or(work, |_| TIERS[floor]).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(max_model: &str) -> Escalation {
        Escalation { enabled: true, max_model: max_model.into(), ..Escalation::default() }
    }

    #[test]
    fn models_of_attempts() {
        let off = Escalation::default();
        for (name, wanted, failures, escalation, models) in [
            ("T57", Some("sonnet"), 0..5, on("opus"), ["sonnet", "sonnet", "opus", "opus", "opus"]),
            ("T58: the floor holds", Some("opus"), 0..5, on("sonnet"), ["opus"; 5]),
            ("T59: refunded attempts are no failures", Some("sonnet"), 0..1, on("opus"), ["sonnet"; 5]),
            ("nobody says", None, 0..5, on("opus"), ["sonnet", "sonnet", "opus", "opus", "opus"]),
            ("from below", Some("haiku"), 0..5, on("sonnet"), ["haiku", "haiku", "sonnet", "sonnet", "sonnet"]),
            ("a full name", Some("claude-x-9"), 0..5, on("opus"), ["claude-x-9"; 5]),
            ("off", Some("sonnet"), 0..5, off.clone(), ["sonnet"; 5]),
        ] {
            for failures in failures {
                let expected = models[failures as usize];
                assert_eq!(model(wanted, failures, &escalation).as_deref(), Some(expected), "{name}, {failures}");
            }
        }
        assert_eq!(model(None, 9, &off), None);
    }

    #[test]
    fn validators_are_not_weaker_than_the_work() {
        for (wanted, work, escalation, model) in [
            (None, Some("opus"), on("opus"), Some("opus")),
            (None, Some("haiku"), on("opus"), Some("sonnet")),
            (Some("haiku"), Some("haiku"), Escalation::default(), Some("sonnet")),
            (Some("haiku"), None, Escalation::default(), Some("sonnet")),
            (None, None, Escalation::default(), None),
            (Some("gpt-x"), Some("opus"), on("opus"), Some("gpt-x")),
        ] {
            assert_eq!(validator_model(wanted, work, &escalation).as_deref(), model, "{wanted:?} {work:?}");
        }
    }
}
