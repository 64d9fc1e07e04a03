//! Byte budgets for the results that the model gets: for one result, and for a conversation.

use skillet_core::text::truncate;

/// The name in the mark of a truncated result.
pub const TRUNCATION_MARK: &str = "SKILLET";
/// Default bytes of one result.
pub const DEFAULT_RESULT_BYTES: usize = 32 * 1024;
/// Default bytes of all results of a conversation.
pub const DEFAULT_TOTAL_BYTES: usize = 64 * 1024;

/// A result as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundedResult {
    /// JSON, or the beginning of it and the mark.
    pub text: String,
    pub is_truncated: bool,
    /// Size of the whole JSON text.
    pub original_bytes: usize,
}

/// `json` in at most `limit` bytes. What is cut ends between two characters and in `[TRUNCATED n BYTES BY mark]`, which
/// counts against the limit and is itself cut where nothing more fits.
pub fn truncate_result(json: &str, limit: usize, mark: &str) -> BoundedResult {
    truncate_prefix(json, json.len(), limit, mark)
}

/// Truncates a text of which only a prefix is kept.
fn truncate_prefix(beginning: &str, original_bytes: usize, limit: usize, mark: &str) -> BoundedResult {
    if original_bytes <= limit && beginning.len() == original_bytes {
        return BoundedResult { text: beginning.to_owned(), is_truncated: false, original_bytes };
    }
    let mark_of = |dropped: usize| format!("[TRUNCATED {dropped} BYTES BY {mark}]");
    // No more is dropped than there is, so that no mark is longer than this one.
    let longest = mark_of(original_bytes);
    let text = match limit.checked_sub(longest.len()) {
        None | Some(0) => truncate(&longest, limit).0.to_owned(),
        Some(room) => {
            let kept = truncate(beginning, room).0;
            format!("{kept}{}", mark_of(original_bytes - kept.len()))
        }
    };
    BoundedResult { text, is_truncated: true, original_bytes }
}

/// A result that waits for its turn: only the prefix that the model may ever get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultPrefix {
    text: String,
    original_bytes: usize,
}

impl ResultPrefix {
    /// `most` are the bytes that one result may take at all.
    pub fn new(json: String, most: usize) -> Self {
        let original_bytes = json.len();
        if original_bytes <= most {
            return Self { text: json, original_bytes };
        }
        Self { text: truncate(&json, most).0.to_owned(), original_bytes }
    }
}

/// The bytes left for the results of one conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultBudget {
    per_result: usize,
    left: usize,
}

impl Default for ResultBudget {
    fn default() -> Self {
        Self::new(DEFAULT_RESULT_BYTES, DEFAULT_TOTAL_BYTES)
    }
}

impl ResultBudget {
    /// Both in bytes.
    pub fn new(per_result: usize, total: usize) -> Self {
        Self { per_result, left: total }
    }

    /// The next result, as much of it as the budget has left; takes it off the budget. Of the result as much must be
    /// there as this budget gives to one.
    pub fn take(&mut self, result: &ResultPrefix) -> BoundedResult {
        let limit = self.per_result.min(self.left);
        let bounded = truncate_prefix(&result.text, result.original_bytes, limit, TRUNCATION_MARK);
        self.left = self.left.saturating_sub(bounded.text.len());
        bounded
    }

    /// Bytes that further results may take.
    pub fn left(&self) -> usize {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use skillet_core::test_rng::TestRng;

    fn check(value: &Value, limit: usize, expected: &str, is_truncated: bool) {
        let bounded = truncate_result(&value.to_string(), limit, "OMNIROUTE");
        assert_eq!((bounded.text.as_str(), bounded.is_truncated), (expected, is_truncated), "{value}");
        assert_eq!(bounded.original_bytes, value.to_string().len());
    }

    #[test]
    fn a_result_that_fits_is_whole() {
        check(&json!({"a": 1}), 7, r#"{"a":1}"#, false);
        check(&Value::Null, 100, "null", false);
        check(&json!("é"), 4, r#""é""#, false);
    }

    #[test]
    fn a_result_that_is_cut_says_how_much_is_missing_within_the_limit() {
        let faces = "😀".repeat(40);
        check(&json!(faces), 60, "\"😀😀😀😀😀😀[TRUNCATED 137 BYTES BY OMNIROUTE]", true);
        check(&json!("x".repeat(100)), 40, "\"xxxxx[TRUNCATED 96 BYTES BY OMNIROUTE]", true);
        let bounded = truncate_result(&json!("x".repeat(100)).to_string(), 40, TRUNCATION_MARK);
        assert!(bounded.text.ends_with(" BYTES BY SKILLET]"), "{}", bounded.text);
    }

    #[test]
    fn a_limit_below_the_mark_cuts_the_mark() {
        check(&json!({"a": 1}), 0, "", true);
        check(&json!("x".repeat(50)), 10, "[TRUNCATED", true);
        check(&json!("x".repeat(50)), 33, "[TRUNCATED 52 BYTES BY OMNIROUTE]", true);
    }

    #[test]
    fn the_budget_of_a_conversation_is_used_up_result_by_result() {
        let mut budget = ResultBudget::new(40, 60);
        let result = |json: &str| ResultPrefix::new(json.to_owned(), 40);
        assert!(budget.take(&result(&"1".repeat(102))).is_truncated);
        assert_eq!(budget.left(), 21);
        assert!(!budget.take(&result(&"1".repeat(21))).is_truncated);
        let last = budget.take(&result("1"));
        assert_eq!((last.text.as_str(), last.is_truncated, budget.left()), ("", true, 0));
        assert_eq!(ResultBudget::default().left(), 65_536);
    }

    #[test]
    fn no_limit_is_ever_exceeded_and_no_character_cut() {
        let mut rng = TestRng::new(5);
        for _ in 0..2_000 {
            let value = json!(rng.text("aé中🙂\"", 60)).to_string();
            let limit = rng.below(120) as usize;
            let bounded = truncate_result(&value, limit, TRUNCATION_MARK);
            assert!(bounded.text.len() <= limit, "{value} at {limit}");
            assert_eq!(bounded.is_truncated, value.len() > limit);
            let most = limit + rng.below(20) as usize;
            let taken = ResultBudget::new(limit, most).take(&ResultPrefix::new(value, most));
            assert_eq!(taken, bounded, "of the beginning as of the whole");
        }
    }
}
