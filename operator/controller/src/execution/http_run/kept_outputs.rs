//! Outputs of searches that answer the same search again for a time.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use serde_json::Value;
use skillet_kube::lock;
use tokio::time::Instant;

/// Most kept outputs. A search engine gives some ten kilobytes.
const MOST: usize = 256;

/// Kept outputs by tenant and name of the call.
#[derive(Debug, Default)]
pub(crate) struct KeptOutputs(Mutex<HashMap<(String, String), Kept>>);

#[derive(Debug)]
struct Kept {
    output: Value,
    until: Instant,
}

impl KeptOutputs {
    /// Returns the output of this tenant's call, if it is kept.
    pub(super) fn find(&self, tenant: &str, name: &str) -> Option<Value> {
        let kept = lock(&self.0);
        let found = kept.get(&(tenant.to_owned(), name.to_owned()))?;
        (found.until > Instant::now()).then(|| found.output.clone())
    }

    /// Keeps an output. If there are too many, the one that would go first makes room.
    pub(super) fn keep(&self, tenant: &str, name: String, output: &Value, ttl: Duration) {
        let (now, mut kept) = (Instant::now(), lock(&self.0));
        kept.retain(|_, kept| kept.until > now);
        if kept.len() >= MOST
            && let Some(first) = kept.iter().min_by_key(|(_, kept)| kept.until).map(|(key, _)| key.clone())
        {
            kept.remove(&first);
        }
        kept.insert((tenant.to_owned(), name), Kept { output: output.clone(), until: now + ttl });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn an_output_is_kept_for_its_tenant_and_its_time() {
        let outputs = KeptOutputs::default();
        outputs.keep("a", "q".into(), &json!(1), MINUTE);
        assert_eq!(outputs.find("a", "q"), Some(json!(1)));
        assert_eq!((outputs.find("b", "q"), outputs.find("a", "r")), (None, None));
        tokio::time::advance(MINUTE).await;
        assert_eq!(outputs.find("a", "q"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_output_makes_room() {
        let outputs = KeptOutputs::default();
        for number in 0..MOST + 10 {
            tokio::time::advance(Duration::from_millis(1)).await;
            outputs.keep("a", number.to_string(), &json!(number), MINUTE);
        }
        assert_eq!(lock(&outputs.0).len(), MOST);
        assert_eq!((outputs.find("a", "9"), outputs.find("a", "10")), (None, Some(json!(10))));
    }
}
