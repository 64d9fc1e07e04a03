//! Lines of quoted values. YAML 1.1 lets them begin at the first column, where the parser ends the value.

/// Indents those lines by a space, which the value does not have afterwards. `None` if there are none.
pub(super) fn indent(text: &str) -> Option<String> {
    let mut indented = String::with_capacity(text.len() + 16);
    let mut quote = None;
    for line in text.split_inclusive('\n') {
        if quote.is_some() && !line.starts_with([' ', '\t', '\n']) {
            indented.push(' ');
        }
        indented.push_str(line);
        quote = match quote {
            Some(open) => still_open(line, open),
            None => opened(line),
        };
    }
    (indented.len() > text.len()).then_some(indented)
}

/// Returns the quote with which the value of a line begins and which the line does not close.
fn opened(line: &str) -> Option<char> {
    let (_, value) = line.split_once(": ")?;
    let value = value.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    still_open(&value[1..], quote)
}

/// Returns the quote if the text does not close it.
fn still_open(text: &str, quote: char) -> Option<char> {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if quote == '"' && c == '\\' {
            chars.next();
        } else if c == quote {
            // Two single quotes are one of the value.
            chars.next_if(|next| quote == '\'' && *next == quote)?;
        }
    }
    Some(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_inside_of_quotes_are_indented() {
        for (text, expected) in [
            ("a: \"x\ny\"\nb: c", Some("a: \"x\n y\"\nb: c")),
            ("a: 'it''s\n\nb''\nc'\nd: e", Some("a: 'it''s\n\n b''\n c'\nd: e")),
            ("a: \"x \\\" y\nz\"\n", Some("a: \"x \\\" y\n z\"\n")),
            ("a: \"x\n  y\"\nb: c", None),
            ("a: it's\nb: \"c\"\nd: 'e'", None),
        ] {
            assert_eq!(indent(text).as_deref(), expected, "{text}");
        }
    }
}
