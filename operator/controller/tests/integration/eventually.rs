//! Waiting for a state of the world, with a limit and a name for what was waited for.

use std::{fmt::Display, time::Duration};

use tokio::time::{Instant, sleep};

const PAUSE: Duration = Duration::from_millis(50);
/// Far more than anything here takes on a busy machine: a limit, not a measure.
pub const LIMIT: Duration = Duration::from_secs(180);

/// Asks until there is an answer; panics with `what`, as it then is, after `limit`.
pub async fn eventually<T>(
    what: impl Display,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        sleep(PAUSE).await;
    }
}
