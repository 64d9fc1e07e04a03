//! A request, prepared once for all namespaces that are searched.

use std::{collections::HashSet, ops::Range};

use super::{
    MatchMode, ProviderFamily, RequestFacts,
    ranked::{Question, questions},
};

/// Most distinct words of a text that are searched. No language has so many; a text of that many distinct words would take
/// ten times its bytes.
const MAX_WORDS: usize = 1 << 18;

/// The text of a request and its words, as one match mode reads them.
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) matching: MatchMode,
    pub(crate) provider: ProviderFamily,
    pub(crate) text: String,
    /// First position of each distinct word in the text.
    words: Vec<Range<usize>>,
    /// The turns that are searched, in order; one without words for modes other than [`MatchMode::Ranked`].
    pub(crate) questions: Vec<Question>,
}

impl Query {
    pub fn new(matching: MatchMode, facts: &RequestFacts<'_>) -> Self {
        let text = matching.request_text(facts);
        let start = text.as_ptr().addr();
        let mut seen = HashSet::with_capacity(MAX_WORDS.min(text.len() / 8));
        let words = matching
            .words(&text)
            .filter(|word| seen.insert(*word) && matching.is_scoring(word))
            .take(MAX_WORDS)
            .map(|word| {
                let from = word.as_ptr().addr() - start;
                from..from + word.len()
            })
            .collect();
        let questions = match matching {
            MatchMode::Substring | MatchMode::Words => vec![Question::default()],
            MatchMode::Ranked => questions(facts),
        };
        Self { matching, provider: facts.provider, text, words, questions }
    }

    /// Returns the texts whose vectors a search asks the model for.
    pub fn vector_texts(&self) -> impl Iterator<Item = &str> {
        self.questions.iter().filter_map(|question| question.text.as_deref())
    }

    /// Returns the distinct words of the text, in the order of their first occurrence.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter_map(|range| self.text.get(range.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_holds_each_word_once() {
        let facts = RequestFacts {
            texts: &["run it", "web RUN web"],
            format: "low_max_tokens_max",
            ..RequestFacts::default()
        };
        let query = Query::new(MatchMode::Substring, &facts);
        assert_eq!(query.text, "[] low_max_tokens_max run it web run web");
        assert_eq!(query.words().collect::<Vec<_>>(), ["low", "max", "tokens", "run", "web"]);
        let query = Query::new(MatchMode::Words, &facts);
        assert_eq!(query.words().collect::<Vec<_>>(), ["run", "web"]);
    }

    #[test]
    fn only_ranked_asks_for_vectors() {
        let turns = [vec!["run it"], vec!["!"], vec!["web"]];
        let facts = RequestFacts { user_turns: &turns, ..RequestFacts::default() };
        let texts =
            |matching| Query::new(matching, &facts).vector_texts().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(texts(MatchMode::Ranked), ["run it", "web"]);
        assert!(texts(MatchMode::Words).is_empty());
    }

    #[test]
    fn a_text_of_distinct_words_is_read_up_to_the_word_limit() {
        let text: Vec<String> = (0..MAX_WORDS + 10).map(|number| format!("w{number}")).collect();
        let text = text.join(" ");
        let facts = RequestFacts { texts: &[&text], ..RequestFacts::default() };
        for matching in [MatchMode::Substring, MatchMode::Words] {
            let query = Query::new(matching, &facts);
            assert_eq!(query.words().count(), MAX_WORDS);
            assert!(query.text.contains(text.as_str()), "names and tags are searched in the whole text");
        }
    }
}
