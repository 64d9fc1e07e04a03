//! A request, read once for all namespaces that are searched.

use std::{collections::HashSet, ops::Range};

use super::{MatchMode, ProviderFamily, RequestFacts};

/// Most different words of a text that are looked for. No language has so many; a text of them would take ten times its
/// bytes.
const MOST_WORDS: usize = 1 << 18;

/// The text of a request and its words, as one matching has them.
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) matching: MatchMode,
    pub(crate) provider: ProviderFamily,
    pub(crate) text: String,
    /// Where each different word stands first in the text.
    words: Vec<Range<usize>>,
    /// The different words of the reason for background.
    pub(crate) background: Vec<String>,
}

impl Query {
    pub fn new(matching: MatchMode, facts: &RequestFacts<'_>) -> Self {
        let text = matching.text(facts);
        let start = text.as_ptr().addr();
        let mut seen = HashSet::with_capacity(MOST_WORDS.min(text.len() / 8));
        let words = matching
            .words(&text)
            .filter(|word| seen.insert(*word) && matching.is_scoring(word))
            .take(MOST_WORDS)
            .map(|word| {
                let from = word.as_ptr().addr() - start;
                from..from + word.len()
            })
            .collect();
        let background = facts.background.map(|reason| matching.plain_words(reason)).unwrap_or_default();
        Self { matching, provider: facts.provider, text, words, background }
    }

    /// The text as it is searched.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The different words of the text, in the order of their first occurrence.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter_map(|range| self.text.get(range.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_kept_once() {
        let facts = RequestFacts {
            texts: &["run it", "web RUN web"],
            background: Some("low_max_tokens_max"),
            ..RequestFacts::default()
        };
        let query = Query::new(MatchMode::Substring, &facts);
        assert_eq!(query.text(), "[] low_max_tokens_max run it web run web");
        assert_eq!(query.words().collect::<Vec<_>>(), ["low", "max", "tokens", "run", "web"]);
        assert_eq!(query.background, ["low", "max", "tokens"]);
        let query = Query::new(MatchMode::Words, &facts);
        assert_eq!(query.words().collect::<Vec<_>>(), ["run", "web"]);
    }

    #[test]
    fn a_text_of_nothing_but_different_words_is_read_to_a_limit() {
        let text: Vec<String> = (0..MOST_WORDS + 10).map(|number| format!("w{number}")).collect();
        let text = text.join(" ");
        let facts = RequestFacts { texts: &[&text], ..RequestFacts::default() };
        for matching in [MatchMode::Substring, MatchMode::Words] {
            let query = Query::new(matching, &facts);
            assert_eq!(query.words().count(), MOST_WORDS);
            assert!(query.text().contains(text.as_str()), "names and tags are looked for in all of it");
        }
    }
}
