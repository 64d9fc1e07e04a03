//! An index of the triggers of many skills: its time grows with the message, not with the number of skills.
//!
//! Each word inside a keyword is a whole word of a message that has the keyword. The index finds keywords by one such word, and
//! keywords without words, such as Chinese ones, by their first characters.

use std::collections::HashMap;

use super::{LowerText, Match, Triggers, is_word};

/// The index. A skill is known by its place in the list.
#[derive(Clone, Debug, Default)]
pub struct TriggerIndex {
    skills: Vec<Triggers>,
    /// Keywords in lower case.
    keywords: Vec<Keyword>,
    /// Keywords by their longest word.
    by_word: HashMap<Box<str>, Vec<u32>>,
    /// Keywords without a word, by their first one or two characters.
    by_start: HashMap<(char, Option<char>), Vec<u32>>,
    /// Skills with slash names.
    slashes: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Keyword {
    text: Box<str>,
    /// Bytes before the word by which the index finds the keyword.
    offset: u32,
    skill: u32,
    /// Its place among the keywords of its skill.
    place: u32,
}

impl TriggerIndex {
    pub fn new(skills: Vec<Triggers>) -> Self {
        let mut index = Self::default();
        for (skill, triggers) in (0_u32..).zip(&skills) {
            for (place, keyword) in (0_u32..).zip(&triggers.keywords) {
                index.add(&keyword.to_lowercase(), (skill, place));
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
        if text.trim_start().starts_with('/') {
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
            let keyword = || triggers.keywords.get(place as usize).map(|keyword| Match::Keyword(keyword));
            Some((skill as usize, triggers.slash_match(text).or_else(keyword)?))
        };
        found.into_iter().filter_map(matched).collect()
    }

    fn add(&mut self, text: &str, (skill, place): (u32, u32)) {
        let Some(first) = text.chars().next() else { return };
        let number = u32::try_from(self.keywords.len()).unwrap_or(u32::MAX);
        let word = words(text).max_by_key(|(_, word)| word.len());
        let offset = word.map_or(0, |(at, _)| u32::try_from(at).unwrap_or(u32::MAX));
        match word {
            Some((_, word)) => self.by_word.entry(word.into()).or_default().push(number),
            None => self.by_start.entry((first, text.chars().nth(1))).or_default().push(number),
        }
        self.keywords.push(Keyword { text: text.into(), offset, skill, place });
    }

    /// The skills with a keyword in the message, and the keyword's place.
    fn found(&self, message: &LowerText) -> Vec<(u32, u32)> {
        let text = message.text.as_str();
        let mut found = Vec::new();
        let mut check = |number: u32, at: usize| {
            let Keyword { text: keyword, offset, skill, place } = &self.keywords[number as usize];
            let start = at.checked_sub(*offset as usize);
            if let Some(start) =
                start.filter(|start| text.get(*start..).is_some_and(|rest| rest.starts_with(&**keyword)))
                && message.is_token(start, keyword.len())
            {
                found.push((*skill, *place));
            }
        };
        for (at, word) in words(text) {
            for number in self.by_word.get(word).into_iter().flatten() {
                check(*number, at);
            }
        }
        if !self.by_start.is_empty() {
            let mut characters = text.char_indices().peekable();
            while let Some((at, first)) = characters.next() {
                let pair = characters.peek().map(|(_, second)| (first, Some(*second)));
                for key in [Some((first, None)), pair].into_iter().flatten() {
                    for number in self.by_start.get(&key).into_iter().flatten() {
                        check(*number, at);
                    }
                }
            }
        }
        found
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
        let lists: [&[&str]; 9] = [
            &["deploy", "release it"],
            &["c++", "c#"],
            &["@bot"],
            &["部署", "部"],
            &["код"],
            &[""],
            &["++", "-"],
            &["2024-01", "my_deploy"],
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
