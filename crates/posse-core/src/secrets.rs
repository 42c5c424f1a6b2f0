//! Masks secrets in foreign text: tokens of known shapes are masked before the text is logged or shown. Secrets without
//! a known shape cannot be found; this is a safety net for pasted keys, not a guarantee.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::written::constant;

/// The replacement for a secret. Masking is idempotent, because the replacement is not a secret.
const MASK: &str = "[masked]";

/// Shapes of secrets: a kept part (`keep`, which shows the kind) and a masked part. Vendors document these prefixes for
/// scanners. The lengths are shorter than the real ones, because half a token must not be logged either.
static SHAPES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // Anthropic, OpenAI, and vendors with the same shape.
        r"\b(?<keep>sk-(?:ant-|proj-|or-|svcacct-)?)[A-Za-z0-9_-]{20,}",
        // GitHub, GitLab, npm, Hugging Face, PyPI, Stripe, DigitalOcean.
        r"\b(?<keep>gh[pousr]_)[A-Za-z0-9]{20,}",
        r"\b(?<keep>github_pat_)[A-Za-z0-9_]{20,}",
        r"\b(?<keep>gl(?:pat|ptt|dt|rt|soat)-)[A-Za-z0-9_-]{16,}",
        r"\b(?<keep>(?:npm|hf)_)[A-Za-z0-9]{20,}",
        r"\b(?<keep>pypi-)[A-Za-z0-9_-]{32,}",
        r"\b(?<keep>[sr]k_(?:live|test)_)[A-Za-z0-9]{16,}",
        r"\b(?<keep>do[opr]_v1_)[a-f0-9]{32,}",
        // Slack tokens, and addresses that work like a token.
        r"\b(?<keep>xox[a-z]-)[A-Za-z0-9-]{10,}",
        r"(?<keep>hooks\.slack\.com/(?:services|workflows|triggers)/)[A-Za-z0-9/_-]{10,}",
        // AWS, Google.
        r"\b(?<keep>(?:AKIA|ASIA))[A-Z0-9]{16}\b",
        r"\b(?<keep>AIza)[A-Za-z0-9_-]{30,}",
        r"\b(?<keep>ya29\.)[A-Za-z0-9_-]{20,}",
        // A signed token: three parts, of which the first two are JSON.
        r"\b(?<keep>)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        // In a header, in an address.
        r"(?i)(?<keep>\bauthorization:\s*(?:bearer|basic|token)\s+)[A-Za-z0-9._~+/=-]{8,}",
        r"(?i)(?<keep>\bx-api-key:\s*)[A-Za-z0-9._~+/=-]{8,}",
        r"(?<keep>\b[a-z][a-z0-9+.-]*://[^\s/:@'\x22]*:)[^\s/:@'\x22]{3,}(?<after>@)",
        // A private key, also on one line as JSON has it, also if it was cut off.
        r"(?<keep>-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:[A-Za-z0-9+/=\s\\:,]|-[A-Za-z0-9]){8,}(?:-----END [A-Z ]*PRIVATE KEY-----)?",
    ]
    .map(constant)
    .into()
});

/// Returns the text with likely secrets masked.
pub fn masked(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for shape in SHAPES.iter() {
        let replaced = shape.replace_all(&text, |found: &Captures<'_>| {
            let part = |name| found.name(name).map_or("", |part| part.as_str());
            format!("{}{MASK}{}", part("keep"), part("after"))
        });
        if let Cow::Owned(replaced) = replaced {
            text = Cow::Owned(replaced);
        }
    }
    text
}

/// Masks likely secrets in every text of the value. Field names stay.
pub fn mask_json(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => {
            if let Cow::Owned(replaced) = masked(text) {
                *text = replaced;
            }
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(mask_json),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(mask_json),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_known_shapes_are_masked() {
        // Assembled at run time, so that secret scanners do not report this file.
        let x = |prefix: &str, count: usize| format!("{prefix}{}", "aB3".repeat(count));
        for (secret, shown) in [
            (x("sk-ant-api03-", 20), "sk-ant-[masked]"),
            (x("sk-", 16), "sk-[masked]"),
            (x("sk-proj-", 16), "sk-proj-[masked]"),
            (x("ghp_", 12), "ghp_[masked]"),
            (x("github_pat_", 12), "github_pat_[masked]"),
            (x("glpat-", 7), "glpat-[masked]"),
            (x("npm_", 12), "npm_[masked]"),
            (x("hf_", 12), "hf_[masked]"),
            (x("sk_live_", 8), "sk_live_[masked]"),
            (x("xoxb-1234-", 8), "xoxb-[masked]"),
            (
                format!("https://{}", x("hooks.slack.com/services/T0/B0/", 8)),
                "https://hooks.slack.com/services/[masked]",
            ),
            (format!("AKIA{}", "A1B2".repeat(4)), "AKIA[masked]"),
            (x("AIza", 12), "AIza[masked]"),
            (format!("{}.{}.{}", x("eyJ", 5), x("eyJ", 5), x("", 9)), "[masked]"),
            (x("Authorization: Bearer ", 5), "Authorization: Bearer [masked]"),
            (x("x-api-key: ", 5), "x-api-key: [masked]"),
            (x("https://ada:", 3) + "@example.org/r.git", "https://ada:[masked]@example.org/r.git"),
            (
                format!("-----BEGIN OPENSSH PRIVATE KEY-----\\n{}\\n-----END OPENSSH PRIVATE KEY-----", x("", 30)),
                "-----BEGIN OPENSSH PRIVATE KEY-----[masked]",
            ),
            (format!("-----BEGIN PRIVATE KEY-----\n{}", x("", 30)), "-----BEGIN PRIVATE KEY-----[masked]"),
        ] {
            let text = format!("a {secret} b");
            let cut_off = secret.contains("PRIVATE") && !secret.contains("END");
            let shown = if cut_off { format!("a {shown}") } else { format!("a {shown} b") };
            // A key that is cut off masks the rest of the text.
            let text = if cut_off { format!("a {secret}") } else { text };
            assert_eq!(masked(&text), shown);
            assert_eq!(masked(&masked(&text)), shown, "twice is the same as once");
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "task-1.1 is done; sk-1 is not a key, nor is skeleton-key-for-the-door",
            "https://example.org:8080/path?x=1 and http://localhost:3000",
            "git@github.com:someone/project.git at 0123456789abcdef0123456789abcdef01234567",
            "the risk_test_of_this is low; a plan-pushover-1_1-1 terminal",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        ] {
            assert!(matches!(masked(text), Cow::Borrowed(same) if same == text), "{text}: {}", masked(text));
        }
    }

    #[test]
    fn in_json_only_texts_change() {
        let secret = format!("ghp_{}", "a1".repeat(18));
        let mut value = serde_json::json!({ "a": [1, { "b": format!("see {secret}") }], "c": null });
        mask_json(&mut value);
        assert_eq!(value, serde_json::json!({ "a": [1, { "b": "see ghp_[masked]" }], "c": null }));
    }
}
