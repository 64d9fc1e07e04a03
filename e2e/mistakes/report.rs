//! The result of all rows: the faults, the median time to the first clear word, and the slowest rows.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::door::Played;

/// Longest median time to the first clear word.
const MEDIAN: Duration = Duration::from_secs(1);
const SHOWN: usize = 5;

#[derive(Default)]
pub(crate) struct Report(Vec<Played>);

impl Report {
    pub(crate) fn add(&mut self, played: Vec<Played>) {
        self.0.extend(played);
    }

    fn median(&self) -> Duration {
        let mut times: Vec<Duration> = self.0.iter().map(|played| played.took).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }

    pub(crate) fn print(&self) {
        let mut slowest: Vec<&Played> = self.0.iter().collect();
        slowest.sort_by_key(|played| std::cmp::Reverse(played.took));
        println!("mistakes: {} rows, median {:?} to the first clear word", self.0.len(), self.median());
        for Played { door, mistake, took, fault: _ } in slowest.into_iter().take(SHOWN) {
            println!("mistakes: slow: {took:?} {door}: {mistake}");
        }
    }

    /// Fails if a row has a fault, or if people wait too long.
    pub(crate) fn check(&self) -> Result<()> {
        let line = |played: &Played| {
            Some(format!("{}: {}: {}", played.door, played.mistake, played.fault.as_ref()?))
        };
        let faults: Vec<String> = self.0.iter().filter_map(line).collect();
        ensure!(faults.is_empty(), "{} mistakes are not answered:\n{}", faults.len(), faults.join("\n"));
        ensure!(self.median() < MEDIAN, "the median is {:?}", self.median());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(millis: u64, fault: Option<&str>) -> Played {
        let took = Duration::from_millis(millis);
        Played { door: "d", mistake: "m".into(), took, fault: fault.map(str::to_owned) }
    }

    #[test]
    fn a_fault_and_a_long_median_fail() {
        let fails = |rows: Vec<Played>| Report(rows).check().map_err(|error| error.to_string());
        assert_eq!(fails(vec![played(10, None), played(20, None), played(9000, None)]), Ok(()));
        assert_eq!(
            fails(vec![played(10, Some("no field"))]),
            Err("1 mistakes are not answered:\nd: m: no field".into())
        );
        assert_eq!(fails(vec![played(2000, None)]), Err("the median is 2s".into()));
    }
}
