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

/// Most bytes of a body, and what becomes of a longer one.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimit {
    pub(super) bytes: u64,
    pub(super) cuts: bool,
}

/// Reads a body as the host sent it, and returns true if it was cut.
pub(super) async fn read(mut body: Incoming, limit: BodyLimit) -> Result<(Vec<u8>, bool), EgressResult> {
    let BodyLimit { bytes: limit, cuts } = limit;
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| super::broken(&error))?;
        let Ok(mut data) = frame.into_data() else { continue };
        let room = usize::try_from(limit).unwrap_or(usize::MAX) - read.len();
        if data.remaining() > room {
            if !cuts {
                return Err(EgressResult::BodyTooLarge { limit });
            }
            read.extend_from_slice(&data.copy_to_bytes(room));
            return Ok((read, true));
        }
        while data.has_remaining() {
            let chunk: Bytes = data.copy_to_bytes(data.remaining());
            read.extend_from_slice(&chunk);
        }
    }
    Ok((read, false))
}

/// Decodes a body, removes the headers that told of its encoding, and returns true if the body was cut.
pub(super) fn decode(
    headers: &mut HeaderMap,
    (body, is_cut): (Vec<u8>, bool),
    limit: BodyLimit,
) -> Result<(Vec<u8>, bool), EgressResult> {
    let broken = |message: &str| EgressResult::Broken { message: message.to_owned() };
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let encoding = match (encodings.next(), encodings.next()) {
        (None, _) => return Ok((body, is_cut)),
        (Some(encoding), None) => encoding.as_bytes().trim_ascii().to_ascii_lowercase(),
        (Some(_), Some(_)) => return Err(broken("the body is encoded more than once")),
    };
    let decoded = match encoding.as_slice() {
        b"identity" | b"" => return Ok((body, is_cut)),
        // A response without a body keeps the header of the one that it stands for.
        _ if body.is_empty() => return Ok((body, is_cut)),
        b"gzip" | b"x-gzip" => expand(MultiGzDecoder::new(body.as_slice()), is_cut, limit),
        // RFC 9110 means zlib; some servers send the bare stream.
        b"deflate" if is_zlib(&body) => expand(ZlibDecoder::new(body.as_slice()), is_cut, limit),
        b"deflate" => expand(DeflateDecoder::new(body.as_slice()), is_cut, limit),
        _ => return Err(broken("the body has an encoding that was not asked for")),
    }?;
    headers.remove(header::CONTENT_ENCODING);
    headers.remove(header::CONTENT_LENGTH);
    Ok(decoded)
}

fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [first, second, ..] if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)).is_multiple_of(31))
}

/// Reads a stream, of which only the beginning is there if it `is_cut`.
fn expand(
    stream: impl Read,
    is_cut: bool,
    BodyLimit { bytes: limit, cuts }: BodyLimit,
) -> Result<(Vec<u8>, bool), EgressResult> {
    let mut decoded = Vec::new();
    let read = stream.take(limit.saturating_add(1)).read_to_end(&mut decoded);
    let is_longer = decoded.len() as u64 > limit;
    match read {
        Err(_) if !is_cut => {
            return Err(EgressResult::Broken { message: "the body is not of its encoding".to_owned() });
        }
        _ if is_longer && !cuts => return Err(EgressResult::BodyTooLarge { limit }),
        _ => {}
    }
    decoded.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok((decoded, is_cut || is_longer))
}
