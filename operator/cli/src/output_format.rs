//! The `--output` flag: results as text, JSON or YAML, and lists in kubectl's further forms.

use clap::ValueEnum;
use serde::Serialize;

use crate::error::CliError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Text,
    Json,
    Yaml,
}

/// The format of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Text,
    /// Text with further columns.
    Wide,
    /// A line `RESOURCE/NAME` for each object.
    Name,
    Json,
    Yaml,
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
    pub(crate) fn is_for_people(self) -> bool {
        matches!(self, Self::Text | Self::Wide)
    }

    /// Renders `rows`; `text` makes the form for people.
    pub(crate) fn render<T: ListedObject>(
        self,
        rows: &[T],
        text: impl FnOnce() -> String,
    ) -> Result<String, CliError> {
        match self {
            Self::Text | Self::Wide => Ok(text()),
            Self::Name => Ok(rows.iter().flat_map(|row| [T::RESOURCE, "/", row.name(), "\n"]).collect()),
            Self::Json => json(&rows),
            Self::Yaml => yaml(&rows),
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
