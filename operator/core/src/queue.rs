//! A fair queue: first come, first served within a namespace, round-robin among namespaces.
//!
//! An entry that waits for its skill's own limit does not block entries of other skills behind it. A search for the next
//! entry visits only namespaces and skills at their limits, and those have runs. The queue holds no clock and starts nothing;
//! the caller counts its runs in [`RunningCounts`].

use std::{
    collections::{BTreeMap, HashMap, btree_map},
    hash::Hash,
    ops::Bound,
};

/// Time of arrival: seconds since the epoch, then a sequence number of the caller.
pub type Arrival = (i64, u64);

/// Most runs at one time.
#[derive(Clone, Copy)]
pub struct ConcurrencyLimits<'a> {
    pub total: u32,
    pub per_namespace: u32,
    /// Limit of a skill, by namespace and name; `None` if the skill sets no limit.
    pub per_skill: &'a dyn Fn(&str, &str) -> Option<u32>,
}

/// Numbers of current runs.
#[derive(Clone, Debug, Default)]
pub struct RunningCounts {
    total: u32,
    namespaces: HashMap<String, NamespaceCount>,
}

#[derive(Clone, Debug, Default)]
struct NamespaceCount {
    total: u32,
    skills: HashMap<String, u32>,
}

impl RunningCounts {
    pub fn start(&mut self, namespace: &str, skill: &str) {
        let counts = self.namespaces.entry(namespace.to_owned()).or_default();
        *counts.skills.entry(skill.to_owned()).or_default() += 1;
        counts.total += 1;
        self.total += 1;
    }

    /// Counts one run less; ignores a run that was never counted.
    pub fn finish(&mut self, namespace: &str, skill: &str) {
        let Some(counts) = self.namespaces.get_mut(namespace) else { return };
        let Some(count) = counts.skills.get_mut(skill) else { return };
        *count -= 1;
        if *count == 0 {
            counts.skills.remove(skill);
        }
        counts.total -= 1;
        if counts.total == 0 {
            self.namespaces.remove(namespace);
        }
        self.total -= 1;
    }

    pub fn total(&self) -> u32 {
        self.total
    }

    pub fn in_namespace(&self, namespace: &str) -> u32 {
        self.namespaces.get(namespace).map_or(0, |counts| counts.total)
    }

    pub fn of_skill(&self, namespace: &str, skill: &str) -> u32 {
        self.namespaces.get(namespace).and_then(|counts| counts.skills.get(skill)).copied().unwrap_or(0)
    }
}

/// An entry that the queue returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedRun<K> {
    pub namespace: String,
    pub skill: String,
    pub key: K,
}

/// Position in the order of arrival. The last number makes it unique.
type Position = (i64, u64, u64);

/// The entries of one namespace.
#[derive(Clone, Debug)]
struct Lane<K> {
    skills: HashMap<String, BTreeMap<Position, K>>,
    /// First entry of each skill, in order of arrival.
    heads: BTreeMap<Position, String>,
}

/// A queue of runs by namespace and skill.
///
/// ```
/// use skillet_core::queue::{ConcurrencyLimits, FairQueue, RunningCounts};
///
/// let mut queue = FairQueue::new();
/// for (second, (namespace, key)) in (0..).zip([("a", "a1"), ("a", "a2"), ("b", "b1")]) {
///     queue.push(namespace, "report", (second, 0), key);
/// }
/// let limits = ConcurrencyLimits { total: 2, per_namespace: 2, per_skill: &|_, _| None };
/// let mut running = RunningCounts::default();
/// let mut started = Vec::new();
/// while let Some(run) = queue.pop(&limits, &running) {
///     running.start(&run.namespace, &run.skill);
///     started.push(run.key);
/// }
/// // Namespaces take turns, and the total limit holds back the rest.
/// assert_eq!((started, queue.len()), (vec!["a1", "b1"], 1));
///
/// running.finish("a", "report");
/// assert_eq!(queue.pop(&limits, &running).map(|run| run.key), Some("a2"));
/// ```
#[derive(Clone, Debug)]
pub struct FairQueue<K> {
    lanes: BTreeMap<String, Lane<K>>,
    places: HashMap<K, (String, String, Position)>,
    pushed: u64,
    /// Namespace of the last entry that was returned.
    last: String,
}

impl<K> Default for FairQueue<K> {
    fn default() -> Self {
        Self { lanes: BTreeMap::new(), places: HashMap::new(), pushed: 0, last: String::new() }
    }
}

impl<K: Clone + Eq + Hash> FairQueue<K> {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry. False if the queue has the key, which then keeps its position.
    pub fn push(&mut self, namespace: &str, skill: &str, arrival: Arrival, key: K) -> bool {
        if self.places.contains_key(&key) {
            return false;
        }
        self.pushed += 1;
        let place = (arrival.0, arrival.1, self.pushed);
        self.places.insert(key.clone(), (namespace.to_owned(), skill.to_owned(), place));
        self.lanes.entry(namespace.to_owned()).or_default().push(skill, place, key);
        true
    }

    /// Removes an entry. False if the queue does not have it.
    pub fn remove(&mut self, key: &K) -> bool {
        let Some((namespace, skill, place)) = self.places.remove(key) else { return false };
        self.take(&namespace, &skill, place);
        true
    }

    /// Returns the next entry that the limits allow. The caller counts it as running before the next call.
    pub fn pop(&mut self, limits: &ConcurrencyLimits<'_>, running: &RunningCounts) -> Option<QueuedRun<K>> {
        if running.total() >= limits.total {
            return None;
        }
        let after = (Bound::Excluded(self.last.as_str()), Bound::Unbounded);
        let until = (Bound::Unbounded, Bound::Included(self.last.as_str()));
        let in_turn = self.lanes.range::<str, _>(after).chain(self.lanes.range::<str, _>(until));
        let (namespace, skill, place) = in_turn
            .filter(|(namespace, _)| running.in_namespace(namespace) < limits.per_namespace)
            .find_map(|(namespace, lane)| {
                let (place, skill) = lane.heads.iter().find(|(_, skill)| {
                    let limit = (limits.per_skill)(namespace, skill);
                    limit.is_none_or(|limit| running.of_skill(namespace, skill) < limit)
                })?;
                Some((namespace.clone(), skill.clone(), *place))
            })?;
        let key = self.take(&namespace, &skill, place)?;
        self.places.remove(&key);
        self.last.clone_from(&namespace);
        Some(QueuedRun { namespace, skill, key })
    }

    pub fn contains(&self, key: &K) -> bool {
        self.places.contains_key(key)
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn take(&mut self, namespace: &str, skill: &str, place: Position) -> Option<K> {
        let lane = self.lanes.get_mut(namespace)?;
        let key = lane.take(skill, place);
        if lane.heads.is_empty() {
            self.lanes.remove(namespace);
        }
        key
    }
}

impl<K> Default for Lane<K> {
    fn default() -> Self {
        Self { skills: HashMap::new(), heads: BTreeMap::new() }
    }
}

impl<K> Lane<K> {
    fn push(&mut self, skill: &str, place: Position, key: K) {
        let entries = self.skills.entry(skill.to_owned()).or_default();
        let head = entries.first_key_value().map(|(head, _)| *head);
        entries.insert(place, key);
        if head.is_none_or(|head| place < head) {
            if let Some(head) = head {
                self.heads.remove(&head);
            }
            self.heads.insert(place, skill.to_owned());
        }
    }

    fn take(&mut self, skill: &str, place: Position) -> Option<K> {
        let entries = self.skills.get_mut(skill)?;
        let btree_map::Entry::Occupied(entry) = entries.entry(place) else { return None };
        let key = entry.remove();
        if let Some(name) = self.heads.remove(&place)
            && let Some((next, _)) = entries.first_key_value()
        {
            self.heads.insert(*next, name);
        }
        if entries.is_empty() {
            self.skills.remove(skill);
        }
        Some(key)
    }
}

#[cfg(test)]
mod tests;
