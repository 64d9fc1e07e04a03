//! Keeps a local copy of a cluster's objects in step with one watch.
//!
//! The watch lists all objects, reports each change, and lists again after an interruption. A list cannot show what was
//! deleted meanwhile: the mirror finds the objects that are missing from it and removes them. The watch never ends by
//! itself; errors of the API server are logged and retried with a backoff.

use std::{collections::HashSet, future::ready, hash::Hash};

use futures::{Stream, StreamExt as _, pin_mut};
use kube::{
    Api, Resource,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use tracing::warn;

use crate::PAGE_SIZE;

/// A copy of objects, changed by the events of a watch.
pub trait Mirror {
    type Object;
    type Key: Eq + Hash;

    /// Returns the key of an object, or `None` for an object that the mirror does not hold.
    fn key(&self, object: &Self::Object) -> Option<Self::Key>;
    /// Returns the keys of all objects that the mirror holds.
    fn keys(&self) -> impl IntoIterator<Item = Self::Key>;
    /// Adds an object, or replaces its earlier state.
    fn apply(&mut self, object: Self::Object);
    /// Removes an object that a list no longer shows.
    fn remove(&mut self, key: Self::Key);

    /// Removes an object that was deleted in this state.
    fn delete(&mut self, object: Self::Object) {
        if let Some(key) = self.key(&object) {
            self.remove(key);
        }
    }

    /// Prepares for a list of all objects.
    fn start_list(&mut self) {}
    /// Runs after a list is complete and what it misses is removed.
    fn finish_list(&mut self) {}
}

/// The keys that the running list has not shown so far.
#[derive(Debug)]
pub struct Unlisted<K>(HashSet<K>);

impl<K> Default for Unlisted<K> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<K: Eq + Hash> Unlisted<K> {
    /// Changes the mirror by one event of its watch.
    pub fn handle<M: Mirror<Key = K>>(&mut self, event: Event<M::Object>, mirror: &mut M) {
        match event {
            Event::Init => {
                self.0 = mirror.keys().into_iter().collect();
                mirror.start_list();
            }
            Event::InitApply(object) => {
                if let Some(key) = mirror.key(&object) {
                    self.0.remove(&key);
                }
                mirror.apply(object);
            }
            Event::InitDone => {
                self.0.drain().for_each(|key| mirror.remove(key));
                mirror.finish_list();
            }
            Event::Apply(object) => mirror.apply(object),
            Event::Delete(object) => mirror.delete(object),
        }
    }
}

/// Returns the events of a watch over all objects of `api`, without their managed fields. The stream has no end.
pub fn watch<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    // The managed fields may be larger than the rest of an object, and nothing reads them.
    watcher(api, config.page_size(PAGE_SIZE))
        .default_backoff()
        .modify(|object| object.meta_mut().managed_fields = None)
        .filter_map(|event| {
            let event =
                event.inspect_err(|error| warn!(kind = %K::kind(&()), %error, "Watch was interrupted"));
            ready(event.ok())
        })
}

/// Changes `mirror` by every event of a watch, as long as the future is polled.
pub async fn mirror<M: Mirror>(events: impl Stream<Item = Event<M::Object>>, mirror: &mut M) {
    pin_mut!(events);
    let mut unlisted = Unlisted::default();
    while let Some(event) = events.next().await {
        unlisted.handle(event, mirror);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use futures::stream;

    use super::*;

    #[derive(Default)]
    struct Numbers {
        held: BTreeMap<&'static str, u32>,
        lists: u32,
    }

    impl Mirror for Numbers {
        type Object = (&'static str, u32);
        type Key = &'static str;

        fn key(&self, object: &Self::Object) -> Option<Self::Key> {
            Some(object.0)
        }

        fn keys(&self) -> impl IntoIterator<Item = Self::Key> {
            self.held.keys().copied()
        }

        fn apply(&mut self, (key, number): Self::Object) {
            self.held.insert(key, number);
        }

        fn remove(&mut self, key: Self::Key) {
            self.held.remove(key);
        }

        fn finish_list(&mut self) {
            self.lists += 1;
        }
    }

    async fn check(events: Vec<Event<(&'static str, u32)>>, expected: &[(&str, u32)], lists: u32) {
        let mut numbers = Numbers::default();
        mirror(stream::iter(events), &mut numbers).await;
        assert_eq!(numbers.held.into_iter().collect::<Vec<_>>(), expected);
        assert_eq!(numbers.lists, lists);
    }

    #[tokio::test]
    async fn applied_objects_are_held_until_they_are_deleted() {
        check(
            vec![Event::Apply(("a", 1)), Event::Apply(("b", 2)), Event::Apply(("a", 3))],
            &[("a", 3), ("b", 2)],
            0,
        )
        .await;
        check(vec![Event::Apply(("a", 1)), Event::Delete(("a", 2))], &[], 0).await;
    }

    #[tokio::test]
    async fn an_object_that_a_list_misses_is_removed_when_the_list_is_complete() {
        let relist =
            || vec![Event::Apply(("a", 1)), Event::Apply(("b", 1)), Event::Init, Event::InitApply(("b", 2))];
        check(relist(), &[("a", 1), ("b", 2)], 0).await;
        let complete = relist().into_iter().chain([Event::InitDone]).collect();
        check(complete, &[("b", 2)], 1).await;
    }
}
