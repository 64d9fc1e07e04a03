//! The headers that a skill may send, and those of a response.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Headers that belong to the connection or that the broker writes itself.
const OWN_HEADERS: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Reads the headers of a skill. Those of the connection are left out.
pub(super) fn of_request(headers: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        // The value may be a secret, so that no message has it.
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("{name:?} is no name of a header"))?;
        let value = HeaderValue::from_str(value).or_else(|_| HeaderValue::from_bytes(value.as_bytes()));
        let value = value.map_err(|_| format!("the value of the header {name:?} cannot be sent"))?;
        if !OWN_HEADERS.contains(&parsed.as_str()) {
            map.append(parsed, value);
        }
    }
    Ok(map)
}

/// Writes the headers of a response. Bytes outside of UTF-8 are read as Latin 1.
pub(super) fn of_response(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
    };
    let kept = headers.iter().filter(|(name, _)| **name != header::TRANSFER_ENCODING);
    kept.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}
