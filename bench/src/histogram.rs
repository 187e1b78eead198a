//! A latency histogram: a quantile is at most 0.1 % too high.
//!
//! Values are nanoseconds. Every value is counted, and the maximum is exact.

/// Decimal digits of a value that are kept.
const SIGNIFICANT_DIGITS: u8 = 3;
const NANOS_PER_MS: f64 = 1e6;

/// Counts of latencies per bucket.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let counts = hdrhistogram::Histogram::new(SIGNIFICANT_DIGITS).expect("at most five digits are kept");
        Self { counts, max: 0 }
    }
}

impl Histogram {
    /// Counts one latency, nanoseconds.
    pub fn record(&mut self, nanos: u64) {
        self.counts += nanos;
        self.max = self.max.max(nanos);
    }

    /// Returns the quantile `share` in milliseconds; 0 when the histogram is empty.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        self.counts.value_at_quantile(share).min(self.max) as f64 / NANOS_PER_MS
    }

    /// Returns the longest latency, milliseconds.
    pub fn max_ms(&self) -> f64 {
        self.max as f64 / NANOS_PER_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_are_narrow() {
        for value in (0..200).chain([1_000, 999_999, 123_456_789, u64::from(u32::MAX), u64::MAX / 3, u64::MAX]) {
            let mut histogram = Histogram::default();
            histogram.record(value);
            let ceiling = histogram.counts.max();
            assert!(ceiling >= value, "{value} is above its bucket, which ends at {ceiling}");
            assert!((ceiling - value) as f64 <= value as f64 / 1_000.0, "{value} in a bucket to {ceiling}");
        }
    }

    #[test]
    fn quantiles_of_known_values_are_within_the_error() {
        let mut histogram = Histogram::default();
        (1..=1_000_u64).rev().for_each(|ms| histogram.record(ms * 1_000_000));
        for (share, expected) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0)] {
            let found = histogram.quantile_ms(share);
            assert!(found >= expected && found <= expected * 1.001, "{share}: {found}");
        }
        assert!((histogram.quantile_ms(1.0) - 1_000.0).abs() < f64::EPSILON);
        assert!((histogram.max_ms() - 1_000.0).abs() < f64::EPSILON);
    }

    #[test]
    fn an_empty_histogram_is_zero() {
        assert!(Histogram::default().quantile_ms(0.99).abs() < f64::EPSILON);
    }
}
