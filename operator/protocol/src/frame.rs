//! The wire frame: one byte of type, four of length (big-endian), the payload.
//!
//! This module knows the types of frames, their direction and their greatest length. `message` knows the payloads.
//!
//! [`Decoder`] never panics. It checks a header before it waits for the payload, so a hostile length costs no memory,
//! and after an error it returns the same error forever, because a stream without frame borders cannot be resumed.

use crate::network::MAX_DATA_PAYLOAD;
use crate::{MAX_CONTROL_BYTES, MAX_OUTPUT_BYTES, MAX_RUN_BYTES, MAX_TAIL_BYTES};

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 5;

/// The type byte. Types with the high bit go to the operator; 0x10 to 0x1f and 0x90 to 0x9f are of `network`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    Hello = 0x01,
    Run = 0x02,
    Cancel = 0x03,
    Input = 0x04,
    ChannelOpened = 0x10,
    ChannelReceived = 0x11,
    BrokerWindow = 0x12,
    BrokerClose = 0x13,
    Ready = 0x81,
    Accepted = 0x82,
    Stdout = 0x83,
    Stderr = 0x84,
    StdoutTail = 0x85,
    StderrTail = 0x86,
    Refused = 0x87,
    Exit = 0x88,
    ChannelOpen = 0x90,
    ChannelWritten = 0x91,
    RunnerWindow = 0x92,
    RunnerClose = 0x93,
    ConnectionRefused = 0x94,
}

/// The receiver of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToRunner,
    ToOperator,
}

impl Kind {
    pub const ALL: [Self; 21] = [
        Self::Hello,
        Self::Run,
        Self::Cancel,
        Self::Input,
        Self::ChannelOpened,
        Self::ChannelReceived,
        Self::BrokerWindow,
        Self::BrokerClose,
        Self::Ready,
        Self::Accepted,
        Self::Stdout,
        Self::Stderr,
        Self::StdoutTail,
        Self::StderrTail,
        Self::Refused,
        Self::Exit,
        Self::ChannelOpen,
        Self::ChannelWritten,
        Self::RunnerWindow,
        Self::RunnerClose,
        Self::ConnectionRefused,
    ];

    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// True for a frame of a program's connections.
    pub fn is_network(self) -> bool {
        matches!(self as u8 & 0x7f, 0x10..=0x1f)
    }

    pub fn direction(self) -> Direction {
        if self as u8 & 0x80 == 0 { Direction::ToRunner } else { Direction::ToOperator }
    }

    pub fn max_payload(self) -> usize {
        match self {
            Self::Run => MAX_RUN_BYTES,
            Self::Input | Self::Stdout | Self::Stderr => MAX_OUTPUT_BYTES,
            Self::StdoutTail | Self::StderrTail => MAX_TAIL_BYTES,
            Self::ChannelReceived | Self::ChannelWritten => MAX_DATA_PAYLOAD,
            Self::Hello
            | Self::Cancel
            | Self::ChannelOpened
            | Self::BrokerWindow
            | Self::BrokerClose
            | Self::Ready
            | Self::Accepted
            | Self::Refused
            | Self::Exit
            | Self::ChannelOpen
            | Self::RunnerWindow
            | Self::RunnerClose
            | Self::ConnectionRefused => MAX_CONTROL_BYTES,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("the stream holds an unknown frame type 0x{0:02x}")]
    UnknownKind(u8),
    #[error("a {kind:?} frame is not allowed in the direction {direction:?}")]
    WrongDirection { kind: Kind, direction: Direction },
    #[error("a {kind:?} frame of {length} bytes is over the limit of {} bytes", kind.max_payload())]
    Oversized { kind: Kind, length: usize },
}

/// One received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: Kind,
    pub payload: Vec<u8>,
}

impl Frame {
    /// The header this frame had on the wire.
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        header(self.kind, self.payload.len())
    }
}

fn header(kind: Kind, length: usize) -> [u8; HEADER_BYTES] {
    let length = u32::try_from(length).expect("every limit fits in u32 and is checked before").to_be_bytes();
    [kind as u8, length[0], length[1], length[2], length[3]]
}

/// Encodes one frame; the only error is a payload over the limit of its type.
pub fn encode(kind: Kind, payload: &[u8]) -> Result<Vec<u8>, FrameError> {
    if payload.len() > kind.max_payload() {
        return Err(FrameError::Oversized { kind, length: payload.len() });
    }
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&header(kind, payload.len()));
    bytes.extend_from_slice(payload);
    Ok(bytes)
}

/// Turns received bytes into frames, wherever the bytes are cut.
#[derive(Debug)]
pub struct Decoder {
    direction: Direction,
    buffer: Vec<u8>,
    start: usize,
    failed: Option<FrameError>,
}

impl Decoder {
    /// Accepts only frames of `direction`; any other is an error.
    pub fn new(direction: Direction) -> Self {
        Self { direction, buffer: Vec::new(), start: 0, failed: None }
    }

    /// Number of received bytes that are not yet part of a returned frame.
    pub fn buffered(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Adds received bytes. Pop all frames before the next push and memory stays within one frame and one push.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        // Moved to the front once per push, not once per frame, so that many small frames cost linear time.
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next frame, or `None` if more bytes are needed.
    pub fn pop(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let result = self.parse();
        if let Err(error) = &result {
            self.failed = Some(error.clone());
            self.buffer = Vec::new();
            self.start = 0;
        }
        result
    }

    fn parse(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = &self.buffer[self.start..];
        let Some(first) = rest.first() else { return Ok(None) };
        let kind = Kind::from_byte(*first).ok_or(FrameError::UnknownKind(*first))?;
        if kind.direction() != self.direction {
            return Err(FrameError::WrongDirection { kind, direction: self.direction });
        }
        let Some(length) = rest.get(1..HEADER_BYTES) else { return Ok(None) };
        let length = length.iter().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte));
        if length > kind.max_payload() {
            return Err(FrameError::Oversized { kind, length });
        }
        let Some(payload) = rest.get(HEADER_BYTES..HEADER_BYTES + length) else { return Ok(None) };
        let frame = Frame { kind, payload: payload.to_vec() };
        self.start += HEADER_BYTES + length;
        if self.start == self.buffer.len() {
            // A large frame must not leave its size behind in a runner that shares its memory with a program.
            self.buffer = Vec::new();
            self.start = 0;
        }
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(decoder: &mut Decoder) -> Result<Vec<Frame>, FrameError> {
        let mut all = Vec::new();
        while let Some(frame) = decoder.pop()? {
            all.push(frame);
        }
        Ok(all)
    }

    #[test]
    fn a_frame_can_arrive_split_anywhere() {
        let mut bytes = encode(Kind::Stdout, b"one").unwrap();
        bytes.extend(encode(Kind::Stderr, b"").unwrap());
        bytes.extend(encode(Kind::Accepted, b"{}").unwrap());
        for cut in 0..=bytes.len() {
            let mut decoder = Decoder::new(Direction::ToOperator);
            decoder.push(&bytes[..cut]);
            let mut got = frames(&mut decoder).unwrap();
            decoder.push(&bytes[cut..]);
            got.extend(frames(&mut decoder).unwrap());
            let kinds: Vec<_> = got.iter().map(|frame| frame.kind).collect();
            assert_eq!(kinds, [Kind::Stdout, Kind::Stderr, Kind::Accepted], "cut at {cut}");
            assert_eq!(got[0].payload, b"one");
            assert_eq!(decoder.buffered(), 0);
        }
    }

    #[test]
    fn each_kind_has_its_own_byte_and_comes_back() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_byte(kind as u8), Some(kind));
            let bytes = encode(kind, b"x").unwrap();
            let mut decoder = Decoder::new(kind.direction());
            decoder.push(&bytes);
            let frame = decoder.pop().unwrap().unwrap();
            assert_eq!((frame.kind, frame.header().as_slice()), (kind, &bytes[..HEADER_BYTES]));
        }
        assert_eq!(Kind::from_byte(0), None);
    }

    #[test]
    fn an_unknown_type_is_an_error_forever() {
        let mut decoder = Decoder::new(Direction::ToOperator);
        decoder.push(&[0x7f]);
        assert_eq!(decoder.pop(), Err(FrameError::UnknownKind(0x7f)));
        decoder.push(&encode(Kind::Stdout, b"late").unwrap());
        assert_eq!(decoder.pop(), Err(FrameError::UnknownKind(0x7f)));
        assert_eq!(decoder.buffered(), 0, "bytes after an error are not kept");
    }

    #[test]
    fn a_frame_of_the_other_direction_is_an_error() {
        let mut decoder = Decoder::new(Direction::ToRunner);
        decoder.push(&encode(Kind::Exit, b"{}").unwrap());
        let direction = Direction::ToRunner;
        assert_eq!(decoder.pop(), Err(FrameError::WrongDirection { kind: Kind::Exit, direction }));
    }

    #[test]
    fn a_length_over_the_limit_is_an_error_before_the_payload_comes() {
        for kind in Kind::ALL {
            let mut decoder = Decoder::new(kind.direction());
            decoder.push(&[kind as u8, 0xff, 0xff, 0xff, 0xff]);
            let length = u32::MAX as usize;
            assert_eq!(decoder.pop(), Err(FrameError::Oversized { kind, length }));
            let over = vec![0; kind.max_payload() + 1];
            let length = over.len();
            assert_eq!(encode(kind, &over), Err(FrameError::Oversized { kind, length }));
        }
    }

    #[test]
    fn the_largest_frame_passes() {
        let payload = vec![7; MAX_RUN_BYTES];
        let mut decoder = Decoder::new(Direction::ToRunner);
        for chunk in encode(Kind::Run, &payload).unwrap().chunks(100_000) {
            assert_eq!(decoder.pop(), Ok(None));
            decoder.push(chunk);
        }
        assert_eq!(decoder.pop().unwrap().unwrap().payload, payload);
        assert_eq!(decoder.buffer.capacity(), 0);
    }
}
