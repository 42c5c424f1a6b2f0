//! The choice of the next item, and the number of items.

use super::*;

#[test]
fn the_order_is_the_backlogs() {
    let with = |name: &str, kind, priority| Candidate { priority, ..candidate(name, kind) };
    let backlog = vec![
        with("2-b", Kind::Feature, Priority::High),
        with("10-c", Kind::Defect, Priority::Medium),
        with("9-d", Kind::Defect, Priority::Medium),
        with("1-e", Kind::Feature, Priority::Medium),
        Candidate { held: Some("on hold".into()), ..with("0-f", Kind::Defect, Priority::Critical) },
    ];
    let bench = Bench::new(drain(), backlog);
    let items: Vec<String> = bench.pipeline.standings().iter().map(|(item, ..)| item.to_string()).collect();
    assert_eq!(items, ["2-b", "9-d", "10-c", "1-e", "0-f"]);
    bench.why("0-f", Standing::Held, "on hold");
    bench.why("2-b", Standing::InProgress, "intake");
    bench.why("1-e", Standing::Waiting, "2 items are before it");
}

#[test]
fn as_many_items_as_were_asked_for() {
    let backlog =
        || vec![candidate("1-a", Kind::Feature), candidate("2-b", Kind::Feature), candidate("3-c", Kind::Feature)];
    for (settings, items) in [
        (parallel(4, Mode::Once), vec!["1-a"]),
        (Settings { max_items: Some(1), ..parallel(4, Mode::Watch) }, vec!["1-a"]),
        (Settings { max_items: Some(2), ..Settings::default() }, vec!["1-a", "2-b"]),
        (Settings { item: Some(slug("2-b")), ..parallel(4, Mode::Watch) }, vec!["2-b"]),
        (drain(), vec!["1-a", "2-b", "3-c"]),
    ] {
        let mut bench = Bench::new(settings, backlog());
        for item in &items {
            assert_eq!(bench.step().0.item, slug(item));
            assert_eq!(bench.pipeline.jobs().len(), 1, "one is one, whatever is configured");
            bench.planned().done();
        }
        bench.ended(RunOutcome::Verified, &format!("{} done", items.len()));
    }
    Bench::new(drain(), Vec::new()).ended(RunOutcome::Verified, "nothing to do");
    let settings = Settings { item: Some(slug("9-z")), ..Settings::default() };
    Bench::new(settings, backlog()).ended(RunOutcome::Failed, "no item 9-z");
    let mut held = backlog();
    held[0].held = Some("waits for 2-b".into());
    let settings = Settings { item: Some(slug("1-a")), ..Settings::default() };
    Bench::new(settings, held).ended(RunOutcome::Suspended, "waits for 2-b");
    // A failed item is retried, and no other starts meanwhile.
    let mut bench = Bench::new(Settings { mode: Mode::Once, ..Settings::default() }, backlog());
    for _ in 0..2 {
        bench.begun().planner(failed("boom"));
    }
    bench.retired(ItemOutcome::Failed).ended(RunOutcome::Failed, "1-a");
    // One that has vanished is no failure.
    let mut bench = Bench::new(Settings { mode: Mode::Once, ..Settings::default() }, backlog());
    bench.answer(StepAnswer::Intake(Intake::Gone));
    bench.ended(RunOutcome::Verified, "nothing to do");
}

#[test]
fn an_idle_pipeline_wants_nothing_and_wakes_for_what_is_new() {
    let mut bench = Bench::new(Settings::default(), Vec::new());
    assert!(bench.pipeline.is_idle());
    assert_eq!((bench.pipeline.deadline(), bench.pipeline.outstanding()), (None, &[][..]));
    bench.backlog = feature("1-a");
    bench.rescan().planned().done();
    assert!(bench.pipeline.is_idle());
    assert_eq!(
        bench.pipeline.difference(Vec::new(), None),
        Event::Scanned { changed: Vec::new(), gone: Vec::new(), away: None }
    );
}
