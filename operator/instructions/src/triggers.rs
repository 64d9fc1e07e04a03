//! Triggers: the words and paths for which a skill's instructions are added to a conversation.
//!
//! A keyword matches literally, in any case, as a whole token: no letter or digit stands directly before or after it. Scripts
//! that write no spaces between words, such as Chinese, have no borders; their keywords match inside a sentence.

mod globs;
mod index;

pub use self::{globs::matches as glob_matches, index::TriggerIndex};

/// The triggers of one skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Triggers {
    /// Keywords, as their author wrote them.
    pub keywords: Vec<String>,
    /// Keywords that keep the skill out of a message that has one of them.
    pub exclude: Vec<String>,
    /// Names for the start of a message, such as `review` for `/review`.
    pub slash: Vec<String>,
    /// Globs over paths that a tool call touches.
    pub paths: Vec<String>,
}

/// The trigger that a message matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match<'a> {
    Keyword(&'a str),
    Slash {
        name: &'a str,
        /// The text behind the name.
        arguments: String,
    },
}

impl Triggers {
    /// Returns the slash name at the start of the text, else the first keyword that it has; `None` if a keyword excludes it.
    pub fn matches(&self, text: &str) -> Option<Match<'_>> {
        let message = LowerText::new(text);
        if self.is_excluded(&message) {
            return None;
        }
        self.slash_match(text).or_else(|| self.keyword_match(&message))
    }

    fn is_excluded(&self, message: &LowerText) -> bool {
        self.exclude.iter().any(|keyword| message.has(&keyword.to_lowercase()))
    }

    /// Returns the first glob that matches a path relative to the workspace.
    pub fn matches_path(&self, path: &str) -> Option<&str> {
        self.paths.iter().find(|pattern| globs::matches(pattern, path)).map(String::as_str)
    }

    fn slash_match(&self, text: &str) -> Option<Match<'_>> {
        let text = text.trim().strip_prefix('/')?;
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (written, arguments) = text.split_at(end);
        let is_written =
            |name: &&String| name.trim_start_matches('/').to_lowercase() == written.to_lowercase();
        let name = self.slash.iter().find(is_written)?;
        Some(Match::Slash { name, arguments: arguments.trim().to_owned() })
    }

    fn keyword_match(&self, message: &LowerText) -> Option<Match<'_>> {
        self.keywords.iter().find(|keyword| message.has(&keyword.to_lowercase())).map(|k| Match::Keyword(k))
    }
}

/// A message, prepared for the search.
struct LowerText {
    /// Trimmed, in lower case.
    text: String,
}

impl LowerText {
    fn new(text: &str) -> Self {
        Self { text: text.trim().to_lowercase() }
    }

    /// True if a keyword in lower case stands in the text as a whole token.
    fn has(&self, keyword: &str) -> bool {
        !keyword.is_empty()
            && self.text.match_indices(keyword).any(|(at, _)| self.is_token(at, keyword.len()))
    }

    fn is_token(&self, start: usize, length: usize) -> bool {
        let before = self.text[..start].chars().next_back();
        let after = self.text[start + length..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    }
}

/// True for letters and digits of scripts that write spaces between words.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || (!c.is_ascii() && c.is_alphanumeric() && !is_unspaced(c))
}

/// True for scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han and their extensions.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x2E80..=0x31FF | 0x3400..=0x9FFF
        | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests;
