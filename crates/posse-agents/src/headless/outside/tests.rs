use proptest::prelude::*;

use super::*;

/// Models Claude Code's evaluation of a rule: a path is denied if the pattern matches the path or one of its parents.
/// Classes are never negated, and case is ignored.
fn denies(rule: &str, path: &str) -> bool {
    let pattern = rule.strip_prefix("Edit(/").unwrap().strip_suffix(')').unwrap();
    let pattern: Vec<u16> = pattern.encode_utf16().collect();
    fits(&pattern, &path.encode_utf16().collect::<Vec<u16>>())
}

fn fits(pattern: &[u16], path: &[u16]) -> bool {
    const STAR: u16 = b'*' as u16;
    const SLASH: u16 = b'/' as u16;
    match pattern {
        [] => path.is_empty() || path[0] == SLASH,
        [STAR, STAR, ..] => true,
        [STAR, rest @ ..] => fits(rest, path) || path.first().is_some_and(|&c| c != SLASH) && fits(pattern, &path[1..]),
        [first, rest @ ..] => {
            let Some((&c, below)) = path.split_first() else { return false };
            if *first == u16::from(b'?') {
                return c != SLASH && fits(rest, below);
            }
            if *first != u16::from(b'[') {
                return folded(*first) == folded(c) && fits(rest, below);
            }
            let end = rest.iter().position(|&c| c == u16::from(b']')).unwrap();
            in_class(&rest[..end], c) && fits(&rest[end + 1..], below)
        }
    }
}

fn in_class(class: &[u16], c: u16) -> bool {
    let between = |from: u16, to: u16| {
        assert!(from <= to, "a range goes up");
        let other_case = |c: u16| char::from_u32(c.into()).map_or(c, |c| u16::from(c.to_ascii_lowercase() as u8));
        (from..=to).contains(&c)
            || c < 128 && ((from..=to).contains(&folded(c)) || (from..=to).contains(&other_case(c)))
    };
    match class {
        [] => false,
        [from, hyphen, to, rest @ ..] if *hyphen == u16::from(b'-') => between(*from, *to) || in_class(rest, c),
        [one, rest @ ..] => between(*one, *one) || in_class(rest, c),
    }
}

/// Converts to upper case like JavaScript's patterns: never from outside ASCII into ASCII.
fn folded(c: u16) -> u16 {
    let mut upper = char::from_u32(c.into()).into_iter().flat_map(char::to_uppercase);
    match (upper.next(), upper.next()) {
        (Some(one), None) if c < 128 || !one.is_ascii() => u16::try_from(u32::from(one)).unwrap_or(c),
        _ => c,
    }
}

fn denied(directories: &[&str], path: &str) -> bool {
    deny_edits_outside(directories.iter().copied()).iter().any(|rule| denies(rule, path))
}

#[test]
fn inside_and_outside() {
    let scope = ["/home/me/app/.posse/state/worktrees/p/1.2-1", "/home/me/app/.posse/state/runs/01J"];
    for (path, expected) in [
        ("/home/me/app/.posse/state/worktrees/p/1.2-1/src/main.rs", false),
        ("/home/me/app/.posse/state/runs/01J/result.json", false),
        ("/home/me/app/src/main.rs", true),
        ("/home/me/app/.posse/state/worktrees/p/1.2-2/src/main.rs", true),
        ("/home/me/app/.posse/state/worktrees/p/1.2-1x/src/main.rs", true),
        ("/home/me/app/.posse/state/worktrees/p/1.2-", true),
        ("/home/me/app/.posse/state/runs/01K/result.json", true),
        ("/home/me/.bashrc", true),
        ("/etc/passwd", true),
        ("/h", true),
    ] {
        assert_eq!(denied(&scope, path), expected, "{path}");
    }
    assert!(denied(&[], "/anything/at/all"), "without a directory nothing is left");
}

#[test]
fn a_directory_in_another_one_takes_nothing_away() {
    assert!(!denied(&["/a/b", "/a/b/c"], "/a/b/d"));
    assert!(denied(&["/a/b", "/a/b/c"], "/a/bc"));
}

#[test]
fn a_directory_whose_name_is_the_beginning_of_another() {
    for scope in [["/p/1", "/p/1-"], ["/p/1", "/p/1.2"], ["/p/1", "/p/1a"]] {
        for (path, expected) in [("/p/1/a", false), ("/p/1/.", false), ("/p/1x/a", true), ("/p/2", true)] {
            assert_eq!(denied(&scope, path), expected, "{path} with {scope:?}");
        }
        assert!(!denied(&scope, &format!("{}/a", scope[1])));
    }
}

proptest! {
    /// No file of the scope is ever denied, and every other name of common characters is.
    #[test]
    fn the_rules_are_exactly_the_rest(
        scope in prop::collection::vec("(/[a-d0-2.-]{1,4}){1,4}", 1..3),
        path in "(/[a-d0-2.-]{1,4}){1,5}",
    ) {
        let directories: Vec<&str> = scope.iter().map(String::as_str).collect();
        let inside = directories.iter().any(|directory| is_below(&path, directory));
        // The parents of the scope are directories, so they cannot be edited.
        let on_the_way = directories.iter().any(|directory| is_below(directory, &path));
        if !on_the_way || inside {
            prop_assert_eq!(denied(&directories, &path), !inside);
        }
    }

    /// Files in a directory with any name stay writable.
    #[test]
    fn nothing_inside_is_denied(directory in "(/[^/\u{0}-\u{1f}]{1,6}){1,3}", file in "[^/\u{0}-\u{1f}]{1,6}") {
        let path = format!("{directory}/{file}");
        prop_assert!(!denied(&[&directory], &path));
    }
}
