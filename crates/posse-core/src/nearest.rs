//! Suggests a known name in errors about unknown names.

/// Returns the known name that is most likely meant by `typed`, as a typo or an abbreviation. Short names must be
/// closer: `node` does not match `notes`.
pub fn nearest<'k>(typed: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let typed = plain(typed);
    let known: Vec<&str> = known.into_iter().collect();
    slip(&typed, &known).or_else(|| beginning(&typed, &known))
}

/// Returns the hint for an unknown name, if a known name is near.
pub(crate) fn did_you_mean<'k>(typed: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    nearest(typed, known).map(|meant| format!("did you mean `{meant}`?"))
}

/// Returns the only name with this prefix, if the prefix is long enough.
fn beginning<'k>(typed: &[char], known: &[&'k str]) -> Option<&'k str> {
    let mut begin = known.iter().filter(|name| typed.len() >= 4 && plain(name).starts_with(typed));
    begin.next().copied().filter(|_| begin.next().is_none())
}

fn slip<'k>(typed: &[char], known: &[&'k str]) -> Option<&'k str> {
    known
        .iter()
        .copied()
        .filter_map(|name| {
            let allowed = match name.chars().count() {
                0..=2 => 0,
                3..=5 => 1,
                _ => 2,
            };
            let distance = distance(typed, &plain(name));
            (distance <= allowed).then_some((distance, name))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Normalizes spelling: `dependsOn`, `depends-on` and `Depends_On` are one name.
fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns the number of letters that are wrong, missing, superfluous or swapped with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + usize::from(a[i - 1] != b[j - 1]));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let known = ["id", "name", "notes", "depends_on", "parallel_group", "poll_seconds"];
        for (typed, meant) in [
            ("depend_on", Some("depends_on")),
            ("dependsOn", Some("depends_on")),
            ("pol_secnds", Some("poll_seconds")),
            ("parallel-group", Some("parallel_group")),
            ("nmae", Some("name")),
            ("note", Some("notes")),
            ("node", None),
            ("ids", None),
            ("priority", None),
            ("parallel", Some("parallel_group")),
            ("par", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
        assert_eq!(nearest("x", []), None);
    }
}
