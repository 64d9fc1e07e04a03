//! Waiting for a state, with a limit. Nothing in this lane sleeps otherwise.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::time::{Instant, sleep};

const PAUSE: Duration = Duration::from_millis(50);

/// Looks again and again until `look` finds something, or `limit` is over. Errors may pass, too.
pub async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        let seen = look().await;
        if let Ok(Some(found)) = seen {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            seen.with_context(|| format!("{what}: not within {limit:?}"))?;
            bail!("{what}: not within {limit:?}");
        }
        sleep(PAUSE).await;
    }
}
