//! From the wish for a terminal to its end.

use super::*;

#[test]
fn a_pane_is_made_heard_and_known_in_one_line() {
    let mut bench = Bench::ready(vec![], &[]);
    bench.take();
    bench.asks(Request::Spawn { id: id(1), program: program() });
    let (sent, effects) = bench.take();
    assert_eq!(sent, [""; 0]);
    assert!(matches!(&effects[..], [Effect::Prepare(..)]));
    bench.happens(Happening::Prepared(id(1), Ok(())));
    let (sent, _) = bench.take();
    let file = bench.machine.config.notes.program_path(id(1));
    let expected = [
        r#"new-session -d -s "s" -x "80" -y "24" -n "n" -c "/work" -P -F"#,
        &quoted("#{session_id} #{window_id} #{pane_id} #{pane_pid}"),
        r#" "shim""#,
        &quoted(file.to_str().unwrap()),
        r#" ; link-window -d -s "=s:\173end\175" -t "=_anchor:""#,
        r#" ; set-option -p -t "=s:\173end\175" @posse_id "00000001""#,
        r#" ; resize-window -t "=s:\173end\175" -x "80" -y "24""#,
    ];
    assert_eq!(sent, [expected.concat()]);

    // The session is there: a window in it.
    bench.refuses("duplicate session: s");
    let (sent, _) = bench.take();
    assert!(sent[0].starts_with(r#"new-window -d -a -t "=s:\173end\175" -n "n""#), "{sent:?}");
    // It has gone meanwhile: a session again. But not for ever.
    bench.refuses("can't find session: s");
    assert!(bench.take().0[0].starts_with("new-session"));
    bench.refuses("duplicate session: s");
    let failed = Event::SpawnFailed { id: id(1), why: SpawnRefusal::Other, message: b"duplicate session: s".to_vec() };
    assert_eq!(bench.take(), (vec![], vec![Effect::Tell(failed), Effect::Forget(id(1))]));
}

#[test]
fn output_that_comes_before_its_pane_is_kept() {
    let mut bench = Bench::ready(vec![], &[]);
    bench.says(Message::Output { pane: PaneId(1), bytes: b"somebody else's".to_vec() });
    bench.asks(Request::Spawn { id: id(1), program: program() });
    bench.happens(Happening::Prepared(id(1), Ok(())));
    let ring = bench.machine.secret(id(1)).bell(Ring::Begun);
    bench.answers(&["$1 @1 %1 101"]);
    bench.says(Message::Output { pane: PaneId(1), bytes: b"first".to_vec() });
    bench.says(Message::Output { pane: PaneId(1), bytes: ring });
    bench.says(Message::Output { pane: PaneId(2), bytes: b"not ours".to_vec() });
    assert!(!bench.take().1.contains(&Effect::ReadFate(id(1))));
    (0..3).for_each(|_| bench.answers(&[]));
    assert!(bench.take().1.contains(&Effect::ReadFate(id(1))));
    bench.happens(Happening::Fate(id(1), Fate { pid: Some(102), end: None }));
    bench.asks(Request::Attach { id: id(1), stream: Stream::Main, from: 0 });
    assert!(bench.told().contains(&output(0, b"first")));
}

#[test]
fn half_a_pane_is_closed_again() {
    let mut bench = Bench::ready(vec![], &[]);
    bench.asks(Request::Spawn { id: id(1), program: program() });
    bench.happens(Happening::Prepared(id(1), Ok(())));
    bench.take();
    bench.answers(&["$1 @1 %1 101"]);
    bench.refuses("can't find window");
    let (sent, effects) = bench.take();
    assert_eq!(sent, [r#"kill-pane -t "%1""#]);
    assert!(matches!(&effects[..], [Effect::Tell(Event::SpawnFailed { .. }), Effect::Forget(_)]), "{effects:?}");
}

#[test]
fn a_program_that_never_starts_is_given_up() {
    let mut bench = Bench::ready(vec![], &[]);
    bench.asks(Request::Spawn { id: id(1), program: program() });
    bench.happens(Happening::Prepared(id(1), Ok(())));
    bench.answers(&["$1 @1 %1 101"]);
    (0..9).for_each(|_| bench.answers(&[]));
    bench.take();
    let deadline = bench.machine.deadline().unwrap();
    assert!(deadline > bench.now && deadline <= bench.now + Duration::from_secs(60));
    bench.now = deadline;
    bench.happens(Happening::Time);
    let (sent, effects) = bench.take();
    assert_eq!(sent, [r#"kill-pane -t "%1""#]);
    assert!(matches!(&effects[..], [Effect::Tell(Event::SpawnFailed { .. }), Effect::Forget(_)]), "{effects:?}");
}

#[test]
fn a_program_ends_when_all_it_printed_has_been_told() {
    let mut bench = Bench::running();
    let ended = Fate { pid: Some(102), end: Some(End::Exit(Exit::Code(3))) };
    // It has ended, but only its beginning has been heard of.
    bench.ring(Ring::Begun, ended.clone());
    bench.says(Message::Output { pane: PaneId(1), bytes: b"more".to_vec() });
    assert_eq!(bench.told(), [output(0, b"more")]);
    bench.ring(Ring::Over, ended);
    let (sent, effects) = bench.take();
    let exited = Effect::Tell(Event::Exited { id: id(1), exit: Exit::Code(3), main: 4, error: 0 });
    assert_eq!((sent, effects), (vec![], vec![Effect::ReadFate(id(1)), exited]), "its pane has the last screen");
    bench.asks(input(1, b"x"));
    assert_eq!(bench.told(), [refused(1, InputRefusal::NotReading)]);
    bench.asks(Request::Forget { id: id(1) });
    let forgotten = Effect::Tell(Event::Forgotten { id: id(1) });
    assert_eq!(bench.take(), (vec![r#"kill-pane -t "%1""#.into()], vec![Effect::Forget(id(1)), forgotten]));
}

/// A look that was asked for before it was forgotten still shows its pane. What it has left running is not ended for that.
#[test]
fn a_pane_that_is_about_to_be_closed_is_no_orphan() {
    let mut bench = Bench::running();
    bench.ring(Ring::Over, Fate { pid: Some(102), end: Some(End::Exit(Exit::Code(3))) });
    bench.machine.look();
    bench.asks(Request::Forget { id: id(1) });
    bench.take();
    bench.answers(&["$0 @1 %1 101 80 24 00000001   "]);
    assert_eq!(bench.take().1, []);
    // One that nobody closes is.
    bench.answers(&[]);
    bench.machine.look();
    bench.happens(Happening::Time);
    bench.answers(&["$0 @1 %1 101 80 24 00000001   "]);
    assert!(bench.told().contains(&Event::Ended { id: id(1), left: 0 }));
}

#[test]
fn panes_are_closed_one_after_the_other() {
    let mut bench = Bench::ready(vec![], &[]);
    bench.take();
    for pane in 1..=3 {
        bench.machine.close(Line::new("kill-pane -t").pane(PaneId(pane)));
    }
    bench.happens(Happening::Time);
    for pane in 1..=3 {
        assert_eq!(bench.take().0, [format!("kill-pane -t \"%{pane}\"")]);
        bench.refuses("can't find pane");
    }
    assert_eq!(bench.take().0, [""; 0]);
}

#[test]
fn input_and_its_note_are_one_line() {
    let mut bench = Bench::running();
    bench.asks(input(7, b"hi"));
    let expected = [
        r#"copy-mode -q -t "%1" ; send-keys -t "%1" -H 68 69 ; set-option -p -F -t "%1" @posse_inputs"#,
        &quoted("#{?pane_input_off,,5:7}"),
        r#" ; display-message -p -t "%1""#,
        &quoted("#{pane_input_off}"),
    ];
    let expected = expected.concat();
    assert_eq!(bench.take(), (vec![expected], vec![]));
    // A repeat before the answer waits for it, one after it does not.
    bench.asks(input(7, b"hi"));
    (0..3).for_each(|_| bench.answers(&[]));
    assert_eq!(bench.told(), []);
    bench.answers(&["0"]);
    assert_eq!(bench.told(), [done(7), done(7)]);
    bench.asks(input(6, b"old"));
    assert_eq!(bench.told(), [done(6)]);

    // Refused: it may come again under the same number.
    bench.asks(input(8, b"x"));
    (0..3).for_each(|_| bench.answers(&[]));
    bench.answers(&["1"]);
    assert_eq!(bench.told(), [refused(8, InputRefusal::Off)]);
    bench.asks(input(8, b"x"));
    assert_eq!(bench.take().0.len(), 1);
    bench.refuses("can't find pane: %1");
    assert_eq!(bench.told(), [refused(8, InputRefusal::NotReading)]);
    bench.asks(Request::Input { id: id(9), writer: WriterId(5), sequence: 1, bytes: vec![1] });
    let unknown =
        Event::InputRefused { id: id(9), writer: WriterId(5), sequence: 1, why: InputRefusal::NoSuchTerminal };
    assert_eq!(bench.told(), [unknown]);
}

#[test]
fn long_input_goes_through_a_buffer_that_does_not_stay() {
    let mut bench = Bench::running();
    let bytes = vec![b'x'; 1000];
    bench.asks(input(1, &bytes));
    let (sent, effects) = bench.take();
    assert_eq!(effects, [Effect::SaveInput(1, bytes.clone())]);
    assert!(sent[0].starts_with(r#"load-buffer -b "posse_tag_1" "#), "{sent:?}");
    assert!(sent[0].contains(r#" ; paste-buffer -d -r -b "posse_tag_1" -t "%1" ; "#), "{sent:?}");
    (0..4).for_each(|_| bench.answers(&[]));
    bench.answers(&["0"]);
    assert_eq!(bench.take(), (vec![], vec![Effect::DropInput(1), Effect::Tell(done(1))]));

    // S-166: typing fails after the buffer was loaded.
    bench.asks(input(2, &bytes));
    bench.take();
    (0..2).for_each(|_| bench.answers(&[]));
    bench.refuses("no buffer posse_tag_2");
    let (sent, effects) = bench.take();
    assert_eq!(sent, [r#"delete-buffer -b "posse_tag_2""#]);
    assert_eq!(effects, [Effect::DropInput(2), Effect::Tell(refused(2, InputRefusal::Failed))]);
    // The file with it is gone before tmux reads it.
    bench.answers(&[]);
    bench.asks(input(2, &bytes));
    bench.take();
    bench.refuses("No such file or directory: /somewhere/3");
    let (sent, effects) = bench.take();
    assert_eq!(sent, [r#"delete-buffer -b "posse_tag_3""#]);
    assert_eq!(effects, [Effect::DropInput(3), Effect::Tell(refused(2, InputRefusal::Failed))]);
}

#[test]
fn people_move_panes_and_close_sessions() {
    let mut bench = Bench::running();
    // Its window is not in our session any more: linked again, and its screen taken.
    bench.says(Message::Changed);
    bench.take();
    bench.answers(&["$1 @9 %1 101 80 24 00000001   "]);
    let (sent, _) = bench.take();
    assert_eq!(sent[0], r#"link-window -d -s "@9" -t "=_anchor:""#);
    assert_eq!(sent[1], r#"refresh-client -A "%1:pause""#);
    bench.answers(&[]);
    bench.refuses("can't find pane: %1");
    bench.take();
    // The look asked for because of that: the session it was in is gone.
    bench.answers(&["$0 @9 %1 101 80 24 00000001   ", "$0 @0 %0 100 80 24    "]);
    assert_eq!(bench.take().0, [r#"kill-window -t "@9""#]);
    // But one that somebody put into our session is left where it is.
    let mut bench = Bench::running();
    bench.says(Message::Changed);
    bench.take();
    bench.answers(&["$0 @9 %1 101 80 24 00000001   ", "$1 @7 %7 107 80 24    "]);
    assert_eq!(bench.take().0, [""; 0]);
    // A window that we looked at because of a pane that has left it is let go.
    bench.says(Message::Changed);
    bench.take();
    bench.answers(&["$0 @9 %1 101 80 24 00000001   ", "$0 @7 %7 107 80 24    ", "$1 @7 %7 107 80 24    "]);
    assert_eq!(bench.take().0, [r#"unlink-window -t "\0440:@7""#]);
}

#[test]
fn sizes_come_with_the_layout_and_are_checked() {
    let mut bench = Bench::running();
    let size = |rows, columns| Event::Resized { id: id(1), offset: 0, size: Size::clamped(rows, columns) };
    bench.says(Message::Layout { window: WindowId(1), layout: "abcd,100x30,0,0,1".into() });
    bench.says(Message::Layout { window: WindowId(1), layout: "abcd,100x30,0,0,1".into() });
    assert_eq!(bench.told(), [size(30, 100)]);
    bench.answers(&["$0 @1 %1 101 100 29 00000001   ", "$1 @1 %1 101 100 29 00000001   "]);
    assert_eq!(bench.told(), [size(29, 100)], "a border takes a row");
    bench.asks(Request::Resize { id: id(1), size: Size::clamped(5, 6) });
    let sent = bench.take().0;
    assert_eq!(sent.last().unwrap(), r#"resize-window -t "@1" -x "6" -y "5""#);
}

#[test]
fn ending_asks_then_kills_then_closes() {
    let mut bench = Bench::running();
    bench.asks(Request::End { id: id(1), grace_ms: 500 });
    assert_eq!(bench.take(), (vec![], vec![Effect::Signal(101, Signal::TERM)]));
    bench.now = bench.machine.deadline().unwrap();
    bench.happens(Happening::Time);
    assert_eq!(bench.take(), (vec![], vec![Effect::Kill { program: 102, session: 101 }]));
    bench.now = bench.machine.deadline().unwrap();
    bench.happens(Happening::Time);
    assert_eq!(bench.take(), (vec![r#"kill-pane -t "%1""#.into()], vec![]));
    bench.says(Message::Changed);
    bench.answers(&[]);
    bench.answers(&[]);
    bench.happens(Happening::Fate(id(1), Fate { pid: Some(102), end: None }));
    let exited = Event::Exited { id: id(1), exit: Exit::Signal(1), main: 0, error: 0 };
    assert_eq!(bench.told(), [exited, Event::Ended { id: id(1), left: 0 }]);
    assert_eq!(bench.machine.deadline(), None);
}

#[test]
fn a_pause_is_answered_with_the_screen() {
    let mut bench = Bench::running();
    bench.says(Message::Output { pane: PaneId(1), bytes: b"abc".to_vec() });
    bench.says(Message::Paused(PaneId(1)));
    bench.says(Message::Output { pane: PaneId(1), bytes: b"on the screen already".to_vec() });
    assert_eq!(bench.told(), [output(0, b"abc")]);
    bench.answers(&[]);
    let (sent, _) = bench.take();
    assert!(sent[0].ends_with(r#" ; refresh-client -A "%1:continue""#), "{sent:?}");
    // Some say only now that it was stopped, as we asked.
    bench.says(Message::Paused(PaneId(1)));
    assert!(bench.take().0.is_empty());
    // Sent before the answer, although it came later.
    bench.says(Message::Output { pane: PaneId(1), bytes: b"more".to_vec() });
    bench.answers(&["80 24 0 0 4294967295 4294967295 3 0 1 0 23 0 1 0 0 0 0 0 0 0 0  vm vm"]);
    for lines in [&["first row is no history"][..], &["abc"], &[], &[]] {
        bench.answers(lines);
    }
    let told = bench.told();
    let [Event::Resized { offset: 4, .. }, Event::Checkpoint { offset: 4, blob, .. }, empty, more] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!((empty, more), (&output(4, b""), &output(4, b"more")));
    let shown = crate::emulator::Emulator::restore(blob, HistoryLimit::default()).unwrap();
    assert_eq!(shown.screen().filled_rows(), ["abc"]);
}
