//! Finds the skills that fit a request.
//!
//! Points are added up per slot from the lists that the request leads to, the common words of descriptions last and 512
//! slots at a time. A block of slots is passed over where not even all points that could still be added would reach
//! the worst score that is wanted.

use super::{
    Entry, Index,
    block_counts::add_counts,
    inverted_index::{InvertedIndex, UNUSED},
    postings::{BLOCK_SLOTS, Postings},
    suffix_links::SuffixLinks,
    trie::PatternId,
};
use crate::{Eligibility, Query, Scorer, Weights, provider_family::FamilySet};

/// Room for a search, to be used again and again. It grows with the largest index, never with a text.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// Points per slot; zero between searches.
    points: Vec<i32>,
    /// Blocks that may have points other than zero, of the index that is searched.
    touched: Vec<bool>,
    patterns: Vec<PatternId>,
    marks: SuffixLinks,
}

/// Most patterns that there is room for between searches.
const KEPT_PATTERNS: usize = 1 << 16;

/// Where found skills go.
pub(crate) trait Collector {
    /// The least score that is wanted from now on. It never falls.
    fn threshold(&self) -> i32;

    fn take(&mut self, entry: &Entry, score: i32);
}

impl Index {
    /// Gives every skill that is offered when it fits, and whose score is at least the collector's bar.
    pub(crate) fn search(
        &self,
        weights: &Weights,
        query: &Query,
        scratch: &mut Scratch,
        collector: &mut impl Collector,
    ) {
        if query.matching != self.matching {
            self.search_one_by_one(weights, query, collector);
            return;
        }
        scratch.prepare(self.entries.len());
        scratch.add_patterns(&self.lists, weights, query);
        let common = scratch.add_words(&self.lists, weights, query);
        self.add_background(weights, query, scratch);
        self.collect(weights, query, &common, scratch, collector);
    }

    /// For a request that was read by other rules: exact, but as slow as there are skills.
    fn search_one_by_one(&self, weights: &Weights, query: &Query, collector: &mut impl Collector) {
        let scorer = Scorer::new(*weights, query);
        for entry in self.entries.iter().flatten() {
            if entry.candidate.eligibility() == Eligibility::OnMatch {
                let score = scorer.score(&entry.candidate);
                if score >= collector.threshold() {
                    collector.take(entry, score);
                }
            }
        }
    }

    fn add_background(&self, weights: &Weights, query: &Query, scratch: &mut Scratch) {
        for word in &query.background {
            if let Some(word) = self.lists.word(word) {
                scratch.add(word.names.as_slice(), weights.background_name);
            }
            match self.lists.related(word) {
                Some(slots) => scratch.add(slots, weights.background_tag),
                // A reason of the caller's own: no list is kept for it.
                None => scratch.add(&self.related_slots(word), weights.background_tag),
            }
        }
    }

    fn related_slots(&self, word: &str) -> Vec<u32> {
        let is_related = |entry: &Entry| {
            let mut tags = entry.candidate.tags.iter().filter_map(|tag| self.matching.tag_pattern(tag));
            entry.candidate.eligibility() == Eligibility::OnMatch
                && tags.any(|tag| self.matching.relates(word, &tag))
        };
        let related =
            |(slot, entry): (u32, &Option<Entry>)| entry.as_ref().filter(|e| is_related(e)).map(|_| slot);
        (0..).zip(&self.entries).filter_map(related).collect()
    }

    /// Adds the common words block by block, gives what reaches the threshold, and leaves all points zero.
    fn collect(
        &self,
        weights: &Weights,
        query: &Query,
        common: &[&[u64]],
        scratch: &mut Scratch,
        collector: &mut impl Collector,
    ) {
        let extra = provider_points(weights, query);
        let most_extra = most(&extra);
        let most_words = common.len().min(self.lists.longest_description());
        let most_added =
            weights.description_word.max(0) * i32::try_from(most_words).unwrap_or(i32::MAX) + most_extra;
        let blocks = scratch.points.chunks_exact_mut(BLOCK_SLOTS).zip(&mut scratch.touched);
        let families = self.lists.families().chunks(BLOCK_SLOTS);
        for (block, ((points, touched), families)) in blocks.zip(families).enumerate() {
            let may_add_up = most_added >= collector.threshold();
            let reached = if *touched && !may_add_up { most(points) } else { 0 };
            if may_add_up || reached + most_added >= collector.threshold() {
                add_counts(common, block, weights.description_word, points);
                *touched |= !common.is_empty();
                self.give(block * BLOCK_SLOTS, points, families, &extra, collector);
            }
            if std::mem::take(touched) {
                points.fill(0);
            }
        }
    }
}

/// How many slots are looked at together: few enough that most such groups have none that is wanted.
const GROUP: usize = 16;

impl Index {
    /// Gives the slots from `start` on that reach the threshold.
    fn give(
        &self,
        start: usize,
        points: &[i32],
        families: &[u8],
        extra: &[i32],
        collector: &mut impl Collector,
    ) {
        let most_extra = most(extra);
        for (group, (points, families)) in points.chunks(GROUP).zip(families.chunks(GROUP)).enumerate() {
            let needed = collector.threshold().saturating_sub(most_extra);
            // Without an early end, so that all are compared at once.
            if most(points) < needed {
                continue;
            }
            for (at, (points, families)) in points.iter().zip(families).enumerate() {
                if *points < needed || *families == UNUSED {
                    continue;
                }
                let score = *points + extra.get(usize::from(*families)).copied().unwrap_or_default();
                if let Some(Some(entry)) = self.entries.get(start + group * GROUP + at)
                    && score >= collector.threshold()
                {
                    collector.take(entry, score);
                }
            }
        }
    }
}

fn most(points: &[i32]) -> i32 {
    points.iter().copied().fold(i32::MIN, i32::max)
}

impl Scratch {
    fn prepare(&mut self, slots: usize) {
        let blocks = slots.div_ceil(BLOCK_SLOTS);
        self.touched.resize(blocks, false);
        if self.points.len() < blocks * BLOCK_SLOTS {
            self.points.resize(blocks * BLOCK_SLOTS, 0);
        }
    }

    fn add(&mut self, slots: &[u32], weight: i32) {
        if slots.len() > self.touched.len() {
            self.touched.fill(true);
            for slot in slots {
                self.add_to(*slot, weight);
            }
            return;
        }
        for slot in slots {
            self.add_to(*slot, weight);
            if let Some(touched) = self.touched.get_mut(*slot as usize / BLOCK_SLOTS) {
                *touched = true;
            }
        }
    }

    fn add_to(&mut self, slot: u32, weight: i32) {
        if let Some(points) = self.points.get_mut(slot as usize) {
            *points += weight;
        }
    }

    fn add_patterns(&mut self, lists: &InvertedIndex, weights: &Weights, query: &Query) {
        let mut found = std::mem::take(&mut self.patterns);
        found.clear();
        lists.find_patterns(&query.text, &mut self.marks, &mut found);
        found.sort_unstable();
        found.dedup();
        for pattern in found.iter().filter_map(|number| lists.pattern(*number)) {
            self.add(pattern.names.as_slice(), weights.name);
            self.add(pattern.tags.as_slice(), weights.tag);
        }
        // What repeats have taken is given back.
        found.shrink_to(KEPT_PATTERNS);
        self.patterns = found;
    }

    /// Adds names and rare words of descriptions; the common ones are left to the caller.
    fn add_words<'l>(
        &mut self,
        lists: &'l InvertedIndex,
        weights: &Weights,
        query: &Query,
    ) -> Vec<&'l [u64]> {
        let mut common = Vec::new();
        for word in query.words().filter_map(|word| lists.word(word)) {
            self.add(word.names.as_slice(), weights.name_word);
            match &word.descriptions {
                Postings::Few(slots) => self.add(slots, weights.description_word),
                Postings::Many { bits, .. } => common.push(bits.as_slice()),
            }
        }
        common
    }
}

/// Points for each set of families of providers that a skill's tags may name.
fn provider_points(weights: &Weights, query: &Query) -> [i32; FamilySet::COUNT as usize] {
    let mut points = [0; FamilySet::COUNT as usize];
    for (number, points) in (0..).zip(&mut points) {
        let families = FamilySet::from_number(number);
        if families.contains(query.provider) {
            *points = weights.provider_match;
        } else if !families.is_empty() {
            *points = weights.provider_mismatch;
        }
    }
    points
}
