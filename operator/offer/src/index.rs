//! The skills of one namespace, indexed for search.
//!
//! Each word, name or tag of a request leads to the skills that have it, so a search does not compare skill by skill. A
//! change touches only the terms of the changed skill; nothing is rebuilt. A search returns exactly the scores of
//! [`super::Scorer`].
//!
//! | module | content |
//! |---|---|
//! | `trie` | finds names and tags at any position of a text |
//! | `inverted_index` | from words, names and tags to skills |
//! | `weighted_slots` | a list of skills with the impacts of one term |
//! | `postings` | a list of skills: numbers, or bits if it is long |
//! | `block_counts` | counts of long lists, 512 skills at a time |
//! | `search` | adds up the points and collects the best skills |

mod block_counts;
mod inverted_index;
mod postings;
mod search;
mod slot_set;
mod suffix_links;
mod trie;
mod weighted_slots;

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use self::inverted_index::InvertedIndex;
use super::{
    Candidate, Eligibility, MatchMode, QuestionVectors, extra_points::SkillKey, terms::SkillTerms,
    vectors::VectorTable,
};
use skillet_api::skill::Invocation;
use skillet_core::version::SkillSemver;

pub use self::search::Scratch;
pub(crate) use self::search::{Collector, Search};

/// A change to one skill.
#[derive(Clone, Debug)]
pub enum Change {
    /// The skill is new or changed; it replaces the skill of its name.
    Upsert(Arc<Candidate>),
    /// The skill of this name is gone.
    Remove(Arc<str>),
}

/// A skill of the index.
#[derive(Clone, Debug)]
pub(crate) struct IndexedSkill {
    pub(crate) candidate: Arc<Candidate>,
    /// Estimated tokens of its definition.
    pub(crate) tokens: u32,
}

/// The indexed skills of one namespace. It holds each name at most once.
///
/// ```
/// # use std::sync::Arc;
/// # use skillet_api::skill::{Invocation, Mode};
/// # use skillet_core::json_text::JsonText;
/// use skillet_offer::{Change, Index, MatchMode, RequestFacts, Scoring, Scratch, Selection, SkillFilter, select};
/// # use skillet_offer::{Candidate, CandidateTool};
/// # fn skill(name: &str) -> Arc<Candidate> {
/// #     let tool = CandidateTool {
/// #         name: name.into(), description: "".into(), parameters: JsonText::new(&serde_json::json!({})),
/// #     };
/// #     Arc::new(Candidate {
/// #         namespace: "team".into(), name: name.into(), version: "1.0.0".into(), is_ready: true, has_program: true, builtin: None,
/// #         description: "".into(), tags: [].into(), examples: [].into(), mode: Mode::Auto, enabled: true,
/// #         invocation: Invocation::Auto, install_count: 0, registered: 0, tool, vector: None,
/// #     })
/// # }
/// let mut index = Index::build(MatchMode::Words, [skill("web-search"), skill("word-count")]);
/// let offered = |index: &Index| -> Vec<String> {
///     let scoring = Scoring::words();
///     let query = scoring.query(&RequestFacts { texts: &["search the web"], ..RequestFacts::default() });
///     let filter = SkillFilter::All;
///     let selection =
///         Selection { query: &query, client_tools: &[], filter: &filter, token_budget: None, max_tools: None, can_confirm: false };
///     let offer = select(&scoring, &[index], &selection, &mut Scratch::default());
///     offer.ranked().into_iter().map(|offered| offered.skill.name.to_string()).collect()
/// };
/// // A request finds the skills whose terms it contains.
/// assert_eq!(offered(&index), ["web-search"]);
/// // A change replaces or removes one skill, and the next search sees it.
/// index.apply(Change::Remove("web-search".into()));
/// assert_eq!((index.len(), offered(&index).len()), (1, 0));
/// ```
#[derive(Clone, Debug)]
pub struct Index {
    matching: MatchMode,
    /// Every skill has a number, its slot. SlotSet of removed skills are used again.
    entries: Vec<Option<IndexedSkill>>,
    free: Vec<u32>,
    names: HashMap<Arc<str>, u32>,
    /// Slots of skills that are always offered, in their order.
    always: BTreeMap<(i64, Arc<str>), u32>,
    /// Terms of the skills that are offered on a match. Only these skills are searched.
    terms: InvertedIndex,
    /// Number of skills that may be offered and whose calls a person confirms.
    hybrids: usize,
    /// Vectors of the skills that are offered on a match, by slot.
    vectors: VectorTable,
    model: Option<Arc<dyn QuestionVectors>>,
}

impl Index {
    pub fn new(matching: MatchMode) -> Self {
        Self {
            matching,
            entries: Vec::new(),
            free: Vec::new(),
            names: HashMap::new(),
            always: BTreeMap::new(),
            terms: InvertedIndex::new(),
            hybrids: 0,
            vectors: VectorTable::default(),
            model: None,
        }
    }

    /// Builds an index. Of several candidates of one name it takes the newest that can be offered, else the newest.
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

    /// Applies a change. The cost grows with the words of that skill only.
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
        self.get_entry(name).map(|entry| &entry.candidate)
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the match mode of the index. A query of another mode is answered too, but slowly.
    pub fn matching(&self) -> MatchMode {
        self.matching
    }

    /// Returns all skills, in no order.
    pub fn candidates(&self) -> impl Iterator<Item = &Arc<Candidate>> {
        self.entries.iter().flatten().map(|entry| &entry.candidate)
    }

    /// Returns true if no skill may be offered.
    pub fn offers_nothing(&self) -> bool {
        self.always.is_empty() && self.searched() == 0
    }

    /// Returns true if a skill may be offered whose calls a person confirms.
    pub fn has_hybrids(&self) -> bool {
        self.hybrids > 0
    }

    /// Returns the number of skills that are searched.
    pub(crate) fn searched(&self) -> usize {
        self.terms.skills()
    }

    /// Returns the number of searched skills with a term of [`MatchMode::Ranked`].
    pub(crate) fn frequency(&self, term: &str) -> usize {
        self.terms.weighted(term).len()
    }

    /// Returns the skills that are always offered, by registration, then by name.
    pub(crate) fn always(&self) -> impl Iterator<Item = &IndexedSkill> {
        self.always.values().filter_map(|slot| self.entry(*slot))
    }

    pub(crate) fn get_entry(&self, name: &str) -> Option<&IndexedSkill> {
        self.entry(*self.names.get(name)?)
    }

    fn entry(&self, slot: u32) -> Option<&IndexedSkill> {
        self.entries.get(slot as usize)?.as_ref()
    }

    fn insert(&mut self, candidate: &Arc<Candidate>) {
        let tokens = candidate.tokens();
        let entry = Some(IndexedSkill { candidate: candidate.clone(), tokens });
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(place) = self.entries.get_mut(slot as usize) {
            *place = entry;
        }
        self.names.insert(candidate.name.clone(), slot);
        self.hybrids += usize::from(is_hybrid(candidate));
        match candidate.eligibility() {
            Eligibility::Always => drop(self.always.insert(always_key(candidate), slot)),
            Eligibility::OnMatch => {
                self.terms.insert(&SkillTerms::of(self.matching, candidate), slot);
                self.vectors.set(slot, candidate.vector.as_ref());
            }
            Eligibility::Never => {}
        }
    }

    fn remove(&mut self, name: &str) {
        let Some(slot) = self.names.remove(name) else { return };
        let Some(IndexedSkill { candidate, .. }) = self.entries.get_mut(slot as usize).and_then(Option::take)
        else {
            return;
        };
        self.free.push(slot);
        self.hybrids -= usize::from(is_hybrid(&candidate));
        match candidate.eligibility() {
            Eligibility::Always => drop(self.always.remove(&always_key(&candidate))),
            Eligibility::OnMatch => {
                self.terms.remove(&SkillTerms::of(self.matching, &candidate), slot);
                self.vectors.set(slot, None);
            }
            Eligibility::Never => {}
        }
    }
}

impl Index {
    /// Compares questions with skills by their vectors too. The vectors of candidates are of the same model.
    #[must_use]
    pub fn with_model(self, model: Option<Arc<dyn QuestionVectors>>) -> Self {
        Self { model, ..self }
    }

    /// Replaces a skill by one that differs in its vector only.
    pub fn set_vector(&mut self, candidate: &Arc<Candidate>) {
        let Some(slot) = self.names.get(&candidate.name).copied() else { return };
        let Some(Some(entry)) = self.entries.get_mut(slot as usize) else { return };
        entry.candidate = candidate.clone();
        if candidate.eligibility() == Eligibility::OnMatch {
            self.vectors.set(slot, candidate.vector.as_ref());
        }
    }

    /// Sets another model, after the vectors of its skills.
    pub fn set_model(&mut self, model: Option<Arc<dyn QuestionVectors>>) {
        self.model = model;
        self.vectors = VectorTable::default();
        for (slot, entry) in (0..).zip(&self.entries) {
            let candidate = entry.as_ref().map(|entry| &entry.candidate);
            let searched = candidate.filter(|candidate| candidate.eligibility() == Eligibility::OnMatch);
            self.vectors.set(slot, searched.and_then(|candidate| candidate.vector.as_ref()));
        }
    }

    /// Returns the model of the vectors.
    pub fn model(&self) -> Option<&Arc<dyn QuestionVectors>> {
        self.model.as_ref()
    }

    pub(crate) fn vectors(&self) -> &VectorTable {
        &self.vectors
    }

    /// Returns namespace and name of the skill in a slot.
    pub(crate) fn key(&self, slot: u32) -> Option<SkillKey> {
        let candidate = &self.entry(slot)?.candidate;
        Some((candidate.namespace.clone(), candidate.name.clone()))
    }
}

fn is_hybrid(candidate: &Candidate) -> bool {
    candidate.invocation == Invocation::Hybrid && candidate.eligibility() != Eligibility::Never
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
