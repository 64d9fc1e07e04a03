//! The namespaces and skills with most unfinished executions, for metrics that cannot show all.

use std::collections::BTreeMap;

/// The unfinished executions of a namespace or a skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub waiting: u32,
    pub running: u32,
}

impl Load {
    fn total(self) -> u32 {
        self.waiting.saturating_add(self.running)
    }
}

/// Returns at most `most` of the loads, the greatest first.
pub fn busiest<K: Copy + Ord>(loads: &BTreeMap<K, Load>, most: usize) -> Vec<(K, Load)> {
    let mut all: Vec<(K, Load)> = loads.iter().map(|(key, load)| (*key, *load)).collect();
    // The sort is stable, so the names of a BTreeMap decide among equals.
    all.sort_by_key(|(_, load)| std::cmp::Reverse(load.total()));
    all.truncate(most);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_loads_come_first_and_names_decide_among_equals() {
        let load = |waiting, running| Load { waiting, running };
        let loads = [("c", load(1, 1)), ("a", load(0, 2)), ("b", load(5, 0)), ("d", load(0, 1))].into();
        assert_eq!(busiest(&loads, 3), [("b", load(5, 0)), ("a", load(0, 2)), ("c", load(1, 1))]);
        assert_eq!(busiest(&loads, 10).len(), 4);
    }
}
