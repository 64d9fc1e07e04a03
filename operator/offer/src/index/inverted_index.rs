//! From words, names and tags to the skills that have them.

use std::collections::HashMap;

use super::{
    postings::{Postings, insert_sorted, remove_sorted},
    slot_set::SlotSet,
    suffix_links::SuffixLinks,
    trie::{PatternId, Trie},
};
use crate::{MatchMode, background::BackgroundReason, terms::SkillTerms};

/// The lists of one index. A slot is in them only while its skill is offered when it fits.
#[derive(Clone, Debug)]
pub(super) struct InvertedIndex {
    matching: MatchMode,
    words: HashMap<Box<str>, Word>,
    trie: Trie,
    /// By number of the pattern.
    patterns: Vec<Pattern>,
    free_patterns: Vec<PatternId>,
    /// For each word of the known reasons for background, the skills with a tag related to it.
    background: Vec<(String, Vec<u32>)>,
    /// For each slot the families of providers that its tags name; [`UNUSED`] where it is in no list.
    families: Vec<u8>,
    /// Most words that a description had so far.
    longest_description: usize,
}

/// No number of families.
pub(super) const UNUSED: u8 = u8::MAX;

/// The skills with a word in the name or in the description.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pub(super) names: SlotSet,
    pub(super) descriptions: Postings,
}

/// The skills with a name, and those with a tag; a slot is as often in `tags` as the skill has the tag.
#[derive(Clone, Debug, Default)]
pub(super) struct Pattern {
    pub(super) names: SlotSet,
    pub(super) tags: SlotSet,
}

impl InvertedIndex {
    pub(super) fn new(matching: MatchMode) -> Self {
        let mut background: Vec<(String, Vec<u32>)> = Vec::new();
        for word in BackgroundReason::ALL.iter().flat_map(|reason| matching.plain_words(reason.word())) {
            if background.iter().all(|(known, _)| *known != word) {
                background.push((word, Vec::new()));
            }
        }
        Self {
            matching,
            words: HashMap::new(),
            trie: Trie::new(),
            patterns: Vec::new(),
            free_patterns: Vec::new(),
            background,
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
        for (word, slots) in &mut self.background {
            if terms.relates(self.matching, word) {
                insert_sorted(slots, slot);
            }
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
        for (_, slots) in &mut self.background {
            remove_sorted(slots, slot);
        }
    }

    pub(super) fn word(&self, word: &str) -> Option<&Word> {
        self.words.get(word)
    }

    /// Appends the numbers of the patterns in a text, each at least once.
    pub(super) fn find_patterns(&self, text: &str, marks: &mut SuffixLinks, found: &mut Vec<PatternId>) {
        self.trie.find(text.as_bytes(), marks, found);
    }

    pub(super) fn pattern(&self, number: PatternId) -> Option<&Pattern> {
        self.patterns.get(number as usize)
    }

    /// The skills with a tag related to a word of a known reason for background; None for other words.
    pub(super) fn related(&self, word: &str) -> Option<&[u32]> {
        self.background.iter().find(|(known, _)| known == word).map(|(_, slots)| slots.as_slice())
    }

    /// No description has more words.
    pub(super) fn longest_description(&self) -> usize {
        self.longest_description
    }

    pub(super) fn families(&self) -> &[u8] {
        &self.families
    }

    fn change_word(&mut self, text: &str, change: impl FnOnce(&mut Word)) {
        if !self.words.contains_key(text) {
            self.words.insert(text.into(), Word::default());
        }
        let Some(word) = self.words.get_mut(text) else { return };
        change(word);
        if word.names.is_empty() && word.descriptions.is_empty() {
            self.words.remove(text);
        }
    }

    fn change_pattern(&mut self, text: &str, change: impl FnOnce(&mut Pattern)) {
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
            self.patterns.push(Pattern::default());
            u32::try_from(self.patterns.len() - 1).unwrap_or(u32::MAX)
        });
        self.trie.insert(text, number)
    }
}

#[cfg(test)]
impl InvertedIndex {
    /// Whether nothing is left of any skill.
    pub(super) fn is_bare(&self) -> bool {
        self.words.is_empty()
            && self.patterns.len() == self.free_patterns.len()
            && self.background.iter().all(|(_, slots)| slots.is_empty())
            && self.families.iter().all(|families| *families == UNUSED)
    }
}
