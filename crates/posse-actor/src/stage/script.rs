//! Where in its steps a turn is, loops included, and filling in what the steps leave open.

use std::sync::Arc;

use crate::rounds::TurnKey;
use crate::scenario::{Repeat, Step, Times};

#[derive(Debug)]
pub(super) struct Script {
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    steps: Arc<[Step]>,
    next: usize,
    /// How often these steps are still to be played, this time included.
    times: Times,
}

impl Script {
    pub(super) fn new(steps: Arc<[Step]>) -> Script {
        Script { levels: vec![Level { steps, next: 0, times: Times::Count(1) }] }
    }

    /// The next step. A `repeat` is returned as well; the caller enters it, so that every call does a bounded
    /// amount of work whatever the nesting.
    pub(super) fn next(&mut self) -> Option<Step> {
        loop {
            let level = self.levels.last_mut()?;
            if let Some(step) = level.steps.get(level.next) {
                level.next += 1;
                return Some(step.clone());
            }
            match &mut level.times {
                Times::Count(0 | 1) => {
                    self.levels.pop();
                }
                Times::Count(times) => {
                    *times -= 1;
                    level.next = 0;
                }
                Times::Forever => level.next = 0,
            }
        }
    }

    pub(super) fn enter(&mut self, repeat: Repeat) {
        if repeat.times != Times::Count(0) && !repeat.steps.is_empty() {
            self.levels.push(Level { steps: repeat.steps, next: 0, times: repeat.times });
        }
    }
}

/// What a text may leave open.
pub(super) struct Blanks<'a> {
    pub(super) prompt: &'a str,
    pub(super) turn: u32,
    pub(super) asked: Option<Asked<'a>>,
}

/// What the loop wants: whose answer, where, and for which time.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) key: TurnKey,
    pub(super) path: &'a str,
    pub(super) nth: u32,
}

/// Fills in `{prompt}`, `{turn}`, `{path}`, `{path:SUFFIX}`, and in the loop `{key}`, `{nth}` and `{answer}`. Other
/// braces stay as they are, and so does what the prompt does not have.
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

/// The last absolute path of a prompt that ends with `suffix`. Quotes and the marks of a sentence around it
/// are no part of it.
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

    fn say(text: &str) -> Step {
        Step::Say(text.to_owned())
    }

    fn repeat(times: Times, steps: &[Step]) -> Step {
        Step::Repeat(Repeat { times, steps: steps.into() })
    }

    fn play(steps: &[Step], at_most: usize) -> String {
        let mut script = Script::new(steps.into());
        let mut played = String::new();
        for _ in 0..at_most {
            match script.next() {
                Some(Step::Repeat(repeat)) => script.enter(repeat),
                Some(Step::Say(text)) => played.push_str(&text),
                Some(_) => played.push('?'),
                None => return played + ".",
            }
        }
        played
    }

    #[test]
    fn steps_come_in_order_and_loops_nest() {
        assert_eq!(play(&[], 9), ".");
        assert_eq!(play(&[say("a"), say("b")], 9), "ab.");
        let inner = repeat(Times::Count(2), &[say("b")]);
        assert_eq!(play(&[repeat(Times::Count(2), &[say("a"), inner]), say("c")], 99), "abbabbc.");
        assert_eq!(play(&[repeat(Times::Forever, &[say("a")]), say("c")], 5), "aaaa");
        assert_eq!(play(&[repeat(Times::Count(0), &[say("a")]), repeat(Times::Count(9), &[]), say("c")], 9), "c.");
    }

    #[test]
    fn open_places_are_filled_in() {
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
        let asked = Some(Asked { key: TurnKey::Tester, path: "/r/test_result.md", nth: 2 });
        let filled = fill("{key} {nth} {answer} {turn}", &Blanks { prompt, turn: 3, asked });
        assert_eq!(filled, "tester 2 /r/test_result.md 3");
        assert_eq!(fill("{key} {nth}", &Blanks { prompt, turn: 3, asked: None }), "{key} {nth}");
    }
}
