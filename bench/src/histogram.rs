//! A latency histogram with 64 buckets per doubling: a quantile is at most 1.6 % too high.
//!
//! Values are nanoseconds. Every value is counted, and the maximum is exact.

/// Buckets per doubling, as a power of two.
const PRECISION_BITS: u32 = 6;
const PER_DOUBLING: usize = 1 << PRECISION_BITS;
/// Covers every `u64`.
const BUCKETS: usize = (64 - PRECISION_BITS as usize + 1) * PER_DOUBLING;
/// Nanoseconds in a millisecond.
const NANOS_PER_MS: f64 = 1e6;

/// Counts of latencies per bucket.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, max: 0 }
    }
}

/// Returns the bucket of a value. Small values have a bucket each; larger ones share `PER_DOUBLING` buckets per doubling.
const fn bucket_of(value: u64) -> usize {
    if value < PER_DOUBLING as u64 {
        return value as usize;
    }
    let doubling = value.ilog2() - PRECISION_BITS;
    (doubling as usize + 1) * PER_DOUBLING + ((value >> doubling) as usize - PER_DOUBLING)
}

/// Returns the largest value of a bucket.
const fn ceiling_of(bucket: usize) -> u64 {
    if bucket < PER_DOUBLING {
        return bucket as u64;
    }
    let doubling = (bucket / PER_DOUBLING - 1) as u32;
    let place = (bucket % PER_DOUBLING + PER_DOUBLING) as u64;
    (place << doubling) + ((1 << doubling) - 1)
}

impl Histogram {
    /// Counts one latency, nanoseconds.
    pub fn record(&mut self, nanos: u64) {
        self.counts[bucket_of(nanos)] += 1;
        self.total += 1;
        self.max = self.max.max(nanos);
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// Returns the quantile `share` in milliseconds; 0 when the histogram is empty.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let rank = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return ceiling_of(bucket).min(self.max) as f64 / NANOS_PER_MS;
            }
        }
        0.0
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
        for value in (0..200).chain([1_000, 999_999, 123_456_789, u64::from(u32::MAX), u64::MAX / 3]) {
            let ceiling = ceiling_of(bucket_of(value));
            assert!(ceiling >= value, "{value} is above its bucket, which ends at {ceiling}");
            assert!((ceiling - value) as f64 <= value as f64 / PER_DOUBLING as f64, "{value} in a bucket to {ceiling}");
            assert!(value == 0 || bucket_of(value - 1) <= bucket_of(value));
        }
        assert!(bucket_of(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles_of_known_values_are_within_the_error() {
        let mut histogram = Histogram::default();
        (1..=1_000_u64).rev().for_each(|ms| histogram.record(ms * 1_000_000));
        for (share, expected) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0)] {
            let found = histogram.quantile_ms(share);
            assert!(found >= expected && found <= expected * 1.017, "{share}: {found}");
        }
        assert!((histogram.quantile_ms(1.0) - 1_000.0).abs() < f64::EPSILON);
        assert!((histogram.max_ms() - 1_000.0).abs() < f64::EPSILON);
    }

    #[test]
    fn added_halves_equal_the_whole_and_an_empty_histogram_is_zero() {
        let (mut odd, mut even, mut all) = (Histogram::default(), Histogram::default(), Histogram::default());
        for value in 0..10_000_u64 {
            if value % 2 == 0 { &mut even } else { &mut odd }.record(value * 777);
            all.record(value * 777);
        }
        odd.add(&even);
        assert_eq!(odd.total, 10_000);
        assert_eq!(odd.counts, all.counts);
        assert!(Histogram::default().quantile_ms(0.99).abs() < f64::EPSILON);
    }
}
