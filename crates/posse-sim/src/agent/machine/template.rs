//! Fills in the placeholders of texts.

use crate::scenario::TurnKey;

/// The values of placeholders.
pub(super) struct Blanks<'a> {
    pub(super) prompt: &'a str,
    pub(super) turn: u32,
    pub(super) asked: Option<LoopPromptRef<'a>>,
}

/// The answer that the review loop asked for, and how often it asked for this key.
#[derive(Clone, Copy)]
pub(super) struct LoopPromptRef<'a> {
    pub(super) key: TurnKey,
    pub(super) path: &'a str,
    pub(super) nth: u32,
}

/// Fills in `{prompt}`, `{turn}`, `{path}`, `{path:SUFFIX}`, and in the loop `{key}`, `{nth}` and `{answer}`. Other
/// braces stay, and so do placeholders that have no value.
pub(super) fn fill(text: &str, blanks: &Blanks) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let filled = rest.find('}').and_then(|close| {
            let value = match &rest[1..close] {
                "prompt" => blanks.prompt.to_owned(),
                "turn" => blanks.turn.to_string(),
                "key" => blanks.asked?.key.word().to_owned(),
                "nth" => blanks.asked?.nth.to_string(),
                "answer" => blanks.asked?.path.to_owned(),
                "path" => path_in(blanks.prompt, "")?.to_owned(),
                name => path_in(blanks.prompt, name.strip_prefix("path:")?)?.to_owned(),
            };
            Some((value, close + 1))
        });
        match filled {
            Some((value, length)) => {
                out.push_str(&value);
                rest = &rest[length..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns the last absolute path in a prompt that ends with `suffix`, without quotes and punctuation around it.
fn path_in<'a>(prompt: &'a str, suffix: &str) -> Option<&'a str> {
    let outside =
        |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '<' | '>' | '(' | ')' | '[' | ']' | ';');
    prompt
        .split(outside)
        .map(|word| word.trim_end_matches(['.', ',', ':', '!', '?']))
        .rfind(|word| word.len() > 1 && word.starts_with('/') && word.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_in() {
        let prompt = "Read /srv/{turn}.txt, then write '/tmp/a b/answer.md'. Or to /tmp/out/answer.md.";
        let cases = [
            ("{prompt}!", "hi /x", "hi /x!"),
            ("{turn}/{turn}", prompt, "3/3"),
            ("{path}", prompt, "/tmp/out/answer.md"),
            ("{path:.txt}", prompt, "/srv/{turn}.txt"),
            ("{path:.none} {", prompt, "{path:.none} {"),
            ("fn main() {}", prompt, "fn main() {}"),
            ("{{turn}}", prompt, "{3}"),
            ("{path}", "no path / here", "{path}"),
        ];
        for (text, prompt, expected) in cases {
            assert_eq!(fill(text, &Blanks { prompt, turn: 3, asked: None }), expected, "{text}");
        }
        let asked = Some(LoopPromptRef { key: TurnKey::Tester, path: "/r/test_result.md", nth: 2 });
        let filled = fill("{key} {nth} {answer} {turn}", &Blanks { prompt, turn: 3, asked });
        assert_eq!(filled, "tester 2 /r/test_result.md 3");
        assert_eq!(fill("{key} {nth}", &Blanks { prompt, turn: 3, asked: None }), "{key} {nth}");
    }
}
