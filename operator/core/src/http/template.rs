//! Templates: texts with placeholders of inputs and of values from Secrets, read once. Nothing here renders.

/// Prefix of the placeholder of a value from a Secret.
const SECRETS: &str = "SECRETS.";

/// A text with placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) pieces: Vec<Piece>,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Placeholder(Placeholder),
}

/// A place for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    Input { name: String, default: Option<String> },
    Secret { name: String },
}

impl Template {
    /// Reads a text. The error tells what is wrong and how to write it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(start) = rest.find("{{") {
            plain.push_str(&rest[..start]);
            rest = &rest[start..];
            match placeholder(rest) {
                Ok((found, length)) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(Piece::Placeholder(found));
                    rest = &rest[length..];
                }
                // The first of three braces is the text's own, as in {"a":{{b}}}.
                Err(_) if rest.starts_with("{{{") => {
                    plain.push('{');
                    rest = &rest[1..];
                }
                Err(problem) => return Err(problem),
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self { pieces })
    }

    /// Returns the placeholder if the template is nothing else.
    pub(super) fn sole_placeholder(&self) -> Option<&Placeholder> {
        match self.pieces.as_slice() {
            [Piece::Placeholder(placeholder)] => Some(placeholder),
            _ => None,
        }
    }

    pub(super) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Placeholder(placeholder) => Some(placeholder),
        })
    }
}

impl Placeholder {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Input { name, .. } | Self::Secret { name } => name,
        }
    }

    /// Returns the placeholder as users write it.
    pub(super) fn written(&self) -> String {
        match self {
            Self::Input { name, default: None } => format!("{{{{{name}}}}}"),
            Self::Input { name, default: Some(default) } => format!("{{{{{name}|{default}}}}}"),
            Self::Secret { name } => format!("{{{{{SECRETS}{name}}}}}"),
        }
    }
}

/// Reads the placeholder at the start of a text, and its length.
fn placeholder(text: &str) -> Result<(Placeholder, usize), String> {
    let wrong = |written: &str, fix: &str| Err(format!("{written} is no placeholder; {fix}"));
    let Some(end) = text.find("}}") else {
        let head: String = text.chars().take(24).collect();
        return wrong(&head, "close it with }}, as in {{name}}");
    };
    let (inner, written) = (&text[2..end], &text[..end + 2]);
    let (name, default) = match inner.split_once('|') {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    let is_legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if name.is_empty() || !name.bytes().all(is_legal) {
        return wrong(
            written,
            "write {{name}} or {{name|default}}, the name with letters, digits, ., _ and -",
        );
    }
    if default.is_some_and(|default| default.contains('}')) {
        return wrong(written, "a default cannot have a }");
    }
    let found = match (name.strip_prefix(SECRETS), default) {
        (Some(""), _) => return wrong(written, "write {{SECRETS.NAME}}"),
        (Some(_), Some(_)) => return wrong(written, "a Secret has no default; remove the part from | on"),
        (Some(secret), None) => Placeholder::Secret { name: secret.to_owned() },
        (None, default) => Placeholder::Input { name: name.to_owned(), default: default.map(str::to_owned) },
    };
    Ok((found, end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the pieces with a bar between them.
    fn pieces(text: &str) -> String {
        let template = Template::parse(text).unwrap();
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Placeholder(Placeholder::Input { name, default: None }) => format!("<{name}>"),
            Piece::Placeholder(Placeholder::Input { name, default: Some(text) }) => {
                format!("<{name}={text}>")
            }
            Piece::Placeholder(Placeholder::Secret { name }) => format!("<!{name}>"),
        };
        template.pieces.iter().map(piece).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn a_text_is_cut_into_pieces() {
        for (text, expected) in [
            ("", ""),
            ("plain {x} }} text", "plain {x} }} text"),
            ("{{city}}", "<city>"),
            ("a{{b}}c{{d|e f}}", "a | <b> | c | <d=e f>"),
            ("{{a.b_c-d9}}{{x|}}", "<a.b_c-d9> | <x=>"),
            ("{{a|{b|c}}", "<a={b|c>"),
            ("{\"a\":{{b}}}", "{\"a\": | <b> | }"),
            ("{{{a}}}", "{ | <a> | }"),
            ("Bearer {{SECRETS.KEY}}", "Bearer  | <!KEY>"),
            ("{{SECRETS}}{{secrets.k}}", "<SECRETS> | <secrets.k>"),
            ("é{{a}}é", "é | <a> | é"),
        ] {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }

    #[test]
    fn a_malformed_placeholder_is_refused_with_the_fix() {
        for (text, expected) in [
            ("a {{b", "{{b is no placeholder; close it with }}"),
            ("{{ city }}", "{{ city }} is no placeholder; write {{name}}"),
            ("{{}}", "{{}} is no placeholder"),
            ("{{a b}}", "{{a b}} is no placeholder"),
            ("{{|x}}", "{{|x}} is no placeholder"),
            ("{{ä}}", "{{ä}} is no placeholder"),
            ("{{a|x}y}}", "a default cannot have a }"),
            ("{{SECRETS.}}", "write {{SECRETS.NAME}}"),
            ("{{SECRETS.K|d}}", "a Secret has no default"),
        ] {
            let error = Template::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_placeholder_is_written_as_it_was_read() {
        for text in ["{{a}}", "{{a|b c}}", "{{SECRETS.K}}"] {
            assert_eq!(Template::parse(text).unwrap().sole_placeholder().unwrap().written(), text);
        }
        assert!(Template::parse("a{{b}}").unwrap().sole_placeholder().is_none());
    }
}
