//! A fair queue: first come, first served within a namespace, namespaces in turn.
//!
//! An entry that its skill's own limit holds back does not hold back entries of other skills behind it. Finding the
//! next entry looks at no more namespaces and skills than are at their limits, and those have something running.

use std::{
    collections::{BTreeMap, HashMap, btree_map},
    hash::Hash,
    ops::Bound,
};

/// When an entry arrived: seconds since the epoch, then a sequence number of the caller's.
pub type Arrival = (i64, u64);

/// How many may run at one time.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    pub total: u32,
    pub per_namespace: u32,
    /// The limit of a skill, by namespace and name; `None` is no limit of its own.
    pub per_skill: &'a dyn Fn(&str, &str) -> Option<u32>,
}

/// What runs now.
#[derive(Clone, Debug, Default)]
pub struct Running {
    total: u32,
    namespaces: HashMap<String, NamespaceCount>,
}

#[derive(Clone, Debug, Default)]
struct NamespaceCount {
    total: u32,
    skills: HashMap<String, u32>,
}

impl Running {
    pub fn start(&mut self, namespace: &str, skill: &str) {
        let counts = self.namespaces.entry(namespace.to_owned()).or_default();
        *counts.skills.entry(skill.to_owned()).or_default() += 1;
        counts.total += 1;
        self.total += 1;
    }

    /// Counts one run less; what was never started is ignored.
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

/// What comes off the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<K> {
    pub namespace: String,
    pub skill: String,
    pub key: K,
}

/// Place in the order of arrival; the last number tells apart what the caller did not.
type Place = (i64, u64, u64);

/// The entries of one namespace.
#[derive(Clone, Debug)]
struct Lane<K> {
    skills: HashMap<String, BTreeMap<Place, K>>,
    /// The first entry of each skill, in order of arrival.
    heads: BTreeMap<Place, String>,
}

#[derive(Clone, Debug)]
pub struct FairQueue<K> {
    lanes: BTreeMap<String, Lane<K>>,
    places: HashMap<K, (String, String, Place)>,
    pushed: u64,
    /// The namespace that was served last.
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

    /// Adds an entry; false where the key is in the queue already, which then keeps its place.
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

    /// Takes an entry out; false where it was not in the queue.
    pub fn remove(&mut self, key: &K) -> bool {
        let Some((namespace, skill, place)) = self.places.remove(key) else { return false };
        self.take(&namespace, &skill, place);
        true
    }

    /// The next entry that the limits let run. The caller counts it as running before it asks again.
    pub fn pop(&mut self, limits: &Limits<'_>, running: &Running) -> Option<Entry<K>> {
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
        Some(Entry { namespace, skill, key })
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

    fn take(&mut self, namespace: &str, skill: &str, place: Place) -> Option<K> {
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
    fn push(&mut self, skill: &str, place: Place, key: K) {
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

    fn take(&mut self, skill: &str, place: Place) -> Option<K> {
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
