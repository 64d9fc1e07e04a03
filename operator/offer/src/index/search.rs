//! Finds the skills that match a request.
//!
//! A search adds up points per slot from the lists that the request leads to. Common words of descriptions come last, 512
//! slots at a time. The search skips a block of slots if even all points that could still be added would not reach the
//! collector's threshold.

use super::{
    Index, IndexedSkill,
    block_counts::add_counts,
    inverted_index::{InvertedIndex, UNUSED},
    postings::{BLOCK_SLOTS, Postings},
    suffix_links::SuffixLinks,
    trie::PatternId,
};
use crate::{
    Eligibility, Query, Scorer, Weights, extra_points::ExtraPoints, provider_family::FamilySet,
    ranked::TermWeight,
};

/// Memory that searches reuse. It grows with the largest index, never with a text.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// Points of each slot; zero between searches.
    points: Vec<i32>,
    /// Blocks of the searched index that may have points other than zero.
    touched: Vec<bool>,
    patterns: Vec<PatternId>,
    links: SuffixLinks,
}

/// Most patterns whose memory is kept between searches.
const KEPT_PATTERNS: usize = 1 << 16;

/// Parameters of one search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search<'a> {
    pub(crate) weights: &'a Weights,
    pub(crate) query: &'a Query,
    /// Terms of the question, for [`crate::MatchMode::Ranked`].
    pub(crate) terms: &'a [TermWeight],
    /// Points beside those of texts.
    pub(crate) extra: &'a ExtraPoints,
}

/// Receives the skills that a search finds.
pub(crate) trait Collector {
    /// Returns the lowest score that is still wanted. It never falls.
    fn threshold(&self) -> i32;

    fn push(&mut self, entry: &IndexedSkill, score: i32);
}

impl Index {
    /// Gives every skill that is offered when it fits, and whose score is at least the collector's bar.
    pub(crate) fn search(&self, search: Search<'_>, scratch: &mut Scratch, collector: &mut impl Collector) {
        let Search { weights, query, terms, extra } = search;
        if query.matching != self.matching {
            self.search_one_by_one(search, collector);
            return;
        }
        scratch.prepare(self.entries.len());
        scratch.add_weighted(&self.terms, terms);
        self.add_extra(extra, scratch);
        scratch.add_patterns(&self.terms, weights, query);
        let common = scratch.add_words(&self.terms, weights, query);
        self.collect(weights, query, &common, scratch, collector);
    }

    fn add_extra(&self, extra: &ExtraPoints, scratch: &mut Scratch) {
        for ((namespace, name), points) in extra.sums() {
            if let Some(slot) = self.names.get(name)
                && self.entry(*slot).is_some_and(|entry| entry.candidate.namespace == *namespace)
            {
                scratch.add(&[*slot], points);
            }
        }
    }

    /// Searches for a query of another match mode. Exact, but the time grows with the number of skills.
    fn search_one_by_one(&self, search: Search<'_>, collector: &mut impl Collector) {
        let scorer = Scorer::with_terms(*search.weights, search.query, search.terms, Some(search.extra));
        for entry in self.entries.iter().flatten() {
            if entry.candidate.eligibility() == Eligibility::OnMatch {
                let score = scorer.score(&entry.candidate);
                if score >= collector.threshold() {
                    collector.push(entry, score);
                }
            }
        }
    }

    /// Adds the common words block by block, pushes the skills that reach the threshold, and resets all points.
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
        let most_words = common.len().min(self.terms.longest_description());
        let most_added =
            weights.description_word.max(0) * i32::try_from(most_words).unwrap_or(i32::MAX) + most_extra;
        let blocks = scratch.points.chunks_exact_mut(BLOCK_SLOTS).zip(&mut scratch.touched);
        let families = self.terms.families().chunks(BLOCK_SLOTS);
        for (block, ((points, touched), families)) in blocks.zip(families).enumerate() {
            let may_add_up = most_added >= collector.threshold();
            let reached = if *touched && !may_add_up { most(points) } else { 0 };
            if may_add_up || reached + most_added >= collector.threshold() {
                add_counts(common, block, weights.description_word, points);
                *touched |= !common.is_empty();
                self.push_block(block * BLOCK_SLOTS, points, families, &extra, collector);
            }
            if std::mem::take(touched) {
                points.fill(0);
            }
        }
    }
}

/// Slots that are compared together: few enough that most groups have none above the threshold.
const GROUP: usize = 16;

impl Index {
    /// Pushes the slots from `start` on that reach the threshold.
    fn push_block(
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
            // Without an early exit, so that the compiler can vectorize the comparison.
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
                    collector.push(entry, score);
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

    fn add_weighted(&mut self, lists: &InvertedIndex, terms: &[TermWeight]) {
        for term in terms {
            let slots = lists.weighted(&term.term);
            // A long list has skills in nearly every block.
            let is_long = slots.len() > self.touched.len();
            if is_long {
                self.touched.fill(true);
            }
            for (slot, impact) in slots {
                self.add_to(*slot, term.points(*impact));
                if !is_long && let Some(touched) = self.touched.get_mut(*slot as usize / BLOCK_SLOTS) {
                    *touched = true;
                }
            }
        }
    }

    fn add_patterns(&mut self, terms: &InvertedIndex, weights: &Weights, query: &Query) {
        let mut found = std::mem::take(&mut self.patterns);
        found.clear();
        terms.find_patterns(&query.text, &mut self.links, &mut found);
        found.sort_unstable();
        found.dedup();
        for pattern in found.iter().filter_map(|number| terms.pattern(*number)) {
            self.add(pattern.names.as_slice(), weights.name);
            self.add(pattern.tags.as_slice(), weights.tag);
        }
        // Repeats may have taken much memory.
        found.shrink_to(KEPT_PATTERNS);
        self.patterns = found;
    }

    /// Adds words of names and rare words of descriptions. Returns the common words of descriptions.
    fn add_words<'t>(
        &mut self,
        terms: &'t InvertedIndex,
        weights: &Weights,
        query: &Query,
    ) -> Vec<&'t [u64]> {
        let mut common = Vec::new();
        for word in query.words().filter_map(|word| terms.word(word)) {
            self.add(word.names.as_slice(), weights.name_word);
            match &word.descriptions {
                Postings::Few(slots) => self.add(slots, weights.description_word),
                Postings::Many { bits, .. } => common.push(bits.as_slice()),
            }
        }
        common
    }
}

/// Returns the points for each set of provider families that a skill's tags may name.
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
