//! Words of any script, for [`super::MatchMode::Words`].
//!
//! | text | words |
//! |---|---|
//! | `Use web-search!` | use, web, search |
//! | `Café, ÜBER` | cafe, uber: case and accents do not count |
//! | `网页搜索` | 网页, 页搜, 搜索: scripts without blanks give each two neighboring characters |
//! | `用docker部署` | 用, docker, 部署 |
//!
//! A text becomes one line: its words in order with a blank before, between and after. A phrase is then found as a
//! part of that line and cannot begin or end inside a word. Stop words stay in the line, so that `end of month` is a
//! phrase, but score nothing by themselves. There is no stemming: `image` does not find `images`.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use skillet_core::case_fold::fold;

use super::ascii_words::split_camel_case;

/// Words that nearly every text has: English, frequent words of tool descriptions, and the most frequent words of German,
/// French, Spanish, Portuguese and Italian. Sorted, for the binary search.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "about", "after", "again", "al", "all", "alle", "als", "also", "am", "an", "and", "any", "are", "as",
    "asks", "at", "au", "auf", "aus", "aux", "avec", "be", "because", "been", "before", "bei", "but", "by",
    "can", "che", "com", "como", "con", "could", "da", "dans", "das", "dass", "de", "dei", "del", "della",
    "dem", "den", "der", "des", "di", "did", "die", "do", "does", "done", "dos", "du", "each", "ein",
    "eine", "einen", "el", "em", "en", "er", "es", "est", "et", "etc", "for", "from", "fur", "get", "gets",
    "give", "given", "gives", "had", "has", "have", "he", "help", "helps", "her", "here", "him", "his",
    "how", "ich", "if", "il", "im", "in", "into", "is", "ist", "it", "its", "just", "kann", "la", "las",
    "le", "les", "lo", "los", "make", "many", "may", "me", "mit", "more", "most", "must", "my", "na",
    "need", "needs", "nicht", "no", "nor", "not", "now", "of", "on", "one", "only", "or", "other", "ou",
    "our", "out", "over", "par", "para", "pas", "per", "please", "por", "pour", "que", "qui", "se", "she",
    "should", "si", "sich", "sie", "skill", "so", "some", "sont", "sous", "such", "sul", "sur", "than",
    "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "too", "tool",
    "um", "una", "und", "une", "uno", "up", "us", "use", "used", "user", "users", "uses", "using", "via",
    "von", "want", "wants", "was", "we", "were", "what", "when", "where", "which", "while", "who", "why",
    "will", "with", "wurde", "you", "your", "zu", "zum", "zur",
];

/// Returns the words of the texts in one line: ` use web search `. Texts without words give a single blank.
pub(crate) fn line<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut line = String::from(" ");
    for text in texts {
        push_words(text, &mut line);
    }
    line
}

/// Returns a name or tag as a phrase in the form of [`line()`]. `None` if all its words are stop words, which would match
/// everywhere.
pub(crate) fn phrase(text: &str) -> Option<String> {
    let line = line([text]);
    scoring_words(&line).next()?;
    Some(line)
}

/// Returns a name with a blank before each capital that follows a small letter or a digit.
pub(crate) fn split_name(name: &str) -> String {
    split_camel_case(name)
}

/// Returns the words of a line that score by themselves, repeats included: no stop words, no single letters. A single
/// character of a script without blanks is a word.
pub(crate) fn scoring_words(line: &str) -> impl Iterator<Item = &str> {
    line.split(' ').filter(|word| is_scoring(word))
}

pub(crate) fn is_scoring(word: &str) -> bool {
    let mut letters = word.chars();
    let first = letters.next();
    let is_longer = letters.next().is_some();
    first.is_some_and(|first| is_longer || has_no_blanks(first)) && !is_stop_word(word)
}

/// True for a word of one letter of a script with blanks.
pub(crate) fn is_single_letter(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(|first| !has_no_blanks(first)) && letters.next().is_none()
}

/// Length of the longest of [`STOP_WORDS`], in bytes.
const LONGEST_STOP_WORD: usize = 7;

fn is_stop_word(word: &str) -> bool {
    word.len() <= LONGEST_STOP_WORD && STOP_WORDS.binary_search(&word).is_ok()
}

fn push_words(text: &str, line: &mut String) {
    if text.is_ascii() {
        push_ascii_words(text, line);
        return;
    }
    // Composed again, so that a syllable of Hangul is one character.
    let folded: String = fold(text).nfc().collect();
    for run in folded.split(|c: char| !is_letter(c)).filter(|run| !run.is_empty()) {
        push_run(run, line);
    }
}

/// Does the same for ASCII text, faster.
fn push_ascii_words(text: &str, line: &mut String) {
    line.reserve(text.len() + 1);
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            line.push(c.to_ascii_lowercase());
        } else if !line.ends_with(' ') {
            line.push(' ');
        }
    }
    if !line.ends_with(' ') {
        line.push(' ');
    }
}

/// Appends a run of letters: words of scripts with blanks unchanged, other words in pairs of neighboring characters.
fn push_run(run: &str, line: &mut String) {
    let mut last = None;
    let mut is_paired = false;
    for c in run.chars() {
        if has_no_blanks(c) {
            match last {
                Some(before) if has_no_blanks(before) => {
                    // The second and later pairs begin with the character before.
                    if is_paired {
                        line.push(before);
                    }
                    is_paired = true;
                    line.push(c);
                    line.push(' ');
                }
                Some(_) => {
                    line.push(' ');
                    line.push(c);
                }
                None => line.push(c),
            }
        } else {
            if last.is_some_and(has_no_blanks) {
                if !is_paired {
                    line.push(' ');
                }
                is_paired = false;
            }
            line.push(c);
        }
        last = Some(c);
    }
    if !line.ends_with(' ') {
        line.push(' ');
    }
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || (!c.is_ascii() && is_combining_mark(c))
}

/// True for characters of scripts that are written without blanks between words: Han, kana, Hangul (which joins particles
/// to words), Thai, Lao, Burmese, Khmer.
fn has_no_blanks(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF
        | 0x1000..=0x109F
        | 0x1780..=0x17FF
        | 0x3005..=0x3007
        | 0x3040..=0x30FF
        | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(line([text]), expected, "{text}");
    }

    #[test]
    fn words_of_scripts_with_blanks_are_runs_of_letters() {
        check("Use web-search!", " use web search ");
        check("Café, ÜBER cafe\u{301}", " cafe uber cafe ");
        check("Поиск в сети", " поиск в сети ");
        check("हिन्दी में", " हिन्दी में ");
        check("gpt4 don't", " gpt4 don t ");
        check("", " ");
        check("-- !", " ");
        assert_eq!(line(["a b", "c"]), " a b c ");
    }

    #[test]
    fn scripts_without_blanks_give_pairs_of_neighboring_characters() {
        check("网页搜索", " 网页 页搜 搜索 ");
        check("网页", " 网页 ");
        check("网", " 网 ");
        check("用docker部署", " 用 docker 部署 ");
        check("搜索docker用", " 搜索 docker 用 ");
        check("カタカナ ｶﾅ", " カタ タカ カナ ｶﾅ ");
        check("한국어 검색", " 한국 국어 검색 ");
    }

    #[test]
    fn a_phrase_matches_between_word_borders_only() {
        let is_in = |tag: &str, text: &str| phrase(tag).is_some_and(|phrase| line([text]).contains(&phrase));
        assert!(is_in("git", "use GIT, please"));
        assert!(!is_in("git", "a legitimate question"));
        assert!(is_in("end of month", "the report at end-of-month"));
        assert!(is_in("网页", "请用网页搜索"));
        assert!(is_in("页搜索", "请用网页搜索"));
        assert!(!is_in("网搜", "请用网页搜索"));
    }

    #[test]
    fn stop_words_alone_are_no_phrase_and_score_nothing() {
        assert_eq!(phrase("how to"), None);
        assert_eq!(phrase("..."), None);
        assert_eq!(phrase("a"), None);
        let words = |text: &str| scoring_words(&line([text])).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words("Use this tool to deploy a 图 with K"), ["deploy", "图"]);
    }

    #[test]
    fn stop_words_are_sorted_and_folded() {
        assert!(STOP_WORDS.windows(2).all(|pair| pair[0] < pair[1]), "{STOP_WORDS:?}");
        assert!(STOP_WORDS.iter().all(|word| fold(word) == **word && word.len() <= LONGEST_STOP_WORD));
    }
}
