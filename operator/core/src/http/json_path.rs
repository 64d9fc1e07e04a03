//! Paths in a response: names and indexes, the part of JSONPath that has one result at most.

use std::collections::BTreeMap;

use serde_json::{Value, value::RawValue};

/// A path that was checked: names of fields and places in lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonPath {
    parts: Vec<String>,
}

const FORM: &str = "write names and indexes, such as $.data[0].name or $['a name']";

impl JsonPath {
    /// Reads a path. `$` is the whole response; the `$` and the dot behind it may be left out.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = |why: &str| format!("{text:?} {why}; {FORM}");
        if text.is_empty() {
            return Err(wrong("is no path"));
        }
        let rest = text.strip_prefix('$').unwrap_or(text);
        let mut rest = rest.strip_prefix('.').unwrap_or(rest);
        if rest.starts_with('.') {
            return Err(wrong("searches at every depth"));
        }
        let (mut parts, mut is_first) = (Vec::new(), true);
        while !rest.is_empty() {
            let (part, after) = if let Some(inner) = rest.strip_prefix('[') {
                bracket(inner).map_err(&wrong)?
            } else {
                let name = match rest.strip_prefix('.') {
                    Some(name) => name,
                    None if is_first => rest,
                    None => return Err(wrong("has a name without a dot before it")),
                };
                plain_name(name).map_err(&wrong)?
            };
            parts.push(part);
            rest = after;
            is_first = false;
        }
        Ok(Self { parts })
    }

    /// Returns the value at the path.
    pub(super) fn find(&self, response: &Value) -> Option<Value> {
        let mut current = response;
        for (place, part) in self.parts.iter().enumerate() {
            current = match current {
                Value::Object(map) => map.get(part)?,
                Value::Array(list) => match index(part) {
                    Some(index) => list.get(index)?,
                    None => return length(part, list.len(), place + 1 == self.parts.len()),
                },
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
            };
        }
        Some(current.clone())
    }

    /// Returns the text at the path of a JSON document, as it is written there.
    pub(super) fn find_text(&self, document: &RawValue) -> Option<String> {
        let mut current = document.to_owned();
        for (place, part) in self.parts.iter().enumerate() {
            let text = current.get().trim_start();
            let next = if text.starts_with('{') {
                let mut map: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
                map.remove(part)?.to_owned()
            } else if text.starts_with('[') {
                let list: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                let Some(index) = index(part) else {
                    let is_last = place + 1 == self.parts.len();
                    return length(part, list.len(), is_last).map(|length| length.to_string());
                };
                (*list.get(index)?).to_owned()
            } else {
                return None;
            };
            current = next;
        }
        Some(current.get().to_owned())
    }
}

/// A list has one field, its length.
fn length(part: &str, length: usize, is_last: bool) -> Option<Value> {
    (part == "length" && is_last).then(|| length.into())
}

/// Reads a place in a list, as it is written without zeros before it.
fn index(part: &str) -> Option<usize> {
    part.parse().ok().filter(|index: &usize| index.to_string() == part)
}

/// Reads the inside of a bracket. Returns it and the rest behind the bracket.
fn bracket(inner: &str) -> Result<(String, &str), &'static str> {
    if let Some(quote) = inner.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let inner = &inner[1..];
        let end = inner.find(quote).ok_or("has a quote that is not closed")?;
        let (name, rest) = (&inner[..end], &inner[end + 1..]);
        if name.contains('\\') {
            return Err("has a \\ in a name, which is not read");
        }
        let rest = rest.strip_prefix(']').ok_or("has a quoted name without a ] behind it")?;
        return Ok((name.to_owned(), rest));
    }
    let end = inner.find(']').ok_or("has a bracket that is not closed")?;
    let (text, rest) = (&inner[..end], &inner[end + 1..]);
    let problem = match text {
        "*" => "has a wildcard",
        _ if text.contains(':') => "has a slice",
        _ if text.starts_with(['?', '(']) => "has a filter",
        _ if text.starts_with('-') => "has a negative index",
        _ if text.contains(',') => "has a union",
        _ => "has a bracket without an index or a quoted name",
    };
    if index(text).is_none() {
        return Err(problem);
    }
    Ok((text.to_owned(), rest))
}

/// Reads a name up to the next dot or bracket.
fn plain_name(text: &str) -> Result<(String, &str), &'static str> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match name {
        "" if text.starts_with('.') => Err("searches at every depth"),
        "" => Err("ends with a dot, or has a dot before a bracket"),
        "*" => Err("has a wildcard"),
        _ if name.contains([']', '\'', '"', '*', '?', '(', ')', '@', '$', ',', ' ', '\\']) => {
            Err("has a sign that no plain name has")
        }
        _ => Ok((name.to_owned(), rest)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({"a": {"b": [{"c": 1}, {"c": 2}], "x-y": "dash"}, "n": null, "z": 0, "list": [10, 20],
            "dot.key": "v", "deep": {"0": "zero", "length": 7}, "text": "abc"})
    }

    fn check(path: &str, expected: impl Into<Option<Value>>) {
        let expected = expected.into();
        let parsed = JsonPath::parse(path).unwrap();
        assert_eq!(parsed.find(&document()), expected, "{path}");
        let raw = RawValue::from_string(document().to_string()).unwrap();
        let text = parsed.find_text(&raw).map(|text| serde_json::from_str::<Value>(&text).unwrap());
        assert_eq!(text, expected, "{path} in the text");
    }

    #[test]
    fn a_path_finds_its_value() {
        for path in ["$", "$.", "."] {
            check(path, document());
        }
        for path in
            ["$.a.b[0].c", "a.b[0].c", ".a.b[0].c", "$['a']['b'][0]['c']", "$[\"a\"].b[0].c", "a.b.0.c"]
        {
            check(path, json!(1));
        }
        check("  $.z  ", json!(0));
        check("$.n", json!(null));
        check("$.a.x-y", json!("dash"));
        check("$.a['x-y']", json!("dash"));
        check("$['dot.key']", json!("v"));
        check("$.deep[0]", json!("zero"));
        check("$.list[1]", json!(20));
        check("$.list.length", json!(2));
        check("$.deep.length", json!(7));
    }

    #[test]
    fn a_path_without_a_value_finds_nothing() {
        for path in [
            "$.q.r.s",
            "$.n.x",
            "$.list[2]",
            "$.list.c",
            "$.list.00",
            "$.text.length",
            "$.text[0]",
            "$.z[0]",
            "$.list.length.x",
            "$.dot.key",
        ] {
            check(path, None);
        }
    }

    #[test]
    fn a_path_that_is_not_understood_is_refused() {
        for (path, expected) in [
            ("", "is no path"),
            ("$..c", "searches at every depth"),
            ("$.a..b", "searches at every depth"),
            ("$.a[*]", "has a wildcard"),
            ("$.*", "has a wildcard"),
            ("$.list[0:1]", "has a slice"),
            ("$.list[-1]", "has a negative index"),
            ("$.list[0,1]", "has a union"),
            ("$.list[?(@.c)]", "has a filter"),
            ("$.list[(1)]", "has a filter"),
            ("$.list[01]", "without an index"),
            ("$[a]", "without an index"),
            ("$.list[0", "not closed"),
            ("$['a", "not closed"),
            ("$['a'.b", "without a ]"),
            ("$['a\\'b']", "has a \\"),
            ("$.a.", "ends with a dot"),
            ("$.a.[0]", "ends with a dot"),
            ("$.a[0]b", "without a dot"),
            ("$.a b", "no plain name"),
            ("$.a'b'", "no plain name"),
        ] {
            let error = JsonPath::parse(path).unwrap_err();
            assert!(error.contains(expected) && error.ends_with(FORM), "{path}: {error}");
        }
    }
}
