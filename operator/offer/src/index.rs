//! The skills of one namespace, prepared for search.
//!
//! A request is looked up, not compared: each word and each name or tag in its text leads straight to the skills that
//! have it. A change touches only what the changed skill has; nothing is rebuilt.
//!
//! | part | leads from | to |
//! |---|---|---|
//! | `trie` | text | names and tags in it, at any place |
//! | `words` | a word | skills with it in the name, skills with it in the description |
//! | `postings` | | a list of skills, as numbers or, where it is long, as bits |
//! | `counting` | long lists | how many of them each skill is in, 512 skills at a time |
//! | `search` | a request | the skills that fit, with exactly the scores of [`super::Scorer`] |

mod block_counts;
mod inverted_index;
mod postings;
mod search;
mod slot_set;
mod suffix_links;
mod trie;

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use self::inverted_index::InvertedIndex;
use super::{Candidate, Eligibility, MatchMode, terms::SkillTerms};
use skillet_core::version::SkillSemver;

pub(crate) use self::search::Collector;
pub use self::search::Scratch;

/// A change to one skill.
#[derive(Clone, Debug)]
pub enum Change {
    /// The skill is new, or is not what it was: whatever has its name is replaced.
    Upsert(Arc<Candidate>),
    /// There is no skill of this name any more.
    Remove(Arc<str>),
}

/// A skill in its place.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) candidate: Arc<Candidate>,
    /// About how many tokens its definition takes.
    pub(crate) tokens: u32,
}

/// The prepared skills of one namespace. A name is in it at most once.
#[derive(Clone, Debug)]
pub struct Index {
    matching: MatchMode,
    /// Every skill has a number, its slot. SlotSet of removed skills are used again.
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    names: HashMap<Arc<str>, u32>,
    /// Skills that are always offered, in their order.
    always: BTreeMap<(i64, Arc<str>), u32>,
    /// Skills that are offered when they fit: only these are searched.
    lists: InvertedIndex,
}

impl Index {
    pub fn new(matching: MatchMode) -> Self {
        Self {
            matching,
            entries: Vec::new(),
            free: Vec::new(),
            names: HashMap::new(),
            always: BTreeMap::new(),
            lists: InvertedIndex::new(matching),
        }
    }

    /// An index of all these. Of several with one name the newest that can be offered is taken, else the newest.
    pub fn build(matching: MatchMode, candidates: impl IntoIterator<Item = Arc<Candidate>>) -> Self {
        let mut newest: BTreeMap<Arc<str>, Arc<Candidate>> = BTreeMap::new();
        for candidate in candidates {
            match newest.get_mut(&candidate.name) {
                Some(kept) if preference(&candidate, kept) == Ordering::Greater => *kept = candidate,
                Some(_) => {}
                None => drop(newest.insert(candidate.name.clone(), candidate)),
            }
        }
        let mut index = Self::new(matching);
        for candidate in newest.into_values() {
            index.apply(Change::Upsert(candidate));
        }
        index
    }

    /// Makes a change. Costs as much as the one skill has words.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Upsert(candidate) => {
                self.remove(&candidate.name);
                self.insert(&candidate);
            }
            Change::Remove(name) => self.remove(&name),
        }
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Candidate>> {
        self.entry(*self.names.get(name)?).map(|entry| &entry.candidate)
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// By which rules it was prepared. A request read by others is answered too, but slowly.
    pub fn matching(&self) -> MatchMode {
        self.matching
    }

    /// All skills, in no order.
    pub fn candidates(&self) -> impl Iterator<Item = &Arc<Candidate>> {
        self.entries.iter().flatten().map(|entry| &entry.candidate)
    }

    /// Skills that are always offered, by registration, then by name.
    pub(crate) fn always(&self) -> impl Iterator<Item = &Entry> {
        self.always.values().filter_map(|slot| self.entry(*slot))
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Entry> {
        self.entry(*self.names.get(name)?)
    }

    fn entry(&self, slot: u32) -> Option<&Entry> {
        self.entries.get(slot as usize)?.as_ref()
    }

    fn insert(&mut self, candidate: &Arc<Candidate>) {
        let tokens = candidate.tokens();
        let entry = Some(Entry { candidate: candidate.clone(), tokens });
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(place) = self.entries.get_mut(slot as usize) {
            *place = entry;
        }
        self.names.insert(candidate.name.clone(), slot);
        match candidate.eligibility() {
            Eligibility::Always => drop(self.always.insert(always_key(candidate), slot)),
            Eligibility::OnMatch => self.lists.insert(&SkillTerms::of(self.matching, candidate), slot),
            Eligibility::Never => {}
        }
    }

    fn remove(&mut self, name: &str) {
        let Some(slot) = self.names.remove(name) else { return };
        let Some(Entry { candidate, .. }) = self.entries.get_mut(slot as usize).and_then(Option::take) else {
            return;
        };
        self.free.push(slot);
        match candidate.eligibility() {
            Eligibility::Always => drop(self.always.remove(&always_key(&candidate))),
            Eligibility::OnMatch => self.lists.remove(&SkillTerms::of(self.matching, &candidate), slot),
            Eligibility::Never => {}
        }
    }
}

fn always_key(candidate: &Candidate) -> (i64, Arc<str>) {
    (candidate.registered, candidate.name.clone())
}

fn preference(a: &Candidate, b: &Candidate) -> Ordering {
    let rank = |candidate: &Candidate| {
        let version: Option<SkillSemver> = candidate.version.parse().ok();
        (candidate.blocked_by().is_none(), version)
    };
    rank(a).cmp(&rank(b))
}

#[cfg(test)]
mod tests;
