//! The fields of a frontmatter: each is taken once, and each problem is recorded where it stands.

use std::collections::BTreeMap;

use serde_json::Value;

use super::repair::Parsed;
use crate::{
    Code, Diagnostic, Position,
    yaml::{YamlNode, YamlValue, boolean},
};

pub(super) struct Fields {
    entries: Vec<(String, YamlNode)>,
    comments: Vec<Position>,
    found: Vec<Diagnostic>,
    /// Lines of the file before the frontmatter.
    lines_before: usize,
}

impl Fields {
    pub(super) fn new(lines_before: usize) -> Self {
        Self { entries: Vec::new(), comments: Vec::new(), found: Vec::new(), lines_before }
    }

    pub(super) fn fill(&mut self, parsed: Parsed) {
        let Parsed { document, repairs } = parsed;
        self.found.extend(repairs);
        for (position, key) in document.repeated_keys {
            self.warn(Code::DuplicateKey, position, format!("{key} is there twice; the last one counts"));
        }
        self.comments = document.comments;
        match document.root.value {
            YamlValue::Map(entries) => self.entries = entries,
            YamlValue::Null => {}
            _ => {
                let message =
                    format!("the frontmatter is {}, not a map; it is not read", document.root.type_name());
                self.warn(Code::NotAMapping, document.root.position, message);
            }
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, _)| name == key)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<YamlNode> {
        let at = self.entries.iter().position(|(name, _)| name == key)?;
        Some(self.entries.remove(at).1)
    }

    /// Returns the position of a field's value; that of the frontmatter if the field is absent.
    pub(super) fn position_of(&self, key: &str) -> Position {
        let entry = self.entries.iter().find(|(name, _)| name == key);
        entry.map_or(Position { line: 1, column: 1 }, |(_, node)| node.position)
    }

    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        let node = self.take(key)?;
        match node.value {
            YamlValue::Null => None,
            YamlValue::Text(text) => Some(text),
            _ => {
                let message = format!("{key} must be text, not {}; write it in quotes", node.type_name());
                self.refuse(Code::FieldType, node.position, message);
                None
            }
        }
    }

    /// Returns a hint for users, of which a list is written with brackets.
    pub(super) fn hint(&mut self, key: &str) -> Option<String> {
        let node = self.take(key)?;
        match &node.value {
            YamlValue::List(items) => {
                let items: Vec<String> = items.iter().filter_map(YamlNode::scalar_text).collect();
                Some(format!("[{}]", items.join(", ")))
            }
            _ => node.scalar_text(),
        }
    }

    /// Returns a boolean by the first of its names. Any other value is refused.
    pub(super) fn flag(&mut self, names: &[&str]) -> Option<bool> {
        self.flags(names, Self::refuse)
    }

    /// Returns a boolean by the first of its names. Any other value is a warning.
    pub(super) fn hint_flag(&mut self, names: &[&str]) -> Option<bool> {
        self.flags(names, Self::warn)
    }

    fn flags(&mut self, names: &[&str], report: fn(&mut Self, Code, Position, String)) -> Option<bool> {
        let found: Vec<(&str, YamlNode)> =
            names.iter().filter_map(|name| Some((*name, self.take(name)?))).collect();
        let (name, node) = found.into_iter().next()?;
        let value = match &node.value {
            YamlValue::Boolean(value) => Some(*value),
            YamlValue::Null => return None,
            YamlValue::Text(text) | YamlValue::Number(text) => boolean(text),
            YamlValue::List(_) | YamlValue::Map(_) => None,
        };
        if value.is_none() {
            report(self, Code::FieldType, node.position, format!("{name} must be true or false"));
        }
        value
    }

    pub(super) fn metadata(&mut self) -> BTreeMap<String, String> {
        let Some(node) = self.take("metadata") else { return BTreeMap::new() };
        match &node.value {
            YamlValue::Null => BTreeMap::new(),
            YamlValue::Map(entries) => {
                entries.iter().map(|(key, node)| (key.clone(), node.text_or_json())).collect()
            }
            _ => {
                let message = format!("metadata must be a map, not {}", node.type_name());
                self.refuse(Code::SkillValidation, node.position, message);
                BTreeMap::new()
            }
        }
    }

    /// Returns the fields that nothing has taken.
    pub(super) fn rest(&mut self) -> BTreeMap<String, Value> {
        std::mem::take(&mut self.entries).into_iter().map(|(key, node)| (key, node.to_json())).collect()
    }

    pub(super) fn refuse(&mut self, code: Code, position: Position, message: impl Into<String>) {
        self.found.push(Diagnostic::error(code, position.below(self.lines_before), message));
    }

    pub(super) fn warn(&mut self, code: Code, position: Position, message: impl Into<String>) {
        self.found.push(Diagnostic::warning(code, position.below(self.lines_before), message));
    }

    /// Warns if a comment cuts an unquoted value that begins there.
    pub(super) fn warn_if_cut(&mut self, position: Position, key: &str) {
        if let Some(comment) = self.comments.iter().find(|comment| comment.line == position.line).copied() {
            let message = format!("` #` begins a comment and cuts {key}; write the value in quotes");
            self.warn(Code::ValueCut, comment, message);
        }
    }

    /// Returns the warnings, or everything if there is an error.
    pub(super) fn finish(self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let mut found = self.found;
        found.sort_by_key(|diagnostic| (diagnostic.position.line, diagnostic.position.column));
        if found.iter().any(Diagnostic::is_error) { Err(found) } else { Ok(found) }
    }
}
