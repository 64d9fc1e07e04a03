//! Subscriptions of requests to single executions. The gateway keeps no execution without a subscriber.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::{Resource as _, runtime::watcher::Event};
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
    /// The list after an interruption did not show it: whoever waits must ask.
    Unknown,
}

/// Subscriptions to executions, by uid.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<State>);

#[derive(Default)]
struct State {
    senders: HashMap<String, watch::Sender<Update>>,
    /// Waited for when the present list was begun, and not shown by it so far.
    unlisted: HashSet<String>,
}

impl Subscriptions {
    /// Delivers every later update of this execution.
    pub(super) fn subscribe(&self, uid: &str) -> watch::Receiver<Update> {
        self.state().senders.entry(uid.to_owned()).or_default().subscribe()
    }

    /// Ends a subscription; the last one removes the entry.
    pub(super) fn unsubscribe(&self, uid: &str, updates: watch::Receiver<Update>) {
        let mut state = self.state();
        // Within the lock, so that of two who leave at once the second sees that it is the last.
        drop(updates);
        if state.senders.get(uid).is_some_and(|sender| sender.receiver_count() == 0) {
            state.senders.remove(uid);
        }
    }

    pub(super) fn has_subscribers(&self, uid: &str) -> bool {
        self.state().senders.contains_key(uid)
    }

    /// Passes on one event of the watch.
    pub(super) fn on_event(&self, event: Event<Found>) {
        let mut state = self.state();
        match event {
            Event::Init => state.unlisted = state.senders.keys().cloned().collect(),
            Event::InitApply(watched) => {
                if let Some(uid) = &watched.meta().uid {
                    state.unlisted.remove(uid);
                }
                state.publish_object(&watched, Update::Seen);
            }
            Event::InitDone => {
                for uid in std::mem::take(&mut state.unlisted) {
                    state.publish(&uid, || Update::Unknown);
                }
            }
            Event::Apply(watched) => state.publish_object(&watched, Update::Seen),
            Event::Delete(watched) => {
                state.publish_object(&watched, |last| {
                    if last.is_ended() { Update::Seen(last) } else { Update::Deleted }
                });
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn publish_object(&self, watched: &Found, update: impl FnOnce(Arc<Execution>) -> Update) {
        let Some(uid) = watched.meta().uid.as_deref().filter(|uid| self.senders.contains_key(*uid)) else {
            return;
        };
        // Only where somebody waits for it, so that one that does not parse hinders no other.
        match Execution::read(watched) {
            Ok(execution) => self.publish(uid, || update(Arc::new(execution))),
            Err(error) => warn!(%error, "SkillExecution that is waited for could not be read"),
        }
    }

    fn publish(&self, uid: &str, update: impl FnOnce() -> Update) {
        let Some(sender) = self.senders.get(uid) else { return };
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

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        let seen: Vec<String> = events
            .into_iter()
            .map(|event| {
                subscriptions.on_event(event);
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
    fn an_execution_missing_from_the_relist_becomes_unknown() {
        check(vec![Event::Init, Event::InitDone], &["nothing", "doubtful"]);
        check(
            vec![Event::Init, Event::InitApply(execution("u", "Running")), Event::InitDone],
            &["nothing", "Running", "Running"],
        );
    }

    #[test]
    fn a_subscription_during_a_relist_does_not_become_unknown() {
        let subscriptions = Subscriptions::default();
        subscriptions.on_event(Event::Init);
        let updates = subscriptions.subscribe("u");
        subscriptions.on_event(Event::InitDone);
        assert_eq!(word(&updates), "nothing");
    }

    #[test]
    fn an_object_that_does_not_parse_is_passed_over() {
        let bad: Found =
            serde_json::from_str(r#"{"metadata": {"name": "a", "uid": "u"}, "spec": 7}"#).unwrap();
        assert!(Execution::read(&bad).is_err());
        check(
            vec![Event::Init, Event::InitApply(bad.clone()), Event::InitDone, Event::Apply(bad)],
            &["nothing"; 4],
        );
    }

    #[test]
    fn the_last_unsubscribe_removes_the_entry() {
        let subscriptions = Subscriptions::default();
        let (first, second) = (subscriptions.subscribe("u"), subscriptions.subscribe("u"));
        subscriptions.unsubscribe("u", first);
        assert!(subscriptions.has_subscribers("u"));
        subscriptions.unsubscribe("u", second);
        assert!(!subscriptions.has_subscribers("u"));
    }
}
