//! Values as JSON or YAML text, for people and programs alike.

use serde::Serialize;

use crate::failure::Failure;

/// Indented JSON with a line feed at its end.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| Failure::NoForm { form: "JSON", message: error.to_string() })
}

/// YAML with a line feed at its end.
pub(crate) fn yaml(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_saphyr::to_string(value);
    text.map(|text| format!("{}\n", text.trim_end_matches('\n')))
        .map_err(|error| Failure::NoForm { form: "YAML", message: error.to_string() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn both_forms_end_with_one_line_feed() {
        let value = json!({ "count": 3 });
        assert_eq!(super::json(&value).unwrap(), "{\n  \"count\": 3\n}\n");
        assert_eq!(super::yaml(&value).unwrap(), "count: 3\n");
    }
}
