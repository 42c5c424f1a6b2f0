//! What each role is told at its turn. These texts are read by models: short sentences, one thing per line, the form of the
//! answer spelled out. What somebody else wrote stands between tags, so that nobody takes it for our words.
//!
//! No text begins with a character that an agent's input field takes for a command (`/`, `!`, `#`, `@`), and none of them,
//! handed back as it is, would be a verdict.

mod parts;
#[cfg(test)]
mod tests;

use super::verdict::Review;
use super::{Key, NO_FEEDBACK, Role, Rounds, condense};
use parts::{Text, tagged};

pub(super) fn text(rounds: &Rounds, key: Key, instruction: &str) -> String {
    let text = match key {
        Key::Analyst => analyst(rounds),
        Key::AnalystReview => peer_analyst(rounds),
        Key::Programmer => programmer(rounds),
        Key::ProgrammerReview => peer_programmer(rounds),
        Key::Tester => return tester(rounds, instruction),
    };
    text.part(instruction.trim()).finish()
}

/// The form a reviewer is asked to fill in.
pub(super) fn review_form(review: Review) -> &'static str {
    match review {
        Review::Analyst => ANALYST_REVIEW,
        Review::Programmer => PROGRAMMER_REVIEW,
    }
}

/// Who is spoken to, and where we are.
fn opening(rounds: &Rounds, who: &str) -> Text {
    let limits = &rounds.rules.limits;
    Text::new(format!(
        "You are the {who}. Round {} of at most {}, review cycle {} of at most {}.",
        rounds.round, limits.max_rounds, rounds.cycle, limits.max_review_cycles
    ))
}

/// The task in full, or a word about it to somebody who has it before their eyes.
fn task(rounds: &Rounds, role: Role) -> String {
    if rounds.rules.condensation.condense_explore_on_repeat && rounds.told.contains(&role) {
        "The task is the one at the beginning of this conversation, under <task>. It has not changed.".to_owned()
    } else {
        tagged("task", &rounds.prompt.explore)
    }
}

fn test_command(rounds: &Rounds) -> String {
    if rounds.rules.project_test_cmd.is_empty() {
        "Take the test command from AGENTS.md. Do not assume that plain `pytest` will do.".to_owned()
    } else {
        format!("The project's test command is `{}`.", rounds.rules.project_test_cmd)
    }
}

const EVERY_POINT: &str = "Deal with every point of the reviewer's feedback. Where you do not follow it, say why.";
const LITTLE_CHANGE: &str = "Change as little as the task needs, in the style of the code around it. Cover what you add with tests of the project's own kind.";
const NO_QUESTIONS: &str = "ask questions and wait: nobody is there to answer. Decide, and write down what you decided";

fn analyst(rounds: &Rounds) -> Text {
    let openspec = rounds.rules.openspec;
    let mut steps = Vec::new();
    if rounds.cycle > 1 {
        steps.push(EVERY_POINT);
    } else if rounds.round == 1 {
        steps.push("Read the code that the task touches. Look things up instead of guessing, and name files by path.");
    } else if openspec {
        steps.push("Find out with `/opsx:explore` why the test failed. The tester's feedback says what was seen.");
    } else {
        steps.push("Find out in the code why the test failed. The tester's feedback says what was seen.");
    }
    steps.push(match (rounds.cycle > 1 || rounds.round > 1, openspec) {
        (false, true) => "Produce all artifacts of the change with `/opsx:ff`: proposal, design, tasks, spec.",
        (true, true) => "Bring all artifacts up to date with `/opsx:ff`: proposal, design, tasks, spec.",
        (false, false) => {
            "Write four short artifacts: proposal (what and why), design (how), tasks (the steps), spec (the behavior one can observe). They belong in your summary; make no files for them."
        }
        (true, false) => "Bring the artifacts in your summary up to date: proposal, design, tasks, spec.",
    });
    steps.push("Read each artifact again and compare it with the task, point by point.");
    steps.push(if openspec { ANALYST_SUMMARY_OPENSPEC } else { ANALYST_SUMMARY });
    opening(rounds, "analyst")
        .part(task(rounds, Role::Analyst))
        .part(tagged("tester_feedback", &rounds.feedback))
        .part(tagged("reviewer_feedback", &rounds.analyst_feedback))
        .steps(&steps)
        .must_not(&[
            "write or change code, tests or fixtures: the programmer does that",
            "run the scenario test: the tester does that",
            NO_QUESTIONS,
        ])
}

const ANALYST_SUMMARY_OPENSPEC: &str = "Write your answer in this form, with these headings in this order:
ANALYST_SUMMARY
Scope: what changes and what does not, with paths.
OpenSpec artifacts: each artifact with its path, what it settles, and what your second reading of it showed.
Implementation notes: the handoff to the programmer. Numbered steps, at least three, each with the file it concerns.
Risks: each with what is done against it.
Downstream impact: the modules, contracts and endpoints that depend on what changes; \"none\" only with the reason.
Traceability: the points of the task as P1 (must) to P4 (may), each with the artifact that covers it and the phase (programmer or tester) that shows it.";

const ANALYST_SUMMARY: &str = "Write your answer in this form, with these headings in this order:
ANALYST_SUMMARY
Scope: what changes and what does not, with paths.
Artifacts: proposal, design, tasks and spec, each under its name, and what your second reading of it showed.
Implementation notes: the handoff to the programmer. Numbered steps, at least three, each with the file it concerns.
Risks: each with what is done against it.
Downstream impact: the modules, contracts and endpoints that depend on what changes; \"none\" only with the reason.
Traceability: the points of the task as P1 (must) to P4 (may), each with the artifact that covers it and the phase (programmer or tester) that shows it.";

fn peer_analyst(rounds: &Rounds) -> Text {
    opening(rounds, "peer analyst: you review the analyst's work")
        .part(task(rounds, Role::PeerAnalyst))
        .part(tagged("analyst_summary", rounds.output(Key::Analyst)))
        .steps(&[
            "Begin with REVISE in mind. Approve only what the programmer can start from without asking.",
            if rounds.rules.openspec {
                "Open the artifacts themselves; the summary may be kinder than they are."
            } else {
                "Read the artifacts in the summary (proposal, design, tasks, spec) against the task, point by point."
            },
            "Look up at least two of the paths that are named, and say which ones exist.",
            "Answer REVISE if any of these is true:
(a) the scope names no paths;
(b) the artifacts are not named;
(c) there are fewer than 3 concrete actions for the programmer;
(d) a risk has nothing set against it;
(e) the downstream impact is missing.",
            ANALYST_REVIEW,
        ])
        .must_not(&[
            "change anything: no code, no artifacts, no files but your answer",
            "approve because it is the last cycle, or because the first review was long",
            NO_QUESTIONS,
        ])
}

const ANALYST_REVIEW: &str =
    "Write your answer in this form. The first line ends with one of the two words, not with both:
REVIEW_RESULT: APPROVED|REVISE
REVIEW_NOTES:
- Artifacts: proposal, design, tasks, spec: each verified, incomplete or missing, and what is wrong with it.
- Traceability: P1 to P4: coverage confirmed, or the gap.
- Downstream: which module, service, component, endpoint or file it is, and whether the contract holds.
- Handoff: how many steps it contains, and what is unclear in which of them.
- Criteria: (a) to (e), each true or not, with what you saw.
- To do: what the analyst has to change, most important first.
An approval whose notes do not show what you checked is not counted.";

fn programmer(rounds: &Rounds) -> Text {
    let first_round = rounds.round == 1;
    let text = opening(rounds, "programmer").part(task(rounds, Role::Programmer));
    let text = if first_round { with_handoff(rounds, text) } else { with_failure(rounds, text) };
    let text = text
        .part(format!(
            "This is how the tester will test. It is for you to read, not to run:\n{}",
            tagged("scenario", &rounds.prompt.scenario)
        ))
        .part(tagged("reviewer_feedback", &rounds.programmer_feedback));
    let check = format!("Check your work. {} Note each command and what came of it.", test_command(rounds));
    let mut steps = Vec::new();
    match (first_round, rounds.cycle > 1) {
        (true, false) => {
            steps.push(if rounds.rules.openspec {
                "Apply the change with the skill `openspec-apply-change`, task by task."
            } else {
                "Carry out the analyst's steps, one by one."
            });
            steps.push(LITTLE_CHANGE);
        }
        (true, true) => {
            steps.push(EVERY_POINT);
            steps.push("Finish what is still open of the analyst's handoff.");
            steps.push(LITTLE_CHANGE);
        }
        (false, again) => {
            if again {
                steps.push(EVERY_POINT);
            }
            steps.push("Find out why the test failed: follow what the tester saw through the code to its cause.");
            steps.push(if rounds.rules.openspec {
                "If an artifact is wrong, explore it with `/opsx:explore`, correct it, and say so."
            } else {
                "If the plan was wrong, correct it, and say so."
            });
            steps.push("Fix the cause, not the symptom, with as little change as it needs.");
        }
    }
    steps.push(&check);
    steps.push(PROGRAMMER_SUMMARY);
    text.steps(&steps).must_not(&[
        "run the scenario test: the tester does that",
        "do anything that cannot be taken back: delete what you did not make, reset, clean or rewrite git history, drop data, remove or weaken tests and fixtures",
        "leave temporary files anywhere but under `.tmp/` or `/tmp/`",
        NO_QUESTIONS,
    ])
}

/// The first round works from what the analyst left.
fn with_handoff(rounds: &Rounds, text: Text) -> Text {
    let rules = &rounds.rules.condensation;
    let known = rounds.cycle > 1 && rounds.told.contains(&Role::Programmer);
    let text = if known && rules.condense_upstream_on_repeat {
        text.part(
            "The analyst's handoff is the one you were given before, under <analyst_handoff>. It has not changed.",
        )
    } else {
        text.part(tagged("analyst_handoff", &condense::analyst_handoff(rounds.output(Key::Analyst), rules)))
    };
    // Without an approval the reviewer's last notes are all the programmer has to tell the doubtful parts by.
    if rounds.analyst_feedback == NO_FEEDBACK || known {
        return text;
    }
    text.part(format!(
        "The handoff was not approved. Keep these open points in mind:\n{}",
        tagged("analyst_review", &rounds.analyst_feedback)
    ))
}

/// A later round works from what the tester saw.
fn with_failure(rounds: &Rounds, text: Text) -> Text {
    let text = text.part(format!("The last test failed:\n{}", tagged("tester_feedback", &rounds.feedback)));
    if rounds.context_for_retry.trim().is_empty() {
        return text;
    }
    text.part(format!(
        "This is what had been done before that test:\n{}",
        tagged("previous_changes", &rounds.context_for_retry)
    ))
}

const PROGRAMMER_SUMMARY: &str = "Write your answer in this form, with these headings in this order:
PROGRAMMER_SUMMARY
Files changed: each path, and what changed in it.
Behavior implemented: what one can observe now that one could not before.
Known limitations: what is missing, or \"none\".
Checks: each command you ran and its result; what you did not run, and why.";

fn peer_programmer(rounds: &Rounds) -> Text {
    let check = format!(
        "Run the project's own checks if you can. {} If you cannot, write NOT_RUN and the reason; that is acceptable.",
        test_command(rounds)
    );
    opening(rounds, "peer programmer: you review the programmer's work")
        .part(task(rounds, Role::PeerProgrammer))
        .part(tagged("programmer_summary", rounds.output(Key::Programmer)))
        .steps(&[
            "Read the change itself (`git status`, `git diff`, new files), not only the summary. Compare both with the task.",
            "Look for what is wrong, missing or more than was asked; for errors nobody handles; for tests that cannot fail.",
            &check,
            PROGRAMMER_REVIEW,
        ])
        .must_not(&[
            "change anything: you review, the programmer changes",
            "run the scenario test: the tester does that",
            NO_QUESTIONS,
        ])
}

const PROGRAMMER_REVIEW: &str =
    "Write your answer in this form. The first line ends with one of the two words, not with both:
REVIEW_RESULT: APPROVED|REVISE
REVIEW_NOTES:
- Implementation: which files you read, and whether the change does what the task asks.
- Validation: each command you ran and its result, or NOT_RUN and the reason.
- Risk: what could break elsewhere, and what the tests cover of it.
- Issues: each defect with file and line and what to do about it, most important first; or that there is none.
An approval whose notes do not show what you checked is not counted.";

/// The file comes first here: testers that get stuck in a scenario forget it otherwise.
fn tester(rounds: &Rounds, instruction: &str) -> String {
    let changes = condense::programmer_handoff(rounds.output(Key::Programmer), &rounds.rules.condensation);
    Text::new(format!("You are the tester. Round {} of at most {}.", rounds.round, rounds.rules.limits.max_rounds))
        .part(instruction.trim())
        .part("Observe and report, nothing else. You run the scenario as it is written and say what happened. What fails, fails: somebody else will mend it.")
        .part(tagged("scenario", &rounds.prompt.scenario))
        .part(format!("What was changed, for your orientation only; it proves nothing:\n{}", tagged("changes", &changes)))
        .steps(&[
            "Do every step of the scenario, in its order, with the real input it names.",
            "For each criterion write down what was expected and what you saw: output, values, exit codes.",
            "PASS only if you have seen every criterion hold. A step you could not do is a FAIL.",
            TEST_RESULT,
            "Then stop.",
        ])
        .must_not(&[
            "change code, tests, fixtures, artifacts or configuration, not even to make a step work",
            "leave out, replace or soften a step",
            NO_QUESTIONS,
        ])
        .finish()
}

const TEST_RESULT: &str =
    "Write your answer in this form. The first line ends with one of the two words, not with both:
RESULT: PASS|FAIL
EVIDENCE:
- each criterion: expected, observed, and whether it held.
- for each failure: the command, the output that shows it, and where it happened.";
