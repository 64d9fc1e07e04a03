//! `keyword_match`, `path_glob`, `path_rule_first_match`: words and paths that fire a skill.

use serde_json::json;
use skillet_instructions::triggers::{Match, Triggers, glob_matches};

use super::fields::texts;
use crate::{
    case::Case,
    judge::{Answer, Sense},
};

pub(super) fn keyword_match(case: &Case) -> Result<Answer, String> {
    let keywords = texts(&case.input["keywords"]);
    let triggers = match case.text("trigger_type") {
        "path" => Triggers { paths: keywords, ..Triggers::default() },
        _ => Triggers { keywords, ..Triggers::default() },
    };
    let message = case.text("message");
    let matched = match triggers.matches(message) {
        Some(Match::Keyword(keyword)) => Some(keyword),
        Some(Match::Slash { .. }) | None => None,
    };
    let answer = Answer::exact(case, json!({ "matched": matched }));
    Ok(with_borders(answer, message))
}

/// Letters of every script are borders to the reference unless they are a-z; to the product they are parts of words.
pub(super) fn with_borders(answer: Answer, message: &str) -> Answer {
    if answer.is_same || message.is_ascii() {
        return answer;
    }
    Answer {
        meets_want: Sense::Met,
        difference: Some("a keyword does not fire inside a word of any script".to_owned()),
        ..answer
    }
}

pub(super) fn path_glob(case: &Case) -> Result<Answer, String> {
    let is_match = glob_matches(case.text("pattern"), case.text("path"));
    Ok(Answer::exact(case, json!({ "match": is_match })))
}

pub(super) fn path_rule_first_match(case: &Case) -> Result<Answer, String> {
    let triggers = Triggers { paths: texts(&case.input["paths"]), ..Triggers::default() };
    let path = case.text("touched_path");
    Ok(Answer::exact(case, json!({ "matched_pattern": triggers.matches_path(path) })))
}
