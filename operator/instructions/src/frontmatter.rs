//! Splits a file into frontmatter and body. LineSpans of three or more dashes enclose YAML; lines of one brace enclose JSON.

/// The parts of a file, as they stand in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split<'a> {
    /// The text between the enclosing lines; with them if it is JSON. `None` if there is no frontmatter.
    pub frontmatter: Option<&'a str>,
    /// The text behind the frontmatter.
    pub body: &'a str,
    /// LineSpans before the frontmatter.
    pub lines_before: usize,
}

/// Splits a text. Blank lines may stand before the frontmatter. Without an end it is no frontmatter.
pub fn split(text: &str) -> Split<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let whole = Split { frontmatter: None, body: text, lines_before: 0 };
    let start = text.len() - text.trim_start().len();
    let mut lines = LineSpans { text, at: start };
    let Some((_, first)) = lines.next() else { return whole };
    let is_json = first.trim_end() == "{";
    if !is_json && !is_fence(first) {
        return whole;
    }
    let inner = if is_json { start } else { lines.at };
    let lines_before = text[..inner].matches('\n').count();
    while let Some((at, line)) = lines.next() {
        if is_json && line.trim_end() == "}" {
            return Split { frontmatter: Some(&text[inner..=at]), body: &text[lines.at..], lines_before };
        }
        if !is_json && is_fence(line) {
            return Split { frontmatter: Some(&text[inner..at]), body: &text[lines.at..], lines_before };
        }
    }
    whole
}

/// True for a line of three or more dashes.
fn is_fence(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|b| b == b'-')
}

/// The lines of a text with their places.
struct LineSpans<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for LineSpans<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return None;
        }
        let line = rest.find('\n').map_or(rest, |end| &rest[..=end]);
        let at = self.at;
        self.at += line.len();
        Some((at, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, frontmatter: Option<&str>, body: &str) {
        let found = split(text);
        assert_eq!((found.frontmatter, found.body), (frontmatter, body), "{text:?}");
    }

    #[test]
    fn dashes_enclose_the_frontmatter() {
        check("---\na: b\n---\nbody\n", Some("a: b\n"), "body\n");
        check("\n\n-----  \r\na: b\r\n----\r\nbody", Some("a: b\r\n"), "body");
        check("---\na: b\n---\nx\n---\ny", Some("a: b\n"), "x\n---\ny");
        check("---\n---\nbody", Some(""), "body");
        check("\u{feff}---\na: b\n---", Some("a: b\n"), "");
        assert_eq!(split("\n\n---\na: b\n---").lines_before, 3);
    }

    #[test]
    fn a_text_without_a_closed_frontmatter_is_all_body() {
        check("# T\n", None, "# T\n");
        check("---\na: b\n", None, "---\na: b\n");
        check("<!-- hi -->\n---\na: b\n---\n", None, "<!-- hi -->\n---\na: b\n---\n");
        check("--\na: b\n--\n", None, "--\na: b\n--\n");
        check("", None, "");
    }

    #[test]
    fn braces_on_lines_of_their_own_enclose_json() {
        check("{\n\"a\": 1\n}\nbody", Some("{\n\"a\": 1\n}"), "body");
        check("{ \"a\": 1 }\nbody", None, "{ \"a\": 1 }\nbody");
    }
}
