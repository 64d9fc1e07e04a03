//! A fair queue: first come, first served within a lane. Of the lanes, the one that has the fewest runs comes next; lanes with
//! equally many take turns.
//!
//! The last eighth of the places is kept for lanes without a run. So a few lanes with long runs cannot take every place.
//!
//! An entry that waits for its skill's own limit does not block entries of other skills behind it. A search for the next
//! entry ends at the first lane without a run whose skill may run. The queue holds no clock and starts nothing; the caller
//! counts its runs in [`RunningCounts`].

use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashMap, btree_map},
    hash::Hash,
    ops::Bound,
};

use crate::lane::Lane;

/// Time of arrival: seconds since the epoch, then a sequence number of the caller.
pub type Arrival = (i64, u64);

/// Most runs at one time.
#[derive(Clone, Copy)]
pub struct ConcurrencyLimits<'a> {
    pub total: u32,
    pub per_lane: u32,
    /// Limit of a skill, by namespace and name; `None` if the skill sets no limit.
    pub per_skill: &'a dyn Fn(&str, &str) -> Option<u32>,
}

impl ConcurrencyLimits<'_> {
    /// Returns true if a lane with `held` runs, of `total` runs in all, may start another one.
    fn has_place(&self, held: u32, total: u32) -> bool {
        let kept = if held == 0 { 0 } else { (self.total / 8).max(1) };
        held < self.per_lane && total.saturating_add(kept) < self.total
    }
}

/// Numbers of current runs.
#[derive(Clone, Debug, Default)]
pub struct RunningCounts {
    total: u32,
    lanes: HashMap<Lane, u32>,
    /// By namespace, then by name.
    skills: HashMap<String, HashMap<String, u32>>,
}

impl RunningCounts {
    pub fn start(&mut self, lane: &Lane, skill: &str) {
        *self.lanes.entry(lane.clone()).or_default() += 1;
        let skills = self.skills.entry(lane.namespace.clone()).or_default();
        *skills.entry(skill.to_owned()).or_default() += 1;
        self.total += 1;
    }

    /// Counts one run less; ignores a run that was never counted.
    pub fn finish(&mut self, lane: &Lane, skill: &str) {
        if self.in_lane(lane) == 0 || self.of_skill(&lane.namespace, skill) == 0 {
            return;
        }
        decrement(&mut self.lanes, lane);
        if let Some(skills) = self.skills.get_mut(&lane.namespace) {
            decrement(skills, skill);
            if skills.is_empty() {
                self.skills.remove(&lane.namespace);
            }
        }
        self.total -= 1;
    }

    pub fn total(&self) -> u32 {
        self.total
    }

    pub fn in_lane(&self, lane: &Lane) -> u32 {
        self.lanes.get(lane).copied().unwrap_or(0)
    }

    /// Counts the runs of a skill in all lanes.
    pub fn of_skill(&self, namespace: &str, skill: &str) -> u32 {
        self.skills.get(namespace).and_then(|skills| skills.get(skill)).copied().unwrap_or(0)
    }
}

/// Counts one less, and drops a count of zero.
fn decrement<K, Q>(counts: &mut HashMap<K, u32>, key: &Q)
where
    K: Borrow<Q> + Eq + Hash,
    Q: Eq + Hash + ?Sized,
{
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// An entry that the queue returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedRun<K> {
    pub lane: Lane,
    pub skill: String,
    pub key: K,
}

/// Position in the order of arrival. The last number makes it unique.
type Position = (i64, u64, u64);

/// The entries of one lane.
#[derive(Clone, Debug)]
struct WaitingRuns<K> {
    skills: HashMap<String, BTreeMap<Position, K>>,
    /// First entry of each skill, in order of arrival.
    heads: BTreeMap<Position, String>,
}

/// A queue of runs by lane and skill.
///
/// ```
/// use skillet_core::{
///     lane::Lane,
///     queue::{ConcurrencyLimits, FairQueue, RunningCounts},
/// };
///
/// let mut queue = FairQueue::new();
/// for (second, (caller, key)) in (0..).zip([("a", "a1"), ("a", "a2"), ("b", "b1")]) {
///     queue.push(&Lane::new("tools", Some(caller)), "report", (second, 0), key);
/// }
/// let limits = ConcurrencyLimits { total: 2, per_lane: 2, per_skill: &|_, _| None };
/// let mut running = RunningCounts::default();
/// let mut started = Vec::new();
/// while let Some(run) = queue.pop(&limits, &running) {
///     running.start(&run.lane, &run.skill);
///     started.push(run.key);
/// }
/// // Callers take turns, and the total limit holds back the rest.
/// assert_eq!((started, queue.len()), (vec!["a1", "b1"], 1));
///
/// running.finish(&Lane::new("tools", Some("a")), "report");
/// assert_eq!(queue.pop(&limits, &running).map(|run| run.key), Some("a2"));
/// ```
#[derive(Clone, Debug)]
pub struct FairQueue<K> {
    lanes: BTreeMap<Lane, WaitingRuns<K>>,
    places: HashMap<K, (Lane, String, Position)>,
    pushed: u64,
    /// Lane of the last entry that was returned.
    last: Option<Lane>,
}

impl<K> Default for FairQueue<K> {
    fn default() -> Self {
        Self { lanes: BTreeMap::new(), places: HashMap::new(), pushed: 0, last: None }
    }
}

impl<K: Clone + Eq + Hash> FairQueue<K> {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry. False if the queue has the key, which then keeps its position.
    pub fn push(&mut self, lane: &Lane, skill: &str, arrival: Arrival, key: K) -> bool {
        if self.places.contains_key(&key) {
            return false;
        }
        self.pushed += 1;
        let place = (arrival.0, arrival.1, self.pushed);
        self.places.insert(key.clone(), (lane.clone(), skill.to_owned(), place));
        self.lanes.entry(lane.clone()).or_default().push(skill, place, key);
        true
    }

    /// Removes an entry. False if the queue does not have it.
    pub fn remove(&mut self, key: &K) -> bool {
        let Some((lane, skill, place)) = self.places.remove(key) else { return false };
        self.take(&lane, &skill, place);
        true
    }

    /// Returns the next entry that the limits allow. The caller counts it as running before the next call.
    pub fn pop(&mut self, limits: &ConcurrencyLimits<'_>, running: &RunningCounts) -> Option<QueuedRun<K>> {
        let (lane, skill, place) = self.find_next(limits, running)?;
        let key = self.take(&lane, &skill, place)?;
        self.places.remove(&key);
        self.last = Some(lane.clone());
        Some(QueuedRun { lane, skill, key })
    }

    fn find_next(
        &self,
        limits: &ConcurrencyLimits<'_>,
        running: &RunningCounts,
    ) -> Option<(Lane, String, Position)> {
        if running.total() >= limits.total {
            return None;
        }
        let after = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.lanes.range((after, Bound::Unbounded));
        // Without a last lane, the first half is all of them.
        let earlier = self.last.iter().flat_map(|last| self.lanes.range(..=last));
        let in_turn = later.chain(earlier);
        let mut next: Option<(u32, &Lane, &str, Position)> = None;
        for (lane, waiting) in in_turn {
            let held = running.in_lane(lane);
            if !limits.has_place(held, running.total()) || next.is_some_and(|(fewest, ..)| fewest <= held) {
                continue;
            }
            let may_run = |skill: &str| {
                let limit = (limits.per_skill)(&lane.namespace, skill);
                limit.is_none_or(|limit| running.of_skill(&lane.namespace, skill) < limit)
            };
            if let Some((place, skill)) = waiting.heads.iter().find(|(_, skill)| may_run(skill)) {
                next = Some((held, lane, skill, *place));
                if held == 0 {
                    break;
                }
            }
        }
        next.map(|(_, lane, skill, place)| (lane.clone(), skill.to_owned(), place))
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

    fn take(&mut self, lane: &Lane, skill: &str, place: Position) -> Option<K> {
        let waiting = self.lanes.get_mut(lane)?;
        let key = waiting.take(skill, place);
        if waiting.heads.is_empty() {
            self.lanes.remove(lane);
        }
        key
    }
}

impl<K> Default for WaitingRuns<K> {
    fn default() -> Self {
        Self { skills: HashMap::new(), heads: BTreeMap::new() }
    }
}

impl<K> WaitingRuns<K> {
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
