//! Waiting for a state, with a limit. Nothing in this lane sleeps otherwise.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::time::{Instant, sleep};

const PAUSE: Duration = Duration::from_millis(50);
/// Factor on every limit of a wait. Limits are for a machine that has its processors to itself. Neighbors of a virtual
/// machine may take most of them, and a longer limit costs time only if a test fails.
pub const PATIENCE: u32 = 4;

/// Looks again and again until `look` finds something, or [`PATIENCE`] times `limit` is over. Errors may pass, too.
pub async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let limit = limit * PATIENCE;
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
