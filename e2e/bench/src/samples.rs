//! Times of several runs: their median and their ninth decile.

use std::{fmt, time::Duration};

/// Times in no order, at least one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(crate) fn number(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    /// The smallest time that at least `part` of the times do not exceed.
    pub(crate) fn quantile(&self, part: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        // Counts here are far below where a double loses whole numbers, and `part` is not negative.
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rank = (part * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        Self(times.into_iter().collect())
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        let (median, ninth) = (millis(self.median()), millis(self.quantile(0.9)));
        write!(f, "median {median:.0} ms, p90 {ninth:.0} ms, {} runs", self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_ninth_decile_are_times_that_were_measured() {
        let mut samples = Samples::default();
        for millis in [100, 10, 30, 20, 40, 50, 60, 70, 80, 90] {
            samples.add(Duration::from_millis(millis));
        }
        assert_eq!(samples.to_string(), "median 50 ms, p90 90 ms, 10 runs");
        assert_eq!(Samples::default().median(), Duration::ZERO);
    }
}
