//! Finds the answer file that a prompt asks for.

use crate::scenario::TurnKey;

/// An answer that the loop asks for, and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopAnswerRequest {
    pub(crate) key: TurnKey,
    pub(crate) path: String,
}

/// A path in the prompt that may be the answer file.
struct FileMention {
    request: LoopAnswerRequest,
    quoted: bool,
}

/// Returns the file a prompt asks for. Prompts quote other agents, who may mention their own files. The instruction
/// quotes its file; otherwise the file named most often wins, then the last one.
pub(crate) fn request(prompt: &str) -> Option<LoopAnswerRequest> {
    let mentions = mentions(prompt);
    let rank = |mention: &FileMention| {
        let times = mentions.iter().filter(|other| other.request == mention.request).count();
        (mention.quoted, times)
    };
    // `max_by_key` returns the last of several maxima.
    mentions.iter().max_by_key(|mention| rank(mention)).map(|mention| mention.request.clone())
}

fn mentions(prompt: &str) -> Vec<FileMention> {
    let mut mentions = Vec::new();
    let mut at = 0;
    while let Some(found) = prompt[at..].find('/') {
        let slash = at + found;
        let before = prompt[..slash].chars().next_back();
        let quoted = matches!(before, Some('\'' | '"'));
        let starts = quoted || before.is_none_or(|c| c.is_whitespace() || "(<>[`=:".contains(c));
        let start = if quoted { slash - 1 } else { slash };
        at = slash + 1;
        if !starts {
            continue;
        }
        let (word, length) = shell_word(&prompt[start..]);
        if let Some(request) = named(&word) {
            mentions.push(FileMention { request, quoted });
            at = at.max(start + length);
        }
    }
    mentions
}

fn named(word: &str) -> Option<LoopAnswerRequest> {
    // Punctuation may follow a bare path.
    let path = word.trim_end_matches(['.', ',', ':', ';', '!', '?', ')', ']', '>', '`']);
    let (folder, name) = path.rsplit_once('/')?;
    let key = TurnKey::ALL.into_iter().find(|key| key.file() == name)?;
    (folder.is_empty() || folder.starts_with('/')).then(|| LoopAnswerRequest { key, path: path.to_owned() })
}

/// Returns the first shell word and its length in bytes. A quote without its end is not a quote.
fn shell_word(text: &str) -> (String, usize) {
    let mut word = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '\'' | '"' => match after.find(c).filter(|end| !after[..*end].contains('\n')) {
                Some(end) => {
                    word.push_str(&after[..end]);
                    rest = &after[end + 1..];
                }
                None => break,
            },
            '\\' => {
                let escaped = after.chars().next();
                word.extend(escaped);
                rest = &after[escaped.map_or(0, char::len_utf8)..];
            }
            c if c.is_whitespace() => break,
            c => {
                word.push(c);
                rest = after;
            }
        }
    }
    (word, text.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answer_file_is_found_in_the_prompt() {
        use TurnKey::{Analyst, AnalystReview, Programmer, ProgrammerReview, Tester};
        let cases: &[(&str, Option<(TurnKey, &str)>)] = &[
            (
                "Write to '/p/.tmp/agent-responses/analyst_summary.md'.",
                Some((Analyst, "/p/.tmp/agent-responses/analyst_summary.md")),
            ),
            ("cat > /p/analyst_review.md <<'END'\n…\nEND", Some((AnalystReview, "/p/analyst_review.md"))),
            ("cat >'/p/programmer_review.md' <<X", Some((ProgrammerReview, "/p/programmer_review.md"))),
            ("Mandatory (/p/test_result.md).", Some((Tester, "/p/test_result.md"))),
            ("path: `/p/test_result.md`", Some((Tester, "/p/test_result.md"))),
            // Blanks and quotes in the folder, as a shell wants them.
            ("into '/a b/it'\\''s/programmer_summary.md' now", Some((Programmer, "/a b/it's/programmer_summary.md"))),
            ("into '/a b/it'\"'\"'s/programmer_summary.md' now", Some((Programmer, "/a b/it's/programmer_summary.md"))),
            ("into \"/a b/programmer_summary.md\"", Some((Programmer, "/a b/programmer_summary.md"))),
            ("into /a\\ b/programmer_summary.md", Some((Programmer, "/a b/programmer_summary.md"))),
            ("into '/é ü/programmer_summary.md'", Some((Programmer, "/é ü/programmer_summary.md"))),
            // Quotes, then frequency, then the last place.
            (
                "Answer in '/p/test_result.md'.\nIt said: see /p/programmer_summary.md",
                Some((Tester, "/p/test_result.md")),
            ),
            (
                "/p/test_result.md /p/test_result.md\nIt said: see /p/programmer_summary.md",
                Some((Tester, "/p/test_result.md")),
            ),
            (
                "It said: /p/analyst_summary.md\nNow /p/programmer_summary.md",
                Some((Programmer, "/p/programmer_summary.md")),
            ),
            ("mv '/p/.x.tmp' '/p/test_result.md'", Some((Tester, "/p/test_result.md"))),
            // No file of ours, no absolute path, no file at all.
            ("'/p/test_result.md.tmp' '/p/my_test_result.md'", None),
            ("write test_result.md, ./test_result.md or a/test_result.md", None),
            ("don't / stop", None),
            ("'/p/test_result.md", None),
            ("'/p\n/test_result.md'", Some((Tester, "/test_result.md"))),
            ("", None),
        ];
        for (prompt, expected) in cases {
            let found = request(prompt);
            let found = found.as_ref().map(|request| (request.key, request.path.as_str()));
            assert_eq!(found, *expected, "{prompt}");
        }
    }

    proptest! {
        #[test]
        fn any_directory_survives_quoting(folder in "(/[^/\n\u{0}]{1,12}){1,4}", before in "\\PC{0,40}") {
            let path = format!("{folder}/test_result.md");
            let prompt = format!("{before}\nWrite '{}' please.", path.replace('\'', "'\\''"));
            prop_assert_eq!(request(&prompt).map(|request| request.path), Some(path));
        }

        #[test]
        fn any_prompt_is_handled(prompt in "[/'\"\\\\ \na.é]{0,40}(test_result.md)?['\"/ ]{0,4}") {
            request(&prompt);
        }
    }
}
