//! An index of the triggers of many skills: its time grows with the message, not with the number of skills.
//!
//! Each word inside a keyword is a whole word of a message that has the keyword. The index finds keywords by their first two words
//! with what stands between them, those of one word by it, and those without words, such as Chinese ones, by their first
//! characters. Most keywords that have a word of the message are so never looked at.

use std::collections::HashMap;

use super::{LowerText, Match, Triggers, is_word};

/// The index. A skill is known by its place in the list.
#[derive(Clone, Debug, Default)]
pub struct TriggerIndex {
    skills: Vec<Triggers>,
    /// Keywords that have more than the text by which they are found, in lower case.
    keywords: Vec<Keyword>,
    /// Keywords by their first word, or their first two.
    by_words: HashMap<Box<str>, Vec<Posting>>,
    /// Keywords without a word, by their first one or two characters.
    by_start: HashMap<(char, Option<char>), Vec<Posting>>,
    /// Skills with slash names.
    slashes: Vec<u32>,
}

/// A keyword of a skill in the lists of the index.
#[derive(Clone, Copy, Debug)]
struct Posting {
    skill: u32,
    /// Its place among the keywords of its skill.
    place: u32,
    /// Its number among the index's keywords; `None` if the text by which it is found is all of it.
    keyword: Option<u32>,
}

#[derive(Clone, Debug)]
struct Keyword {
    text: Box<str>,
    /// Bytes before the text by which the index finds the keyword.
    offset: usize,
}

impl TriggerIndex {
    pub fn new(skills: Vec<Triggers>) -> Self {
        let mut index = Self::default();
        for (skill, triggers) in (0_u32..).zip(&skills) {
            for (place, keyword) in (0_u32..).zip(&triggers.keywords) {
                index.add(&keyword.to_lowercase(), Posting { skill, place, keyword: None });
            }
            if !triggers.slash.is_empty() {
                index.slashes.push(skill);
            }
        }
        index.skills = skills;
        index
    }

    /// Returns the skills that the text triggers, in their order, each with the trigger that [`Triggers::matches`] returns.
    pub fn matches(&self, text: &str) -> Vec<(usize, Match<'_>)> {
        let message = LowerText::new(text);
        let mut found = self.found(&message);
        let has_slash = text.trim_start().starts_with('/');
        if has_slash {
            let is_written = |skill: &&u32| self.skills[**skill as usize].slash_match(text).is_some();
            found.extend(self.slashes.iter().filter(is_written).map(|skill| (*skill, u32::MAX)));
        }
        // The first keyword of each skill is left.
        found.sort_unstable();
        found.dedup_by_key(|(skill, _)| *skill);
        let matched = |(skill, place): (u32, u32)| {
            let triggers = &self.skills[skill as usize];
            if triggers.is_excluded(&message) {
                return None;
            }
            let slash = if has_slash { triggers.slash_match(text) } else { None };
            let keyword = || triggers.keywords.get(place as usize).map(|keyword| Match::Keyword(keyword));
            Some((skill as usize, slash.or_else(keyword)?))
        };
        found.into_iter().filter_map(matched).collect()
    }

    fn add(&mut self, text: &str, posting: Posting) {
        let Some(first) = text.chars().next() else { return };
        let mut words = words(text);
        let Some((start, word)) = words.next() else {
            let posting = self.with_keyword(text, 0, posting);
            self.by_start.entry((first, text.chars().nth(1))).or_default().push(posting);
            return;
        };
        let end = words.next().map_or(start + word.len(), |(at, second)| at + second.len());
        let key = &text[start..end];
        let posting = if key == text { posting } else { self.with_keyword(text, start, posting) };
        self.by_words.entry(key.into()).or_default().push(posting);
    }

    fn with_keyword(&mut self, text: &str, offset: usize, posting: Posting) -> Posting {
        let number = u32::try_from(self.keywords.len()).unwrap_or(u32::MAX);
        self.keywords.push(Keyword { text: text.into(), offset });
        Posting { keyword: Some(number), ..posting }
    }

    /// The skills with a keyword in the message, and the keyword's place.
    fn found(&self, message: &LowerText) -> Vec<(u32, u32)> {
        let text = message.text.as_str();
        let mut found = Vec::new();
        let mut check = |postings: Option<&Vec<Posting>>, at: usize| {
            for Posting { skill, place, keyword } in postings.into_iter().flatten() {
                if keyword.is_none_or(|number| self.keywords[number as usize].stands_in(message, at)) {
                    found.push((*skill, *place));
                }
            }
        };
        let mut before = None;
        for (at, word) in words(text) {
            check(self.by_words.get(word), at);
            if let Some(first) = before {
                check(self.by_words.get(&text[first..at + word.len()]), first);
            }
            before = Some(at);
        }
        if !self.by_start.is_empty() {
            let mut characters = text.char_indices().peekable();
            while let Some((at, first)) = characters.next() {
                check(self.by_start.get(&(first, None)), at);
                if let Some((_, second)) = characters.peek() {
                    check(self.by_start.get(&(first, Some(*second))), at);
                }
            }
        }
        found
    }
}

impl Keyword {
    /// True if the keyword stands in the message where the text by which it is found begins there.
    fn stands_in(&self, message: &LowerText, at: usize) -> bool {
        at.checked_sub(self.offset).is_some_and(|start| {
            let rest = message.text.get(start..);
            rest.is_some_and(|rest| rest.starts_with(&*self.text)) && message.is_token(start, self.text.len())
        })
    }
}

/// The words of a text, with their places.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(is_word)?;
        let end = text[start..].find(|c| !is_word(c)).map_or(text.len(), |length| start + length);
        rest = end;
        Some((start, &text[start..end]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(keywords: &[&str]) -> Triggers {
        let keywords = keywords.iter().map(|keyword| (*keyword).to_owned()).collect();
        Triggers { keywords, ..Triggers::default() }
    }

    #[test]
    fn the_index_finds_the_same_as_each_skill_alone() {
        let lists: [&[&str]; 10] = [
            &["deploy", "release it"],
            &["c++", "c#"],
            &["@bot"],
            &["部署", "部"],
            &["код"],
            &[""],
            &["++", "-"],
            &["2024-01", "my_deploy"],
            &["(a b)", "a  b", "a b c", "b c."],
            &[" deploy "],
        ];
        let skills: Vec<Triggers> = lists.iter().map(|keywords| skill(keywords)).collect();
        let index = TriggerIndex::new(skills.clone());
        for text in [
            "please Deploy",
            "deployment",
            "use c++ now",
            "c#net",
            "hey @bot",
            "请部署服务",
            "кодировка",
            "мой код",
            "a ++ b",
            "my_deploy 2024-01",
            "x  deploy  y",
            "",
            "release it",
            "it released it",
            "(a b) x",
            "a  b. b c.",
            "a b c",
            "aa b c",
        ] {
            let alone: Vec<_> =
                skills.iter().enumerate().filter_map(|(n, skill)| Some((n, skill.matches(text)?))).collect();
            assert_eq!(index.matches(text), alone, "{text}");
        }
    }

    #[test]
    fn slash_names_and_exclusions_count() {
        let slash = Triggers { slash: vec!["review".into()], ..skill(&["look"]) };
        let quiet = Triggers { exclude: vec!["later".into()], ..skill(&["look"]) };
        let index = TriggerIndex::new(vec![slash, quiet]);
        let names = |text| index.matches(text).into_iter().map(|(skill, _)| skill).collect::<Vec<_>>();
        assert_eq!(names("/review all"), [0]);
        assert_eq!(names("look at it later"), [0]);
        assert_eq!(names("look"), [0, 1]);
    }
}
