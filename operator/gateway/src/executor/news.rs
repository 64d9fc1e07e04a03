//! What the watch tells those who wait. Of all executions, only those that someone waits for are kept.

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
pub(super) enum News {
    #[default]
    Nothing,
    Seen(Arc<Execution>),
    Deleted,
    /// The list after an interruption did not show it: whoever waits must ask.
    Doubtful,
}

/// Who waits for which execution, by uid.
#[derive(Default)]
pub(super) struct Waiters(Mutex<State>);

#[derive(Default)]
struct State {
    waited: HashMap<String, watch::Sender<News>>,
    /// Waited for when the present list was begun, and not shown by it so far.
    unlisted: HashSet<String>,
}

impl Waiters {
    /// Everything the watch shows from now on of this execution is told.
    pub(super) fn join(&self, uid: &str) -> watch::Receiver<News> {
        self.state().waited.entry(uid.to_owned()).or_default().subscribe()
    }

    /// The opposite of `join`; the last one out leaves nothing behind.
    pub(super) fn leave(&self, uid: &str, news: watch::Receiver<News>) {
        let mut state = self.state();
        // Within the lock, so that of two who leave at once the second sees that it is the last.
        drop(news);
        if state.waited.get(uid).is_some_and(|sender| sender.receiver_count() == 0) {
            state.waited.remove(uid);
        }
    }

    pub(super) fn is_waited_for(&self, uid: &str) -> bool {
        self.state().waited.contains_key(uid)
    }

    /// Passes on one event of the watch.
    pub(super) fn take(&self, event: Event<Found>) {
        let mut state = self.state();
        match event {
            Event::Init => state.unlisted = state.waited.keys().cloned().collect(),
            Event::InitApply(watched) => {
                if let Some(uid) = &watched.meta().uid {
                    state.unlisted.remove(uid);
                }
                state.show(&watched, News::Seen);
            }
            Event::InitDone => {
                for uid in std::mem::take(&mut state.unlisted) {
                    state.tell(&uid, || News::Doubtful);
                }
            }
            Event::Apply(watched) => state.show(&watched, News::Seen),
            Event::Delete(watched) => {
                state.show(&watched, |last| if last.is_ended() { News::Seen(last) } else { News::Deleted });
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn show(&self, watched: &Found, news: impl FnOnce(Arc<Execution>) -> News) {
        let Some(uid) = watched.meta().uid.as_deref().filter(|uid| self.waited.contains_key(*uid)) else {
            return;
        };
        // Only where somebody waits for it, so that one that does not parse hinders no other.
        match Execution::read(watched) {
            Ok(execution) => self.tell(uid, || news(Arc::new(execution))),
            Err(error) => warn!(%error, "SkillExecution that is waited for could not be read"),
        }
    }

    fn tell(&self, uid: &str, news: impl FnOnce() -> News) {
        let Some(sender) = self.waited.get(uid) else { return };
        sender.send_if_modified(|present| {
            // An end is final: that the object was then deleted must not hide it.
            let is_final = matches!(present, News::Seen(execution) if execution.is_ended());
            if !is_final {
                *present = news();
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

    fn word(news: &watch::Receiver<News>) -> String {
        match &*news.borrow() {
            News::Nothing => "nothing".into(),
            News::Seen(seen) => format!("{:?}", seen.status.as_ref().unwrap().phase),
            News::Deleted => "deleted".into(),
            News::Doubtful => "doubtful".into(),
        }
    }

    /// What one who waits for `u` knows after each of these events.
    fn check(events: Vec<Event<Found>>, expected: &[&str]) {
        let waiters = Waiters::default();
        let news = waiters.join("u");
        let told: Vec<String> = events
            .into_iter()
            .map(|event| {
                waiters.take(event);
                word(&news)
            })
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn states_of_the_execution_are_told_and_those_of_others_are_not() {
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
    fn a_deletion_is_told_unless_the_execution_had_ended() {
        check(vec![Event::Delete(execution("u", "Running"))], &["deleted"]);
        check(vec![Event::Delete(execution("u", "Failed"))], &["Failed"]);
        check(
            vec![Event::Apply(execution("u", "Failed")), Event::Delete(execution("u", "Running"))],
            &["Failed", "Failed"],
        );
    }

    #[test]
    fn a_list_that_does_not_show_the_execution_makes_it_doubtful() {
        check(vec![Event::Init, Event::InitDone], &["nothing", "doubtful"]);
        check(
            vec![Event::Init, Event::InitApply(execution("u", "Running")), Event::InitDone],
            &["nothing", "Running", "Running"],
        );
    }

    #[test]
    fn who_joins_during_a_list_is_not_doubted_for_it() {
        let waiters = Waiters::default();
        waiters.take(Event::Init);
        let news = waiters.join("u");
        waiters.take(Event::InitDone);
        assert_eq!(word(&news), "nothing");
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
    fn the_last_one_out_leaves_nothing_behind() {
        let waiters = Waiters::default();
        let (first, second) = (waiters.join("u"), waiters.join("u"));
        waiters.leave("u", first);
        assert!(waiters.is_waited_for("u"));
        waiters.leave("u", second);
        assert!(!waiters.is_waited_for("u"));
    }
}
