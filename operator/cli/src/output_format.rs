//! The `--output` flag: results as text, JSON or YAML, and lists in kubectl's further forms.

use std::{ffi::OsStr, str::FromStr};

use clap::{
    Arg, Command, ValueEnum,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use serde::Serialize;
use serde_json::json;

use crate::{
    error::CliError,
    json_path::JsonPathTemplate,
    table::{Table, Widths},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Text,
    Json,
    Yaml,
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

impl FromStr for ListFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "wide" => Ok(Self::Wide),
            "name" => Ok(Self::Name),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            _ => match text.strip_prefix("jsonpath=") {
                Some(template) => JsonPathTemplate::parse(template).map(Self::JsonPath),
                None => {
                    Err(format!("{text:?} is none of text, wide, name, json, yaml and jsonpath=TEMPLATE"))
                }
            },
        }
    }
}

/// Reads a [`ListFormat`], and shows its words in help and completion.
#[derive(Clone)]
pub(crate) struct ListFormatParser;

impl TypedValueParser for ListFormatParser {
    type Value = ListFormat;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<ListFormat, clap::Error> {
        let read = |text: String| ListFormat::from_str(&text);
        StringValueParser::new().try_map(read).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = ["text", "wide", "name", "json", "yaml", "jsonpath="];
        Some(Box::new(words.into_iter().map(PossibleValue::new)))
    }
}

impl OutputFormat {
    /// Renders `value`; `text` makes the form for people.
    pub(crate) fn render(
        self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<String, CliError> {
        match self {
            Self::Text => Ok(text()),
            Self::Json => json(value),
            Self::Yaml => yaml(value),
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
    text.map(|text| text + "\n")
        .map_err(|error| CliError::Unserializable { format: "JSON", message: error.to_string() })
}

/// YAML with a line feed at its end.
pub(crate) fn yaml(value: &impl Serialize) -> Result<String, CliError> {
    let text = serde_saphyr::to_string(value);
    text.map(|text| format!("{}\n", text.trim_end_matches('\n')))
        .map_err(|error| CliError::Unserializable { format: "YAML", message: error.to_string() })
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
