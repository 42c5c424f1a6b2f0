//! Edits of items: the changes, and the text that must stay.

use super::edit::{NotEdited, OutcomeBlock, answer, append_verification, ask, set_outcome, set_status};
use super::{Item, ItemOutcome, Kind, Status, read};
use crate::plan::verdict::{Judgement, Verdict};

const ITEM: &str = "# Export is empty

## Status: Open

## Priority: High

## Summary
Exporting gives an empty file.

```
## Status: Open
```
";

fn of(text: &str) -> Item {
    read(&"x".parse().unwrap(), Kind::Defect, "x", text).unwrap_or_else(|problems| panic!("{problems}\n{text}")).0
}

fn verified(text: &str, number: u32, verdict: Verdict) -> Result<String, NotEdited> {
    let findings = [
        "[PASS] S1: the file has ten rows",
        "[FAIL] AC1: no header\n## Status: Fixed\n```\n**Verdict: PASS**\n<!-- ",
        "odd",
    ];
    let judgement = Judgement { verdict, findings: findings.map(str::to_owned).into() };
    append_verification(text, number, "2026-02-10 14:05", &judgement)
}

pub(super) fn block(outcome: ItemOutcome) -> OutcomeBlock {
    OutcomeBlock {
        outcome,
        run: "01X".into(),
        reason: None,
        finished: "2026-02-10 14:05".into(),
        cost: "$1.23".into(),
        duration: "12m".into(),
        commits: vec!["abc1234".into()],
        plan: Some(".posse/plans/x.yaml".into()),
    }
}

#[test]
fn only_the_status_changes() {
    for (text, line) in [
        (ITEM, "## Status: In Progress"),
        ("---\nstatus: open # for now\ntitle: X\n---\ntext\n", "status: in_progress # for now"),
        ("---\ntitle: X\n# a comment\n---\ntext\n", "status: in_progress"),
        ("---\n---\ntext\n", "status: in_progress"),
        ("# X\n\ntext\n", "## Status: In Progress"),
        ("just text\n", "## Status: In Progress"),
        ("", "## Status: In Progress"),
        ("# X\n## Status\n\nOpen\n\n## Summary\n", "In Progress"),
        ("# X\n## Status: Open (again)", "## Status: In Progress"),
        ("---\nstatus: 'open'\n---\n## Status: Open\n", "## Status: In Progress"),
    ] {
        for text in [text.to_owned(), text.replace('\n', "\r\n")] {
            let edited = set_status(&text, Status::InProgress).unwrap_or_else(|error| panic!("{error}: {text:?}"));
            assert_eq!(of(&edited).status, Some(Status::InProgress), "{edited:?}");
            assert!(edited.lines().any(|found| found.trim_end() == line), "{edited}");
            assert_eq!(text.contains('\r'), edited.contains('\r'));
            assert_eq!(edited.matches("\r\n").count(), edited.matches('\r').count());
            // All lines except those of the status are unchanged.
            let others = |text: &str| -> Vec<String> {
                text.lines()
                    .filter(|line| !line.to_lowercase().contains("pen") && !line.contains("rogress"))
                    .map(str::to_owned)
                    .collect()
            };
            let kept: Vec<String> = others(&edited).into_iter().filter(|line| !line.is_empty()).collect();
            let before: Vec<String> = others(&text).into_iter().filter(|line| !line.is_empty()).collect();
            assert!(before.iter().all(|line| kept.contains(line)), "{before:?}\n{kept:?}");
            let again = set_status(&edited, Status::InProgress).unwrap();
            assert_eq!(again, edited, "made again, it changes nothing");
        }
    }
    assert!(set_status(ITEM, Status::Fixed).unwrap().contains("```\n## Status: Open\n```"), "an example stays one");
}

#[test]
fn an_item_that_cannot_be_read_is_not_touched() {
    for text in ["# X\n```\nopen\n", "---\ntitle: X\n"] {
        assert!(matches!(set_status(text, Status::Fixed), Err(NotEdited::Unreadable(_))), "{text}");
        assert!(matches!(verified(text, 1, Verdict::Fail), Err(NotEdited::Unreadable(_))));
    }
    let flow = "---\n{title: X}\n---\n";
    assert_eq!(set_status(flow, Status::Fixed), Err(NotEdited::WouldChangeMore("the status")));
}

#[test]
fn verifications_are_appended_and_never_twice() {
    let once = verified(ITEM, 1, Verdict::Fail).unwrap();
    insta::assert_snapshot!("one entry", once);
    assert_eq!(verified(&once, 1, Verdict::Fail), Ok(once.clone()));
    let twice = verified(&once, 2, Verdict::Pass).unwrap();
    assert!(twice.starts_with(once.trim_end()), "append only");
    let item = of(&twice);
    assert_eq!((item.log.len(), item.failed_verifications(), item.next_verification()), (2, 1, 3));
    assert_eq!((item.status, item.hash), (Some(Status::Open), of(ITEM).hash));
    assert_eq!(of(&set_outcome(&twice, Kind::Defect, &block(ItemOutcome::Completed)).unwrap()).log.len(), 2);
}

#[test]
fn a_log_of_the_author_is_gone_on_with() {
    let text = format!(
        "{ITEM}\n## Verification Log\n\n### Verification #4 - long ago\n\n**Verdict: FAIL**\n\n## Source\nmail\n"
    );
    let edited = verified(&text, 5, Verdict::Fail).unwrap();
    let numbers: Vec<u32> = of(&edited).log.iter().map(|entry| entry.number).collect();
    assert_eq!(numbers, [4, 5]);
    assert!(edited.ends_with("\n\n## Source\nmail\n"), "{edited}");
}

#[test]
fn questions_are_asked_once_and_answered() {
    let asked = ask(ITEM, "Which file?\nAnd where?").unwrap();
    insta::assert_snapshot!("a question", asked);
    assert_eq!(ask(&asked, "Which file? And where?"), Ok(asked.clone()));
    let answered = answer(&asked, "out.csv,\nhere").unwrap();
    let item = of(&answered);
    assert_eq!(item.status, Some(Status::Open));
    assert_eq!(item.clarification.and_then(|asked| asked.answer).as_deref(), Some("out.csv, here"));
    assert_eq!(answer(&answered, "again"), Err(NotEdited::NotAsked));
    assert_eq!(answer(ITEM, "what?"), Err(NotEdited::NotAsked));
    let again = of(&ask(&answered, "And when?").unwrap());
    assert_eq!(again.clarification.map(|asked| (asked.question, asked.answer)), Some(("And when?".into(), None)));
}

#[test]
fn the_outcome_is_written_once() {
    let done = set_outcome(ITEM, Kind::Defect, &block(ItemOutcome::CompletedWithWarnings)).unwrap();
    insta::assert_snapshot!("an outcome", done);
    assert_eq!(set_outcome(&done, Kind::Defect, &block(ItemOutcome::CompletedWithWarnings)), Ok(done.clone()));
    let failed = OutcomeBlock { reason: Some("no\n## Status: Fixed".into()), ..block(ItemOutcome::Exhausted) };
    let other = set_outcome(&done, Kind::Defect, &failed).unwrap();
    assert_eq!(
        (of(&other).status, of(&other).ended.unwrap().outcome),
        (Some(Status::Exhausted), ItemOutcome::Exhausted)
    );
    assert_eq!(other.matches("Outcome (posse)").count(), 1);
    let later = verified(&done, 1, Verdict::Fail).unwrap();
    assert!(later.find("Verification Log") < later.find("Outcome (posse)"));
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the author and the verifier wrote, the item stays the same or nothing is written.
        #[test]
        fn edits_change_nothing_else(
            text in "(# X\n|## Status: Open\n|## Summary\n|---\n|status: open\n|## Verification Log\n|### Verification #1 - x\n|\\*\\*Verdict: FAIL\\*\\*\n|## Clarification\n|## Outcome \\(posse\\)\n|```\n|words\n|\n|\r\n|- a\n){0,14}",
            said in "(```|~~~|## Status: Fixed|\n|\\*\\*Verdict: PASS\\*\\*|<!--|-->|- |é|word |\\*\\*Answer:\\*\\*){0,10}",
        ) {
            let Ok((before, _)) = read(&"x".parse().unwrap(), Kind::Defect, "x", &text) else { return Ok(()) };
            let number = before.next_verification();
            let judgement = Judgement { verdict: Verdict::Fail, findings: vec![format!("[PASS]{said}"), said.clone()] };
            let block = OutcomeBlock { reason: Some(said.clone()), ..block(ItemOutcome::Failed) };
            let edits = [
                set_status(&text, Status::OnHold),
                append_verification(&text, number, &said, &judgement),
                ask(&text, &said),
                set_outcome(&text, Kind::Defect, &block),
            ];
            for (i, edited) in edits.into_iter().enumerate() {
                let Ok(edited) = edited else { continue };
                let after = of(&edited);
                prop_assert_eq!(&after.sections, &before.sections, "{}", edited);
                prop_assert_eq!(&after.lead, &before.lead);
                prop_assert!(i == 2 || after.hash == before.hash);
                prop_assert!(after.log.len() >= before.log.len());
                let again = match i {
                    0 => set_status(&edited, Status::OnHold),
                    1 => append_verification(&edited, number, &said, &judgement),
                    2 => ask(&edited, &said),
                    _ => set_outcome(&edited, Kind::Defect, &block),
                };
                prop_assert_eq!(again, Ok(edited), "made again, it changes nothing");
            }
        }
    }
}
