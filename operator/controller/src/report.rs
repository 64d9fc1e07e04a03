//! Publishes events about problems, with log line and metric, and some about success.
//!
//! An event is on the object that it is about. Success shows in the status, so its events are dropped above a rate.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter as Source},
};
use serde::de::DeserializeOwned;
use skillet_api::Reason;
use skillet_core::{text::truncate, token_bucket::TokenBucket};
pub(crate) use skillet_kube::chain;
use skillet_kube::{ParseError, RawObject, lock, replace_unprintable};
use tracing::warn;

use crate::metrics::Metrics;

/// The API server accepts notes of at most 1024 bytes.
const MAX_NOTE: usize = 1000;
/// Events of success at once, and the time after which one more is published.
const SUCCESSES: TokenBucket = TokenBucket::new(25, Duration::from_millis(200));

/// Events that one recorder publishes. It keeps each for minutes to count repetitions, in some 3 KB, and looks at all that it
/// keeps to publish one more.
const EVENTS_PER_RECORDER: u32 = 256;

/// A recorder that is replaced from time to time, so that events of thousands of objects take bounded memory.
struct BoundedRecorder {
    client: Client,
    source: Source,
    current: Recorder,
    published: u32,
}

impl BoundedRecorder {
    fn new(client: Client, source: Source) -> Self {
        Self { current: Recorder::new(client.clone(), source.clone()), client, source, published: 0 }
    }

    /// Returns the recorder for one event.
    fn next(&mut self) -> Recorder {
        if self.published == EVENTS_PER_RECORDER {
            *self = Self::new(self.client.clone(), self.source.clone());
        }
        self.published += 1;
        self.current.clone()
    }
}

/// Publishes events under the operator's name.
#[derive(Clone)]
pub(crate) struct Reporter {
    recorder: Arc<Mutex<BoundedRecorder>>,
    metrics: Metrics,
    successes: Arc<Mutex<TokenBucket>>,
}

impl Reporter {
    /// `source` is the publisher that each event names.
    pub(crate) fn new(client: Client, source: Source, metrics: Metrics) -> Self {
        let recorder = Arc::new(Mutex::new(BoundedRecorder::new(client, source)));
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
            note: Some(cut(&replace_unprintable(message), MAX_NOTE)),
            action: action(kind).to_owned(),
            secondary: None,
        };
        let recorder = lock(&self.recorder).next();
        if let Err(error) = recorder.publish(&event, object).await {
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

/// Cuts a text to `limit` bytes and a sign for the cut.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    let (head, is_cut) = truncate(text, limit);
    if is_cut { format!("{head}…") } else { head.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Method, Request, Response};
    use kube::client::Body;
    use prometheus_client::registry::Registry;

    use super::*;

    /// Accepts every event, and keeps the methods of the requests.
    fn api_server() -> (Client, Arc<Mutex<Vec<Method>>>) {
        let methods = Arc::<Mutex<Vec<Method>>>::default();
        let seen = methods.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            lock(&seen).push(request.method().clone());
            async { Ok::<_, Infallible>(Response::new(request.into_body())) }
        });
        (Client::new(service, "default"), methods)
    }

    #[tokio::test]
    async fn repetitions_are_counted_until_the_recorder_is_replaced() {
        let (client, methods) = api_server();
        let source = Source { controller: "c".into(), instance: None };
        let reporter = Reporter::new(client, source, Metrics::register(&mut Registry::default()));
        let object = ObjectReference { name: Some("a".into()), ..ObjectReference::default() };
        for _ in 0..=EVENTS_PER_RECORDER {
            reporter.problem(&object, "Skill", Reason::SpecInvalid, "m").await;
        }
        let created: Vec<usize> = (0..)
            .zip(lock(&methods).iter())
            .filter_map(|(at, method)| (method == Method::POST).then_some(at))
            .collect();
        assert_eq!(created, [0, EVENTS_PER_RECORDER as usize], "all others are patches of the first");
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        assert_eq!(cut("short", MAX_NOTE), "short");
        let long = "é".repeat(600);
        let note = cut(&long, MAX_NOTE);
        assert!(note.len() <= 1024 && note.ends_with('…') && note.starts_with("éé"));
    }
}
