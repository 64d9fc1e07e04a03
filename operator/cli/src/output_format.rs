//! The `--output` flag: results as text, JSON or YAML, and lists in kubectl's further forms.

use std::{ffi::OsStr, marker::PhantomData};

use clap::{
    Arg, Command,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use serde::Serialize;
use serde_json::json;

use crate::{
    error::CliError,
    json_path::JsonPathTemplate,
    table::{Table, Widths},
};

/// The format of one result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    #[default]
    Text,
    Json,
    Yaml,
    /// A template over the result, or over `{"items": [...]}` if it is a list.
    JsonPath(JsonPathTemplate),
}

/// The format of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListFormat {
    #[default]
    Text,
    /// Text with further columns.
    Wide,
    /// A line `RESOURCE/NAME` for each object.
    Name,
    Json,
    Yaml,
    /// A template over `{"items": [...]}`.
    JsonPath(JsonPathTemplate),
}

const JSON_PATH: &str = "jsonpath=";

/// A format that a flag names by one of its words, or by a template.
pub(crate) trait Format: Clone + Send + Sync + 'static {
    const WORDS: &'static [&'static str];

    /// The format of one of the words.
    fn of_word(word: &str) -> Option<Self>;

    fn of_template(template: JsonPathTemplate) -> Self;

    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix(JSON_PATH) {
            Some(template) => JsonPathTemplate::parse(template).map(Self::of_template),
            None => Self::of_word(text).ok_or_else(|| {
                format!("{text:?} is none of {} and {JSON_PATH}TEMPLATE", Self::WORDS.join(", "))
            }),
        }
    }
}

impl Format for OutputFormat {
    const WORDS: &'static [&'static str] = &["text", "json", "yaml"];

    fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "text" => Self::Text,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            _ => return None,
        })
    }

    fn of_template(template: JsonPathTemplate) -> Self {
        Self::JsonPath(template)
    }
}

impl Format for ListFormat {
    const WORDS: &'static [&'static str] = &["text", "wide", "name", "json", "yaml"];

    fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "text" => Self::Text,
            "wide" => Self::Wide,
            "name" => Self::Name,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            _ => return None,
        })
    }

    fn of_template(template: JsonPathTemplate) -> Self {
        Self::JsonPath(template)
    }
}

/// Reads a [`Format`], and shows its words in help and completion.
#[derive(Clone)]
pub(crate) struct FormatParser<F>(PhantomData<fn() -> F>);

impl<F> FormatParser<F> {
    pub(crate) const NEW: Self = Self(PhantomData);
}

impl<F: Format> TypedValueParser for FormatParser<F> {
    type Value = F;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<F, clap::Error> {
        let read = |text: String| F::parse(&text);
        StringValueParser::new().try_map(read).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = F::WORDS.iter().copied().chain([JSON_PATH]);
        Some(Box::new(words.map(PossibleValue::new)))
    }
}

impl OutputFormat {
    /// Renders `value`; `text` makes the form for people.
    pub(crate) fn render(
        &self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<String, CliError> {
        match self {
            Self::Text => Ok(text()),
            Self::Json => json(value),
            Self::Yaml => yaml(value),
            Self::JsonPath(template) => {
                let value = serde_json::to_value(value).map_err(|error| unserializable("JSON", &error))?;
                let value = if value.is_array() { json!({ "items": value }) } else { value };
                Ok(template.render(&value))
            }
        }
    }
}

/// A row of a list, with its name for `-o name`.
pub(crate) trait ListedObject: Serialize {
    const RESOURCE: &'static str;

    fn name(&self) -> &str;
}

impl ListFormat {
    pub(crate) fn is_for_people(&self) -> bool {
        matches!(self, Self::Text | Self::Wide)
    }

    /// Renders `rows`; `text` makes the form for people.
    pub(crate) fn render<T: ListedObject>(
        &self,
        rows: &[T],
        text: impl FnOnce() -> String,
    ) -> Result<String, CliError> {
        match self {
            Self::Text | Self::Wide => Ok(text()),
            Self::Name => Ok(rows.iter().flat_map(|row| [T::RESOURCE, "/", row.name(), "\n"]).collect()),
            Self::Json => json(&rows),
            Self::Yaml => yaml(&rows),
            Self::JsonPath(template) => Ok(template.render(&json!({ "items": rows }))),
        }
    }
}

/// The rows of a list that is printed piece by piece; `table` makes the form for people.
pub(crate) struct ListedRows<'a, F> {
    format: &'a ListFormat,
    table: F,
    widths: Widths,
}

impl<'a, F> ListedRows<'a, F> {
    pub(crate) fn new<T>(format: &'a ListFormat, table: F) -> Self
    where
        F: Fn(&[T], bool) -> Table,
    {
        Self { format, table, widths: Widths::default() }
    }

    /// Renders further rows. JSON and YAML get a document for each, as from kubectl.
    pub(crate) fn render<T: ListedObject>(&mut self, rows: &[T]) -> Result<String, CliError>
    where
        F: Fn(&[T], bool) -> Table,
    {
        let is_wide = *self.format == ListFormat::Wide;
        match self.format {
            ListFormat::Text | ListFormat::Wide => {
                Ok((self.table)(rows, is_wide).render_after(&mut self.widths))
            }
            ListFormat::Json => rows.iter().map(json).collect(),
            ListFormat::Yaml => rows.iter().map(|row| Ok(format!("---\n{}", yaml(row)?))).collect(),
            ListFormat::Name | ListFormat::JsonPath(_) => self.format.render(rows, String::new),
        }
    }
}

/// Indented JSON with a line feed at its end.
pub(crate) fn json(value: &impl Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| unserializable("JSON", &error))
}

/// YAML with a line feed at its end.
pub(crate) fn yaml(value: &impl Serialize) -> Result<String, CliError> {
    let text = serde_saphyr::to_string(value);
    text.map(|text| format!("{}\n", text.trim_end_matches('\n')))
        .map_err(|error| unserializable("YAML", &error))
}

fn unserializable(format: &'static str, error: &impl ToString) -> CliError {
    CliError::Unserializable { format, message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_end_with_one_line_feed() {
        let value = json!({ "count": 3 });
        assert_eq!(super::json(&value).unwrap(), "{\n  \"count\": 3\n}\n");
        assert_eq!(super::yaml(&value).unwrap(), "count: 3\n");
    }

    #[test]
    fn a_template_is_over_one_result_or_over_the_items_of_a_list() {
        let render = |template: &str, value| {
            OutputFormat::parse(&format!("jsonpath={template}")).unwrap().render(&value, String::new).unwrap()
        };
        assert_eq!(render("{.status.phase}", json!({ "status": { "phase": "Failed" } })), "Failed");
        assert_eq!(render("{.items[*].name}", json!([{ "name": "a" }, { "name": "b" }])), "a b");
    }

    #[test]
    fn a_format_that_there_is_not_is_refused_with_those_that_there_are() {
        let error = OutputFormat::parse("wide").unwrap_err();
        assert_eq!(error, "\"wide\" is none of text, json, yaml and jsonpath=TEMPLATE");
        let error = ListFormat::parse("toml").unwrap_err();
        assert_eq!(error, "\"toml\" is none of text, wide, name, json, yaml and jsonpath=TEMPLATE");
        assert!(OutputFormat::parse("jsonpath={.a").unwrap_err().contains("closing brace"));
    }
}
