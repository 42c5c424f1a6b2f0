use proptest::prelude::*;

use super::*;

fn parse(bytes: &[u8]) -> Vec<Message> {
    let (mut parser, mut messages) = (Parser::default(), Vec::new());
    parser.feed(bytes, |message| messages.push(message));
    messages
}

fn output(pane: u32, bytes: &[u8]) -> Message {
    Message::Output { pane: PaneId(pane), bytes: bytes.to_vec() }
}

fn layout(window: u32, layout: &str) -> Message {
    Message::Layout { window: WindowId(window), layout: layout.into() }
}

/// As tmux writes them; 3.3a unless it says otherwise.
#[test]
fn real_lines() {
    let cases: &[(&str, Option<Message>)] = &[
        ("%output %0 hi\\015\\012", Some(output(0, b"hi\r\n"))),
        ("%output %1 \\033]7501;?\\033\\134", Some(output(1, b"\x1b]7501;?\x1b\\"))),
        ("%output %1 ", Some(output(1, b""))),
        ("%output %1 a b  c", Some(output(1, b"a b  c"))),
        ("%output %1 ä", Some(output(1, "ä".as_bytes()))),
        ("%output % x", None),
        ("%output", None),
        ("%extended-output %1 0 : early\\015\\012", Some(output(1, b"early\r\n"))),
        ("%extended-output %12 1234 future words : a : b", Some(output(12, b"a : b"))),
        ("%extended-output %12 1234 : ", Some(output(12, b""))),
        ("%extended-output %12 1234", None),
        ("%pause %3", Some(Message::Paused(PaneId(3)))),
        ("%continue %3", None),
        ("%layout-change @1 a29e,90x20,0,0,1 a29e,90x20,0,0,1 *", Some(layout(1, "a29e,90x20,0,0,1"))),
        ("%layout-change @2 c2af,9x9,0,0[9x4,0,0,2,9x4,0,5,3] b,9x9,0,0,3 *Z", Some(layout(2, "b,9x9,0,0,3"))),
        ("%layout-change @2 b,9x9,0,0,3", Some(layout(2, "b,9x9,0,0,3"))),
        ("%layout-change", None),
        ("%window-add @1", Some(Message::Changed)),
        ("%window-close @1", Some(Message::Changed)),
        ("%unlinked-window-add @1", Some(Message::Changed)),
        ("%unlinked-window-close @1", Some(Message::Changed)),
        ("%window-pane-changed @2 %3", Some(Message::Changed)),
        ("%sessions-changed", Some(Message::Changed)),
        ("%session-changed $0 _anchor with spaces", Some(Message::Session(SessionId(0)))),
        ("%window-renamed @0 cat", None),
        ("%unlinked-window-renamed @0 %output %1 x", None),
        ("%session-renamed $1 %exit", None),
        ("%session-window-changed $1 @2", None),
        ("%client-session-changed /dev/pts/1 $1 posse-x", None),
        ("%client-detached /dev/pts/1", None),
        ("%pane-mode-changed %1", None),
        ("%subscription-changed name $0 @1 0 %1 : value", None),
        ("%paste-buffer-changed posse_1", None),
        ("%config-error /etc/tmux.conf:1: unknown command: nonsense", None),
        ("%exit", Some(Message::Exit { reason: String::new() })),
        ("%exit server exited", Some(Message::Exit { reason: "server exited".into() })),
        ("/nowhere/file: No such file or directory", None),
        ("%something-new in 2031", None),
        ("", None),
    ];
    for (line, expected) in cases {
        assert_eq!(parse(format!("{line}\n").as_bytes()), expected.clone().into_iter().collect::<Vec<_>>(), "{line}");
    }
}

#[test]
fn an_answer_is_what_stands_between_begin_and_its_own_end() {
    let text = b"%begin 1363006971 2 1\n\
        %output %1 not output\n\
        \n\
        %end 1363006971 3 1\n\
        %begin 1363006971 4 1\n\
        %pause %0\n\
        %end 1363006971 2 1\n\
        %output %1 output\n";
    let lines: [&[u8]; 5] =
        [b"%output %1 not output", b"", b"%end 1363006971 3 1", b"%begin 1363006971 4 1", b"%pause %0"];
    let lines = lines.map(<[u8]>::to_vec).to_vec();
    let reply = Message::Reply(Reply { ours: true, failed: false, lines });
    assert_eq!(parse(text), [reply, output(1, b"output")]);

    let text = b"%begin 1 7 0\n%end 1 7 0\n%begin 1 8 1\ncan't find pane: %99\n%error 1 8 1\n";
    let refused = Reply { ours: true, failed: true, lines: vec![b"can't find pane: %99".to_vec()] };
    assert_eq!(parse(text), [Message::Reply(Reply::default()), Message::Reply(refused)]);
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let mut parser = Parser::default();
    let mut messages = Vec::new();
    parser.feed(b"%output %1 ", |message| messages.push(message));
    for _ in 0..100 {
        parser.feed(&vec![b'x'; 100_000], |message| messages.push(message));
        assert!(parser.line.len() <= LINE_MAX);
    }
    parser.feed(b"\n%output %1 next\n", |message| messages.push(message));
    assert_eq!(messages, [output(1, b"next")], "half an output would be worse than none");
}

#[test]
fn an_answer_without_end_does_not_fill_the_memory() {
    let mut parser = Parser::default();
    parser.feed(b"%begin 1 1 1\n", |_| {});
    let line = [vec![b'x'; LINE_MAX / 2], vec![b'\n']].concat();
    for _ in 0..100 {
        parser.feed(&line, |_| {});
    }
    let mut length = 0;
    parser.feed(b"%end 1 1 1\n", |message| {
        if let Message::Reply(reply) = message {
            length = reply.lines.iter().map(Vec::len).sum();
        }
    });
    assert!((BLOCK_MAX / 2..=BLOCK_MAX).contains(&length), "{length}");
}

/// As tmux does it: everything below a space, and the backslash.
fn escape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in bytes {
        match byte {
            0..b' ' | b'\\' => out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            other => out.push(*other),
        }
    }
    out
}

#[test]
fn every_byte_comes_through() {
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(unescape(&escape(&all)), all);
    let octal: String = all.iter().map(|byte| format!("\\{byte:03o}")).collect();
    assert_eq!(unescape(octal.as_bytes()), all);
    assert_eq!(unescape(b"\\ \\1 \\12 \\400 \\08 \\"), b"\\ \\1 \\12 \\400 \\08 \\");
}

/// Lines that look like the real ones, and some that do not.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| [b"%output %1 ".to_vec(), escape(&bytes)].concat()),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| [
            b"%extended-output %2 7 : ".to_vec(),
            escape(&bytes)
        ]
        .concat()),
        Just(b"%begin 1 1 1".to_vec()),
        Just(b"%end 1 1 1".to_vec()),
        Just(b"%error 1 1 1".to_vec()),
        Just(b"%begin 1 2 0".to_vec()),
        Just(b"%end 1 2 0".to_vec()),
        Just(b"%layout-change @1 a,1x1,0,0,1 ".to_vec()),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(line, 0..30).prop_map(|lines| lines.join(&b'\n'))
}

proptest! {
    #[test]
    fn chunking_does_not_matter(bytes in stream(), cuts in prop::collection::vec(1usize..20, 1..40)) {
        let mut parser = Parser::default();
        let mut messages = Vec::new();
        let (mut rest, mut cuts) = (&bytes[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at((*cuts.next().unwrap_or(&1)).min(rest.len()));
            parser.feed(chunk, |message| messages.push(message));
            rest = after;
        }
        prop_assert_eq!(messages, parse(&bytes));
    }

    #[test]
    fn what_was_escaped_comes_back(bytes: Vec<u8>) {
        prop_assert_eq!(unescape(&escape(&bytes)), bytes);
    }

    #[test]
    fn nothing_makes_it_panic(bytes: Vec<u8>) {
        parse(&bytes);
    }
}
