//! Makes foreign text safe to show. Text from agents may hold characters that move the cursor, reverse the order of the
//! following text, or are invisible, so that a command reads as another one. Each such character is shown as its
//! number, `\u{202e}`.

/// Returns the text on one line: line ends and tabs become spaces, and invisible characters become their number.
pub fn one_line(text: &str) -> String {
    escaped(text, |c| matches!(c, '\n' | '\r' | '\t').then_some(' '))
}

/// Returns the text with its line ends; invisible characters become their number.
pub fn lines(text: &str) -> String {
    text.split('\n').map(one_line).collect::<Vec<_>>().join("\n")
}

/// Returns text with posse's own colours and sequences; only invisible characters become their number.
pub fn with_sequences(text: &str) -> String {
    escaped(text, |c| c.is_control().then_some(c))
}

/// Replaces each invisible character by as many `?` as it has bytes, so that offsets into the text stay valid.
pub fn same_bytes(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            _ if c.is_control() || is_unseen(c) => shown.extend(std::iter::repeat_n('?', c.len_utf8())),
            _ => shown.push(c),
        }
    }
    shown
}

/// Returns the words of a text, separated by one blank.
pub fn words_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Truncates the text to this many characters, with an ellipsis for the omitted part.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the text with its first letter as a capital.
pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn escaped(text: &str, replaced: impl Fn(char) -> Option<char>) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match replaced(c) {
            Some(other) => shown.push(other),
            None if c.is_control() => shown.push_str(&number(c)),
            None if is_unseen(c) && !joins(before, c, rest.peek().copied()) => shown.push_str(&number(c)),
            None => shown.push(c),
        }
        before = Some(c);
    }
    shown
}

fn number(c: char) -> String {
    format!("\\u{{{:x}}}", u32::from(c))
}

/// Returns whether a character is invisible or reorders others: Unicode's default-ignorable characters, bidirectional
/// controls, separators of lines and paragraphs, and unusual blanks.
pub(crate) fn is_unseen(c: char) -> bool {
    matches!(u32::from(c),
        0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x2800 | 0x3164
        | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
        | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

/// Returns whether an invisible character has a legitimate place: inside one emoji, or between letters of a script that
/// it joins or separates. Elsewhere it hides something.
fn joins(before: Option<char>, c: char, after: Option<char>) -> bool {
    let (Some(before), code) = (before, u32::from(c)) else { return false };
    match code {
        0xfe0e | 0xfe0f => is_pictograph(before),
        0x200d => after.is_some_and(|after| {
            ((is_pictograph(before) || is_emoji_modifier(before)) && is_pictograph(after))
                || (is_joined_script(before) && is_joined_script(after))
        }),
        0x200c => is_joined_script(before) && after.is_some_and(is_joined_script),
        _ => false,
    }
}

fn is_pictograph(c: char) -> bool {
    matches!(u32::from(c), 0xa9 | 0xae | 0x203c..=0x204a | 0x2100..=0x27bf | 0x2900..=0x2bff | 0x3030..=0x3299 | 0x1f000..=0x1faff)
}

/// Returns whether the character is a skin colour, or the variation that makes a symbol an emoji.
fn is_emoji_modifier(c: char) -> bool {
    matches!(u32::from(c), 0xfe0f | 0x1f3fb..=0x1f3ff)
}

/// Returns whether the character belongs to Arabic and related scripts, or to the scripts of South Asia.
fn is_joined_script(c: char) -> bool {
    !is_unseen(c) && !c.is_numeric() && matches!(u32::from(c), 0x600..=0xdff)
}

/// Formats a duration for people.
pub fn lasted(duration: std::time::Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_shown_as_its_number() {
        for (text, shown) in [
            ("rm -rf \u{202e}gpj.cod", "rm -rf \\u{202e}gpj.cod"),
            ("a\u{2066}b\u{2069}c\u{200e}\u{200f}\u{61c}", "a\\u{2066}b\\u{2069}c\\u{200e}\\u{200f}\\u{61c}"),
            ("cu\u{200b}rl\u{200d}x\u{2060}\u{feff}", "cu\\u{200b}rl\\u{200d}x\\u{2060}\\u{feff}"),
            ("soft\u{ad}hyphen", "soft\\u{ad}hyphen"),
            ("tag\u{e0041}\u{e007f}", "tag\\u{e0041}\\u{e007f}"),
            ("varied a\u{fe0f}\u{e0100}", "varied a\\u{fe0f}\\u{e0100}"),
            ("blank\u{3164}\u{2800}\u{ffa0}", "blank\\u{3164}\\u{2800}\\u{ffa0}"),
            ("\u{1b}[2Kgone\u{9b}1A\u{7f}\u{0}", "\\u{1b}[2Kgone\\u{9b}1A\\u{7f}\\u{0}"),
            ("two\u{2028}lines", "two\\u{2028}lines"),
        ] {
            assert_eq!(one_line(text), shown, "{text:?}");
            assert_eq!(lines(text), shown, "{text:?}");
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "git commit -m 'fix: größer — “quoted” … ✓ ❯ │'",
            "日本語 한국어 עברית العربية ελληνικά",
            "می‌خواهم",
            "क्‍ष",
            "👩‍💻 ❤️ ✔️ 🏳️‍🌈 👍🏽 👨🏽‍🔧",
            "a\u{a0}b",
        ] {
            assert_eq!(one_line(text), text);
        }
        assert_eq!(one_line("a\nb\tc\r\n"), "a b c  ");
        assert_eq!(lines("a\nb\tc"), "a\nb c");
        assert_eq!(with_sequences("\u{1b}[1ma\u{202e}\u{1b}[0m\n"), "\u{1b}[1ma\\u{202e}\u{1b}[0m\n");
    }
}
