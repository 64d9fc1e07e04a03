//! Findings in a file, with line and column.

use std::fmt;

use crate::yaml::Position;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: Code,
    pub position: Position,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The file cannot be read, or breaks a rule of the standard.
    Error,
    /// The file is read, in the way that the message says.
    Warning,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    CommandNotRun,
    CompatibilityNotString,
    CompatibilityTooLong,
    DescriptionTooLong,
    DirectoryMismatch,
    DuplicateKey,
    EmptyDescription,
    EmptyName,
    Encoding,
    FieldType,
    InvalidYaml,
    Link,
    McpConfig,
    MissingDescription,
    MissingName,
    MissingSkillMd,
    NameBadCharacters,
    NameDoubleHyphen,
    NameEdgeHyphen,
    NameNotLowercase,
    NameTooLong,
    NoFrontmatter,
    NotAMapping,
    Repaired,
    Shadowed,
    SkillValidation,
    UnclosedFrontmatter,
    UnexpectedFields,
    UnusedField,
    ValueCut,
}

impl Code {
    /// Returns the word that users and tools see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CommandNotRun => "command_not_run",
            Self::CompatibilityNotString => "compatibility_not_string",
            Self::CompatibilityTooLong => "compatibility_too_long",
            Self::DescriptionTooLong => "description_too_long",
            Self::DirectoryMismatch => "directory_mismatch",
            Self::DuplicateKey => "duplicate_key",
            Self::EmptyDescription => "empty_description",
            Self::EmptyName => "empty_name",
            Self::Encoding => "encoding",
            Self::FieldType => "field_type",
            Self::InvalidYaml => "invalid_yaml",
            Self::Link => "link",
            Self::McpConfig => "mcp_config",
            Self::MissingDescription => "missing_description",
            Self::MissingName => "missing_name",
            Self::MissingSkillMd => "missing_skill_md",
            Self::NameBadCharacters => "name_bad_characters",
            Self::NameDoubleHyphen => "name_double_hyphen",
            Self::NameEdgeHyphen => "name_edge_hyphen",
            Self::NameNotLowercase => "name_not_lowercase",
            Self::NameTooLong => "name_too_long",
            Self::NoFrontmatter => "no_frontmatter",
            Self::NotAMapping => "not_a_mapping",
            Self::Repaired => "repaired",
            Self::Shadowed => "shadowed",
            Self::SkillValidation => "skill_validation",
            Self::UnclosedFrontmatter => "unclosed_frontmatter",
            Self::UnexpectedFields => "unexpected_fields",
            Self::UnusedField => "unused_field",
            Self::ValueCut => "value_cut",
        }
    }
}

impl Diagnostic {
    pub(crate) fn error(code: Code, position: Position, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, code, position, message: message.into() }
    }

    pub(crate) fn warning(code: Code, position: Position, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, code, position, message: message.into() }
    }

    /// Returns the finding for a reader that takes the file all the same.
    #[must_use]
    pub fn into_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, code, position, message } = self;
        let kind = if *severity == Severity::Warning { "warning: " } else { "" };
        write!(f, "{}:{}: {kind}{message} ({})", position.line, position.column, code.as_str())
    }
}
