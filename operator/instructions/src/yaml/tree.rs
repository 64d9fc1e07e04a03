//! Builds the tree from the parser's events.

use std::collections::HashMap;

use granit_parser::{Event, ScalarStyle, Span, StructureStyle, Tag};

use super::{Position, YamlDocument, YamlError, YamlNode, YamlValue, scalars, start};

/// Most values of one document, with the copies that aliases make.
const NODE_LIMIT: usize = 10_000;

/// Tags of YAML 1.1 for data that is read as written.
const DATA_TAGS: [&str; 5] = ["!!binary", "!!omap", "!!pairs", "!!set", "!!timestamp"];

#[derive(Debug, Default)]
pub(super) struct Tree {
    /// No scalar is a number, a boolean or null.
    pub(super) has_only_texts: bool,
    pub(super) comments: Vec<Position>,
    /// Collections that are still open, from the outside.
    open: Vec<Open>,
    root: Option<YamlNode>,
    documents: usize,
    anchors: HashMap<usize, YamlNode>,
    nodes: usize,
    beyond_subset: Vec<(Position, &'static str)>,
    repeated_keys: Vec<(Position, String)>,
}

#[derive(Debug)]
struct Open {
    node: YamlNode,
    anchor: usize,
    /// Key of a map that waits for its value.
    key: Option<String>,
}

impl Tree {
    pub(super) fn add(&mut self, event: Event<'_>, span: &Span) -> Result<(), YamlError> {
        let position = start(span);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(YamlError::new(position, "a second document begins here"));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                // The parser writes an absent value as a tilde.
                let text = if span.is_empty() && style == ScalarStyle::Plain { "" } else { &*text };
                let value = self.scalar(text, style, tag.as_deref(), position)?;
                self.anchored(anchor, position);
                self.attach(YamlNode { position, value }, anchor)?;
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.open(YamlValue::List(Vec::new()), style, anchor, tag.as_deref(), position)?;
            }
            Event::MappingStart(style, anchor, tag) => {
                self.open(YamlValue::Map(Vec::new()), style, anchor, tag.as_deref(), position)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { node, anchor, key: _ }) = self.open.pop() {
                    self.attach(node, anchor)?;
                }
            }
            Event::Alias(anchor) => {
                self.beyond_subset.push((position, "an alias"));
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    return Err(YamlError::new(position, "an alias stands inside its own value"));
                };
                self.nodes += count(&node);
                self.attach(YamlNode { position, ..node }, 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn finish(self) -> YamlDocument {
        let start = Position { line: 1, column: 1 };
        let root = self.root.unwrap_or(YamlNode { position: start, value: YamlValue::Null });
        let Self { comments, beyond_subset, repeated_keys, .. } = self;
        YamlDocument { root, beyond_subset, repeated_keys, tab: None, comments }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        position: Position,
    ) -> Result<YamlValue, YamlError> {
        match self.core_tag(tag, position)? {
            Some("str") => Ok(YamlValue::Text(text.to_owned())),
            None if style != ScalarStyle::Plain => Ok(YamlValue::Text(text.to_owned())),
            None if self.has_only_texts => Ok(YamlValue::Text(text.to_owned())),
            None if matches!(text, "=" | "<<") && !self.is_at_key() => {
                Err(YamlError::new(position, &format!("{text} alone is no text; write it in quotes")))
            }
            _ => Ok(scalars::resolve(text)),
        }
    }

    /// True if the next scalar is the key of a map.
    fn is_at_key(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| open.key.is_none() && matches!(open.node.value, YamlValue::Map(_)))
    }

    /// Returns the name of a tag of YAML's own; another tag is refused.
    fn core_tag<'a>(
        &mut self,
        tag: Option<&'a Tag>,
        position: Position,
    ) -> Result<Option<&'a str>, YamlError> {
        let Some(tag) = tag else { return Ok(None) };
        self.beyond_subset.push((position, "a tag"));
        match tag.core_suffix() {
            Some(name) => Ok(Some(name)),
            None if DATA_TAGS.contains(&tag.original().as_ref()) => Ok(None),
            None => Err(YamlError::new(position, &format!("has the unknown tag {}", tag.original()))),
        }
    }

    fn open(
        &mut self,
        value: YamlValue,
        style: StructureStyle,
        anchor: usize,
        tag: Option<&Tag>,
        position: Position,
    ) -> Result<(), YamlError> {
        self.core_tag(tag, position)?;
        self.anchored(anchor, position);
        if style == StructureStyle::Flow {
            self.beyond_subset.push((position, "a list or map in brackets"));
        }
        self.open.push(Open { node: YamlNode { position, value }, anchor, key: None });
        Ok(())
    }

    fn anchored(&mut self, anchor: usize, position: Position) {
        if anchor != 0 {
            self.beyond_subset.push((position, "an anchor"));
        }
    }

    fn attach(&mut self, node: YamlNode, anchor: usize) -> Result<(), YamlError> {
        self.nodes += 1;
        if self.nodes > NODE_LIMIT {
            return Err(YamlError::new(node.position, &format!("there are more than {NODE_LIMIT} values")));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(Open { node: parent, key, .. }) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut parent.value {
            YamlValue::List(items) => items.push(node),
            YamlValue::Map(entries) => match key.take() {
                None => *key = Some(key_text(&node)?),
                Some(key) => {
                    let position = node.position;
                    if let Some(entry) = entries.iter_mut().find(|(name, _)| *name == key) {
                        entry.1 = node;
                        self.repeated_keys.push((position, key));
                    } else {
                        entries.push((key, node));
                    }
                }
            },
            YamlValue::Null | YamlValue::Boolean(_) | YamlValue::Number(_) | YamlValue::Text(_) => {}
        }
        Ok(())
    }
}

fn key_text(node: &YamlNode) -> Result<String, YamlError> {
    match &node.value {
        YamlValue::Null => Ok("null".to_owned()),
        _ => node.scalar_text().ok_or_else(|| YamlError::new(node.position, "a key is a list or a map")),
    }
}

fn count(node: &YamlNode) -> usize {
    match &node.value {
        YamlValue::List(items) => 1 + items.iter().map(count).sum::<usize>(),
        YamlValue::Map(entries) => 1 + entries.iter().map(|(_, node)| count(node)).sum::<usize>(),
        YamlValue::Null | YamlValue::Boolean(_) | YamlValue::Number(_) | YamlValue::Text(_) => 1,
    }
}
