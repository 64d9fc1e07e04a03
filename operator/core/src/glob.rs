//! Patterns of names, in which `*` stands for any text.

/// Returns true if `pattern` describes the whole of `name`. Letters count as they are written.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Returns true if the list has a pattern for the name.
pub fn any_matches<P: AsRef<str>>(patterns: &[P], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern.as_ref(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_all_else_for_itself() {
        for (pattern, name) in [
            ("*", ""),
            ("*", "gpt-5"),
            ("gpt-5", "gpt-5"),
            ("gpt-*", "gpt-"),
            ("gpt-*-mini", "gpt-5-mini"),
            ("*/llama-*:free", "meta/llama-3:free"),
            ("a*b*b", "abb"),
            ("**", "x"),
            ("é*", "éa"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "x"),
            ("gpt-5", "gpt-5-mini"),
            ("gpt-5", "GPT-5"),
            ("gpt-*-mini", "gpt-mini"),
            ("*mini", "mini-x"),
            ("a*b*b", "ab"),
            ("a.c", "abc"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
