//! Retention: the finished executions and the sealed versions that are deleted.

use std::{collections::BTreeSet, time::Duration};

use crate::version::{SkillSemver, newest_first};

/// Returns the finished executions of one lane to delete: those older than `ttl`, and the oldest above `per_lane`.
///
/// Times are seconds since the epoch. The result is oldest first.
pub fn expired_executions<N: Clone + Ord>(
    finished: &[(N, i64)],
    ttl: Duration,
    per_lane: usize,
    now: i64,
) -> Vec<N> {
    let ttl = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
    let mut oldest_first: Vec<&(N, i64)> = finished.iter().collect();
    oldest_first.sort_unstable_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    let too_many = finished.len().saturating_sub(per_lane);
    oldest_first
        .iter()
        .enumerate()
        .filter(|(place, (_, finished_at))| *place < too_many || now.saturating_sub(*finished_at) >= ttl)
        .map(|(_, (name, _))| name.clone())
        .collect()
}

/// Returns the sealed versions to delete: all but the newest `keep`, `current`, and those in use. The result is oldest first.
pub fn surplus_versions(
    all: &[SkillSemver],
    keep: usize,
    in_use: &BTreeSet<SkillSemver>,
    current: &SkillSemver,
) -> Vec<SkillSemver> {
    let mut versions = all.to_vec();
    newest_first(&mut versions);
    versions.dedup();
    let mut surplus: Vec<SkillSemver> = versions
        .into_iter()
        .skip(keep)
        .filter(|version| version != current && !in_use.contains(version))
        .collect();
    surplus.reverse();
    surplus
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_expired(finished: &[(&str, i64)], per_lane: usize, expected: &[&str]) {
        assert_eq!(expired_executions(finished, Duration::from_secs(100), per_lane, 1000), expected);
    }

    #[test]
    fn executions_go_when_their_time_is_over() {
        check_expired(&[("new", 901), ("at", 900), ("old", 899)], 10, &["old", "at"]);
        check_expired(&[("future", 2000)], 10, &[]);
        check_expired(&[], 0, &[]);
        assert_eq!(expired_executions(&[("a", i64::MIN)], Duration::MAX, 1, i64::MAX), ["a"]);
    }

    #[test]
    fn the_oldest_executions_go_when_there_are_too_many() {
        check_expired(&[("c", 950), ("a", 950), ("b", 940), ("d", 960)], 2, &["b", "a"]);
        check_expired(&[("a", 950)], 0, &["a"]);
        check_expired(&[("old", 1), ("x", 990), ("y", 991)], 2, &["old"]);
    }

    fn check_surplus(all: &str, keep: usize, in_use: &str, current: &str, expected: &str) {
        let read = |text: &str| -> Vec<SkillSemver> {
            text.split_whitespace().map(|v| v.parse().unwrap()).collect()
        };
        let in_use = read(in_use).into_iter().collect();
        let found = surplus_versions(&read(all), keep, &in_use, &current.parse().unwrap());
        assert_eq!(found, read(expected), "{all}, keep {keep}");
    }

    #[test]
    fn the_newest_versions_stay() {
        check_surplus("1.0.0 1.2.0 1.10.0 2.0.0", 2, "", "2.0.0", "1.0.0 1.2.0");
        check_surplus("1.0.0 1.0.0 2.0.0", 2, "", "2.0.0", "");
        check_surplus("1.0.0", 5, "", "1.0.0", "");
        check_surplus("", 0, "", "1.0.0", "");
    }

    #[test]
    fn a_version_in_use_and_the_present_one_always_stay() {
        check_surplus("1.0.0 1.1.0 1.2.0 1.3.0", 1, "1.1.0", "1.3.0", "1.0.0 1.2.0");
        check_surplus("1.0.0 1.1.0 1.2.0", 1, "", "1.0.0", "1.1.0");
        check_surplus("1.0.0 1.1.0", 0, "", "1.0.0", "1.1.0");
    }
}
