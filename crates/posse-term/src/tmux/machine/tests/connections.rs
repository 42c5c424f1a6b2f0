//! Coming, going, and coming back.

use super::*;

#[test]
fn nothing_is_sent_before_tmux_says_where_we_are() {
    let mut bench = Bench::new(vec![]);
    bench.says(Message::Changed);
    bench.asks(Request::List);
    assert_eq!(bench.take(), (vec![], vec![]));
    bench.says(Message::Session(SessionId(3)));
    let (sent, _) = bench.take();
    assert_eq!(sent[0], r#"refresh-client -f "pause-after=5""#);
    assert!(sent.iter().all(|line| !line.contains("set-option")), "a user's server keeps its options: {sent:?}");
    bench.now += PATIENCE;
    bench.happens(Happening::Time);
    assert!(matches!(&bench.take().1[..], [Effect::Broken(_)]), "and it is not waited for for ever");
}

#[test]
fn newer_versions_are_told_to_leave_pasted_bytes_alone() {
    let mut bench = Bench::new(vec![]);
    bench.says(Message::Session(SessionId(0)));
    for line in ["", "42 1000 /run/socket", "paste-buffer (pasteb) [-dprS] [-s separator] [-b buffer-name]"] {
        bench.answers(&[line]);
    }
    assert!(bench.machine.paste_raw);
    // And what an earlier one left in a buffer is removed.
    bench.take();
    bench.answers(&["theirs", "posse_tag_3", "posse_other_1"]);
    assert_eq!(bench.take().0, [r#"delete-buffer -b "posse_tag_3""#]);
}

#[test]
fn after_a_lost_connection_only_what_was_not_noted_is_sent_again() {
    let mut bench = Bench::running();
    for sequence in 1..=3 {
        bench.asks(input(sequence, b"x"));
    }
    (0..3).for_each(|_| bench.answers(&[]));
    bench.answers(&["0"]);
    assert_eq!(bench.told(), [done(1)]);
    bench.says(Message::Exit { reason: "killed".into() });
    assert!(matches!(&bench.take().1[..], [Effect::Broken(_)]));
    bench.says(Message::Output { pane: PaneId(1), bytes: b"late".to_vec() });
    bench.happens(Happening::Disconnected);
    bench.asks(input(4, b"y"));
    assert_eq!(bench.take(), (vec![], vec![]), "it waits");

    bench.happens(Happening::Connected);
    // Of the two that were on their way one is noted.
    bench.arrive(&["$0 @1 %1 101 80 24 00000001 0 0 5:2", "$1 @1 %1 101 80 24 00000001 0 0 5:2"]);
    let (sent, effects) = bench.take();
    let told: Vec<_> = effects.into_iter().filter(|effect| matches!(effect, Effect::Tell(_))).collect();
    assert_eq!(told, [Effect::Tell(done(2))]);
    let keys: Vec<_> = sent.iter().filter(|line| line.contains("send-keys")).collect();
    assert!(matches!(&keys[..], [third, fourth] if third.contains("-H 78 ") && fourth.contains("-H 79 ")), "{keys:?}");
    assert!(sent.iter().any(|line| line.contains(":pause")), "the screen is taken again");
}

#[test]
fn a_wish_lost_with_the_connection_is_made_again_unless_it_was_fulfilled() {
    for panes in [&[][..], &["$0 @1 %1 101 80 24 00000001   ", "$1 @1 %1 101 80 24 00000001   "]] {
        let mut bench = Bench::ready(vec![], &[]);
        bench.asks(Request::Spawn { id: id(1), program: program() });
        bench.happens(Happening::Prepared(id(1), Ok(())));
        bench.happens(Happening::Disconnected);
        bench.take();
        bench.happens(Happening::Connected);
        bench.arrive(panes);
        let (sent, effects) = bench.take();
        let again = sent.iter().any(|line| line.starts_with("new-session"));
        assert_eq!(again, panes.is_empty(), "{sent:?}");
        assert_eq!(effects.contains(&Effect::ReadFate(id(1))), !panes.is_empty(), "it may have rung meanwhile");
    }
}

#[test]
fn no_answer_for_long_is_the_end_of_the_connection() {
    let mut bench = Bench::running();
    assert_eq!(bench.machine.deadline(), None, "an idle terminal has no timer");
    bench.asks(input(1, b"x"));
    bench.now += PATIENCE - Duration::from_millis(1);
    bench.happens(Happening::Time);
    assert_eq!(bench.take().1, []);
    bench.now += Duration::from_millis(1);
    bench.happens(Happening::Time);
    assert!(matches!(&bench.take().1[..], [Effect::Broken(why)] if why.contains("10 s")));
}

#[test]
fn another_server_at_the_same_place_is_not_ours() {
    let mut bench = Bench::running();
    bench.happens(Happening::Disconnected);
    bench.happens(Happening::Connected);
    bench.says(Message::Session(SessionId(0)));
    bench.answers(&[]);
    bench.take();
    bench.answers(&["43 2000 /run/socket"]);
    assert_eq!(bench.take().1, [Effect::OtherServer]);
    bench.happens(Happening::Disconnected);
    bench.happens(Happening::ServerGone);
    let lost = Event::Exited { id: id(1), exit: Exit::Lost, main: 0, error: 0 };
    assert_eq!(bench.take().1, [Effect::Tell(lost), Effect::Forget(id(1))]);
}

#[test]
fn an_earlier_daemons_terminals_are_found_or_lost() {
    let found = |number, end| Found {
        id: id(number),
        secret: Secret::new([1; 16]),
        label: b"label".to_vec(),
        fate: Fate { pid: Some(102), end },
    };
    let all = vec![found(1, None), found(2, Some(End::Exit(Exit::Code(4)))), found(3, None)];
    let mut bench = Bench::ready(all, &["$0 @1 %1 101 90 20 00000001 2 1 5:6", "$1 @1 %1 101 90 20 00000001 2 1 5:6"]);
    let (sent, effects) = bench.take();
    assert_eq!(sent.last().unwrap(), r#"set-option -p -t "%1" @posse_epoch "3""#);
    assert_eq!(effects, [1, 2, 3].map(|number| Effect::ReadFate(id(number))));
    bench.happens(Happening::Fate(id(2), Fate { pid: Some(102), end: Some(End::Exit(Exit::Code(4))) }));
    bench.happens(Happening::Fate(id(3), Fate { pid: Some(102), end: None }));
    bench.asks(Request::List);
    let told = bench.told();
    let [Event::Listed { summaries }] = &told[..] else { panic!("{told:?}") };
    let exits: Vec<_> = summaries.iter().map(|summary| (summary.id, summary.exit)).collect();
    assert_eq!(exits, [(id(1), None), (id(2), Some(Exit::Code(4))), (id(3), Some(Exit::Lost))]);
    assert_eq!(summaries[0].main, (3 << 40, 3 << 40), "above all that two daemons before us can have told");
    bench.asks(input(6, b"a repeat"));
    assert_eq!(bench.told(), [done(6)]);
    bench.asks(Request::Attach { id: id(3), stream: Stream::Main, from: 0 });
    let lost = Event::Exited { id: id(3), exit: Exit::Lost, main: 0, error: 0 };
    assert_eq!(bench.take().1, [Effect::Tell(lost), Effect::Forget(id(3))]);
}

#[test]
fn the_server_goes_with_everything() {
    let mut bench = Bench::running();
    bench.asks(input(1, b"x"));
    bench.asks(Request::End { id: id(1), grace_ms: 500 });
    bench.asks(Request::Spawn { id: id(2), program: program() });
    bench.happens(Happening::Disconnected);
    bench.asks(Request::Spawn { id: id(3), program: program() });
    bench.asks(input(2, b"y"));
    bench.take();
    bench.happens(Happening::ServerGone);
    let failed = |number| Event::SpawnFailed {
        id: id(number),
        why: SpawnRefusal::Other,
        message: b"the tmux server has ended".to_vec(),
    };
    let expected = [
        refused(1, InputRefusal::NotReading),
        failed(3),
        refused(2, InputRefusal::NotReading),
        Event::Exited { id: id(1), exit: Exit::Lost, main: 0, error: 0 },
        Event::Ended { id: id(1), left: 0 },
        failed(2),
    ];
    assert_eq!(bench.told(), expected);
}

#[test]
fn a_pane_with_our_mark_that_nobody_knows_is_ended() {
    // The first is in our own session; the second is somebody else's posse; the third has no mark.
    let panes = [
        "$0 @1 %1 101 80 24 0000000a 0 0 ",
        "$1 @1 %1 101 80 24 0000000a 0 0 ",
        "$1 @2 %2 102 80 24 0000000b 0 0 ",
        "$0 @3 %3 103 80 24    ",
    ];
    let mut bench = Bench::ready(vec![], &panes);
    let (sent, effects) = bench.take();
    let closed: Vec<_> = sent.iter().filter(|line| line.starts_with("kill-")).collect();
    assert_eq!(closed, [r#"kill-pane -t "%1""#]);
    let told = |effect: &&Effect| matches!(effect, Effect::Tell(Event::Ended { .. }));
    assert_eq!(effects.iter().filter(told).collect::<Vec<_>>(), [&Effect::Tell(Event::Ended { id: id(10), left: 0 })]);
    // One that is just being made is known.
    bench.asks(Request::Spawn { id: id(11), program: program() });
    bench.happens(Happening::Prepared(id(11), Ok(())));
    bench.says(Message::Changed);
    bench.take();
    bench.answers(&[]); // the pane that was closed
    bench.answers(&["$1 @4 %4 104"]);
    (0..3).for_each(|_| bench.answers(&[]));
    bench.answers(&["$0 @4 %4 104 80 24 0000000b 0 0 ", "$1 @4 %4 104 80 24 0000000b 0 0 "]);
    assert!(bench.take().0.iter().all(|line| !line.starts_with("kill-")));
}
