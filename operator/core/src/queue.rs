//! A fair queue: first come, first served within a lane. Of the lanes, the one that has the fewest runs comes next; lanes with
//! equally many take turns.
//!
//! A lane may hold a part of the places, of the CPU and of the memory, and the last eighth of each is kept for lanes that hold
//! none. So a few lanes with long or large runs cannot take everything. A run starts while less than that is held, by
//! however little: no run is too large to start, and none waits for smaller ones to leave room.
//!
//! An entry that waits for its skill's own limit does not block entries of other skills behind it. A search for the next
//! entry ends at the first lane without a run whose skill may run. The queue holds no clock and starts nothing; the caller
//! counts its runs in [`RunningCounts`].

mod running;

use std::{
    collections::{BTreeMap, HashMap, btree_map},
    hash::Hash,
    ops::Bound,
};

use skillet_api::policy::Concurrency;

use self::running::Held;
pub use self::running::{RunningCounts, SandboxSize};
use crate::{
    lane::Lane,
    quantity::{cpu_millis, memory_bytes},
};

/// Time of arrival: seconds since the epoch, then a sequence number of the caller.
pub type Arrival = (i64, u64);

/// Most that runs may hold of one resource at one time.
#[derive(Clone, Copy)]
struct Share {
    total: u64,
    per_lane: u64,
}

impl Share {
    /// Returns true if a lane that holds `of_lane`, of `held` in all, may start another run.
    fn has_room(self, of_lane: u64, held: u64) -> bool {
        let kept = if of_lane == 0 { 0 } else { (self.total / 8).max(1) };
        of_lane < self.per_lane && held.saturating_add(kept) < self.total
    }
}

/// Most runs at one time, and most that they may hold.
#[derive(Clone, Copy)]
pub struct ConcurrencyLimits<'a> {
    places: Share,
    cpu_millis: Share,
    memory_bytes: Share,
    policy: &'a Concurrency,
    /// Limit of a skill, by namespace and name; `None` if the skill sets no limit.
    per_skill: &'a dyn Fn(&str, &str) -> Option<u32>,
}

impl<'a> ConcurrencyLimits<'a> {
    /// The limits of a policy while `places` places are given out. A text that is no amount sets no limit, nor does zero.
    pub fn new(
        policy: &'a Concurrency,
        places: u32,
        per_skill: &'a dyn Fn(&str, &str) -> Option<u32>,
    ) -> Self {
        let (part, whole) = (u128::from(policy.per_namespace), u128::from(policy.total.max(1)));
        let share = |total: Option<u64>| {
            let total = total.unwrap_or(u64::MAX);
            let per_lane = u64::try_from(u128::from(total) * part / whole).unwrap_or(u64::MAX);
            Share { total, per_lane: per_lane.max(1) }
        };
        Self {
            places: Share { total: places.into(), per_lane: policy.per_namespace.into() },
            cpu_millis: share(cpu_millis(&policy.cpu)),
            memory_bytes: share(memory_bytes(&policy.memory)),
            policy,
            per_skill,
        }
    }

    /// Names the limit that keeps a run of a skill waiting, with its value in the policy.
    pub fn explain(&self, lane: &Lane, skill: &str, running: &RunningCounts) -> String {
        if let Some(limit) = (self.per_skill)(&lane.namespace, skill)
            && running.of_skill(&lane.namespace, skill) >= limit
        {
            return format!("spec.limits.concurrency of Skill {skill} is {limit}");
        }
        let (of_lane, all) = (running.held(lane), running.all);
        let resources = [
            ("total", &self.policy.total.to_string(), self.places, of_lane.places.into(), all.places.into()),
            ("cpu", &self.policy.cpu, self.cpu_millis, of_lane.cpu_millis, all.cpu_millis),
            ("memory", &self.policy.memory, self.memory_bytes, of_lane.memory_bytes, all.memory_bytes),
        ];
        for (field, value, share, of_lane, all) in resources {
            if of_lane >= share.per_lane {
                let of_resource =
                    if field == "total" { String::new() } else { format!(", its share of {value} {field}") };
                let per_lane = self.policy.per_namespace;
                return format!(
                    "the runs of this namespace fill concurrency.perNamespace of SkillPolicy, which is {per_lane}{of_resource}"
                );
            }
            if !share.has_room(of_lane, all) {
                if field == "total" && share.total < self.policy.total.into() {
                    return format!("the nodes had no room for more than {} runs at one time", share.total);
                }
                return format!(
                    "the runs of the cluster fill concurrency.{field} of SkillPolicy, which is {value}"
                );
            }
        }
        "others come before it".to_owned()
    }

    fn has_room(&self, of_lane: Held, held: Held) -> bool {
        self.places.has_room(of_lane.places.into(), held.places.into())
            && self.cpu_millis.has_room(of_lane.cpu_millis, held.cpu_millis)
            && self.memory_bytes.has_room(of_lane.memory_bytes, held.memory_bytes)
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
/// use skillet_api::policy::Concurrency;
/// use skillet_core::{
///     lane::Lane,
///     queue::{ConcurrencyLimits, FairQueue, RunningCounts, SandboxSize},
/// };
///
/// let mut queue = FairQueue::new();
/// for (second, (caller, key)) in (0..).zip([("a", "a1"), ("a", "a2"), ("b", "b1")]) {
///     queue.push(&Lane::new("tools", Some(caller)), "report", (second, 0), key);
/// }
/// let limits = ConcurrencyLimits::new(&Concurrency::default(), 2, &|_, _| None);
/// let size = SandboxSize::default();
/// let mut running = RunningCounts::default();
/// let mut started = Vec::new();
/// while let Some(run) = queue.pop(&limits, &running) {
///     running.start(&run.lane, &run.skill, size);
///     started.push(run.key);
/// }
/// // Callers take turns, and the total limit holds back the rest.
/// assert_eq!((started, queue.len()), (vec!["a1", "b1"], 1));
///
/// running.finish(&Lane::new("tools", Some("a")), "report", size);
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
        if !limits.has_room(Held::default(), running.all) {
            return None;
        }
        let after = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.lanes.range((after, Bound::Unbounded));
        // Without a last lane, the first half is all of them.
        let earlier = self.last.iter().flat_map(|last| self.lanes.range(..=last));
        let in_turn = later.chain(earlier);
        let mut next: Option<(u32, &Lane, &str, Position)> = None;
        for (lane, waiting) in in_turn {
            let held = running.held(lane);
            if !limits.has_room(held, running.all) || next.is_some_and(|(fewest, ..)| fewest <= held.places) {
                continue;
            }
            let may_run = |skill: &str| {
                let limit = (limits.per_skill)(&lane.namespace, skill);
                limit.is_none_or(|limit| running.of_skill(&lane.namespace, skill) < limit)
            };
            if let Some((place, skill)) = waiting.heads.iter().find(|(_, skill)| may_run(skill)) {
                next = Some((held.places, lane, skill, *place));
                if held.places == 0 {
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
