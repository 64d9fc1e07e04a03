//! The body of an HTTP skill: any JSON, the texts of which are templates at every depth.

use serde_json::Value;

use super::template::{Placeholder, Template};

/// A body whose texts were read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum BodyTemplate {
    Text(Template),
    List(Vec<BodyTemplate>),
    Object(Vec<(String, BodyTemplate)>),
    /// A number, a boolean or null.
    Scalar(Value),
}

impl BodyTemplate {
    /// Reads a body. Adds the path and the problem of each text that cannot be read.
    pub(super) fn read(field: &str, body: &Value, problems: &mut Vec<(String, String)>) -> Self {
        match body {
            Value::String(text) => match Template::parse(text) {
                Ok(template) => Self::Text(template),
                Err(problem) => {
                    problems.push((field.to_owned(), problem));
                    Self::Text(Template::default())
                }
            },
            Value::Array(list) => {
                let read = |(place, element): (usize, &Value)| {
                    Self::read(&format!("{field}[{place}]"), element, problems)
                };
                Self::List(list.iter().enumerate().map(read).collect())
            }
            Value::Object(map) => {
                let read = |(name, value): (&String, &Value)| {
                    (name.clone(), Self::read(&format!("{field}[{name:?}]"), value, problems))
                };
                Self::Object(map.iter().map(read).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::Scalar(body.clone()),
        }
    }

    /// Returns the placeholders of all texts.
    pub(super) fn placeholders(&self) -> Vec<&Placeholder> {
        match self {
            Self::Text(template) => template.placeholders().collect(),
            Self::List(list) => list.iter().flat_map(Self::placeholders).collect(),
            Self::Object(fields) => fields.iter().flat_map(|(_, value)| value.placeholders()).collect(),
            Self::Scalar(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_templates_at_every_depth() {
        let mut problems = Vec::new();
        let body = json!({"a": [{"b": "{{x}}"}, "{{SECRETS.K}} {{y|1}}", 5, null], "{{c}}": true});
        let template = BodyTemplate::read("body", &body, &mut problems);
        let written: Vec<String> = template.placeholders().into_iter().map(Placeholder::written).collect();
        assert_eq!(written, ["{{x}}", "{{SECRETS.K}}", "{{y|1}}"]);
        assert!(problems.is_empty());
    }

    #[test]
    fn a_malformed_text_is_found_with_its_path() {
        let mut problems = Vec::new();
        BodyTemplate::read(
            "spec.run.http.body",
            &json!({"a": [{"b c": "{{ x }}"}], "d": "{{"}),
            &mut problems,
        );
        let fields: Vec<&str> = problems.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, [r#"spec.run.http.body["a"][0]["b c"]"#, r#"spec.run.http.body["d"]"#]);
    }
}
