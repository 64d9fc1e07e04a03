//! The inverted index: from words, names and tags to the skills that have them.

use std::collections::HashMap;

use super::{
    postings::Postings,
    slot_set::SlotSet,
    suffix_links::SuffixLinks,
    trie::{PatternId, Trie},
    weighted_slots::{WeightedSlot, WeightedSlots},
};
use crate::{ranked::SkillTerm, terms::SkillTerms};

/// The lists of one index. They hold a slot only while its skill is offered on a match.
#[derive(Clone, Debug)]
pub(super) struct InvertedIndex {
    words: HashMap<Box<str>, WordEntry>,
    /// Terms of [`crate::MatchMode::Ranked`].
    weighted: HashMap<Box<str>, WeightedSlots>,
    /// Number of slots that are in use.
    skills: usize,
    trie: Trie,
    /// Entries by number of the pattern.
    patterns: Vec<PatternEntry>,
    free_patterns: Vec<PatternId>,
    /// For each slot the provider families that its tags name, or [`UNUSED`].
    families: Vec<u8>,
    /// Most words of any description so far.
    longest_description: usize,
}

/// Marks a slot that is in no list.
pub(super) const UNUSED: u8 = u8::MAX;

/// Skills with a word in the name, and skills with it in the description.
#[derive(Clone, Debug, Default)]
pub(super) struct WordEntry {
    pub(super) names: SlotSet,
    pub(super) descriptions: Postings,
}

/// Skills with a name, and skills with a tag. `tags` holds a slot as often as the skill has the tag.
#[derive(Clone, Debug, Default)]
pub(super) struct PatternEntry {
    pub(super) names: SlotSet,
    pub(super) tags: SlotSet,
}

impl InvertedIndex {
    pub(super) fn new() -> Self {
        Self {
            words: HashMap::new(),
            weighted: HashMap::new(),
            skills: 0,
            trie: Trie::new(),
            patterns: Vec::new(),
            free_patterns: Vec::new(),
            families: Vec::new(),
            longest_description: 0,
        }
    }

    pub(super) fn insert(&mut self, terms: &SkillTerms, slot: u32) {
        if self.families.len() <= slot as usize {
            self.families.resize(slot as usize + 1, UNUSED);
        }
        if let Some(families) = self.families.get_mut(slot as usize) {
            *families = terms.families.number();
        }
        self.longest_description = self.longest_description.max(terms.description_words.len());
        let total = self.families.len();
        if let Some(name) = &terms.name {
            self.change_pattern(name, |pattern| pattern.names.insert(slot));
        }
        for tag in &terms.tags {
            self.change_pattern(tag, |pattern| pattern.tags.insert(slot));
        }
        for word in &terms.name_words {
            self.change_word(word, |word| word.names.insert(slot));
        }
        for word in &terms.description_words {
            self.change_word(word, |word| word.descriptions.insert(slot, total));
        }
        self.skills += 1;
        for SkillTerm { term, impact, .. } in &terms.weighted {
            self.change_weighted(term, |slots| slots.insert((slot, *impact)));
        }
    }

    pub(super) fn remove(&mut self, terms: &SkillTerms, slot: u32) {
        if let Some(families) = self.families.get_mut(slot as usize) {
            *families = UNUSED;
        }
        let total = self.families.len();
        if let Some(name) = &terms.name {
            self.change_pattern(name, |pattern| pattern.names.remove(slot));
        }
        for tag in &terms.tags {
            self.change_pattern(tag, |pattern| pattern.tags.remove(slot));
        }
        for word in &terms.name_words {
            self.change_word(word, |word| word.names.remove(slot));
        }
        for word in &terms.description_words {
            self.change_word(word, |word| word.descriptions.remove(slot, total));
        }
        self.skills -= 1;
        for SkillTerm { term, .. } in &terms.weighted {
            self.change_weighted(term, |slots| slots.remove(slot));
        }
    }

    pub(super) fn word(&self, word: &str) -> Option<&WordEntry> {
        self.words.get(word)
    }

    /// Returns the skills with a term, by slot.
    pub(super) fn weighted(&self, term: &str) -> &[WeightedSlot] {
        self.weighted.get(term).map(WeightedSlots::as_slice).unwrap_or_default()
    }

    /// Returns the number of skills in the lists.
    pub(super) fn skills(&self) -> usize {
        self.skills
    }

    /// Appends the numbers of the patterns in a text, each at least once.
    pub(super) fn find_patterns(&self, text: &str, links: &mut SuffixLinks, found: &mut Vec<PatternId>) {
        self.trie.find(text.as_bytes(), links, found);
    }

    pub(super) fn pattern(&self, number: PatternId) -> Option<&PatternEntry> {
        self.patterns.get(number as usize)
    }

    /// Returns an upper bound for the words of one description.
    pub(super) fn longest_description(&self) -> usize {
        self.longest_description
    }

    pub(super) fn families(&self) -> &[u8] {
        &self.families
    }

    fn change_word(&mut self, text: &str, change: impl FnOnce(&mut WordEntry)) {
        if !self.words.contains_key(text) {
            self.words.insert(text.into(), WordEntry::default());
        }
        let Some(word) = self.words.get_mut(text) else { return };
        change(word);
        if word.names.is_empty() && word.descriptions.is_empty() {
            self.words.remove(text);
        }
    }

    fn change_weighted(&mut self, term: &str, change: impl FnOnce(&mut WeightedSlots)) {
        if !self.weighted.contains_key(term) {
            self.weighted.insert(term.into(), WeightedSlots::default());
        }
        let Some(slots) = self.weighted.get_mut(term) else { return };
        change(slots);
        if slots.is_empty() {
            self.weighted.remove(term);
        }
    }

    fn change_pattern(&mut self, text: &str, change: impl FnOnce(&mut PatternEntry)) {
        let number = self.trie.get(text).unwrap_or_else(|| self.new_pattern(text));
        let Some(pattern) = self.patterns.get_mut(number as usize) else { return };
        change(pattern);
        if pattern.names.is_empty() && pattern.tags.is_empty() {
            self.trie.remove(text);
            self.free_patterns.push(number);
        }
    }

    fn new_pattern(&mut self, text: &str) -> PatternId {
        let number = self.free_patterns.pop().unwrap_or_else(|| {
            self.patterns.push(PatternEntry::default());
            u32::try_from(self.patterns.len() - 1).unwrap_or(u32::MAX)
        });
        self.trie.insert(text, number)
    }
}

#[cfg(test)]
impl InvertedIndex {
    /// True if no skill is left in any list.
    pub(super) fn is_bare(&self) -> bool {
        self.words.is_empty()
            && self.weighted.is_empty()
            && self.skills == 0
            && self.patterns.len() == self.free_patterns.len()
            && self.families.iter().all(|families| *families == UNUSED)
    }
}
