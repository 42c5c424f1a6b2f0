//! Finds lines in an agent's answer. Decoration (`**RESULT: PASS**`, `## Risks`, `- Risks:`) is ignored.

/// Returns whether a character may decorate a line without changing its meaning.
fn dressing(c: char) -> bool {
    c.is_whitespace() || matches!(c, '*' | '_' | '#' | '-' | '`')
}

/// Returns the line without its decoration.
pub(super) fn undressed(line: &str) -> &str {
    line.trim_matches(dressing)
}

/// Returns the text after `head` and its colon, if the line starts with them. Case is ignored.
pub(super) fn value_of<'a>(line: &'a str, head: &str) -> Option<&'a str> {
    let rest = after(undressed(line), head)?;
    rest.trim_start_matches(dressing).strip_prefix(':').map(undressed)
}

/// Returns whether the line is a heading with this title, and no longer word.
pub(super) fn has_title(line: &str, title: &str) -> bool {
    after(undressed(line), title).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

fn after<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(beginning.len())?;
    head.eq_ignore_ascii_case(beginning).then_some(rest)
}

/// Returns the lines from the first with one of the titles up to the next with one of the other titles, or to the end.
pub(super) fn section<'a>(lines: &[&'a str], titles: &[&str], until: &[&str]) -> Vec<&'a str> {
    let has = |line: &str, titles: &[&str]| titles.iter().any(|title| has_title(line, title));
    let Some(start) = lines.iter().position(|line| has(line, titles)) else { return Vec::new() };
    let end = lines[start + 1..].iter().position(|line| has(line, until));
    lines[start..end.map_or(lines.len(), |end| start + 1 + end)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_known_however_it_is_dressed() {
        for line in [
            "RESULT: PASS",
            "  result :  PASS",
            "**RESULT: PASS**",
            "**RESULT:** PASS",
            "- `Result`: PASS",
            "### RESULT: _PASS_",
        ] {
            assert_eq!(value_of(line, "RESULT"), Some("PASS"), "{line}");
        }
        for line in [
            "REVIEW_RESULT: PASS",
            "RESULTS: PASS",
            "the RESULT: PASS",
            "> RESULT: PASS",
            "RESULT PASS",
            "RÉSULT: PASS",
        ] {
            assert_eq!(value_of(line, "RESULT"), None, "{line}");
        }
        assert!(has_title("- Risks (two):", "Risks") && has_title("## RISKS", "Risks"));
        assert!(!has_title("Risksome", "Risks") && !has_title("No risks", "Risks"));
    }

    #[test]
    fn a_section_ends_where_the_next_begins() {
        let lines = ["intro", "- Risks", "one", "Downstream impact", "two", "Risks"];
        assert_eq!(section(&lines, &["Risks"], &["Downstream impact"]), ["- Risks", "one"]);
        assert_eq!(section(&lines, &["Downstream impact"], &["Notes"]), ["Downstream impact", "two", "Risks"]);
        assert_eq!(section(&lines, &["Notes"], &[]), Vec::<&str>::new());
    }
}
