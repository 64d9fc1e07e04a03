//! Subscriptions of requests to single executions. The gateway keeps no execution without a subscriber.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use kube::Resource as _;
use skillet_kube::{Mirror, lock};
use tokio::sync::watch;
use tracing::warn;

use super::execution::{Execution, Found};

/// The newest that is known of one execution.
#[derive(Clone, Debug, Default)]
pub(super) enum Update {
    #[default]
    None,
    Seen(Arc<Execution>),
    Deleted,
    /// Changes may have been missed: whoever waits must ask.
    Unknown,
}

/// Subscriptions to executions, by uid.
#[derive(Default)]
pub(super) struct Subscriptions {
    senders: Mutex<HashMap<String, watch::Sender<Update>>>,
    is_synced: AtomicBool,
}

impl Subscriptions {
    /// Delivers every later update of this execution.
    pub(super) fn subscribe(&self, uid: &str) -> watch::Receiver<Update> {
        lock(&self.senders).entry(uid.to_owned()).or_default().subscribe()
    }

    /// Ends a subscription; the last one removes the entry.
    pub(super) fn unsubscribe(&self, uid: &str, updates: watch::Receiver<Update>) {
        let mut senders = lock(&self.senders);
        // Within the lock, so that of two who leave at once the second sees that it is the last.
        drop(updates);
        if senders.get(uid).is_some_and(|sender| sender.receiver_count() == 0) {
            senders.remove(uid);
        }
    }

    /// Returns the number of subscriptions to an execution.
    pub(super) fn count(&self, uid: &str) -> usize {
        lock(&self.senders).get(uid).map_or(0, watch::Sender::receiver_count)
    }

    /// Returns true once changes of executions are followed.
    pub(super) fn is_synced(&self) -> bool {
        self.is_synced.load(Ordering::Relaxed)
    }

    fn publish_object(&self, found: &Found, update: impl FnOnce(Arc<Execution>) -> Update) {
        let Some(uid) = found.meta().uid.as_deref().filter(|uid| self.count(uid) > 0) else { return };
        // Parsed only for a subscriber, so that an object that does not parse hinders no other.
        match Execution::read(found) {
            Ok(execution) => self.publish(uid, || update(Arc::new(execution))),
            Err(error) => warn!(%error, "SkillExecution that is waited for could not be read"),
        }
    }

    fn publish(&self, uid: &str, update: impl FnOnce() -> Update) {
        let senders = lock(&self.senders);
        let Some(sender) = senders.get(uid) else { return };
        sender.send_if_modified(|present| {
            // An end is final: that the object was then deleted must not hide it.
            let is_final = matches!(present, Update::Seen(execution) if execution.is_ended());
            if !is_final {
                *present = update();
            }
            !is_final
        });
    }
}

impl Mirror for &Subscriptions {
    type Object = Found;
    type Key = String;

    fn key(&self, found: &Found) -> Option<String> {
        found.meta().uid.clone()
    }

    fn keys(&self) -> impl IntoIterator<Item = String> {
        lock(&self.senders).keys().cloned().collect::<Vec<_>>()
    }

    fn apply(&mut self, found: Found) {
        self.publish_object(&found, Update::Seen);
    }

    /// After an interruption a subscriber has to read its execution.
    fn remove(&mut self, uid: String) {
        self.publish(&uid, || Update::Unknown);
    }

    fn delete(&mut self, found: Found) {
        self.publish_object(
            &found,
            |last| if last.is_ended() { Update::Seen(last) } else { Update::Deleted },
        );
    }

    fn finish_list(&mut self) {
        self.is_synced.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::json;
    use skillet_kube::Unlisted;

    use super::*;

    fn execution(uid: &str, phase: &str) -> Found {
        let execution = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution",
            "metadata": { "name": "a", "namespace": "ns", "uid": uid }, "spec": { "skill": "s" },
            "status": { "phase": phase, "attempts": 1, "truncated": false } });
        serde_json::from_str(&execution.to_string()).unwrap()
    }

    fn word(updates: &watch::Receiver<Update>) -> String {
        match &*updates.borrow() {
            Update::None => "nothing".into(),
            Update::Seen(seen) => format!("{:?}", seen.status.as_ref().unwrap().phase),
            Update::Deleted => "deleted".into(),
            Update::Unknown => "doubtful".into(),
        }
    }

    /// Compares the update that a subscriber of `u` sees after each of these events.
    fn check(events: Vec<Event<Found>>, expected: &[&str]) {
        let subscriptions = Subscriptions::default();
        let updates = subscriptions.subscribe("u");
        let mut unlisted = Unlisted::default();
        let seen: Vec<String> = events
            .into_iter()
            .map(|event| {
                unlisted.handle(event, &mut &subscriptions);
                word(&updates)
            })
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_subscriber_gets_updates_of_its_own_execution_only() {
        check(
            vec![
                Event::Apply(execution("other", "Succeeded")),
                Event::Apply(execution("u", "Running")),
                Event::Apply(execution("u", "Succeeded")),
            ],
            &["nothing", "Running", "Succeeded"],
        );
    }

    #[test]
    fn a_deletion_is_an_update_unless_the_execution_had_ended() {
        check(vec![Event::Delete(execution("u", "Running"))], &["deleted"]);
        check(vec![Event::Delete(execution("u", "Failed"))], &["Failed"]);
        check(
            vec![Event::Apply(execution("u", "Failed")), Event::Delete(execution("u", "Running"))],
            &["Failed", "Failed"],
        );
    }

    #[test]
    fn an_execution_becomes_unknown_by_an_interruption_unless_it_had_ended() {
        check(vec![Event::Init, Event::InitDone], &["nothing", "doubtful"]);
        check(
            vec![Event::Apply(execution("u", "Running")), Event::Init, Event::InitDone],
            &["Running", "Running", "doubtful"],
        );
        check(
            vec![Event::Apply(execution("u", "Failed")), Event::Init, Event::InitDone],
            &["Failed", "Failed", "Failed"],
        );
    }

    #[test]
    fn a_subscription_during_a_restart_does_not_become_unknown() {
        let subscriptions = Subscriptions::default();
        let mut unlisted = Unlisted::default();
        unlisted.handle(Event::Init, &mut &subscriptions);
        let updates = subscriptions.subscribe("u");
        unlisted.handle(Event::InitDone, &mut &subscriptions);
        assert_eq!(word(&updates), "nothing");
    }

    #[test]
    fn an_object_that_does_not_parse_is_passed_over() {
        let bad: Found =
            serde_json::from_str(r#"{"metadata": {"name": "a", "uid": "u"}, "spec": 7}"#).unwrap();
        assert!(Execution::read(&bad).is_err());
        check(
            vec![Event::Apply(bad.clone()), Event::Apply(execution("u", "Running")), Event::Apply(bad)],
            &["nothing", "Running", "Running"],
        );
    }

    #[test]
    fn the_last_unsubscribe_removes_the_entry() {
        let subscriptions = Subscriptions::default();
        let (first, second) = (subscriptions.subscribe("u"), subscriptions.subscribe("u"));
        subscriptions.unsubscribe("u", first);
        assert_eq!(subscriptions.count("u"), 1);
        subscriptions.unsubscribe("u", second);
        assert_eq!(subscriptions.count("u"), 0);
        assert!(lock(&subscriptions.senders).is_empty(), "nothing is kept");
    }
}
