use std::collections::HashSet;

use super::*;

#[test]
fn s_107_bytes_become_plain_text() {
    for (bytes, text) in [
        (&b"RESULT: PASS\n"[..], "RESULT: PASS\n"),
        (b"\xef\xbb\xbfRESULT: PASS\r\nall\rgood\r\n", "RESULT: PASS\nall\ngood\n"),
        (b"", ""),
        ("ä€😀\u{2028}x".as_bytes(), "ä€😀\u{2028}x"),
    ] {
        assert_eq!(decode(bytes), (text.to_owned(), Vec::new()));
    }
}

#[test]
fn s_108_damage_is_replaced_and_said() {
    let (text, notes) = decode(b"RESULT: \xff PASS \xc3");
    assert_eq!((text.as_str(), notes.len()), ("RESULT: \u{fffd} PASS \u{fffd}", 1));
}

#[test]
fn a_flood_is_cut_between_two_characters_and_says_so() {
    let fits = vec![b'x'; LIMIT];
    assert_eq!((decode(&fits).0.len(), decode(&fits).1.len()), (LIMIT, 0));
    for (odd, character) in [("", "€"), ("x", "€"), ("xx", "€"), ("", "😀"), ("xxx", "😀"), ("", "x")] {
        let flood = format!("{odd}{}", character.repeat(LIMIT / character.len() + 1));
        let (text, notes) = decode(flood.as_bytes());
        let (kept, note) = text.split_once("\n\n").unwrap();
        assert!(note.contains("cut"), "{note}");
        assert!(kept.len() <= LIMIT && kept.len() > LIMIT - 4 && flood.starts_with(kept));
        assert_eq!(notes, ["the answer is longer than 1 MB and was cut"]);
    }
    // Continuation bytes alone are damage, wherever they are cut.
    assert_eq!(decode(&vec![0x80; LIMIT + 1]).1.len(), 2);
}

#[test]
fn white_space_is_no_answer() {
    for blank in [&b""[..], b" \r\n\t", b"\xef\xbb\xbf\n", "\u{a0}\u{2003}".as_bytes()] {
        assert_eq!(Look::at(blank), (Look::Blank, Vec::new()));
    }
    assert_eq!(Look::at(b" ok\n").0, Look::Ready(" ok\n".into()));
}

#[test]
fn s_112_s_114_archived_files_keep_their_names_apart() {
    let taken: HashSet<&str> = ["001-analyst.md", "007-tester-late.md", "007-tester-late-2.md"].into();
    for (seq, key, suffix, expected) in [
        (3, "analyst", None, "003-analyst.md"),
        (4, "analyst_review", Some(Suffix::Stale), "004-analyst_review-stale.md"),
        (1, "analyst", None, "001-analyst-2.md"),
        (7, "tester", Some(Suffix::Late), "007-tester-late-3.md"),
        (1234, "tester", None, "1234-tester.md"),
    ] {
        assert_eq!(archive_name(seq, key, suffix, &|name| taken.contains(name)), expected);
    }
}

#[test]
fn s_110_paths_are_one_word_for_a_shell() {
    assert_eq!(shell_quoted("/tmp/a b"), "'/tmp/a b'");
    assert_eq!(shell_quoted("/tmp/it's $HOME"), r"'/tmp/it'\''s $HOME'");
}

#[test]
fn s_111_the_word_that_ends_the_answer_is_random_and_not_expanded() {
    assert_ne!(heredoc_word(1), heredoc_word(2));
    let prompts = PromptTemplates::default();
    let word = heredoc_word(0xfeed);
    for text in [instruction(&prompts, "/w/a.md", &word), reminder(&prompts, "/w/a.md", &word)] {
        assert!(text.contains("<<'ANSWER_000000000000feed' && mv"), "{text}");
        assert!(text.contains("\nANSWER_000000000000feed"), "{text}");
        assert!(text.contains("\n  /w/a.md\n"), "{text}");
    }
    assert!(instruction(&prompts, "/w/a.md", &word).contains("mandatory"));
}
