//! The decision to send a request again.

use std::time::Duration;

use skillet_api::http::HttpMethod;

/// Most requests of one attempt of a run.
const MOST: u32 = 3;
/// Time before the second request; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// The end of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryOutcome<'a> {
    /// No connection, or none in time. Nothing was sent.
    ConnectFailed,
    /// The connection ended before there was a whole response.
    ConnectionLost,
    /// A response with this status and this header `Retry-After`.
    Response { status: u16, retry_after: Option<&'a str> },
}

/// Returns the time to wait before the next request after request number `done`, counted from 1. `None` ends the attempt:
/// requests that may change something are sent once, and no wait is as long as the time that is left.
pub fn next_try(
    method: HttpMethod,
    outcome: TryOutcome<'_>,
    done: u32,
    elapsed: Duration,
    limit: Duration,
) -> Option<Duration> {
    if !method.is_safe() || done == 0 || done >= MOST {
        return None;
    }
    let backoff = FIRST_WAIT * 2_u32.pow(done - 1);
    let wait = match outcome {
        TryOutcome::ConnectFailed | TryOutcome::ConnectionLost => backoff,
        TryOutcome::Response { status: 429 | 502..=504, retry_after } => match retry_after {
            Some(text) => seconds(text).unwrap_or(backoff).max(backoff),
            None => backoff,
        },
        TryOutcome::Response { .. } => return None,
    };
    (elapsed.checked_add(wait)? < limit).then_some(wait)
}

/// Reads a number of seconds. A date is not read, since clocks differ; the ordinary wait takes its place.
fn seconds(text: &str) -> Option<Duration> {
    text.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn wait(method: HttpMethod, outcome: TryOutcome<'_>, done: u32, elapsed_ms: u64) -> Option<u128> {
        let elapsed = Duration::from_millis(elapsed_ms);
        next_try(method, outcome, done, elapsed, LIMIT).map(|wait| wait.as_millis())
    }

    fn response(status: u16, retry_after: Option<&str>) -> TryOutcome<'_> {
        TryOutcome::Response { status, retry_after }
    }

    #[test]
    fn only_safe_methods_are_sent_again() {
        use HttpMethod::{Delete, Get, Head, Patch, Post, Put};
        for (method, expected) in
            [(Get, Some(200)), (Head, Some(200)), (Post, None), (Put, None), (Patch, None), (Delete, None)]
        {
            assert_eq!(wait(method, TryOutcome::ConnectFailed, 1, 0), expected, "{method:?}");
        }
    }

    #[test]
    fn a_request_is_sent_three_times_at_most_with_a_growing_wait() {
        let waits = [1, 2, 3].map(|done| wait(HttpMethod::Get, TryOutcome::ConnectionLost, done, 0));
        assert_eq!(waits, [Some(200), Some(400), None]);
    }

    #[test]
    fn only_passing_trouble_is_worth_another_request() {
        for status in [429, 502, 503, 504] {
            assert_eq!(wait(HttpMethod::Get, response(status, None), 1, 0), Some(200), "{status}");
        }
        for status in [200, 301, 400, 404, 408, 500, 501, 505] {
            assert_eq!(wait(HttpMethod::Get, response(status, None), 1, 0), None, "{status}");
        }
    }

    #[test]
    fn the_servers_wait_is_kept_as_far_as_the_run_has_time() {
        for (text, elapsed, expected) in [
            ("3", 0, Some(3000)),
            (" 3 ", 6_999, Some(3000)),
            ("3", 7_000, None),
            ("0", 0, Some(200)),
            ("86400", 0, None),
            ("99999999999999999999", 0, Some(200)),
            ("Fri, 31 Dec 1999 23:59:59 GMT", 0, Some(200)),
            ("-1", 0, Some(200)),
        ] {
            assert_eq!(wait(HttpMethod::Get, response(429, Some(text)), 1, elapsed), expected, "{text}");
        }
        assert_eq!(wait(HttpMethod::Get, TryOutcome::ConnectFailed, 1, 9_800), None);
        let never =
            next_try(HttpMethod::Get, response(503, Some("18446744073709551615")), 1, LIMIT, Duration::MAX);
        assert_eq!(never, None);
    }
}
