//! `-w`: prints a list, and then each object of it that changes, until Ctrl-C.

use std::{collections::BTreeMap, fmt::Debug, pin::pin};

use futures::{Stream, StreamExt as _};
use kube::{
    Api, Resource, ResourceExt as _,
    runtime::{WatchStreamExt as _, watcher, watcher::Event},
};
use serde::de::DeserializeOwned;

use crate::error::CliError;

/// The rows that were printed, by namespace and name.
struct Changes<T> {
    printed: BTreeMap<(String, String), T>,
    /// Rows of a list that is not complete.
    first: Option<Vec<T>>,
}

impl<T: Clone + PartialEq> Changes<T> {
    fn new() -> Self {
        Self { printed: BTreeMap::new(), first: Some(Vec::new()) }
    }

    /// Returns the rows to print: the whole list once, then each row that is new or changed.
    fn take<K: Resource>(&mut self, event: Event<K>, keep: &impl Fn(K) -> Option<T>) -> Option<Vec<T>> {
        match event {
            Event::Init => None,
            Event::InitApply(object) | Event::Apply(object) => {
                let row = self.changed(object, keep)?;
                match &mut self.first {
                    Some(first) => {
                        first.push(row);
                        None
                    }
                    None => Some(vec![row]),
                }
            }
            Event::InitDone => self.first.take(),
            Event::Delete(object) => {
                self.printed.remove(&key(&object));
                None
            }
        }
    }

    /// Remembers the row of an object, if it is another one than before.
    fn changed<K: Resource>(&mut self, object: K, keep: &impl Fn(K) -> Option<T>) -> Option<T> {
        let key = key(&object);
        let row = keep(object)?;
        let before = self.printed.insert(key, row.clone());
        (before.as_ref() != Some(&row)).then_some(row)
    }
}

fn key(object: &impl Resource) -> (String, String) {
    (object.meta().namespace.clone().unwrap_or_default(), object.name_any())
}

/// Watches objects and prints their rows until the output is closed or the API server refuses.
pub(crate) async fn watch_list<K, T>(
    api: Api<K>,
    config: watcher::Config,
    action: &str,
    keep: impl Fn(K) -> Option<T>,
    print: impl FnMut(Vec<T>) -> Result<(), CliError>,
) -> Result<(), CliError>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    T: Clone + PartialEq,
{
    follow(watcher(api, config).default_backoff(), action, keep, print).await
}

async fn follow<K: Resource, T: Clone + PartialEq>(
    events: impl Stream<Item = Result<Event<K>, watcher::Error>>,
    action: &str,
    keep: impl Fn(K) -> Option<T>,
    mut print: impl FnMut(Vec<T>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut changes = Changes::new();
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if let Some(rows) = changes.take(event, &keep) {
                    print(rows)?;
                }
            }
            Err(error) => refuse(action, error)?,
        }
    }
    Ok(())
}

/// Fails at a watch that cannot be begun; one that breaks off begins again.
fn refuse(action: &str, error: watcher::Error) -> Result<(), CliError> {
    match error {
        watcher::Error::InitialListFailed(error) => Err(CliError::from_api(action, &error)),
        watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchError(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn object(name: &str, text: &str) -> ConfigMap {
        let data = [("text".to_owned(), text.to_owned())].into();
        let mut object = ConfigMap { data: Some(data), ..ConfigMap::default() };
        object.metadata.name = Some(name.to_owned());
        object
    }

    fn row(object: ConfigMap) -> Option<String> {
        let text = object.data?.remove("text")?;
        (!text.is_empty()).then(|| format!("{}={text}", object.metadata.name.unwrap_or_default()))
    }

    #[tokio::test]
    async fn the_list_is_printed_once_and_then_each_change() {
        let events = vec![
            Event::Init,
            Event::InitApply(object("a", "1")),
            Event::InitApply(object("hidden", "")),
            Event::InitApply(object("b", "1")),
            Event::InitDone,
            Event::Apply(object("a", "1")),
            Event::Apply(object("a", "2")),
            Event::Delete(object("b", "1")),
            // The watch broke off, and lists again.
            Event::Init,
            Event::InitApply(object("a", "2")),
            Event::InitApply(object("b", "1")),
            Event::InitDone,
        ];
        let mut printed = Vec::new();
        let print = |rows: Vec<String>| {
            printed.push(rows.join(" "));
            Ok(())
        };
        follow(stream::iter(events.into_iter().map(Ok)), "list", row, print).await.unwrap();
        assert_eq!(printed, ["a=1 b=1", "a=2", "b=1"]);
    }

    #[tokio::test]
    async fn a_refused_list_ends_the_watch() {
        let status = kube::core::Status::failure("no", "Forbidden").with_code(403);
        let error = watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status)));
        let events = stream::iter([Err::<Event<ConfigMap>, _>(error)]);
        let ended = follow(events, "list the skills", row, |_| Ok(())).await;
        assert!(matches!(ended, Err(CliError::Forbidden { .. })), "{ended:?}");
    }
}
