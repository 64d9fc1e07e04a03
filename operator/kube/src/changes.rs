//! Follows the changes of objects without a list of them.
//!
//! For a mirror that holds few of many objects and can ask for each of them: a list of all would be read to be dropped.

use std::{pin::pin, time::Duration};

use futures::TryStreamExt as _;
use kube::{
    Api, Resource,
    api::{ListParams, WatchParams},
    core::WatchEvent,
    runtime::watcher::Event,
};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, error::Elapsed, timeout};
use tracing::warn;

use crate::{Backoff, Mirror, Unlisted};

/// Seconds after which the API server ends a watch, so that a connection that died unnoticed is not followed for long.
const WATCH_SECONDS: u32 = 240;
const IDLE_LIMIT: Duration = Duration::from_secs(300);
const PAUSES: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));
/// A watch that lasts so long has worked, even if nothing changed.
const LASTING: Duration = Duration::from_secs(30);

/// Changes `mirror` by every change of an object from now on, as long as the future is polled.
///
/// The mirror gets the events of a list without objects if changes may have been missed: at the beginning and after an
/// interruption. [`Mirror::remove`] is then called for each key that it holds.
pub async fn mirror_changes<K, M>(api: Api<K>, mirror: &mut M)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
    M: Mirror<Object = K>,
{
    let mut changes = Changes { api, version: None, unlisted: Unlisted::default(), pauses: PAUSES };
    loop {
        let since = Instant::now();
        if let Err(error) = changes.follow(mirror).await {
            warn!(kind = %K::kind(&()), %error, "Watch was interrupted");
            changes.version = None;
        }
        if since.elapsed() >= LASTING {
            changes.pauses = PAUSES;
        }
        // A server or proxy may also end each watch at once, without an error.
        changes.pauses.pause().await;
    }
}

#[derive(Debug, thiserror::Error)]
enum FollowError {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("the API server named no resourceVersion")]
    NoVersion,
    #[error("the watch was silent for longer than it may last")]
    Silent(#[from] Elapsed),
}

struct Changes<K, M: Mirror> {
    api: Api<K>,
    /// The resourceVersion up to which changes were seen. `None` if some may have been missed since.
    version: Option<String>,
    unlisted: Unlisted<M::Key>,
    pauses: Backoff,
}

impl<K, M> Changes<K, M>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
    M: Mirror<Object = K>,
{
    /// Follows one watch to its end.
    async fn follow(&mut self, mirror: &mut M) -> Result<(), FollowError> {
        let version = match self.version.take() {
            Some(version) => version,
            None => self.begin(mirror).await?,
        };
        let params = WatchParams::default().timeout(WATCH_SECONDS);
        let mut events = pin!(self.api.watch(&params, &version).await?);
        self.version = Some(version);
        while let Some(event) = timeout(IDLE_LIMIT, events.try_next()).await?? {
            self.pauses = PAUSES;
            let mut event = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => Event::Apply(object),
                WatchEvent::Deleted(object) => Event::Delete(object),
                WatchEvent::Bookmark(bookmark) => {
                    self.version = Some(bookmark.metadata.resource_version);
                    continue;
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
            };
            if let Event::Apply(object) | Event::Delete(object) = &mut event {
                object.meta_mut().managed_fields = None;
                self.version.clone_from(&object.meta().resource_version);
            }
            self.unlisted.handle(event, mirror);
        }
        Ok(())
    }

    /// Returns the present resourceVersion.
    async fn begin(&mut self, mirror: &mut M) -> Result<String, FollowError> {
        let one = self.api.list_metadata(&ListParams::default().limit(1)).await?;
        let version = one.metadata.resource_version.filter(|version| !version.is_empty());
        let version = version.ok_or(FollowError::NoVersion)?;
        self.unlisted.handle(Event::Init, mirror);
        self.unlisted.handle(Event::InitDone, mirror);
        Ok(version)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::Pod;
    use kube::{Client, client::Body};
    use tower::service_fn;

    use super::*;

    /// Keeps no object.
    struct Nothing;

    impl Mirror for Nothing {
        type Object = Pod;
        type Key = String;

        fn key(&self, _: &Pod) -> Option<String> {
            None
        }

        fn keys(&self) -> impl IntoIterator<Item = String> {
            None
        }

        fn apply(&mut self, _: Pod) {}

        fn remove(&mut self, _: String) {}
    }

    #[tokio::test(start_paused = true)]
    async fn watches_that_end_at_once_are_opened_again_more_and_more_slowly() {
        let opened = Arc::new(AtomicU32::new(0));
        let counted = opened.clone();
        let service = service_fn(move |request: Request<Body>| {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            if is_watch {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            let list = r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#;
            let body = if is_watch { "" } else { list };
            async move { Ok::<_, Infallible>(Response::new(Body::from(body.as_bytes().to_vec()))) }
        });
        let pods: Api<Pod> = Api::all(Client::new(service, "default"));
        assert!(timeout(Duration::from_secs(100), mirror_changes(pods, &mut Nothing)).await.is_err());
        let opened = opened.load(Ordering::Relaxed);
        assert!((10..=20).contains(&opened), "{opened}");
    }
}
