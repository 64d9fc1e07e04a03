//! YAML of a frontmatter as a tree, with the line and column of each value. Types are those of YAML 1.1, as authors expect.
//!
//! Size, depth and the copies that aliases make are bounded.

mod quoted;
mod scalars;
mod tree;

use granit_parser::{Event, Parser, Placement, ScalarStyle, Span};

pub(crate) use self::scalars::boolean;
use self::tree::Tree;

/// The longest text, in bytes.
pub(crate) const LENGTH_LIMIT: usize = 512 * 1024;
const DEPTH_LIMIT: usize = 32;
/// Ends of lines in YAML 1.1 that are none in a file.
const LINE_ENDS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// A place in a text: line and column from one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlNode {
    pub(crate) position: Position,
    pub(crate) value: YamlValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum YamlValue {
    Null,
    Boolean(bool),
    /// A number or a date, as written.
    Number(String),
    Text(String),
    List(Vec<YamlNode>),
    /// Entries in their order. A key that is there twice has its last value.
    Map(Vec<(String, YamlNode)>),
}

/// A text that parsed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlDocument {
    pub(crate) root: YamlNode,
    /// Use of features that the standard's YAML subset lacks.
    pub(crate) beyond_subset: Vec<(Position, &'static str)>,
    /// Keys that are there twice.
    pub(crate) repeated_keys: Vec<(Position, String)>,
    /// The first tab that is neither in a quoted value nor in a comment.
    pub(crate) tab: Option<Position>,
    /// Comments that stand behind an unquoted value, on its line.
    pub(crate) comments: Vec<Position>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YamlError {
    pub(crate) position: Position,
    pub(crate) message: String,
}

/// Parses a text as libyaml does: it has more line ends than files have, and no tab may stand before the first value.
pub(crate) fn parse(text: &str) -> Result<YamlDocument, YamlError> {
    check_first_line(text)?;
    if !text.contains(LINE_ENDS) {
        return parse_lines(text);
    }
    parse_lines(&text.replace(LINE_ENDS, "\n")).map_err(|error| {
        // The place is that in the file.
        let ends = text.char_indices().filter(|(_, c)| *c == '\n' || LINE_ENDS.contains(c));
        let before = ends.take(error.position.line.saturating_sub(1)).filter(|(_, c)| *c == '\n').count();
        YamlError { position: Position { line: before + 1, ..error.position }, ..error }
    })
}

/// Parses a text in which lines of a quoted value may begin at the first column.
fn parse_lines(text: &str) -> Result<YamlDocument, YamlError> {
    parse_into(Tree::default(), text).or_else(|error| {
        let indented = quoted::indent(text).ok_or(error.clone())?;
        parse_into(Tree::default(), &indented).map_err(|_| error)
    })
}

fn check_first_line(text: &str) -> Result<(), YamlError> {
    let lines = text.lines().enumerate();
    let is_value = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    match lines.into_iter().find(|(_, line)| is_value(line)) {
        Some((at, line)) if line.trim_start_matches(' ').starts_with('\t') => {
            let column = line.find('\t').map_or(1, |at| at + 1);
            Err(YamlError::new(Position { line: at + 1, column }, "a tab begins the line; write spaces"))
        }
        _ => Ok(()),
    }
}

/// Parses a text whose scalars all are text, as written.
pub(crate) fn parse_texts(text: &str) -> Result<YamlDocument, YamlError> {
    let mut tree = Tree::default();
    tree.has_only_texts = true;
    let document = parse_into(tree, text)?;
    match document.tab {
        Some(position) => Err(YamlError::new(position, "has a tab outside of quotes; write spaces")),
        None => Ok(document),
    }
}

fn parse_into(mut tree: Tree, text: &str) -> Result<YamlDocument, YamlError> {
    if text.len() > LENGTH_LIMIT {
        return Err(YamlError::new(
            Position { line: 1, column: 1 },
            &format!("is longer than {LENGTH_LIMIT} bytes"),
        ));
    }
    let options = granit_parser::options! {
        block_nesting_limit: DEPTH_LIMIT,
        flow_nesting_limit: DEPTH_LIMIT,
        disallow_directives: true,
    };
    let (mut last_plain, mut tab_places) = (None, TabPlaces::new(text));
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) =
            event.map_err(|error| YamlError::new(position(*error.marker()), &error.info()))?;
        if matches!(event, Event::Comment(..)) || is_quoted(&event) {
            tab_places.leave_out(&span);
        }
        match &event {
            Event::Comment(_, Placement::Right) if last_plain == Some(span.start.line()) => {
                tree.comments.push(position(span.start));
            }
            Event::Scalar(value, ScalarStyle::Plain, ..) if !value.is_empty() => {
                last_plain = Some(span.end.line());
            }
            _ => last_plain = None,
        }
        tree.add(event, &span)?;
    }
    Ok(YamlDocument { tab: tab_places.first(text), ..tree.finish() })
}

/// True for a scalar in quotes or in a block of its own.
fn is_quoted(event: &Event<'_>) -> bool {
    matches!(event, Event::Scalar(_, style, ..) if *style != ScalarStyle::Plain)
}

/// Places of tabs, without those in quoted values and comments.
struct TabPlaces(Vec<usize>);

impl TabPlaces {
    fn new(text: &str) -> Self {
        Self(text.match_indices('\t').map(|(at, _)| at).collect())
    }

    fn leave_out(&mut self, span: &Span) {
        if let Some(range) = span.byte_range() {
            self.0.retain(|at| !range.contains(at));
        }
    }

    fn first(&self, text: &str) -> Option<Position> {
        let before = &text[..*self.0.first()?];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let column = before[line_start..].chars().count() + 1;
        Some(Position { line: before.matches('\n').count() + 1, column })
    }
}

impl YamlNode {
    /// Words for the type, such as "a number".
    pub(crate) fn type_name(&self) -> &'static str {
        match self.value {
            YamlValue::Null => "empty",
            YamlValue::Boolean(_) => "a boolean",
            YamlValue::Number(_) => "a number or date",
            YamlValue::Text(_) => "text",
            YamlValue::List(_) => "a list",
            YamlValue::Map(_) => "a map",
        }
    }

    /// Returns text, a number or a boolean as text.
    pub(crate) fn scalar_text(&self) -> Option<String> {
        match &self.value {
            YamlValue::Text(text) | YamlValue::Number(text) => Some(text.clone()),
            YamlValue::Boolean(value) => Some(value.to_string()),
            YamlValue::Null | YamlValue::List(_) | YamlValue::Map(_) => None,
        }
    }

    /// Returns a scalar as text, and anything else as JSON.
    pub(crate) fn text_or_json(&self) -> String {
        self.scalar_text().unwrap_or_else(|| self.to_json().to_string())
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            YamlValue::Null => Json::Null,
            YamlValue::Boolean(value) => Json::Bool(*value),
            YamlValue::Number(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| Json::String(text.clone()))
            }
            YamlValue::Text(text) => Json::String(text.clone()),
            YamlValue::List(items) => items.iter().map(Self::to_json).collect(),
            YamlValue::Map(entries) => entries
                .iter()
                .map(|(key, value)| (key.clone(), value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

impl YamlError {
    fn new(position: Position, message: &str) -> Self {
        Self { position, message: message.to_owned() }
    }
}

impl Position {
    /// The place in a text that has lines before this one's.
    pub(crate) fn below(self, lines: usize) -> Self {
        Self { line: self.line + lines, ..self }
    }
}

fn start(span: &Span) -> Position {
    position(span.start)
}

fn position(marker: granit_parser::Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

#[cfg(test)]
mod tests;
