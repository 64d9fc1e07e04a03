//! Requests for several candidates at once. Only one candidate can be continued after a tool call; the others would
//! reach the client with unanswered calls.

use serde_json::Value;

use crate::DialectName;

/// Locations of Gemini's number. Google's servers read both cases.
const GEMINI: [&str; 4] = [
    "/generationConfig/candidateCount",
    "/generationConfig/candidate_count",
    "/generation_config/candidateCount",
    "/generation_config/candidate_count",
];

impl DialectName {
    /// Returns true if the request wants more than one candidate.
    pub fn wants_multiple_candidates(self, request: &Value) -> bool {
        match self {
            Self::OpenAiChat => is_several(&request["n"]),
            Self::Gemini => GEMINI.iter().filter_map(|place| request.pointer(place)).any(is_several),
            // These forms have no such number.
            Self::OpenAiResponses | Self::Anthropic => false,
        }
    }
}

/// Returns true for a number above one, also as text, which Gemini's servers accept.
fn is_several(count: &Value) -> bool {
    let number = count.as_f64().or_else(|| count.as_str()?.trim().parse().ok());
    number.is_some_and(|number| number > 1.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(name: DialectName, request: &Value, expected: bool) {
        assert_eq!(name.wants_multiple_candidates(request), expected, "{request}");
    }

    #[test]
    fn a_number_above_one_wants_several_candidates() {
        for (count, expected) in [
            (json!(2), true),
            (json!("2"), true),
            (json!(1), false),
            (json!("one"), false),
            (json!(null), false),
        ] {
            check(DialectName::OpenAiChat, &json!({ "n": count }), expected);
            for (outer, inner) in
                [("generationConfig", "candidateCount"), ("generation_config", "candidate_count")]
            {
                check(DialectName::Gemini, &json!({ outer: { inner: count } }), expected);
            }
        }
        check(DialectName::Gemini, &json!({ "generationConfig": 2 }), false);
        check(DialectName::OpenAiChat, &json!([]), false);
    }

    #[test]
    fn a_form_without_the_number_asks_for_one() {
        for name in [DialectName::Anthropic, DialectName::OpenAiResponses] {
            check(name, &json!({ "n": 2, "generationConfig": { "candidateCount": 2 } }), false);
        }
    }
}
