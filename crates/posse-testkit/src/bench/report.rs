//! The measurements, as a table.

use std::fmt::Write;

/// The sorted values of one measurement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// Returns the smallest value that `percent` of all values do not exceed, or NaN without values. Always a measured
    /// value: the mean of two distant values would be a time that never happened.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let rank = (percent / 100.0 * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.clamp(1, self.0.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(50.0)
    }
}

/// Returns the milliseconds between two times in nanoseconds; 0 if the later time is not later.
pub(super) fn ms_between(earlier: u64, later: u64) -> f64 {
    later.saturating_sub(earlier) as f64 / 1e6
}

/// One line of the report: one or more figures of the same unit.
#[derive(Clone, Debug)]
pub struct BenchRow {
    pub(super) name: String,
    pub(super) unit: &'static str,
    figures: Vec<Figure>,
    note: String,
    pub(super) larger_is_better: bool,
}

#[derive(Clone, Debug)]
struct Figure {
    label: &'static str,
    value: f64,
    limit: Option<f64>,
}

impl BenchRow {
    pub fn new(name: impl Into<String>, unit: &'static str) -> Self {
        Self { name: name.into(), unit, figures: Vec::new(), note: String::new(), larger_is_better: false }
    }

    /// Creates a row with some of `p50`, `p99` and `max`, each with its limit.
    pub(super) fn samples(
        name: impl Into<String>,
        unit: &'static str,
        values: Vec<f64>,
        figures: &[(&'static str, Option<f64>)],
    ) -> Self {
        let samples = Samples::new(values);
        let percent = |label| match label {
            "p50" => 50.0,
            "p99" => 99.0,
            _ => 100.0,
        };
        let add = |row: Self, (label, limit): &(&'static str, Option<f64>)| {
            row.figure_within(label, samples.percentile(percent(label)), *limit)
        };
        figures.iter().fold(Self::new(name, unit), add)
    }

    /// Creates a row about keeper and daemon, with a limit for both together.
    pub(super) fn of_both(name: impl Into<String>, unit: &'static str, both: [f64; 2], limit: Option<f64>) -> Self {
        let [keeper, daemon] = both;
        let row = Self::new(name, unit).figure_within("both", keeper + daemon, limit);
        row.figure("keeper", keeper).figure("daemon", daemon)
    }

    #[must_use]
    pub fn figure(self, label: &'static str, value: f64) -> Self {
        self.figure_within(label, value, None)
    }

    #[must_use]
    pub fn figure_within(mut self, label: &'static str, value: f64, limit: impl Into<Option<f64>>) -> Self {
        self.figures.push(Figure { label, value, limit: limit.into() });
        self
    }

    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Marks larger figures as better, for rates instead of times and sizes.
    #[must_use]
    pub fn larger_is_better(mut self) -> Self {
        self.larger_is_better = true;
        self
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = &'static str> {
        self.figures.iter().map(|figure| figure.label)
    }

    pub(super) fn value(&self, name: &str, label: &str) -> Option<f64> {
        let figure = self.figures.iter().find(|figure| self.name == name && figure.label == label)?;
        Some(figure.value)
    }

    pub fn met(&self) -> Option<bool> {
        let limited = self.figures.iter().filter_map(|figure| Some(figure.value <= figure.limit?));
        limited.reduce(|all, one| all && one)
    }

    fn values_text(&self) -> String {
        let text = |figure: &Figure| format!("{} {}", figure.label, shown(figure.value)).trim().to_owned();
        let all: Vec<String> = self.figures.iter().map(text).collect();
        format!("{} {}", all.join(", "), self.unit).trim().to_owned()
    }

    fn limits_text(&self) -> String {
        let text = |figure: &Figure| Some(format!("{} ≤ {}", figure.label, figure.limit?).trim().to_owned());
        self.figures.iter().filter_map(text).collect::<Vec<_>>().join(", ")
    }
}

/// Describes this machine. A load that is not small spoils the figures.
pub fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| -> Option<String> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let processor = field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".into());
    let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let (uname, load) = (rustix::system::uname(), read("/proc/loadavg"));
    let kernel = uname.release().to_string_lossy();
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} cores ({processor}), {memory}, Linux {kernel}, load before it began {load}")
}

pub fn table(rows: &[BenchRow]) -> String {
    let mut lines = vec![["what", "measured", "limit", "met"].map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|row| {
        let met = match row.met() {
            None => "",
            Some(true) => "yes",
            Some(false) => "NO",
        };
        let name = if row.note.is_empty() { row.name.clone() } else { format!("{} ({})", row.name, row.note) };
        vec![name, row.values_text(), row.limits_text(), met.to_owned()]
    }));
    table_of(&lines)
}

/// Lays out cells as a Markdown table; the first line is its head.
pub(super) fn table_of(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut table = String::new();
    for (index, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(&widths) {
            let _ = write!(table, "| {cell:width$} ");
        }
        table.push_str("|\n");
        if index == 0 {
            let rule: String = widths.iter().map(|width| format!("|{}", "-".repeat(width + 2))).collect();
            table.push_str(&rule);
            table.push_str("|\n");
        }
    }
    table
}

/// Rounds to three significant digits and at most three decimals, the precision of the measurements.
fn rounded(value: f64) -> f64 {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let factor = 10_f64.powi(decimals);
    (value * factor).round() / factor
}

pub(super) fn shown(value: f64) -> String {
    rounded(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_meets_its_limits_only_if_all_hold() {
        let row =
            |p50, p99| BenchRow::new("delay", "ms").figure_within("p50", p50, 5.0).figure_within("p99", p99, 50.0);
        assert_eq!(row(5.0, 50.0).met(), Some(true));
        assert_eq!(row(5.1, 50.0).met(), Some(false));
        assert_eq!(row(1.0, 51.0).met(), Some(false));
        assert_eq!(BenchRow::new("delay", "ms").figure("p50", 1.0).met(), None, "no limit, nothing to meet");
        assert_eq!(row(f64::NAN, 1.0).met(), Some(false), "what is not a number meets nothing");
    }

    #[test]
    fn table_is_aligned() {
        let rows = [
            BenchRow::new("start", "ms").figure("p50", 12.345).figure_within("max", 61.0, 60.0),
            BenchRow::new("ratio", "").figure("", 0.45678).note("of a bare terminal"),
        ];
        assert_eq!(
            table(&rows),
            "\
| what                       | measured            | limit    | met |
|----------------------------|---------------------|----------|-----|
| start                      | p50 12.3, max 61 ms | max ≤ 60 | NO  |
| ratio (of a bare terminal) | 0.457               |          |     |
"
        );
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let check = |values: &[f64], expected: [f64; 4]| {
            let samples = Samples::new(values.to_vec());
            let found =
                [samples.percentile(0.0), samples.median(), samples.percentile(99.0), samples.percentile(100.0)];
            assert_eq!(found, expected, "{values:?}");
        };
        check(&[7.0], [7.0, 7.0, 7.0, 7.0]);
        check(&[2.0, 1.0], [1.0, 1.0, 2.0, 2.0]);
        check(&[3.0, 1.0, 2.0], [1.0, 2.0, 3.0, 3.0]);
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        check(&hundred, [1.0, 50.0, 99.0, 100.0]);
        let many: Vec<f64> = (1..=1000).map(f64::from).collect();
        check(&many, [1.0, 500.0, 990.0, 1000.0]);
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert!(Samples::new(vec![]).median().is_nan());
    }
}
