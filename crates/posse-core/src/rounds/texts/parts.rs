//! Putting a text together: parts with a blank line between them, numbered steps, and what must not be done.

pub(super) struct Text(String);

impl Text {
    pub(super) fn new(opening: String) -> Self {
        Self(opening)
    }

    pub(super) fn part(mut self, part: impl AsRef<str>) -> Self {
        let part = part.as_ref();
        if !part.is_empty() {
            self.0.push_str("\n\n");
            self.0.push_str(part);
        }
        self
    }

    pub(super) fn steps(self, steps: &[&str]) -> Self {
        // What belongs to a step is set in, so that one sees where the next begins.
        let step = |(at, text): (usize, &&str)| format!("{}. {}", at + 1, text.replace('\n', "\n   "));
        let list = steps.iter().enumerate().map(step).collect::<Vec<_>>().join("\n");
        self.part(format!("Do this:\n{list}"))
    }

    pub(super) fn must_not(self, what: &[&str]) -> Self {
        let list = what.iter().map(|what| format!("- {what}")).collect::<Vec<_>>().join("\n");
        self.part(format!("You must not:\n{list}"))
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// The most characters of somebody else's that are passed on at once. No sensible answer is as long, and a terminal takes no
/// input of more than a mebibyte.
const MOST: usize = 200_000;

/// Somebody else's words.
pub(super) fn tagged(tag: &str, text: &str) -> String {
    let text = text.trim_matches('\n');
    let Some((end, _)) = text.char_indices().nth(MOST) else { return format!("<{tag}>\n{text}\n</{tag}>") };
    let cut = text[end..].chars().count();
    format!("<{tag}>\n{}\n[{cut} characters cut]\n</{tag}>", &text[..end])
}
