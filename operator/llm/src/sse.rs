//! Server-sent events, cut into whole events without changing a byte.

use crate::StreamError;

/// Most bytes of one event. A provider's largest are whole images as base64.
pub const EVENT_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// Most bytes of one round's events, as far as they are kept until it is over.
pub const ROUND_LIMIT_BYTES: usize = 4 * EVENT_LIMIT_BYTES;

/// Bytes of events that are kept of one round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundSize(usize);

impl RoundSize {
    pub(super) fn bytes(self) -> usize {
        self.0
    }

    pub(super) fn add(&mut self, bytes: usize) -> Result<(), StreamError> {
        self.0 = self.0.saturating_add(bytes);
        let is_within = self.0 <= ROUND_LIMIT_BYTES;
        is_within.then_some(()).ok_or(StreamError::LongRound { limit: ROUND_LIMIT_BYTES })
    }
}

/// Collects bytes that are cut anywhere into whole events.
#[derive(Debug, Default)]
pub struct EventSplitter {
    held: Vec<u8>,
    /// The length of `held` that was searched for an end.
    searched: usize,
}

/// One event: its bytes as they came, with the blank line that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEvent(pub Vec<u8>);

impl EventSplitter {
    /// Takes bytes and gives every event that they complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<RawEvent>, StreamError> {
        self.held.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut start = 0;
        let mut from = self.searched;
        while let Some(end) = event_end(&self.held, from) {
            events.push(RawEvent(self.held[start..end].to_vec()));
            (start, from) = (end, end);
        }
        self.held.drain(..start);
        // An end of up to four bytes may have begun.
        self.searched = self.held.len().saturating_sub(3);
        if self.held.len() > EVENT_LIMIT_BYTES {
            return Err(StreamError::TooLarge { limit: EVENT_LIMIT_BYTES });
        }
        Ok(events)
    }

    /// The rest at the end of a stream: an event without its blank line, or nothing.
    pub fn rest(&mut self) -> Option<RawEvent> {
        self.searched = 0;
        let held = std::mem::take(&mut self.held);
        (!held.is_empty()).then_some(RawEvent(held))
    }
}

/// The end of the first event that has its blank line at or after `from`: LF LF, CR CR, or CR LF CR LF, also mixed.
fn event_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while at < bytes.len() {
        let first = line_end(bytes, at)?;
        if first == at {
            at += 1;
            continue;
        }
        match line_end(bytes, first) {
            Some(second) if second > first => return Some(second),
            Some(_) => at = first,
            None => return None,
        }
    }
    None
}

/// The position after a line end at `at`; `at` itself if there is none. None if the next bytes must decide.
fn line_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'\n' => Some(at + 1),
        // A CR may be the first half of a CR LF that is cut here.
        b'\r' => Some(if *bytes.get(at + 1)? == b'\n' { at + 2 } else { at + 1 }),
        _ => Some(at),
    }
}

impl RawEvent {
    /// The event's type from its last `event:` line.
    pub fn event_type(&self) -> Option<&str> {
        self.fields().filter(|(name, _)| *name == b"event").last().and_then(|(_, value)| text(value))
    }

    /// The event's `data:` lines, joined by line feeds. None without any, or where they are not UTF-8.
    pub fn data(&self) -> Option<String> {
        let mut lines = self.fields().filter(|(name, _)| *name == b"data").map(|(_, value)| text(value));
        let mut data = lines.next()??.to_owned();
        for line in lines {
            data.push('\n');
            data.push_str(line?);
        }
        Some(data)
    }

    fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty()).map(|line| {
            let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            let value = line.get(colon + 1..).unwrap_or_default();
            (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
        })
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Writes one event, as a provider would.
pub fn write(event_type: Option<&str>, data: &str, out: &mut Vec<u8>) {
    if let Some(event_type) = event_type {
        out.extend_from_slice(format!("event: {event_type}\n").as_bytes());
    }
    for line in data.split('\n') {
        out.extend_from_slice(format!("data: {line}\n").as_bytes());
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(parts: &[&[u8]]) -> (Vec<Vec<u8>>, Option<Vec<u8>>) {
        let mut splitter = EventSplitter::default();
        let mut events = Vec::new();
        for part in parts {
            events.extend(splitter.feed(part).unwrap().into_iter().map(|event| event.0));
        }
        (events, splitter.rest().map(|event| event.0))
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_cut() {
        let whole: &[u8] = b"event: a\ndata: 1\n\ndata: 2\r\n\r\n: ping\r\rdata: 3\n\n";
        let expected = split(&[whole]);
        assert_eq!(expected.0.len(), 4);
        assert_eq!(expected.0.concat(), whole);
        for cut in 0..whole.len() {
            assert_eq!(split(&[&whole[..cut], &whole[cut..]]), expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = whole.chunks(1).collect();
        assert_eq!(split(&bytes), expected);
    }

    #[test]
    fn the_last_event_may_lack_its_blank_line() {
        let (events, rest) = split(&[b"data: 1\n\ndata: [DONE]\n"]);
        assert_eq!((events.len(), rest.as_deref()), (1, Some(&b"data: [DONE]\n"[..])));
    }

    #[test]
    fn type_and_data_are_read_from_their_lines() {
        let event = RawEvent(b"event: message_stop\ndata: {\"a\":\ndata:1}\nid: 4\n\n".to_vec());
        assert_eq!(event.event_type(), Some("message_stop"));
        assert_eq!(event.data().as_deref(), Some("{\"a\":\n1}"));
        assert_eq!(RawEvent(b": comment\n\n".to_vec()).data(), None);
        assert_eq!(RawEvent(b"data: \xff\n\n".to_vec()).data(), None);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut out = Vec::new();
        write(Some("x"), "{}", &mut out);
        assert_eq!(out, b"event: x\ndata: {}\n\n");
        assert_eq!(RawEvent(out).data().as_deref(), Some("{}"));
    }

    #[test]
    fn an_event_without_end_is_refused_before_it_fills_the_memory() {
        let mut splitter = EventSplitter::default();
        let block = vec![b'x'; 1024 * 1024];
        let refused = (0..20).find_map(|_| splitter.feed(&block).err());
        assert_eq!(refused, Some(StreamError::TooLarge { limit: EVENT_LIMIT_BYTES }));
    }
}
