//! The length of a request's body, and its end. Stricter than servers are, for what one server reads as a body is the next
//! request to another.

use bytes::BytesMut;

use super::Mismatch;

/// Longest line with the length of a chunk.
const MAX_CHUNK_LINE: usize = 256;
/// Most bytes of the headers after the last chunk.
const MAX_TRAILERS: usize = 8 << 10;
/// Digits of a chunk's length.
const MAX_DIGITS: usize = 15;

/// The body of one request, and the part of it that is to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Done,
    Sized(u64),
    Chunked(Chunked),
}

/// A body in chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunked {
    /// The line that is read: a length, the end of a chunk, or a header after the last chunk.
    line: Vec<u8>,
    part: Part,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Length,
    Data(u64),
    DataEnd,
    Trailers {
        bytes: usize,
    },
}

impl Body {
    /// Reads the length of a body from the headers of its request.
    pub(super) fn of(headers: &[httparse::Header<'_>], is_http_1_1: bool) -> Result<Self, Mismatch> {
        let named = |name: &str| {
            let mut values = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
            match (values.next(), values.next()) {
                (value, None) => Ok(value.map(|header| header.value.trim_ascii())),
                (_, Some(_)) => Err(Mismatch),
            }
        };
        match (named("transfer-encoding")?, named("content-length")?) {
            (None, None) => Ok(Self::Done),
            (None, Some(length)) => number(length, 10).map(Self::sized),
            (Some(coding), None) if is_http_1_1 && coding.eq_ignore_ascii_case(b"chunked") => {
                Ok(Self::Chunked(Chunked::default()))
            }
            (Some(_), _) => Err(Mismatch),
        }
    }

    fn sized(length: u64) -> Self {
        if length == 0 { Self::Done } else { Self::Sized(length) }
    }

    /// Takes the bytes of this body off `bytes`, and adds them to `out`.
    pub(super) fn pass(&mut self, bytes: &mut &[u8], out: &mut BytesMut) -> Result<(), Mismatch> {
        match self {
            Self::Done => {}
            Self::Sized(left) => {
                *left -= carry(*left, bytes, out);
                if *left == 0 {
                    *self = Self::Done;
                }
            }
            Self::Chunked(chunked) => {
                if chunked.pass(bytes, out)? {
                    *self = Self::Done;
                }
            }
        }
        Ok(())
    }
}

impl Chunked {
    /// True at the end of the body.
    fn pass(&mut self, bytes: &mut &[u8], out: &mut BytesMut) -> Result<bool, Mismatch> {
        while !bytes.is_empty() {
            if let Part::Data(left) = &mut self.part {
                *left -= carry(*left, bytes, out);
                if *left == 0 {
                    self.part = Part::DataEnd;
                }
                continue;
            }
            if !self.read_line(bytes)? {
                return Ok(false);
            }
            let line = std::mem::take(&mut self.line);
            out.extend_from_slice(&line);
            let line = line.strip_suffix(b"\r\n").ok_or(Mismatch)?;
            self.part = match self.part {
                Part::Length => match length(line)? {
                    0 => Part::Trailers { bytes: 0 },
                    length => Part::Data(length),
                },
                Part::DataEnd if line.is_empty() => Part::Length,
                Part::Trailers { .. } if line.is_empty() => return Ok(true),
                Part::Trailers { bytes } if bytes + line.len() <= MAX_TRAILERS => {
                    Part::Trailers { bytes: bytes + line.len() }
                }
                Part::DataEnd | Part::Trailers { .. } | Part::Data(_) => return Err(Mismatch),
            };
        }
        Ok(false)
    }

    /// Adds bytes to the line; true when it is whole.
    fn read_line(&mut self, bytes: &mut &[u8]) -> Result<bool, Mismatch> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (part, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        self.line.extend_from_slice(part);
        *bytes = rest;
        let limit = if matches!(self.part, Part::Trailers { .. }) { MAX_TRAILERS } else { MAX_CHUNK_LINE };
        if self.line.len() > limit {
            return Err(Mismatch);
        }
        // A carriage return alone ends a line for some servers.
        let is_bare = |pair: &[u8]| pair[0] == b'\r' && pair[1] != b'\n';
        if self.line.windows(2).any(is_bare) {
            return Err(Mismatch);
        }
        Ok(end.is_some())
    }
}

/// Carries at most `left` bytes, and returns their number.
fn carry(left: u64, bytes: &mut &[u8], out: &mut BytesMut) -> u64 {
    let length = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    let (carried, rest) = bytes.split_at(length);
    out.extend_from_slice(carried);
    *bytes = rest;
    length as u64
}

/// The length of a chunk; what follows after a semicolon is of no meaning, but must be plain.
fn length(line: &[u8]) -> Result<u64, Mismatch> {
    let end = line.iter().position(|byte| *byte == b';').unwrap_or(line.len());
    let (digits, extension) = line.split_at(end);
    if extension.iter().any(|byte| !matches!(byte, b'\t' | b' '..=b'~')) {
        return Err(Mismatch);
    }
    number(digits, 16)
}

/// Reads digits, and nothing but digits.
fn number(digits: &[u8], radix: u32) -> Result<u64, Mismatch> {
    let is_plain = (1..=MAX_DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_found| is_plain).ok_or(Mismatch)?;
    u64::from_str_radix(text, radix).map_err(|_| Mismatch)
}
