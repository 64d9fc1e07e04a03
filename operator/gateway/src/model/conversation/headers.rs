//! Request headers that concern the conversation.

use http::{HeaderMap, HeaderValue};
use skillet_api::gateway::ConversationPolicy;
use skillet_llm::confirmation::reply;

use super::Limits;
use crate::error::ApiError;

/// At most so many times is the model asked again.
pub const ROUNDS_HEADER: &str = "x-skillet-rounds";
/// Free text that every execution of the conversation carries.
pub const SESSION_HEADER: &str = "x-skillet-session";
/// Longest `spec.sessionId` that the CRD takes, in characters.
const MAX_SESSION: usize = 256;

impl Limits {
    /// The policy's, or less where the request asks for less.
    pub fn of(policy: &ConversationPolicy, headers: &HeaderMap) -> Result<Self, ApiError> {
        let ConversationPolicy {
            max_rounds,
            timeout,
            result_bytes,
            total_result_bytes,
            max_parallel_calls,
            max_retries,
            response_timeout: _,
            idle_timeout: _,
            allowed_tools: _,
        } = policy;
        let asked = match headers.get(ROUNDS_HEADER) {
            None => *max_rounds,
            Some(text) => text.to_str().ok().and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
                ApiError::bad_request("the number of rounds is not a whole number").at(ROUNDS_HEADER)
            })?,
        };
        let size = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Self {
            rounds: asked.min(*max_rounds),
            time: timeout.0,
            result_bytes: size(*result_bytes),
            total_result_bytes: size(*total_result_bytes),
            parallel: size(*max_parallel_calls),
            retries: *max_retries,
        })
    }
}

/// The text that every execution carries; none where the header is empty.
pub fn session(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let refuse = |message: String| ApiError::bad_request(message).at(SESSION_HEADER);
    let mut given = headers.get_all(SESSION_HEADER).iter();
    let Some(first) = given.next() else { return Ok(None) };
    if given.next().is_some() {
        return Err(refuse("a request is of one session".to_owned()));
    }
    let text = text(first).ok_or_else(|| refuse("the session is not text in UTF-8".to_owned()))?;
    if text.chars().count() > MAX_SESSION {
        return Err(refuse(format!("the session has more than {MAX_SESSION} characters")));
    }
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

/// Tokens that confirm calls, of all lines of their header.
pub fn confirmations(headers: &HeaderMap) -> Result<Vec<String>, ApiError> {
    let lines: Option<Vec<&str>> = headers.get_all(reply::HEADER).iter().map(text).collect();
    let lines =
        lines.ok_or_else(|| ApiError::bad_request("the tokens are not text in UTF-8").at(reply::HEADER))?;
    reply::read_tokens(lines).map_err(|error| ApiError::bad_request(error.to_string()).at(reply::HEADER))
}

fn text(value: &HeaderValue) -> Option<&str> {
    std::str::from_utf8(value.as_bytes()).ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn headers(name: &'static str, values: &[&[u8]]) -> HeaderMap {
        let name = HeaderName::from_static(name);
        values.iter().map(|value| (name.clone(), HeaderValue::from_bytes(value).unwrap())).collect()
    }

    #[test]
    fn a_request_may_ask_for_fewer_rounds_and_not_for_more() {
        let policy = ConversationPolicy::default();
        let rounds = |value: Option<&str>| {
            let values: Vec<&[u8]> = value.iter().map(|value| value.as_bytes()).collect();
            Limits::of(&policy, &headers(ROUNDS_HEADER, &values)).map(|limits| limits.rounds)
        };
        assert_eq!(rounds(None), Ok(8));
        assert_eq!(rounds(Some("2")), Ok(2));
        assert_eq!(rounds(Some("0")), Ok(0));
        assert_eq!(rounds(Some("99")), Ok(8));
        for wrong in ["-1", "two", ""] {
            assert_eq!(rounds(Some(wrong)).unwrap_err().field.as_deref(), Some(ROUNDS_HEADER), "{wrong}");
        }
    }

    #[test]
    fn a_session_is_one_text_that_an_execution_can_carry() {
        let read = |values: &[&[u8]]| session(&headers(SESSION_HEADER, values));
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[b" "]), Ok(None));
        assert_eq!(read(&["café ☕".as_bytes()]), Ok(Some("café ☕".to_owned())));
        let longest = "é".repeat(MAX_SESSION);
        assert_eq!(read(&[longest.as_bytes()]), Ok(Some(longest.clone())));
        for wrong in [&[format!("{longest}x").as_bytes()][..], &[b"caf\xe9"], &[b"a", b"a"]] {
            let error = read(wrong).unwrap_err();
            assert_eq!((error.status.as_u16(), error.field.as_deref()), (400, Some(SESSION_HEADER)));
        }
    }

    #[test]
    fn every_line_of_the_header_confirms() {
        let read = |values: &[&[u8]]| confirmations(&headers(reply::HEADER, values));
        assert_eq!(read(&[]).unwrap(), [""; 0]);
        assert_eq!(read(&[b"a, b", b"", b"c"]).unwrap(), ["a", "b", "c"]);
        let error = read(&[b"a", b"\xff"]).unwrap_err();
        assert_eq!((error.status.as_u16(), error.field.as_deref()), (400, Some(reply::HEADER)));
    }
}
