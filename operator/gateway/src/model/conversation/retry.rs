//! Requests of later rounds: a provider that is busy or breaks the connection is asked again.
//!
//! A client's own retry would repeat the skills that ran, so the gateway retries, within the conversation's time.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use tokio::time::{Instant, sleep};
use tracing::warn;

use crate::{error::ApiError, model::upstream::ProviderResponse};

/// The pause before the first retry. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 500 });
/// Anthropic's status of an overloaded API.
const OVERLOADED: u16 = 529;

/// A response with status and headers.
pub(super) trait Head {
    fn head(&self) -> (StatusCode, &HeaderMap);
}

impl Head for ProviderResponse {
    fn head(&self) -> (StatusCode, &HeaderMap) {
        (self.status(), self.headers())
    }
}

/// Calls `send` until it succeeds or fails for good, at most `retries` times more, before `deadline`.
pub(super) async fn retry<T: Head, F: Future<Output = Result<T, ApiError>>>(
    deadline: Instant,
    retries: u32,
    send: impl Fn() -> F,
) -> Result<T, ApiError> {
    let mut tries = 0;
    loop {
        let answered = send().await;
        let (status, wait) = match answered.as_ref().map(Head::head) {
            Ok((status, headers)) if may_pass(status) => {
                (status.as_u16(), retry_after(headers).unwrap_or_else(|| pause(tries)))
            }
            Ok(_) => return answered,
            Err(_) => (0, pause(tries)),
        };
        if tries == retries || Instant::now() + wait >= deadline {
            return answered;
        }
        warn!(status, tries, wait = ?wait, "Provider failed in a later round and is asked again");
        sleep(wait).await;
        tries += 1;
    }
}

/// The pause before a retry that follows so many others.
pub(super) fn pause(tries: u32) -> Duration {
    FIRST_PAUSE * 2_u32.saturating_pow(tries)
}

/// Returns true for a status after which the same request may succeed.
fn may_pass(status: StatusCode) -> bool {
    let busy = [StatusCode::REQUEST_TIMEOUT, StatusCode::CONFLICT, StatusCode::TOO_MANY_REQUESTS];
    busy.contains(&status) || status.is_server_error() || status.as_u16() == OVERLOADED
}

/// The pause that a provider asks for.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let milliseconds = number("retry-after-ms").map(|pause| pause / 1_000.0);
    let seconds = milliseconds.or_else(|| number(header::RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, future::ready};

    use super::*;

    struct Sent(StatusCode, HeaderMap);

    impl Head for Sent {
        fn head(&self) -> (StatusCode, &HeaderMap) {
            (self.0, &self.1)
        }
    }

    /// Tries answers in order, each a status and a pause. Returns the last status, the number of tries and the time.
    async fn check(answers: &[(u16, &str)], limit: u64) -> (u16, usize, Duration) {
        let began = Instant::now();
        let tries = RefCell::new(0);
        let sent = retry(began + Duration::from_secs(limit), 3, || {
            let (status, pause) = answers[*tries.borrow()];
            *tries.borrow_mut() += 1;
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", pause.parse().unwrap());
            ready(Ok(Sent(StatusCode::from_u16(status).unwrap(), headers)))
        });
        let status = sent.await.unwrap().0.as_u16();
        (status, tries.into_inner(), began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_provider_is_asked_again_after_the_pause_that_it_names() {
        let seconds = Duration::from_secs;
        assert_eq!(check(&[(429, "2"), (529, "3"), (200, "")], 60).await, (200, 3, seconds(5)));
        assert_eq!(check(&[(503, "1"); 9], 60).await, (503, 4, seconds(3)));
        // Nobody waits past the end of the conversation's time.
        assert_eq!(check(&[(429, "61")], 60).await, (429, 1, seconds(0)));
        assert_eq!(check(&[(400, "1")], 60).await, (400, 1, seconds(0)));
    }

    #[test]
    fn a_pause_is_read_in_seconds_or_milliseconds() {
        let pause = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(pause("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(pause("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        for unreadable in ["-1", "soon", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            assert_eq!(pause("retry-after", unreadable), None, "{unreadable}");
        }
    }
}
