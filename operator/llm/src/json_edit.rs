//! A changed JSON document, written as its author wrote it wherever nothing was changed: fields in their order, numbers
//! and spaces as they stand. A `Value` remembers none of that, and providers look at it: structured output comes in the
//! order of its schema, and a prompt is cached by its bytes.
//!
//! Not a parser: what is read here was parsed before. One pass, linear in the size of both.

use std::{borrow::Cow, collections::HashSet};

use serde_json::{Map, Number, Value};

/// `changed` as JSON text. What of it is the same as in `original`, of which it was made, is copied from there.
pub fn render(original: &[u8], changed: &Value) -> Vec<u8> {
    let mut writer =
        Writer { text: Text { bytes: original, at: 0 }, out: Vec::with_capacity(original.len()) };
    writer.text.space();
    match writer.value(changed) {
        Some(()) => writer.out,
        // No document, so that nothing can be kept of it.
        None => changed.to_string().into_bytes(),
    }
}

/// The text of a field of this object. The last one counts, as it does for who parses it.
pub fn field<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut text = Text { bytes: object, at: 0 };
    text.space();
    text.take(b'{')?;
    let mut found = None;
    loop {
        text.space();
        if text.peek()? == b'}' {
            return found;
        }
        let is_it = content(text.string()?)? == name;
        text.space();
        text.take(b':')?;
        text.space();
        let value = text.value()?;
        found = if is_it { Some(value) } else { found };
        text.space();
        if text.peek()? == b',' {
            text.at += 1;
        }
    }
}

/// A position in a JSON text.
struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn since(&self, from: usize) -> &'a [u8] {
        self.bytes.get(from..self.at).unwrap_or_default()
    }

    fn space(&mut self) -> &'a [u8] {
        let from = self.at;
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
        self.since(from)
    }

    /// With its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        let from = self.at;
        self.take(b'"')?;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(self.since(from))
    }

    fn word(&mut self) -> Option<&'a [u8]> {
        let from = self.at;
        while let Some(b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.' | b'E') = self.peek() {
            self.at += 1;
        }
        Some(self.since(from)).filter(|word| !word.is_empty())
    }

    /// A whole value. Without recursion, for nobody looks into it.
    fn value(&mut self) -> Option<&'a [u8]> {
        let from = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth > 0 => self.at += 1,
                b'"' => drop(self.string()?),
                _ => drop(self.word()?),
            }
            if depth == 0 {
                return Some(self.since(from));
            }
        }
    }
}

/// Nothing in it is deeper than what was parsed, so that its recursion has the parser's limit.
struct Writer<'a> {
    text: Text<'a>,
    out: Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, changed: &Value) -> Option<()> {
        match (self.text.peek()?, changed) {
            (b'{', Value::Object(fields)) => self.object(fields),
            (b'[', Value::Array(items)) => self.array(items),
            _ => {
                let token = self.text.value()?;
                if says(token, changed) {
                    self.out.extend_from_slice(token);
                } else {
                    self.new_value(changed);
                }
                Some(())
            }
        }
    }

    fn object(&mut self, fields: &Map<String, Value>) -> Option<()> {
        self.begin(b'{')?;
        let mut written: HashSet<&str> = HashSet::with_capacity(fields.len());
        loop {
            let before = self.text.space();
            if self.text.peek()? == b'}' {
                self.out.extend_from_slice(before);
                break;
            }
            let key = self.text.string()?;
            let after = self.text.space();
            self.text.take(b':')?;
            let between = self.text.space();
            let field = fields.get_key_value(&*content(key)?);
            // One that is there twice is written once: its value is the one that counted when it was parsed.
            match field.filter(|(name, _)| written.insert(name.as_str())) {
                Some((_, value)) => {
                    self.comma(written.len());
                    for part in [before, key, after, b":", between] {
                        self.out.extend_from_slice(part);
                    }
                    self.value(value)?;
                    let rest = self.text.space();
                    self.out.extend_from_slice(rest);
                }
                None => self.pass()?,
            }
            self.go_on()?;
        }
        if written.len() < fields.len() {
            for (name, value) in fields {
                if written.insert(name.as_str()) {
                    self.comma(written.len());
                    self.new_text(name);
                    self.out.push(b':');
                    self.new_value(value);
                }
            }
        }
        self.end(b'}')
    }

    fn array(&mut self, items: &[Value]) -> Option<()> {
        self.begin(b'[')?;
        let mut left = items.iter().zip(1..);
        loop {
            let before = self.text.space();
            if self.text.peek()? == b']' {
                self.out.extend_from_slice(before);
                break;
            }
            match left.next() {
                Some((item, number)) => {
                    self.comma(number);
                    self.out.extend_from_slice(before);
                    self.value(item)?;
                    let rest = self.text.space();
                    self.out.extend_from_slice(rest);
                }
                None => self.pass()?,
            }
            self.go_on()?;
        }
        for (item, number) in left {
            self.comma(number);
            self.new_value(item);
        }
        self.end(b']')
    }

    fn begin(&mut self, bracket: u8) -> Option<()> {
        self.out.push(bracket);
        self.text.take(bracket)
    }

    fn end(&mut self, bracket: u8) -> Option<()> {
        self.out.push(bracket);
        self.text.take(bracket)
    }

    /// Before the member of this number, which is 1 for the first.
    fn comma(&mut self, number: usize) {
        if number > 1 {
            self.out.push(b',');
        }
    }

    /// To the next member, if there is one.
    fn go_on(&mut self) -> Option<()> {
        match self.text.peek()? {
            b',' => self.text.take(b','),
            b'}' | b']' => Some(()),
            _ => None,
        }
    }

    /// Over a value that is not there any more.
    fn pass(&mut self) -> Option<()> {
        self.text.value()?;
        self.text.space();
        Some(())
    }

    fn new_value(&mut self, value: &Value) {
        // Neither a value nor memory refuses to be written.
        serde_json::to_writer(&mut self.out, value).ok();
    }

    fn new_text(&mut self, text: &str) {
        serde_json::to_writer(&mut self.out, text).ok();
    }
}

/// Returns true if this text would parse to the value.
fn says(token: &[u8], value: &Value) -> bool {
    match value {
        Value::Null => token == b"null",
        Value::Bool(true) => token == b"true",
        Value::Bool(false) => token == b"false",
        Value::Number(number) => {
            serde_json::from_slice::<Number>(token).is_ok_and(|written| written == *number)
        }
        Value::String(text) => {
            token.first() == Some(&b'"') && content(token).is_some_and(|written| written == *text)
        }
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// The content of a quoted string.
fn content(token: &[u8]) -> Option<Cow<'_, str>> {
    if token.contains(&b'\\') {
        return serde_json::from_slice(token).ok().map(Cow::Owned);
    }
    let inner = token.get(1..token.len().checked_sub(1)?)?;
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}

#[cfg(test)]
mod tests;
