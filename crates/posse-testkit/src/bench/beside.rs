//! Compares two binaries: each measurement runs with the older one and with this one in turns, so that a slow moment of the
//! machine affects both.

use super::report::{BenchRow, Samples, table_of};
use super::{Bench, BenchError, Measurement};

/// A row is worse than before if its ratio is above this. Less is within the noise of a quiet machine.
pub const TOLERATED: f64 = 1.1;

#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub name: String,
    pub unit: &'static str,
    pub old: f64,
    pub new: f64,
    /// How many times worse the new binary is: above 1 is worse, below 1 is better.
    pub ratio: f64,
}

pub fn compare(
    measurement: &Measurement,
    old: &Bench,
    new: &Bench,
    rounds: usize,
) -> Result<Vec<Comparison>, BenchError> {
    let mut olds = Vec::new();
    let mut news = Vec::new();
    for _ in 0..rounds {
        olds.push((measurement.run)(old)?);
        news.push((measurement.run)(new)?);
    }
    Ok(comparisons(&olds, &news))
}

fn comparisons(olds: &[Vec<BenchRow>], news: &[Vec<BenchRow>]) -> Vec<Comparison> {
    let Some(first) = news.first() else { return Vec::new() };
    let mut all = Vec::new();
    for row in first {
        for label in row.labels() {
            let median = |rounds: &[Vec<BenchRow>]| {
                let values = rounds.iter().flatten().filter_map(|other| other.value(&row.name, label));
                Samples::new(values.collect()).median()
            };
            let (old, new) = (median(olds), median(news));
            if old.is_nan() {
                continue;
            }
            let ratio = if row.larger_is_better { old / new } else { new / old };
            // Nothing became nothing.
            let ratio = if old == new { 1.0 } else { ratio };
            let name = format!("{} {label}", row.name).trim().to_owned();
            all.push(Comparison { name, unit: row.unit, old, new, ratio });
        }
    }
    all
}

pub fn table(comparisons: &[Comparison]) -> String {
    let mut lines = vec![["what", "old", "new", "ratio (above 1 is worse)", "kept"].map(str::to_owned).to_vec()];
    for comparison in comparisons {
        let Comparison { name, unit, old, new, ratio } = comparison;
        let shown = |value: &f64| format!("{} {unit}", super::report::shown(*value)).trim().to_owned();
        let kept = if *ratio <= TOLERATED { "yes" } else { "NO" };
        lines.push(vec![name.clone(), shown(old), shown(new), format!("{ratio:.2}"), kept.to_owned()]);
    }
    table_of(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_is_above_one_where_the_new_binary_is_worse() {
        let rows = |delay, rate| {
            vec![
                BenchRow::new("delay", "ms").figure("p50", delay).figure("max", 2.0 * delay),
                BenchRow::new("rate", "MB/s").figure("", rate).larger_is_better(),
            ]
        };
        let olds = [rows(10.0, 100.0), rows(10.0, 100.0), rows(90.0, 1.0)];
        let news = [rows(12.0, 200.0), rows(12.0, 200.0), rows(1.0, 200.0)];
        let found = comparisons(&olds, &news);
        let ratios: Vec<(&str, f64)> = found.iter().map(|one| (one.name.as_str(), one.ratio)).collect();
        assert_eq!(ratios, [("delay p50", 1.2), ("delay max", 1.2), ("rate", 0.5)]);
        let table = table(&found);
        assert!(table.contains("| delay p50 | 10 ms    | 12 ms    | 1.20                     | NO   |"), "{table}");
        assert!(table.contains("| rate      | 100 MB/s | 200 MB/s | 0.50                     | yes  |"), "{table}");
    }

    #[test]
    fn figure_that_the_old_binary_lacks_is_left_out() {
        let old = [vec![BenchRow::new("delay", "ms").figure("p50", 0.0)]];
        let new = [vec![
            BenchRow::new("delay", "ms").figure("p50", 0.0).figure("p99", 1.0),
            BenchRow::new("more", "ms").figure("", 1.0),
        ]];
        let found = comparisons(&old, &new);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].ratio, 1.0, "no change from nothing to nothing");
    }
}
