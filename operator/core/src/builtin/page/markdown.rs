//! A writer of Markdown, driven by the tags of a page. Each tag costs the same, however deep it stands.

use std::fmt::Write as _;

/// Deepest list that is indented.
const MAX_INDENT: usize = 8;
/// Most bytes of a mark.
const MAX_MARK: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Markdown {
    text: String,
    /// Line ends that are due before the next word.
    breaks: usize,
    /// White space that is due before the next word.
    has_space: bool,
    /// Text that is due before the next word, such as the mark of a list item.
    mark: String,
    lists: Vec<List>,
    is_code: bool,
    /// Number of `pre` elements that are open.
    preformatted: usize,
    link: Option<Link>,
    /// Cells of the table row so far.
    cells: usize,
}

#[derive(Debug)]
struct List {
    /// Number of the next item. `None` for a list without numbers.
    next: Option<u32>,
}

#[derive(Debug)]
struct Link {
    url: String,
    /// Place of its words in the text.
    start: usize,
}

impl Markdown {
    pub(super) fn text(&mut self, text: &str) {
        if self.preformatted > 0 {
            self.write_whole(text);
            return;
        }
        for (place, word) in text.split(is_space).enumerate() {
            self.has_space |= place > 0;
            if !word.is_empty() {
                self.write(word);
            }
        }
    }

    pub(super) fn start(&mut self, name: &str) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.block(2);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.add_mark(&("#".repeat(level) + " "));
            }
            "ul" | "menu" => self.start_list(None),
            "ol" => self.start_list(Some(1)),
            "li" => self.start_item(),
            "dt" => self.block(2),
            "dd" => {
                self.block(1);
                self.add_mark(": ");
            }
            "blockquote" => {
                self.block(2);
                self.add_mark("> ");
            }
            "pre" => self.start_pre(),
            "br" => self.block(1),
            "hr" => {
                self.block(2);
                self.write("---");
                self.block(2);
            }
            "tr" => {
                self.block(1);
                self.cells = 0;
            }
            "td" | "th" => {
                if self.cells > 0 {
                    self.has_space = true;
                    self.write("|");
                    self.has_space = true;
                }
                self.cells += 1;
            }
            "code" | "kbd" | "samp" if self.preformatted == 0 => self.start_code(),
            _ if is_block(name) => self.block(2),
            _ => {}
        }
    }

    pub(super) fn end(&mut self, name: &str) {
        match name {
            "ul" | "ol" | "menu" => {
                self.lists.pop();
                self.block(if self.lists.is_empty() { 2 } else { 1 });
            }
            "li" | "dd" | "tr" => self.block(1),
            "pre" => self.end_pre(),
            "code" | "kbd" | "samp" if self.preformatted == 0 => self.end_code(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.block(2),
            _ if is_block(name) => self.block(2),
            _ => {}
        }
    }

    /// Begins a link, after the last one has ended.
    pub(super) fn start_link(&mut self, url: Option<String>) {
        self.link = url.map(|url| Link { url, start: usize::MAX });
    }

    /// Ends the link, and returns its URL and words. A link without words is not written.
    pub(super) fn end_link(&mut self) -> Option<(String, String)> {
        let Link { url, start } = self.link.take()?;
        let words = self.text.get(start..)?;
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        self.text.truncate(start);
        let _ = write!(self.text, "[{words}]({url})");
        Some((url, words))
    }

    pub(super) fn image(&mut self, words: &str) {
        self.text(words);
    }

    pub(super) fn finish(mut self) -> String {
        self.end_code();
        if self.preformatted > 0 {
            self.preformatted = 1;
            self.end_pre();
        }
        self.text
    }

    /// Asks for so many line ends before the next word.
    fn block(&mut self, breaks: usize) {
        if self.preformatted > 0 {
            self.write_whole("\n");
        } else if !self.text.is_empty() && self.mark.is_empty() {
            self.breaks = self.breaks.max(breaks);
        }
        self.has_space = false;
    }

    fn start_list(&mut self, next: Option<u32>) {
        self.block(if self.lists.is_empty() { 2 } else { 1 });
        self.lists.push(List { next });
    }

    fn start_item(&mut self) {
        self.mark.clear();
        self.block(1);
        let depth = self.lists.len().saturating_sub(1).min(MAX_INDENT);
        let number = self.lists.last_mut().and_then(|list| list.next.as_mut());
        let bullet = number.map_or_else(
            || "- ".to_owned(),
            |next| {
                let number = *next;
                *next = next.saturating_add(1);
                format!("{number}. ")
            },
        );
        self.mark = "  ".repeat(depth) + &bullet;
    }

    fn start_pre(&mut self) {
        if self.preformatted == 0 {
            self.block(2);
            self.write("```");
            self.text.push('\n');
        }
        self.preformatted += 1;
    }

    fn end_pre(&mut self) {
        self.preformatted = self.preformatted.saturating_sub(1);
        if self.preformatted == 0 && !self.text.is_empty() {
            if !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text.push_str("```");
            self.breaks = 2;
        }
    }

    fn start_code(&mut self) {
        if !self.is_code {
            self.is_code = true;
            self.add_mark("`");
        }
    }

    fn end_code(&mut self) {
        if !self.is_code {
            return;
        }
        self.is_code = false;
        // Code without a word has no marks.
        if self.mark.ends_with('`') {
            self.mark.pop();
        } else {
            self.text.push('`');
        }
    }

    fn add_mark(&mut self, mark: &str) {
        if self.mark.len() < MAX_MARK {
            self.mark.push_str(mark);
        }
    }

    /// Writes a word behind all that is due before it.
    fn write(&mut self, word: &str) {
        if self.breaks > 0 {
            self.text.push_str(if self.breaks > 1 { "\n\n" } else { "\n" });
        } else if self.has_space && !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
        (self.breaks, self.has_space) = (0, false);
        self.text.push_str(&self.mark);
        self.mark.clear();
        if let Some(link) = &mut self.link
            && link.start == usize::MAX
        {
            link.start = self.text.len();
        }
        self.text.push_str(word);
    }

    fn write_whole(&mut self, text: &str) {
        if let Some(link) = &mut self.link
            && link.start == usize::MAX
        {
            link.start = self.text.len();
        }
        self.text.push_str(text);
    }
}

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{a0}'
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "div"
            | "section"
            | "article"
            | "main"
            | "header"
            | "footer"
            | "nav"
            | "aside"
            | "table"
            | "form"
            | "fieldset"
            | "figure"
            | "figcaption"
            | "blockquote"
            | "address"
            | "details"
            | "summary"
            | "dl"
            | "body"
            | "caption"
    )
}
