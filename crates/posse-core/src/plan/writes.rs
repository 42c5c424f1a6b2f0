//! The files that a task will write according to the plan, and possible overlaps between tasks. This is only a hint:
//! real changes are compared when results are merged.

use std::sync::LazyLock;

use regex::Regex;

use super::file::Task;
use crate::written::constant;

/// Returns the files that a task declares: its `files`, or else those in its description.
pub fn write_set(task: &Task) -> Vec<String> {
    if task.files.is_empty() { named_in(&task.description) } else { task.files.clone() }
}

/// Returns a path that both may write, as written in the first list.
pub(super) fn overlap<'a>(a: &'a [String], b: &[String]) -> Option<&'a str> {
    a.iter().find(|a| b.iter().any(|b| meet(a, b))).map(String::as_str)
}

/// Returns the paths after `Files:`, `File:` or `New:`, and anything else that looks like a path of the project.
fn named_in(description: &str) -> Vec<String> {
    static LABEL: LazyLock<Regex> = LazyLock::new(|| constant(r"(?i)^[\s*#>-]*(?:files?|new)\s*:\W*(.*)$"));
    static BARE: LazyLock<Regex> = LazyLock::new(|| {
        constant(
            r"(?:^|[\s`'\x22(])((?:src|lib|libs|app|apps|crates|packages|pkg|cmd|internal|tests?|specs?|docs?|scripts|examples|web|server|client|config|migrations|public|components)/[\w./@+-]*\.\w+)",
        )
    });
    let mut paths: Vec<String> = Vec::new();
    let mut under_label = false;
    for line in description.lines() {
        let labelled = LABEL.captures(line).and_then(|found| found.get(1));
        let item = line.trim_start().starts_with(['-', '*']);
        let listed = match labelled {
            Some(rest) => {
                under_label = rest.as_str().trim().is_empty();
                rest.as_str()
            }
            None if under_label && item => line,
            None => {
                under_label = false;
                ""
            }
        };
        paths.extend(
            listed.split([',', ';', ' ', '\t']).map(bare_word).filter(|word| word.contains('/')).map(str::to_owned),
        );
        paths.extend(BARE.captures_iter(line).filter_map(|found| Some(found.get(1)?.as_str().to_owned())));
    }
    paths.sort();
    paths.dedup();
    paths
}

fn bare_word(word: &str) -> &str {
    word.trim_matches(|c: char| "`'\"()[]<>,;:".contains(c)).trim_end_matches('.')
}

/// Returns whether some path may match both patterns. When in doubt, yes.
fn meet(a: &str, b: &str) -> bool {
    let (a, b) = (pieces(a), pieces(b));
    pieces_meet(&a, &b)
}

fn pieces(pattern: &str) -> Vec<String> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let directory = pattern.ends_with('/');
    let mut pieces: Vec<String> = pattern.split('/').filter(|piece| !piece.is_empty()).map(loosened).collect();
    if directory {
        pieces.push("**".into());
    }
    pieces
}

/// Replaces sets and alternatives in a pattern by a wildcard.
fn loosened(piece: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_u32;
    for c in piece.chars() {
        match c {
            '{' | '[' => {
                depth += 1;
                out.push('*');
            }
            '}' | ']' => depth = depth.saturating_sub(1),
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    if out == "**" || !out.contains("**") { out } else { out.replace("**", "*") }
}

/// Matches with a table instead of recursion, so that no pattern is slow.
fn pieces_meet(a: &[String], b: &[String]) -> bool {
    both_match(
        a,
        b,
        |piece| piece == "**",
        |a, b| {
            let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            both_match(&a, &b, |c| *c == '*', |a, b| a == b || *a == '?' || *b == '?')
        },
    )
}

/// Returns whether some sequence matches both patterns. A wildcard matches any number of items.
fn both_match<T>(a: &[T], b: &[T], any: impl Fn(&T) -> bool, same: impl Fn(&T, &T) -> bool) -> bool {
    // met[i][j]: some sequence matches both the rest of a from i and the rest of b from j.
    let mut met = vec![vec![false; b.len() + 1]; a.len() + 1];
    for i in (0..=a.len()).rev() {
        for j in (0..=b.len()).rev() {
            met[i][j] = match (a.get(i), b.get(j)) {
                (None, None) => true,
                (Some(x), _) if any(x) => met[i + 1][j] || (j < b.len() && met[i][j + 1]),
                (_, Some(y)) if any(y) => met[i][j + 1] || (i < a.len() && met[i + 1][j]),
                (Some(x), Some(y)) => same(x, y) && met[i + 1][j + 1],
                _ => false,
            };
        }
    }
    met[0][0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_meet_where_a_path_fits_both() {
        for (a, b, meets) in [
            ("src/a.rs", "src/a.rs", true),
            ("src/a.rs", "./src/a.rs", true),
            ("src/a.rs", "src/b.rs", false),
            ("src/*.rs", "src/b.rs", true),
            ("src/*.rs", "src/x/b.rs", false),
            ("src/**", "src/x/b.rs", true),
            ("src/", "src/x/b.rs", true),
            ("**/Cargo.toml", "crates/a/Cargo.toml", true),
            ("**/Cargo.toml", "crates/**", true),
            ("docs/**", "src/**", false),
            ("a*c", "ab*", true),
            ("a*c", "b*", false),
            ("src/{a,b}.rs", "src/a.rs", true),
            ("src/?.rs", "src/ab.rs", false),
            ("**/**/**/**/**/**/x", "**/**/**/**/**/y", false),
        ] {
            assert_eq!(meet(a, b), meets, "{a} and {b}");
            assert_eq!(meet(b, a), meets, "{b} and {a}");
        }
    }

    #[test]
    fn descriptions_name_files() {
        for (text, files) in [
            ("Do it.\nFiles: src/a.py, scripts/b.py; README", vec!["scripts/b.py", "src/a.py"]),
            ("New: `x/y.txt`", vec!["x/y.txt"]),
            ("**Files:**\n- a/b.c\n- `d/e.f` (new)\n\n- g/h.i", vec!["a/b.c", "d/e.f"]),
            ("Change `src/main.rs` and tests/it.rs.", vec!["src/main.rs", "tests/it.rs"]),
            ("See https://example.org/src/a.html and either/or.", vec![]),
            ("Renew: a/b", vec![]),
        ] {
            assert_eq!(named_in(text), files, "{text}");
        }
    }
}
