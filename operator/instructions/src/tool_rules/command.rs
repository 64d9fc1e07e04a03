//! Commands of a shell line, and patterns that describe them.

/// Splits a line at `;`, `&`, `|` and line ends outside quotes. Returns `None` for a line that runs further commands within
/// a command, or has an open quote.
pub(super) fn split(line: &str) -> Option<Vec<String>> {
    let (mut commands, mut command) = (Vec::new(), String::new());
    let mut quote = None;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        let next = characters.peek().copied();
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None | Some('"'), '`') => return None,
            (None | Some('"'), '$') | (None, '<' | '>') if next == Some('(') => return None,
            (None | Some('"'), '\\') => {
                command.push(c);
                command.extend(characters.next());
                continue;
            }
            // 2>&1 and &> are no ends of commands.
            (None, '&') if command.ends_with('>') || next == Some('>') => {}
            (None, ';' | '&' | '|' | '\n') => {
                commands.push(std::mem::take(&mut command));
                continue;
            }
            _ => {}
        }
        command.push(c);
    }
    commands.push(command);
    let commands = commands.into_iter().map(|command| command.trim().to_owned());
    quote.is_none().then(|| commands.filter(|command| !command.is_empty()).collect())
}

/// Returns true if a pattern describes a command: `git:*` any that begins with the word `git`, others with `*` for any text.
pub(super) fn matches(pattern: &str, command: &str) -> bool {
    match pattern.strip_suffix(":*") {
        Some(prefix) => {
            command.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        }
        None => matches_stars(pattern, command),
    }
}

/// Returns true if a pattern with `*` for any text is the whole text.
pub(super) fn matches_stars(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_outside_quotes() {
        for (line, expected) in [
            ("a b", Some(&["a b"][..])),
            ("a && b || c; d & e | f\ng", Some(&["a", "b", "c", "d", "e", "f", "g"])),
            ("a 'x; y' \"p | q\"", Some(&["a 'x; y' \"p | q\""])),
            ("a 2>&1 | b &> c", Some(&["a 2>&1", "b &> c"])),
            ("a \\; b '$(c)' \"\\`\"", Some(&["a \\; b '$(c)' \"\\`\""])),
            ("", Some(&[])),
            ("a $(b)", None),
            ("a \"`b`\"", None),
            ("a <(b)", None),
            ("a 'b", None),
        ] {
            let expected = expected.map(|commands| commands.iter().map(ToString::to_string).collect());
            assert_eq!(split(line), expected, "{line}");
        }
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, text, expected) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "abd", false),
            ("*", "", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*a", "a", false),
            ("abc", "abcd", false),
        ] {
            assert_eq!(matches_stars(pattern, text), expected, "{pattern} {text}");
        }
    }
}
