//! The name somebody may have meant.

use super::error::UnknownName;

impl UnknownName {
    pub(super) fn among<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self { name: name.to_owned(), meant: nearest(name, known).map(str::to_owned) }
    }
}

/// The nearest of the known names, if it is near enough to be a slip.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (edits, nearest) = known.into_iter().map(|known| (edits(name, known), known)).min()?;
    (edits <= nearest.chars().count().max(3) / 3).then_some(nearest)
}

/// Letters to insert, remove or replace until one word is the other (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["max_rounds", "max_review_cycles", "poll_seconds"];
        assert_eq!(nearest("max_round", known), Some("max_rounds"));
        assert_eq!(nearest("maxRounds", known), Some("max_rounds"));
        assert_eq!(nearest("pol_secnds", known), Some("poll_seconds"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
