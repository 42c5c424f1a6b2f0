//! The text of each turn: the values for its prompt template.
//!
//! No text begins with a character that an agent's input field treats as a command (`/`, `!`, `#`, `@`). No text counts
//! as a verdict if an agent returns it unchanged.

#[cfg(test)]
mod tests;

use minijinja::context;

use super::{Key, NO_FEEDBACK, Phase, Role, Rounds, condense};

pub(super) fn text(rounds: &Rounds, key: Key, instruction: &str) -> String {
    let rules = &rounds.rules;
    let condensation = &rules.condensation;
    let knows_task = condensation.condense_explore_on_repeat && rounds.told.contains(&key.role());
    let knows_handoff = rounds.progress.cycle > 1 && rounds.told.contains(&Role::Programmer);
    let handoff = || condense::analyst_handoff(rounds.output(Key::Analyst), condensation);
    let of_analyst = key.phase() == Phase::Analyst;
    let values = context! {
        round => rounds.progress.round,
        max_rounds => rules.limits.max_rounds,
        cycle => rounds.progress.cycle,
        max_review_cycles => rules.limits.max_review_cycles,
        openspec => rules.openspec,
        test_command => rules.project_test_cmd,
        // An agent that already has the task or the handoff gets only a reference to it.
        task => (!knows_task).then_some(&rounds.prompt.explore),
        handoff => (!(knows_handoff && condensation.condense_upstream_on_repeat)).then(handoff),
        // Without an approval, the reviewer's last notes show the programmer the doubtful parts.
        open_points => (rounds.progress.analyst_feedback != NO_FEEDBACK && !knows_handoff).then_some(&rounds.progress.analyst_feedback),
        scenario => rounds.prompt.scenario,
        tester_feedback => rounds.progress.feedback,
        reviewer_feedback => if of_analyst { &rounds.progress.analyst_feedback } else { &rounds.progress.programmer_feedback },
        summary => rounds.output(if of_analyst { Key::Analyst } else { Key::Programmer }),
        previous_changes => Some(&rounds.progress.context_for_retry).filter(|changes| !changes.trim().is_empty()),
        changes => condense::programmer_handoff(rounds.output(Key::Programmer), condensation),
        instruction => instruction.trim(),
    };
    rules.prompts.render(key.as_str(), &values)
}
