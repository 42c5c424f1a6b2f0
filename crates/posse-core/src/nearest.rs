//! The name somebody may have meant.

/// The nearest of the known names, if it is near enough to be a slip.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (edits, nearest) = known.into_iter().map(|known| (edits(name, known), known)).min()?;
    (edits <= nearest.chars().count().max(3) / 3).then_some(nearest)
}

/// Letters to insert, remove, replace or swap with their neighbour until one word is the other (Levenshtein, Damerau).
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
        assert_eq!(nearest("mdoe", ["mode"]), Some("mode"), "swapped letters are one slip");
        assert_eq!(nearest("node", ["notes"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
