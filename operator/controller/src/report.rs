//! Publishes events about problems, with log line and metric, and some about success.
//!
//! An event is on the object that it is about. Success shows in the status, so its events are dropped above a rate.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Resource,
    runtime::events::{Event, EventType, Recorder},
};
use serde::de::DeserializeOwned;
use skillet_api::Reason;
use skillet_core::token_bucket::TokenBucket;
use skillet_kube::{ParseError, RawObject, lock, replace_unprintable};
use tracing::warn;

use crate::metrics::Metrics;

/// Events of success at once, and the time after which one more is published.
const SUCCESSES: TokenBucket = TokenBucket::new(25, Duration::from_millis(200));

/// Publishes events under the operator's name.
#[derive(Clone)]
pub(crate) struct Reporter {
    recorder: Recorder,
    metrics: Metrics,
    successes: Arc<Mutex<TokenBucket>>,
}

impl Reporter {
    pub(crate) fn new(recorder: Recorder, metrics: Metrics) -> Self {
        Self { recorder, metrics, successes: Arc::new(Mutex::new(SUCCESSES)) }
    }

    /// Reports a problem with an object: event, log line and metric, all with the same reason.
    pub(crate) async fn problem(
        &self,
        object: &ObjectReference,
        kind: &'static str,
        reason: Reason,
        message: &str,
    ) {
        self.metrics.problem(kind, reason);
        warn!(
            kind,
            namespace = object.namespace.as_deref().unwrap_or_default(),
            name = object.name.as_deref().unwrap_or_default(),
            %reason,
            message,
            "Object has a problem"
        );
        self.event(object, kind, EventType::Warning, reason, message).await;
    }

    /// Parses an object, and reports a problem if it does not parse.
    pub(crate) async fn parse<K>(&self, kind: &'static str, raw: &RawObject<K>) -> Result<K, ParseError>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let parsed = raw.parse();
        if let Err(error) = &parsed {
            self.problem(&raw.object_ref(&()), kind, Reason::ParseFailed, &error.to_string()).await;
        }
        parsed
    }

    /// Publishes an event of success beside the caller, or drops it if there were many of late.
    pub(crate) fn success(
        &self,
        object: ObjectReference,
        kind: &'static str,
        reason: Reason,
        message: String,
    ) {
        if lock(&self.successes).take(Instant::now()) {
            let reporter = self.clone();
            tokio::spawn(async move {
                reporter.event(&object, kind, EventType::Normal, reason, &message).await;
            });
        }
    }

    /// Publishes an event only: the caller counts and logs.
    pub(crate) async fn event(
        &self,
        object: &ObjectReference,
        kind: &'static str,
        type_: EventType,
        reason: Reason,
        message: &str,
    ) {
        let event = Event {
            type_,
            reason: reason.as_str().to_owned(),
            note: Some(cut(&replace_unprintable(message))),
            action: action(kind).to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, object).await {
            warn!(%error, %reason, "Event could not be published");
        }
    }
}

fn action(kind: &str) -> &'static str {
    match kind {
        "SkillExecution" => "Run",
        _ => "Reconcile",
    }
}

/// An error with its causes, outermost first.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // A transparent error says what its cause says.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// Cuts a note: the API server accepts at most 1024 bytes.
fn cut(message: &str) -> String {
    const LIMIT: usize = 1000;
    if message.len() <= LIMIT {
        return message.to_owned();
    }
    let end = (0..=LIMIT).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_written_with_each_cause_once() {
        #[derive(Debug, thiserror::Error)]
        enum Outer {
            #[error("could not seal x")]
            Seal(#[source] std::io::Error),
            #[error(transparent)]
            Same(std::io::Error),
        }
        let denied = || std::io::Error::other("denied");
        assert_eq!(chain(&Outer::Seal(denied())), "could not seal x: denied");
        assert_eq!(chain(&Outer::Same(denied())), "denied");
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        let long = "é".repeat(600);
        let note = cut(&long);
        assert!(note.len() <= 1024 && note.ends_with('…') && note.starts_with("éé"));
    }
}
