//! The parts of a model request that selection reads.

use serde_json::Value;

use super::ProviderFamily;

/// A model request, as far as the selection of skills depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFacts<'a> {
    /// Provider of the model; decides about tags that name a provider.
    pub provider: ProviderFamily,
    /// Id of the model; empty if the request names none.
    pub model: &'a str,
    /// Name of the request's wire format, such as `openai`.
    pub format: &'a str,
    /// The client's own tools, as the request lists them.
    pub client_tools: &'a [&'a Value],
    /// Texts of the messages, in order.
    pub texts: &'a [&'a str],
    /// Texts of each turn of the user, in order, without the results of tools.
    pub user_turns: &'a [Vec<&'a str>],
}

impl RequestFacts<'_> {
    /// Returns the text that [`super::MatchMode::Substring`] searches, in lower case: the client's tools as JSON, the
    /// model, the format and the messages.
    ///
    /// Empty parts are left out, and a blank stands between two parts. Keys of JSON objects are in alphabetical order.
    pub fn substring_text(&self) -> String {
        let tools = serde_json::to_string(self.client_tools).unwrap_or_default();
        let messages = self.texts.join(" ");
        let mut parts = vec![tools.as_str(), self.model, self.format, &messages];
        parts.retain(|part| !part.is_empty());
        parts.join(" ").to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn substring_text_joins_the_parts_in_order_and_leaves_out_empty_parts() {
        assert_eq!(RequestFacts::default().substring_text(), "[]");
        let tool = json!({"type": "function", "name": "Look Up", "n": 1.5});
        let facts = RequestFacts {
            model: "GPT-4.1",
            format: "openai",
            client_tools: &[&tool],
            texts: &["Hello", "World"],
            ..RequestFacts::default()
        };
        let expected = r#"[{"n":1.5,"name":"look up","type":"function"}] gpt-4.1 openai hello world"#;
        assert_eq!(facts.substring_text(), expected);
        let blank = RequestFacts { texts: &["", ""], ..RequestFacts::default() };
        assert_eq!(blank.substring_text(), "[]  ");
    }
}
