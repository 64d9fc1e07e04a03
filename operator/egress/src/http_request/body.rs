//! The body of a response: read, and decoded, each within the same limit and within the memory that there is.

use std::io::Read;

use bytes::{Buf as _, Bytes};
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use skillet_protocol::Verdict;

use super::memory::{OutOfMemory, Reservation};
use crate::request::EgressResult;

/// Encodings that the broker offers and decodes.
pub(super) const ACCEPTED_ENCODINGS: &str = "gzip, deflate";

/// A body is held as bytes, as base64, and in the JSON of the response.
const COPIES: usize = 4;

/// Bytes that are decoded in one step.
const STEP: u64 = 64 << 10;

/// Most bytes of a body, and what becomes of a longer one.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimit {
    pub(super) bytes: u64,
    pub(super) cuts: bool,
}

/// Reads a body as the host sent it, and returns true if it was cut.
pub(super) async fn read(
    mut body: Incoming,
    limit: BodyLimit,
    memory: &mut Reservation,
) -> Result<(Vec<u8>, bool), EgressResult> {
    let BodyLimit { bytes: limit, cuts } = limit;
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| super::broken(&error))?;
        let Ok(mut data) = frame.into_data() else { continue };
        let room = usize::try_from(limit).unwrap_or(usize::MAX) - read.len();
        let is_longer = data.remaining() > room;
        if is_longer && !cuts {
            return Err(EgressResult::BodyTooLarge { limit });
        }
        let chunk: Bytes = data.copy_to_bytes(data.remaining().min(room));
        memory.add(chunk.len() * COPIES).map_err(out_of_memory)?;
        read.extend_from_slice(&chunk);
        if is_longer {
            return Ok((read, true));
        }
    }
    Ok((read, false))
}

/// Decodes a body, removes the headers of its encoding, and returns true if the body was cut.
pub(super) fn decode(
    headers: &mut HeaderMap,
    (body, is_cut): (Vec<u8>, bool),
    limit: BodyLimit,
    memory: &mut Reservation,
) -> Result<(Vec<u8>, bool), EgressResult> {
    let broken = |message: &str| EgressResult::Broken { message: message.to_owned() };
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let encoding = match (encodings.next(), encodings.next()) {
        (None, _) => return Ok((body, is_cut)),
        (Some(encoding), None) => encoding.as_bytes().trim_ascii().to_ascii_lowercase(),
        (Some(_), Some(_)) => return Err(broken("the body is encoded more than once")),
    };
    let mut expand = |stream: &mut dyn Read| expand(stream, is_cut, limit, memory);
    let decoded = match encoding.as_slice() {
        b"identity" | b"" => return Ok((body, is_cut)),
        // A response without a body keeps the header of the one that it stands for.
        _ if body.is_empty() => return Ok((body, is_cut)),
        b"gzip" | b"x-gzip" => expand(&mut MultiGzDecoder::new(body.as_slice())),
        // RFC 9110 means zlib; some servers send the bare stream.
        b"deflate" if is_zlib(&body) => expand(&mut ZlibDecoder::new(body.as_slice())),
        b"deflate" => expand(&mut DeflateDecoder::new(body.as_slice())),
        _ => return Err(broken("the body has an encoding that was not asked for")),
    }?;
    headers.remove(header::CONTENT_ENCODING);
    headers.remove(header::CONTENT_LENGTH);
    Ok(decoded)
}

fn is_zlib(body: &[u8]) -> bool {
    let [first, second, ..] = body else { return false };
    first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)).is_multiple_of(31)
}

/// Reads a stream, of which only the beginning is there if it `is_cut`.
fn expand(
    stream: &mut dyn Read,
    is_cut: bool,
    BodyLimit { bytes: limit, cuts }: BodyLimit,
    memory: &mut Reservation,
) -> Result<(Vec<u8>, bool), EgressResult> {
    let mut decoded = Vec::new();
    loop {
        let before = decoded.len();
        let read = stream.take(STEP).read_to_end(&mut decoded);
        if read.is_err() && !is_cut {
            return Err(EgressResult::Broken { message: "the body is not of its encoding".to_owned() });
        }
        if decoded.len() as u64 > limit {
            if !cuts {
                return Err(EgressResult::BodyTooLarge { limit });
            }
            decoded.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            return Ok((decoded, true));
        }
        if read.is_err() || decoded.len() == before {
            return Ok((decoded, is_cut));
        }
        memory.add((decoded.len() - before) * COPIES).map_err(out_of_memory)?;
    }
}

fn out_of_memory(_: OutOfMemory) -> EgressResult {
    let message = "the broker has no memory for the body now".to_owned();
    EgressResult::Failed { verdict: Verdict::EgressLimitReached, message }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };

    use super::*;
    use crate::http_request::memory::Memory;

    fn decoded(
        encodings: &[&str],
        body: Vec<u8>,
        bytes: u64,
        memory: usize,
    ) -> Result<Vec<u8>, EgressResult> {
        let mut headers = HeaderMap::new();
        for encoding in encodings {
            headers.append(header::CONTENT_ENCODING, encoding.parse().unwrap());
        }
        let limit = BodyLimit { bytes, cuts: false };
        let mut memory = Memory::new(memory).reserve(0).unwrap();
        decode(&mut headers, (body, false), limit, &mut memory).map(|(body, _)| body)
    }

    fn packed(encoding: &str, body: &[u8]) -> Vec<u8> {
        match encoding {
            "gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(body).unwrap();
                encoder.finish().unwrap()
            }
            "deflate" => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(body).unwrap();
                encoder.finish().unwrap()
            }
            _ => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(body).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    #[test]
    fn each_encoding_is_decoded_up_to_the_limit() {
        let body = vec![b'a'; 1_000_000];
        for (encoding, kind) in
            [("gzip", "gzip"), ("X-GZIP", "gzip"), ("deflate", "deflate"), (" Deflate ", "bare")]
        {
            let exact = decoded(&[encoding], packed(kind, &body), 1_000_000, 8 << 20);
            assert!(exact.unwrap() == body, "{encoding}");
            let larger = decoded(&[encoding], packed(kind, &body), 999_999, 8 << 20);
            assert_eq!(larger, Err(EgressResult::BodyTooLarge { limit: 999_999 }), "{encoding}");
        }
        assert_eq!(decoded(&["identity"], b"as it is".to_vec(), 100, 0).unwrap(), b"as it is");
        assert_eq!(decoded(&["br"], Vec::new(), 100, 0).unwrap(), b"");
    }

    #[test]
    fn the_beginning_of_an_encoded_body_is_decoded() {
        let whole: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        let packed = packed("gzip", &whole);
        let mut memory = Memory::new(8 << 20).reserve(0).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_ENCODING, header::HeaderValue::from_static("gzip"));
        let limit = BodyLimit { bytes: 1 << 20, cuts: true };
        let half = packed[..packed.len() / 2].to_vec();
        let (body, is_cut) = decode(&mut headers, (half, true), limit, &mut memory).unwrap();
        assert!(is_cut && body.len() > 100_000 && whole.starts_with(&body), "{}", body.len());
    }

    #[test]
    fn a_body_that_grows_beyond_the_memory_is_refused() {
        let bomb = packed("gzip", &vec![0; 10 << 20]);
        assert!(bomb.len() < 20_000);
        let refused = decoded(&["gzip"], bomb, 16 << 20, 1 << 20).unwrap_err();
        assert!(
            matches!(refused, EgressResult::Failed { verdict: Verdict::EgressLimitReached, .. }),
            "{refused:?}"
        );
    }

    #[test]
    fn other_encodings_and_broken_ones_are_named() {
        for (encodings, body, said) in [
            (&["br"][..], &b"x"[..], "not asked for"),
            (&["gzip, gzip"], b"x", "not asked for"),
            (&["gzip", "gzip"], b"x", "more than once"),
            (&["gzip"], b"no gzip", "not of its encoding"),
            (&["deflate"], b"\x78\x9cno", "not of its encoding"),
        ] {
            let refused = decoded(encodings, body.to_vec(), 100, 1 << 20).unwrap_err();
            assert!(
                matches!(&refused, EgressResult::Broken { message } if message.contains(said)),
                "{refused:?}"
            );
        }
    }
}
