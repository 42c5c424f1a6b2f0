//! Texts with placeholders, such as the command lines in manifests and the answers of scripted agents.

/// Replaces each `{name}` for which there is a value. Other braces stay, and no value is searched for placeholders.
pub fn fill(text: &str, value_of: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let filled = rest.find('}').and_then(|close| Some((value_of(&rest[1..close])?, close + 1)));
        let (value, length) = filled.unwrap_or_else(|| ("{".to_owned(), 1));
        out.push_str(&value);
        rest = &rest[length..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_in() {
        let value_of = |name: &str| match name {
            "nth" => Some("3".to_owned()),
            "prompt" => Some("say {nth}".to_owned()),
            _ => None,
        };
        let cases = [
            ("{nth}/{nth}", "3/3"),
            ("{prompt}!", "say {nth}!"),
            ("{key} {", "{key} {"),
            ("fn main() {}", "fn main() {}"),
            ("{{nth}}", "{3}"),
        ];
        for (text, expected) in cases {
            assert_eq!(fill(text, value_of), expected, "{text}");
        }
    }
}
