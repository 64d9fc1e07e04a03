//! Tokens of a response, read from its bytes as they pass. No I/O.
//!
//! Every dialect writes them into an object `usage` or `usageMetadata`, at the beginning or at the end. Only these parts
//! of a response are kept. A response without such an object is estimated.

use std::ops::AddAssign;

use serde_json::Value;

/// Bytes of the beginning that are kept.
const HEAD: usize = 4 * 1024;
/// Bytes of the end that are kept. Metadata of 16 fields may follow the usage.
const TAIL: usize = 16 * 1024;
/// Bytes of a token in text, about.
const TOKEN_BYTES: u64 = 4;

/// Tokens of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Those of the request, with cached ones.
    pub input: u64,
    /// Those of the response, with thoughts.
    pub output: u64,
}

impl Tokens {
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Reads a usage object of any dialect.
    fn of(usage: &Value) -> Self {
        let count = |name: &str| usage[name].as_u64().unwrap_or_default();
        let sum = |names: &[&str]| names.iter().map(|name| count(name)).fold(0, u64::saturating_add);
        let input = sum(&["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]);
        let google = sum(&["promptTokenCount", "toolUsePromptTokenCount"]);
        let thought = sum(&["candidatesTokenCount", "thoughtsTokenCount"]);
        Self {
            input: count("prompt_tokens").max(input).max(google),
            output: count("completion_tokens").max(count("output_tokens")).max(thought),
        }
    }

    /// Counts of one response grow from event to event.
    fn max(self, other: Self) -> Self {
        Self { input: self.input.max(other.input), output: self.output.max(other.output) }
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
    }
}

/// The parts of one response that may hold its usage.
#[derive(Debug, Default)]
pub struct UsageMeter {
    is_stream: bool,
    head: Vec<u8>,
    tail: Vec<u8>,
    bytes: u64,
    events: u64,
}

impl UsageMeter {
    pub fn new(is_stream: bool) -> Self {
        Self { is_stream, ..Self::default() }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.bytes = self.bytes.saturating_add(chunk.len() as u64);
        if self.is_stream {
            self.events += chunk.windows(2).filter(|pair| pair == b"\n\n").count() as u64;
        }
        let room = HEAD - self.head.len();
        self.head.extend_from_slice(&chunk[..room.min(chunk.len())]);
        self.tail.extend_from_slice(&chunk[chunk.len().saturating_sub(TAIL)..]);
        if self.tail.len() > 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }

    /// The tokens that the response names, else an estimate: a token has four bytes, and an event of a stream one token.
    pub fn tokens(&self, request_bytes: u64) -> Tokens {
        let named = [&self.head, &self.tail].into_iter().flat_map(|part| usages(part)).reduce(Tokens::max);
        named.unwrap_or(Tokens {
            input: request_bytes / TOKEN_BYTES,
            output: if self.is_stream { self.events } else { self.bytes / TOKEN_BYTES },
        })
    }
}

/// Usage objects in a part of a response. In a text of the model's, the quotes of the name have backslashes.
fn usages(part: &[u8]) -> impl Iterator<Item = Tokens> {
    const NAME: &[u8] = b"\"usage";
    let starts = part.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    starts.filter_map(|(at, _)| {
        let rest = &part[at + NAME.len()..];
        let rest = rest.strip_prefix(b"Metadata".as_slice()).unwrap_or(rest);
        let rest = rest.strip_prefix(b"\"".as_slice())?.trim_ascii_start();
        let rest = rest.strip_prefix(b":".as_slice())?.trim_ascii_start();
        let object = serde_json::Deserializer::from_slice(rest).into_iter::<Value>().next()?.ok()?;
        object.is_object().then(|| Tokens::of(&object))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Feeds the text in pieces, and returns input and output.
    fn count(is_stream: bool, text: &str, piece: usize) -> (u64, u64) {
        let mut meter = UsageMeter::new(is_stream);
        text.as_bytes().chunks(piece).for_each(|chunk| meter.feed(chunk));
        let Tokens { input, output } = meter.tokens(400);
        (input, output)
    }

    #[test]
    fn the_usage_of_every_dialect_is_read_whole_and_streamed() {
        let filler = "x".repeat(100_000);
        for (is_stream, text, expected) in [
            (false, json!({ "choices": [filler], "usage": { "prompt_tokens": 7, "completion_tokens": 5 } }).to_string(), (7, 5)),
            // Keys stand in the alphabet's order: here the usage comes first.
            (false, format!("{{\"usage\": {{\"prompt_tokens\": 7, \"total_tokens\": 7}}, \"z\": \"{filler}\"}}"), (7, 0)),
            (false, json!({ "usage": { "input_tokens": 1, "cache_read_input_tokens": 10, "output_tokens": 2 } }).to_string(), (11, 2)),
            (false, json!({ "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 4, "thoughtsTokenCount": 5 } }).to_string(), (3, 9)),
            (
                true,
                format!(
                    "data: {{\"message\":{{\"usage\":{{\"input_tokens\":25,\"output_tokens\":1}}}}}}\n\n: {filler}\n\n\
                     data: {{\"usage\":{{\"output_tokens\":15}}}}\n\n"
                ),
                (25, 15),
            ),
            (true, format!("data: {filler}\r\n\r\ndata: {{\"usageMetadata\" : {{\"promptTokenCount\": 3}}}}\r\n\r\n"), (3, 0)),
        ] {
            for piece in [7, 5_000, usize::MAX >> 1] {
                assert_eq!(count(is_stream, &text, piece), expected, "{piece} {}", &text[..60.min(text.len())]);
            }
        }
    }

    #[test]
    fn a_response_without_usage_is_estimated() {
        assert_eq!(count(false, &"x".repeat(80), 10), (100, 20));
        assert_eq!(count(true, "data: {}\n\ndata: {}\n\n", 1000), (100, 2));
        let quoted = json!({ "text": "\"usage\": {\"prompt_tokens\": 1}" }).to_string();
        assert_eq!(count(false, &quoted, 10).0, 100, "a text of the model's is no usage");
        assert_eq!(count(false, "{\"usage\": null}", 10).0, 100);
    }

    #[test]
    fn little_of_a_response_is_kept() {
        let mut meter = UsageMeter::new(true);
        (0..1000).for_each(|_| meter.feed(&[b'x'; 3_000]));
        assert!(
            meter.head.len() == HEAD && meter.tail.len() <= 2 * TAIL,
            "{} {}",
            meter.head.len(),
            meter.tail.len()
        );
    }
}
