//! Results by the ids of their calls: an answer may have as many calls as fit into it, and each result is found at once.

use std::collections::{HashMap, VecDeque};

use super::ToolResult;

/// Results that were not given out yet. Of several with one id the first comes first.
pub(super) struct ResultsById<'a>(HashMap<&'a str, VecDeque<&'a ToolResult>>);

impl<'a> ResultsById<'a> {
    pub(super) fn of(results: &'a [ToolResult]) -> Self {
        let mut by_id: HashMap<&str, VecDeque<&ToolResult>> = HashMap::new();
        for result in results {
            by_id.entry(result.id.as_str()).or_default().push_back(result);
        }
        Self(by_id)
    }

    pub(super) fn take(&mut self, id: &str) -> Option<&'a ToolResult> {
        self.0.get_mut(id)?.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_is_given_out_once_in_order() {
        let result = |id: &str, content: &str| ToolResult {
            id: id.to_owned(),
            name: "n".to_owned(),
            content: content.to_owned(),
            is_error: false,
        };
        let results = [result("a", "1"), result("b", "2"), result("a", "3")];
        let mut left = ResultsById::of(&results);
        let mut take = |id: &str| left.take(id).map(|result| result.content.as_str());
        assert_eq!([take("a"), take("a"), take("a")], [Some("1"), Some("3"), None]);
        assert_eq!([take("b"), take("c")], [Some("2"), None]);
    }
}
