//! The part of Markdown that items need: lines, prose and headings. A heading in a code fence or in a comment does not
//! count.

use crate::file_problem::TextSpan;

/// A line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarkdownLine<'t> {
    pub(super) text: &'t str,
    pub(super) at: TextSpan,
    /// Outside code fences and comments.
    pub(super) prose: bool,
}

impl<'t> MarkdownLine<'t> {
    /// Returns level and text, if the line is a heading.
    pub(super) fn heading(&self) -> Option<(usize, &'t str)> {
        let text = self.text.trim_start_matches(' ');
        if !self.prose || self.text.len() - text.len() > 3 {
            return None;
        }
        let words = text.trim_start_matches('#');
        let level = text.len() - words.len();
        if !(1..=6).contains(&level) || !(words.is_empty() || words.starts_with([' ', '\t'])) {
            return None;
        }
        let words = words.trim();
        let closed = words.trim_end_matches('#');
        Some((level, if closed.ends_with([' ', '\t']) { closed.trim_end() } else { words }))
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Returns the span of a piece of this line. The piece is found by address, not by its text.
    pub(super) fn place_of(&self, piece: &str) -> TextSpan {
        let from = (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize).min(self.text.len());
        TextSpan {
            start: self.at.start + from,
            end: self.at.start + from + piece.len(),
            line: self.at.line,
            column: self.at.column + self.text[..from].chars().count(),
        }
    }
}

/// A block whose lines are not prose.
enum Inside {
    Fence { mark: char, length: usize, at: TextSpan },
    Comment { at: TextSpan },
}

/// Returns all lines from a byte offset on, and the start of an unclosed fence or comment. `line` is the number of the
/// first line.
pub(super) fn lines(text: &str, from: usize, line: usize) -> (Vec<MarkdownLine<'_>>, Option<TextSpan>) {
    let mut lines = Vec::new();
    let mut inside: Option<Inside> = None;
    let mut start = from;
    for (i, whole) in text[from..].split_inclusive('\n').enumerate() {
        let next = start + whole.len();
        let whole = whole.strip_suffix('\n').unwrap_or(whole);
        let whole = whole.strip_suffix('\r').unwrap_or(whole);
        let text = whole.strip_prefix('\u{feff}').unwrap_or(whole);
        start += whole.len() - text.len();
        let at = TextSpan { start, end: start + text.len(), line: line + i, column: 1 };
        let trimmed = text.trim();
        let prose = match &inside {
            None => match opening(trimmed) {
                Some((mark, length)) => {
                    inside = Some(Inside::Fence { mark, length, at });
                    false
                }
                None if trimmed.starts_with("<!--") => {
                    if !trimmed.contains("-->") {
                        inside = Some(Inside::Comment { at });
                    }
                    false
                }
                None => true,
            },
            Some(Inside::Fence { mark, length, .. }) => {
                if trimmed.len() >= *length && trimmed.chars().all(|c| c == *mark) {
                    inside = None;
                }
                false
            }
            Some(Inside::Comment { .. }) => {
                if trimmed.contains("-->") {
                    inside = None;
                }
                false
            }
        };
        lines.push(MarkdownLine { text, at, prose });
        start = next;
    }
    let open = inside.map(|inside| match inside {
        Inside::Fence { at, .. } | Inside::Comment { at } => at,
    });
    (lines, open)
}

/// Returns mark and length of a fence that opens here. Any indentation is accepted, because lists can contain fences.
fn opening(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    // `` ```code``` `` on one line is no fence.
    (length >= 3 && !(mark == '`' && line[length..].contains('`'))).then_some((mark, length))
}

/// Returns the text of a list item, without its mark and box: `- [x] it works`.
pub(super) fn list_item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = match line.strip_prefix(['-', '*', '+']) {
        Some(rest) => rest,
        None => {
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            line[digits..].strip_prefix(['.', ')']).filter(|_| digits > 0)?
        }
    };
    let rest = rest.strip_prefix([' ', '\t'])?.trim();
    let boxes = ["[ ]", "[x]", "[X]"];
    Some(boxes.iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(rest).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(text: &str) -> Vec<(usize, &str)> {
        lines(text, 0, 1).0.iter().filter_map(MarkdownLine::heading).collect()
    }

    #[test]
    fn headings_are_only_headings() {
        for (text, expected) in [
            ("# A\n## B ##\n###### C\n", vec![(1, "A"), (2, "B"), (6, "C")]),
            ("#A\n####### B\n    # C\n", vec![]),
            ("   ## B\r\n## C#\r\n##\n", vec![(2, "B"), (2, "C#"), (2, "")]),
            ("```\n## no\n```\n## yes\n", vec![(2, "yes")]),
            ("~~~~ md\n## no\n~~~\n## no\n~~~~\n## yes\n", vec![(2, "yes")]),
            ("````\n```\n## no\n````\n## yes\n", vec![(2, "yes")]),
            ("- a\n    ```\n## no\n    ```\n## yes\n", vec![(2, "yes")]),
            ("```rust fn``` inline\n## yes\n", vec![(2, "yes")]),
            ("<!-- ## no -->\n<!--\n## no\n-->\n## yes\n", vec![(2, "yes")]),
            ("\u{feff}# A\n", vec![(1, "A")]),
        ] {
            assert_eq!(headings(text), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_know_their_bytes_and_open_fences_are_told() {
        let text = "a\r\né ## x\n```\nb";
        let (lines, open) = lines(text, 0, 1);
        for line in &lines {
            assert_eq!(&text[line.at.start..line.at.end], line.text);
        }
        assert_eq!(lines.iter().map(|line| line.prose).collect::<Vec<_>>(), [true, true, false, false]);
        assert_eq!(open.map(|at| at.line), Some(3));
        let place = lines[1].place_of(&lines[1].text[6..]);
        assert_eq!((&text[place.start..place.end], place.line, place.column), ("x", 2, 6));
    }

    #[test]
    fn list_items() {
        for (line, item) in [
            ("- a", Some("a")),
            ("  * [x] b ", Some("b")),
            ("2) c", Some("c")),
            ("-d", None),
            ("e", None),
            ("1. [ ] f", Some("f")),
            ("---", None),
        ] {
            assert_eq!(list_item(line), item, "{line}");
        }
    }
}
