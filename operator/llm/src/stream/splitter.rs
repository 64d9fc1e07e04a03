//! The bytes of one round, cut into the pieces that a dialect reads.

use serde_json::Value;

use super::StreamError;
use crate::sse::{EventSplitter, RawEvent};

/// Cuts the bytes of one round into pieces.
pub(crate) trait Splitter: Default + Send {
    type Piece: Send;

    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Self::Piece>, StreamError>;

    /// The piece that the end of the stream completes, and the splitter of the next round.
    fn rest(&mut self) -> Option<Self::Piece>;

    /// The bytes of a piece of which the rest is missing: JSON that does not parse.
    fn half(piece: &Self::Piece) -> Option<&[u8]>;

    /// Returns true if a blank line ends each piece, which the last one may lack.
    fn has_blank_lines(&self) -> bool {
        true
    }
}

/// A server-sent event: its bytes, and its data if they are JSON.
pub(crate) struct SseEvent {
    pub(crate) raw: RawEvent,
    pub(crate) data: Option<Value>,
}

impl From<RawEvent> for SseEvent {
    fn from(raw: RawEvent) -> Self {
        let data = raw.data().and_then(|data| serde_json::from_str(&data).ok());
        Self { raw, data }
    }
}

impl Splitter for EventSplitter {
    type Piece = SseEvent;

    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, StreamError> {
        Ok(Self::feed(self, bytes)?.into_iter().map(SseEvent::from).collect())
    }

    fn rest(&mut self) -> Option<SseEvent> {
        Self::rest(self).map(SseEvent::from)
    }

    fn half(piece: &SseEvent) -> Option<&[u8]> {
        let data = piece.raw.data().filter(|_| piece.data.is_none())?;
        data.trim_start().starts_with('{').then_some(&piece.raw.0)
    }
}
