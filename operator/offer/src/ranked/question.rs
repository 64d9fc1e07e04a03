//! The questions of a request: one for each turn of the user, with the words of the turn and of the turn before.

use std::{collections::HashMap, sync::Arc};

use super::analysis::{Terms, analyze, line, names, whole_name};
use crate::{RequestFacts, extra_points::ExtraPoints};

/// Most bytes of a turn that are read at its beginning, and at its end. A long paste has its question at one of them.
const READ_BYTES: usize = 2048;

/// Most turns of a conversation that are read. Later ones change no offer.
const MAX_TURNS: usize = 256;

/// Most turns that are compared with skills by their vectors. A turn is compared or not whatever follows.
const MAX_VECTOR_TURNS: usize = 16;

/// Most bytes of a turn that get into its vector, at its beginning, and at its end.
const VECTOR_BYTES: usize = 512;

/// Weight of a word that a turn has more than once.
const REPEATED: f64 = 1.2;

/// Weight of a word that only the turn before has.
const EARLIER: f64 = 0.3;

/// The words of one turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    /// Number of the turn, from 1.
    pub(crate) turn: usize,
    /// In the order of the text; those of the turn before are last.
    pub(crate) words: Vec<QuestionWord>,
    /// Points of skills beside those of their texts.
    pub(crate) extra: ExtraPoints,
    /// The text that a vector stands for. Later turns have none: each turn of a long conversation would compare all skills.
    pub(crate) text: Option<Box<str>>,
}

/// A word of a question.
#[derive(Clone, Debug)]
pub(crate) struct QuestionWord {
    /// The word as the text has it, without case and accents.
    pub(crate) word: Box<str>,
    pub(crate) terms: Terms,
    pub(crate) weight: f64,
}

/// Returns the questions of a request, one for each turn of the user that has words. A request without such turns is one
/// question with all its texts.
pub(crate) fn questions(facts: &RequestFacts<'_>) -> Vec<Question> {
    let whole = [facts.texts.to_vec()];
    let turns = if facts.user_turns.is_empty() { &whole[..] } else { facts.user_turns };
    let mut questions: Vec<Question> = Vec::new();
    for (turn, texts) in (1..).zip(turns.iter().take(MAX_TURNS)) {
        let mut words = words_of(texts);
        if words.is_empty() {
            continue;
        }
        if let Some(before) = questions.last() {
            add_earlier(&before.words, &mut words);
        }
        let text = (questions.len() < MAX_VECTOR_TURNS).then(|| vector_text(texts));
        questions.push(Question { turn, words, extra: ExtraPoints::default(), text });
    }
    questions
}

fn words_of(texts: &[&str]) -> Vec<QuestionWord> {
    let mut words: Vec<QuestionWord> = Vec::new();
    let mut places: HashMap<Arc<str>, usize> = HashMap::new();
    let text = texts.join("\n");
    let (head, tail) = ends(&text, READ_BYTES);
    analyze(&line(&format!("{head}\n{tail}")), |word, terms, count| {
        let weight = if count > 1 { REPEATED } else { 1.0 };
        if let Some(known) = places.get(&terms.main).and_then(|at| words.get_mut(*at)) {
            known.weight = REPEATED;
        } else {
            places.insert(terms.main.clone(), words.len());
            words.push(QuestionWord { word: word.into(), terms: terms.clone(), weight });
        }
    });
    for name in names(head).chain(names(tail)) {
        let Some(main) = whole_name(name).filter(|main| !places.contains_key(main)) else { continue };
        places.insert(main.clone(), words.len());
        let terms = Terms { main, english: None, is_general: false, is_english: false };
        words.push(QuestionWord { word: name.into(), terms, weight: 1.0 });
    }
    words
}

fn vector_text(texts: &[&str]) -> Box<str> {
    let text = texts.join("\n");
    match ends(&text, VECTOR_BYTES) {
        (head, "") => head.into(),
        (head, tail) => format!("{head}\n{tail}").into(),
    }
}

/// Appends the words of the turn before that this turn does not have. Words that were earlier then are left out.
fn add_earlier(before: &[QuestionWord], words: &mut Vec<QuestionWord>) {
    let own = words.len();
    for earlier in before.iter().filter(|word| word.weight >= 1.0) {
        if words.iter().take(own).all(|word| word.terms.main != earlier.terms.main) {
            words.push(QuestionWord { weight: EARLIER, ..earlier.clone() });
        }
    }
}

/// Returns beginning and end of a long text; the whole text and nothing if it is short.
fn ends(text: &str, bytes: usize) -> (&str, &str) {
    if text.len() <= 2 * bytes {
        return (text, "");
    }
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at += 1;
        }
        at
    };
    let (head, tail) = (boundary(bytes), boundary(text.len() - bytes));
    (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(turns: &[&str]) -> Vec<String> {
        let user_turns: Vec<Vec<&str>> = turns.iter().map(|turn| vec![*turn]).collect();
        let facts = RequestFacts { user_turns: &user_turns, texts: &["not read"], ..RequestFacts::default() };
        let word = |word: &QuestionWord| format!("{}*{}", word.terms.main, word.weight);
        let question = |question: &Question| {
            let words: Vec<String> = question.words.iter().map(word).collect();
            format!("{} {}", question.turn, words.join(" "))
        };
        questions(&facts).iter().map(question).collect()
    }

    #[test]
    fn each_turn_with_words_is_a_question_with_the_words_before_it() {
        assert_eq!(
            read(&["Translate the manual", "", "manuals, manual of the printer", "thanks", "resize"]),
            [
                "1 translat*1 manual*1",
                "3 manual*1.2 printer*1 translat*0.3",
                "5 resiz*1 manual*0.3 printer*0.3"
            ]
        );
    }

    #[test]
    fn the_first_turns_have_a_text_for_their_vector() {
        let long = "ü".repeat(9_000);
        let user_turns: Vec<Vec<&str>> = std::iter::repeat_n(vec!["resize", &long], 20).collect();
        let found = questions(&RequestFacts { user_turns: &user_turns, ..RequestFacts::default() });
        let texts: Vec<&str> = found.iter().filter_map(|question| question.text.as_deref()).collect();
        assert_eq!((found.len(), texts.len()), (20, MAX_VECTOR_TURNS));
        assert!(texts[0].starts_with("resize\nü") && texts[0].len() < 2 * VECTOR_BYTES + 4, "{texts:?}");
    }

    #[test]
    fn a_request_without_turns_is_one_question() {
        let facts = RequestFacts { texts: &["resize", "images"], ..RequestFacts::default() };
        let found = questions(&facts);
        assert_eq!((found.len(), found[0].words.len()), (1, 2));
        assert!(questions(&RequestFacts::default()).is_empty());
    }

    #[test]
    fn a_long_turn_is_read_at_both_ends() {
        let long = format!("invoice {} resize", "ünderground water ".repeat(9_000));
        let found = read(&[&long]);
        assert!(
            found[0].starts_with("1 invoic*1 underground*1.2 water*1.2") && found[0].ends_with("resiz*1"),
            "{found:?}"
        );
        assert!(found[0].len() < 200, "{found:?}");
    }
}
