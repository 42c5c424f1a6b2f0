//! Percentiles, and nothing cleverer: the numbers are read by people.

/// Measured values of one thing, sorted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// `None` of nothing: there is no percentile of no values.
    pub(crate) fn new(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then_some(Self(values))
    }

    /// The smallest value that `percent` of all values do not exceed. Always one that was measured: between
    /// two far-apart values a mean of both would be a time that never happened.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let rank = (percent / 100.0 * self.0.len() as f64).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1]
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(50.0)
    }

    pub(crate) fn max(&self) -> f64 {
        self.percentile(100.0)
    }
}

/// Nanoseconds as milliseconds.
pub(crate) fn ms(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let check = |values: &[f64], expected: [f64; 4]| {
            let samples = Samples::new(values.to_vec()).unwrap();
            let found = [samples.percentile(0.0), samples.median(), samples.percentile(99.0), samples.max()];
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
        assert_eq!(Samples::new(vec![]), None);
    }
}
