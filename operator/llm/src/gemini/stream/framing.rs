//! The framing of a Gemini stream: server-sent events (`alt=sse`), or the items of one JSON list.
//!
//! Reads either and writes the same again. The bytes of a chunk are never changed here, and what is neither is one
//! piece that belongs to no chunk.

use std::mem;

use serde_json::Value;

use crate::{
    StreamError,
    sse::{self, EVENT_LIMIT_BYTES, EventSplitter, RawEvent},
    stream::{Splitter, SseEvent},
};

/// A piece of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// An event, or an item of the list with what stands before it; and its JSON, where it is some.
    Chunk { before: Vec<u8>, bytes: Vec<u8>, json: Option<Value> },
    /// The end of the list, with what stands before it.
    Close(Vec<u8>),
    /// Neither.
    Other(Vec<u8>),
}

/// Cuts the bytes of one round into pieces.
#[derive(Debug, Default)]
pub(crate) enum Framing {
    /// Only blanks came so far.
    #[default]
    Unknown,
    Events(EventSplitter),
    List(ListSplitter),
}

impl Splitter for Framing {
    type Piece = Piece;

    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Piece>, StreamError> {
        let mut pieces = Vec::new();
        let mut bytes = bytes;
        if matches!(self, Self::Unknown) {
            let begin = bytes.iter().position(|byte| !byte.is_ascii_whitespace());
            let (blanks, rest) = bytes.split_at(begin.unwrap_or(bytes.len()));
            if !blanks.is_empty() {
                pieces.push(Piece::Other(blanks.to_vec()));
            }
            match rest.first() {
                None => {}
                Some(b'[') => *self = Self::List(ListSplitter::default()),
                Some(_) => *self = Self::Events(EventSplitter::default()),
            }
            bytes = rest;
        }
        match self {
            Self::Unknown => {}
            Self::Events(events) => pieces.extend(EventSplitter::feed(events, bytes)?.into_iter().map(event)),
            Self::List(list) => list.feed(bytes, &mut pieces)?,
        }
        Ok(pieces)
    }

    /// Half an item of a list is dropped: a client could not read it, and it may be a skill call.
    fn rest(&mut self) -> Option<Piece> {
        match mem::take(self) {
            Self::Unknown => None,
            Self::Events(mut events) => EventSplitter::rest(&mut events).map(event),
            Self::List(list) => Some(Piece::Other(list.before)).filter(|_| list.item.is_empty()),
        }
    }

    fn half(piece: &Piece) -> Option<&[u8]> {
        match piece {
            Piece::Chunk { before: _, bytes, json: None } => {
                let data = RawEvent(bytes.clone()).data()?;
                data.trim_start().starts_with('{').then_some(bytes)
            }
            Piece::Chunk { .. } | Piece::Close(_) | Piece::Other(_) => None,
        }
    }

    fn has_blank_lines(&self) -> bool {
        !matches!(self, Self::List(_))
    }
}

fn event(raw: RawEvent) -> Piece {
    let SseEvent { raw, data: json } = raw.into();
    Piece::Chunk { before: Vec::new(), bytes: raw.0, json }
}

/// Cuts a list of objects into its items.
#[derive(Debug, Default)]
pub(crate) struct ListSplitter {
    state: ListState,
    /// The bytes between the last item and the next.
    before: Vec<u8>,
    item: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum ListState {
    #[default]
    Unopened,
    Between,
    Inside {
        depth: usize,
        is_text: bool,
        is_escaped: bool,
    },
    /// After the list, or where it is none.
    Outside,
}

impl ListSplitter {
    fn feed(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<(), StreamError> {
        for byte in bytes {
            self.take(*byte, pieces);
        }
        if matches!(self.state, ListState::Outside) && !self.before.is_empty() {
            pieces.push(Piece::Other(mem::take(&mut self.before)));
        }
        if self.before.len() + self.item.len() > EVENT_LIMIT_BYTES {
            return Err(StreamError::TooLarge { limit: EVENT_LIMIT_BYTES });
        }
        Ok(())
    }

    fn take(&mut self, byte: u8, pieces: &mut Vec<Piece>) {
        if let ListState::Inside { depth, is_text, is_escaped } = self.state {
            self.item.push(byte);
            self.state = inside(byte, depth, is_text, is_escaped);
            if matches!(self.state, ListState::Between) {
                let (before, bytes) = (mem::take(&mut self.before), mem::take(&mut self.item));
                let json = serde_json::from_slice(&bytes).ok();
                pieces.push(Piece::Chunk { before, bytes, json });
            }
            return;
        }
        match (self.state, byte) {
            (ListState::Between, b'{') => {
                self.item.push(byte);
                self.state = ListState::Inside { depth: 1, is_text: false, is_escaped: false };
                return;
            }
            (ListState::Unopened, b'[') => self.state = ListState::Between,
            (ListState::Between, b']') => {
                self.before.push(byte);
                pieces.push(Piece::Close(mem::take(&mut self.before)));
                self.state = ListState::Outside;
                return;
            }
            (ListState::Between, b',') | (_, b' ' | b'\t' | b'\r' | b'\n') => {}
            _ => self.state = ListState::Outside,
        }
        self.before.push(byte);
    }
}

fn inside(byte: u8, depth: usize, is_text: bool, is_escaped: bool) -> ListState {
    let depth = match byte {
        b'{' if !is_text => depth + 1,
        b'}' if !is_text => depth.saturating_sub(1),
        _ => depth,
    };
    match (depth, is_text && !is_escaped, byte) {
        (0, ..) => ListState::Between,
        (_, true, b'\\') => ListState::Inside { depth, is_text, is_escaped: true },
        (_, true, b'"') => ListState::Inside { depth, is_text: false, is_escaped: false },
        (_, false, b'"') if !is_text => ListState::Inside { depth, is_text: true, is_escaped: false },
        _ => ListState::Inside { depth, is_text, is_escaped: false },
    }
}

/// Writes the pieces of all rounds as one stream of the same wrapping.
#[derive(Clone, Debug, Default)]
pub(super) struct Writer {
    is_list: bool,
    progress: Progress,
}

/// Progress of a list that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    Nothing,
    Items,
    Closed,
}

impl Writer {
    /// The wrapping is that of the stream that is read.
    pub(super) fn follow(&mut self, framing: &Framing) {
        self.is_list |= matches!(framing, Framing::List(_));
    }

    pub(super) fn pass(&mut self, before: &[u8], bytes: &[u8], out: &mut Vec<u8>) {
        self.lead(before, out);
        out.extend_from_slice(bytes);
    }

    pub(super) fn write(&mut self, before: &[u8], chunk: &Value, out: &mut Vec<u8>) {
        self.lead(before, out);
        let text = chunk.to_string();
        if self.is_list {
            out.extend_from_slice(text.as_bytes());
        } else {
            sse::write(None, &text, out);
        }
    }

    /// Writes the bytes before a chunk: as they came, unless earlier chunks were left out or belong to another round.
    fn lead(&mut self, before: &[u8], out: &mut Vec<u8>) {
        if !self.is_list {
            return;
        }
        let (mark, as_written): (u8, &[u8]) = match self.progress {
            Progress::Nothing => (b'[', b"["),
            Progress::Items | Progress::Closed => (b',', b",\r\n"),
        };
        let fits = before.iter().filter(|byte| !byte.is_ascii_whitespace()).eq([&mark]);
        out.extend_from_slice(if fits { before } else { as_written });
        self.progress = Progress::Items;
    }

    /// Ends the list, once: `as_it_came` where the end of this round is the end of the list.
    pub(super) fn close(&mut self, as_it_came: &[u8], out: &mut Vec<u8>) {
        if !self.is_list {
            return;
        }
        let opens = as_it_came.contains(&b'[');
        out.extend_from_slice(match self.progress {
            Progress::Nothing if opens => as_it_came,
            Progress::Nothing => b"[]",
            Progress::Items if opens => b"\n]",
            Progress::Items => as_it_came,
            Progress::Closed => b"",
        });
        self.progress = Progress::Closed;
    }
}

#[cfg(test)]
mod tests;
