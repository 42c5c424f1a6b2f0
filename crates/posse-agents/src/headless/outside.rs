//! Rules for Claude Code that deny edits outside some directories.
//!
//! They are needed: a tool that is allowed by name (`--allowedTools Write`) is allowed everywhere, whatever the working
//! directories are (measured on 2.1.197 and 2.1.325). A denial beats every allowance, so "everywhere else" has to be said in
//! denials. The rules are patterns as in .gitignore, but a class cannot be negated (`[!a]` is taken for `!` and `a`, measured) and
//! a denial cannot be taken back; classes with ranges work. So for each directory on the way down there is a rule for
//! every way in which another name can differ from ours: by ending early, by a character, by going on.
//!
//! The same rules hold for `cp`, `mv`, `sed -i` and redirections in commands, as far as Claude Code sees through them.
//! Names that differ from ours only in case, or by a character that has a meaning in patterns, are not denied: case does
//! not count in these patterns.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Tree(BTreeMap<String, Tree>);

/// Returns rules that deny edits everywhere but below these absolute directories.
pub(super) fn deny_edits_outside<'a>(directories: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut root = Tree::default();
    let mut all: Vec<&str> = directories.into_iter().collect();
    // A nested directory is already covered; descending to it would deny the rest of the outer one.
    all.sort_unstable();
    let mut taken: Vec<&str> = Vec::new();
    for directory in all {
        if !taken.iter().any(|outer| is_below(directory, outer)) {
            taken.push(directory);
            let mut tree = &mut root;
            for name in directory.split('/').filter(|name| !name.is_empty()) {
                tree = tree.0.entry(name.to_owned()).or_default();
            }
        }
    }
    if root.0.is_empty() {
        return vec!["Edit(//**)".into()];
    }
    let mut rules = Vec::new();
    descend("/", &root, &mut rules);
    rules
}

pub(super) fn is_below(path: &str, directory: &str) -> bool {
    let directory = directory.trim_end_matches('/');
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn descend(above: &str, tree: &Tree, rules: &mut Vec<String>) {
    if tree.0.is_empty() {
        return;
    }
    let names: Vec<Vec<char>> = tree.0.keys().map(|name| name.chars().collect()).collect();
    other_names(&mut String::new(), &names.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut |pattern| {
        rules.push(format!("Edit({above}/{pattern})"));
    });
    for (name, below) in &tree.0 {
        descend(&format!("{above}/{}", name.chars().map(literal).collect::<String>()), below, rules);
    }
}

/// Returns patterns for all names that begin with `prefix` and do not continue like one of these.
fn other_names(prefix: &mut String, rests: &[&[char]], found: &mut impl FnMut(&str)) {
    let next: BTreeSet<char> = rests.iter().filter_map(|rest| rest.first().copied()).collect();
    if !prefix.is_empty() && rests.iter().all(|rest| !rest.is_empty()) {
        found(prefix);
    }
    match other_characters(&next) {
        Some(class) => found(&format!("{prefix}{class}*")),
        None => found(&format!("{prefix}?*")),
    }
    for c in next {
        let rests: Vec<&[char]> = rests.iter().filter_map(|rest| rest.strip_prefix(&[c])).collect();
        let length = prefix.len();
        prefix.push_str(&literal(c));
        other_names(prefix, &rests, found);
        prefix.truncate(length);
    }
}

/// Returns a character as written in a pattern. A special or ambiguous character becomes a wildcard: the rule then
/// covers more, but never denies a name that has this character in this place.
fn literal(c: char) -> String {
    if c.is_ascii_alphanumeric() || "._-@+=~%".contains(c) { c.into() } else { "?".repeat(c.len_utf16()) }
}

/// Returns a class of all characters except these, in either case, and except separators. A class would match a
/// separator too, and so the content of a directory whose name is a prefix of another.
fn other_characters(these: &BTreeSet<char>) -> Option<String> {
    /// No special character of a class is at the end of a range.
    const SPECIAL: &str = "[]\\!^-";
    let mut excluded = BTreeSet::new();
    for c in these {
        // Claude Code counts in units of UTF-16.
        let unit = |c: char| u32::from(c.encode_utf16(&mut [0; 2])[0]);
        excluded.extend(c.to_lowercase().chain(c.to_uppercase()).chain([*c]).map(unit));
    }
    if excluded.is_empty() {
        return None;
    }
    excluded.insert(u32::from('/'));
    let mut class = String::new();
    let mut hyphen = false;
    let mut from = 1;
    let ends = excluded.iter().copied().chain([0x1_0000]);
    for end in ends {
        let special = |code: u32| char::from_u32(code).is_none_or(|c| SPECIAL.contains(c));
        let (mut first, mut last) = (from, end - 1);
        from = end + 1;
        hyphen |= first == u32::from('-') || last == u32::from('-');
        while first <= last && special(first) {
            first += 1;
        }
        while first <= last && special(last) {
            last -= 1;
        }
        if first > last {
            continue;
        }
        let (first, last) = (char::from_u32(first), char::from_u32(last));
        class.extend(first);
        if first != last {
            class.push('-');
            class.extend(last);
        }
    }
    if hyphen && !excluded.contains(&u32::from('-')) {
        class.push('-');
    }
    Some(format!("[{class}]"))
}

#[cfg(test)]
mod tests;
