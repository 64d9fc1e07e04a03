//! The body of a response: read, and decoded, each within the same limit.

use std::io::Read;

use bytes::{Buf as _, Bytes};
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::request::EgressResult;

/// Encodings that the broker offers and decodes.
pub(super) const ACCEPTED_ENCODINGS: &str = "gzip, deflate";

/// Reads a body of at most `limit` bytes as the host sent it.
pub(super) async fn read(mut body: Incoming, limit: u64) -> Result<Vec<u8>, EgressResult> {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| super::broken(&error))?;
        let Ok(mut data) = frame.into_data() else { continue };
        if (read.len() + data.remaining()) as u64 > limit {
            return Err(EgressResult::BodyTooLarge { limit });
        }
        while data.has_remaining() {
            let chunk: Bytes = data.copy_to_bytes(data.remaining());
            read.extend_from_slice(&chunk);
        }
    }
    Ok(read)
}

/// Decodes a body, and removes the headers that told of its encoding.
pub(super) fn decode(headers: &mut HeaderMap, body: Vec<u8>, limit: u64) -> Result<Vec<u8>, EgressResult> {
    let broken = |message: &str| EgressResult::Broken { message: message.to_owned() };
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let encoding = match (encodings.next(), encodings.next()) {
        (None, _) => return Ok(body),
        (Some(encoding), None) => encoding.as_bytes().trim_ascii().to_ascii_lowercase(),
        (Some(_), Some(_)) => return Err(broken("the body is encoded more than once")),
    };
    let decoded = match encoding.as_slice() {
        b"identity" | b"" => return Ok(body),
        // A response without a body keeps the header of the one that it stands for.
        _ if body.is_empty() => return Ok(body),
        b"gzip" | b"x-gzip" => expand(MultiGzDecoder::new(body.as_slice()), limit),
        // RFC 9110 means zlib; some servers send the bare stream.
        b"deflate" if is_zlib(&body) => expand(ZlibDecoder::new(body.as_slice()), limit),
        b"deflate" => expand(DeflateDecoder::new(body.as_slice()), limit),
        _ => return Err(broken("the body has an encoding that was not asked for")),
    }?;
    headers.remove(header::CONTENT_ENCODING);
    headers.remove(header::CONTENT_LENGTH);
    Ok(decoded)
}

fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [first, second, ..] if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)).is_multiple_of(31))
}

fn expand(stream: impl Read, limit: u64) -> Result<Vec<u8>, EgressResult> {
    let mut decoded = Vec::new();
    let read = stream.take(limit.saturating_add(1)).read_to_end(&mut decoded);
    match read {
        Err(_) => Err(EgressResult::Broken { message: "the body is not of its encoding".to_owned() }),
        Ok(length) if length as u64 > limit => Err(EgressResult::BodyTooLarge { limit }),
        Ok(_) => Ok(decoded),
    }
}
