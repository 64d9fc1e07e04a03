//! The key with which a client makes a repeated request the same request, as its header has it.

use http::HeaderMap;

use crate::error::ApiError;

/// The same key never runs a call twice.
pub const HEADER: &str = "idempotency-key";
const MAX_LENGTH: usize = 255;

/// The request's key. One that cannot be read is refused: passed over, it would let a call run twice.
pub fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut given = headers.get_all(HEADER).iter();
    let Some(first) = given.next() else { return Ok(None) };
    match first.to_str() {
        Ok(text) if (1..=MAX_LENGTH).contains(&text.len()) && given.next().is_none() => {
            Ok(Some(text.to_owned()))
        }
        Ok(_) | Err(_) => {
            let message =
                format!("{HEADER} must be given once, as 1 to {MAX_LENGTH} visible ASCII characters");
            Err(ApiError::bad_request(message).at(HEADER))
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(values: &[&[u8]]) -> Result<Option<String>, ApiError> {
        key(&values
            .iter()
            .map(|value| (HEADER.parse().unwrap(), HeaderValue::from_bytes(value).unwrap()))
            .collect())
    }

    #[test]
    fn a_key_is_one_text_of_visible_characters() {
        assert_eq!(read(&[]), Ok(None));
        let longest = [b'k'; MAX_LENGTH];
        for good in [&b"k"[..], b"a b", &longest] {
            assert_eq!(read(&[good]), Ok(Some(String::from_utf8(good.to_vec()).unwrap())));
        }
    }

    #[test]
    fn a_key_that_cannot_be_read_names_its_header() {
        let too_long = [b'k'; MAX_LENGTH + 1];
        for bad in [&[&b""[..]][..], &[&too_long], &[b"caf\xc3\xa9"], &[b"a", b"a"]] {
            let error = read(bad).unwrap_err();
            assert_eq!((error.status.as_u16(), error.field.as_deref()), (400, Some(HEADER)), "{bad:?}");
        }
    }
}
