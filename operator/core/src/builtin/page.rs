//! The text of an HTML page as Markdown, with its title, description and links.
//!
//! It reads the tokens of the page and builds no tree: the work of a tree grows with the square of the nesting, and a page
//! may nest as deep as it likes. The worst that is left is one tag of 60,000 attributes, a second of work.

mod markdown;

use std::cell::RefCell;

use html5ever::{
    tendril::StrTendril,
    tokenizer::{
        BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
        states::RawKind,
    },
};
use url::Url;

use self::markdown::Markdown;
use crate::text::{trim, truncate};

/// Most links of a page that are listed.
const MAX_LINKS: usize = 200;
/// Most bytes of a title or description.
const MAX_LINE: usize = 1024;

/// A page as a reader sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageText {
    pub(super) title: String,
    pub(super) description: String,
    pub(super) language: String,
    pub(super) markdown: String,
    /// Absolute URLs with the words that stand for them, each URL once.
    pub(super) links: Vec<(String, String)>,
}

/// Reads a page whose own URL is `base`.
pub(super) fn read(html: &str, base: &Url) -> PageText {
    let sink = Sink(RefCell::new(Reader::new(base)));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    // The sink never asks for a script to run, so one call reads all.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.into_inner().finish()
}

struct Sink(RefCell<Reader>);

struct Reader {
    base: Url,
    page: PageText,
    body: Markdown,
    /// Element whose text is no part of the page, and how often it stands open.
    skipped: Option<(String, usize)>,
    is_in_title: bool,
    title: String,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut reader = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => reader.tag(&tag),
            Token::CharacterTokens(text) => {
                reader.text(&text);
                TokenSinkResult::Continue
            }
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => TokenSinkResult::Continue,
        }
    }
}

impl Reader {
    fn new(base: &Url) -> Self {
        Self {
            base: base.clone(),
            page: PageText::default(),
            body: Markdown::default(),
            skipped: None,
            is_in_title: false,
            title: String::new(),
        }
    }

    fn text(&mut self, text: &str) {
        if self.is_in_title {
            self.title.push_str(text);
        } else if self.skipped.is_none() {
            self.body.text(text);
        }
    }

    fn tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        let is_start = tag.kind == TagKind::StartTag;
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name {
                *depth = if is_start { *depth + usize::from(!tag.self_closing) } else { *depth - 1 };
                if *depth == 0 {
                    self.skipped = None;
                }
            }
            return raw_text(name, is_start);
        }
        if is_start && is_unread(name) && !tag.self_closing {
            self.skipped = Some((name.to_owned(), 1));
            return raw_text(name, is_start);
        }
        match (name, is_start) {
            ("title", _) => self.is_in_title = is_start && self.title.is_empty(),
            ("html", true) => attribute(tag, "lang").unwrap_or_default().clone_into(&mut self.page.language),
            ("base", true) => {
                if let Some(base) = attribute(tag, "href").and_then(|href| self.base.join(href).ok()) {
                    self.base = base;
                }
            }
            ("meta", true) => self.meta(tag),
            ("a", true) => {
                self.end_link();
                let target = attribute(tag, "href").and_then(|href| self.link(href));
                self.body.start_link(target);
            }
            ("a", false) => self.end_link(),
            ("img", true) => self.body.image(attribute(tag, "alt").unwrap_or_default()),
            (_, true) => self.body.start(name),
            (_, false) => self.body.end(name),
        }
        raw_text(name, is_start)
    }

    fn meta(&mut self, tag: &Tag) {
        let name = attribute(tag, "name").or_else(|| attribute(tag, "property")).unwrap_or_default();
        let content = attribute(tag, "content").unwrap_or_default();
        let is_better = match name.to_ascii_lowercase().as_str() {
            "description" => true,
            "og:description" => self.page.description.is_empty(),
            _ => false,
        };
        if is_better {
            self.page.description = one_line(content);
        }
    }

    /// Returns the absolute form of a link that leads to another page.
    fn link(&self, href: &str) -> Option<String> {
        if href.trim_start().starts_with('#') {
            return None;
        }
        let url = self.base.join(href).ok()?;
        let is_short = url.as_str().len() <= 2048;
        (matches!(url.scheme(), "http" | "https") && is_short).then(|| url.to_string())
    }

    fn end_link(&mut self) {
        let Some((url, words)) = self.body.end_link() else { return };
        let links = &mut self.page.links;
        if links.len() < MAX_LINKS && !links.iter().any(|(earlier, _)| *earlier == url) {
            links.push((url, words));
        }
    }

    fn finish(mut self) -> PageText {
        self.end_link();
        PageText { title: one_line(&self.title), markdown: self.body.finish(), ..self.page }
    }
}

/// Tells the tokenizer that no tags stand in the text of this element.
fn raw_text(name: &str, is_start: bool) -> TokenSinkResult<()> {
    match name {
        "script" if is_start => TokenSinkResult::RawData(RawKind::ScriptData),
        "style" | "noscript" | "noembed" | "noframes" | "iframe" | "xmp" if is_start => {
            TokenSinkResult::RawData(RawKind::Rawtext)
        }
        "title" | "textarea" if is_start => TokenSinkResult::RawData(RawKind::Rcdata),
        _ => TokenSinkResult::Continue,
    }
}

/// True for elements that a reader of the page does not see, or that are no text.
fn is_unread(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "noscript"
            | "noembed"
            | "noframes"
            | "iframe"
            | "template"
            | "svg"
            | "math"
            | "canvas"
            | "audio"
            | "video"
            | "object"
            | "select"
            | "textarea"
            | "datalist"
    )
}

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attrs.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| &*attribute.value)
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    trim(truncate(&words.join(" "), MAX_LINE).0).to_owned()
}

#[cfg(test)]
mod tests;
