//! Executions that do not parse: each is reported once a revision, and fails if the API server takes a status of it.
//!
//! Reports are written beside the engine, a few at a time. Any number of such objects delays no other execution.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::{Resource as _, ResourceExt as _};
use serde::Deserialize;
use skillet_api::{Phase, Reason, SkillExecution};
use skillet_core::admission::Refusal;
use skillet_kube::{Backoff, ParseError, RawObject};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::{
    conclude::Conclusion,
    entry::Uid,
    gather::is_permanent,
    reference::ExecutionRef,
    status::{self, StatusError},
};
use crate::{
    context::Context,
    report::{chain, cut},
    retention::Finished,
};

/// Most bytes of a report's message. With it a report takes less than 2 KB while it waits.
const MAX_MESSAGE: usize = 1000;
/// Pauses between two tries of a status.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(15));
/// Reports written at a time.
const WRITES: usize = 8;

struct Report {
    execution: ExecutionRef,
    generation: Option<i64>,
    message: String,
}

/// The executions that do not parse, by the revision in which each was reported.
pub(super) struct Unparsable {
    reported: HashMap<Uid, String>,
    reports: mpsc::UnboundedSender<Report>,
}

/// The part of a status that tells whether an execution has ended.
#[derive(Deserialize)]
struct Ending {
    status: Option<EndingStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndingStatus {
    phase: Phase,
    finished_at: Option<MicroTime>,
}

impl Unparsable {
    /// Returns the record, and the task that writes its reports.
    pub(super) fn new(ctx: Arc<Context>) -> (Self, impl Future<Output = ()>) {
        let (reports, waiting) = mpsc::unbounded_channel();
        let waiting = stream::unfold(waiting, async |mut waiting| Some((waiting.recv().await?, waiting)));
        let write = async move { waiting.for_each_concurrent(WRITES, |report| write(&ctx, report)).await };
        (Self { reported: HashMap::new(), reports }, write)
    }

    /// Reports an execution, unless it has ended: then it is returned.
    pub(super) fn report(&mut self, raw: &RawObject<SkillExecution>, error: &ParseError) -> Option<Finished> {
        if let Some(at) = ended_at(raw) {
            self.forget(&raw.uid()?);
            return Some(Finished { at: Some(at.as_second()), ..Finished::gone(raw)? });
        }
        let execution = ExecutionRef::of(raw)?;
        let (uid, revision) = (execution.uid.clone(), raw.resource_version()?);
        if self.reported.get(&uid) != Some(&revision) {
            let message = cut(&error.to_string(), MAX_MESSAGE);
            let report = Report { execution, generation: raw.meta().generation, message };
            if self.reports.send(report).is_ok() {
                self.reported.insert(uid, revision);
            }
        }
        None
    }

    pub(super) fn forget(&mut self, uid: &Uid) {
        self.reported.remove(uid);
    }
}

fn ended_at(raw: &RawObject<SkillExecution>) -> Option<Timestamp> {
    let status = raw.parse_part::<Ending>().ok()?.status?;
    status.phase.is_terminal().then(|| status.finished_at.map_or_else(Timestamp::now, |at| at.0))
}

async fn write(ctx: &Context, Report { execution, generation, message }: Report) {
    ctx.reporter.problem(&execution.object(), "SkillExecution", Reason::ParseFailed, &message).await;
    let conclusion = Conclusion::refused(&Refusal::new(Reason::ParseFailed, message));
    let status = status::finished(conclusion, generation, Timestamp::now());
    let mut backoff = BACKOFF;
    loop {
        let turn = ctx.pace.refusals.take().await;
        let applied = status::apply(&ctx.client, &execution, &status).await;
        drop(turn);
        match applied {
            Ok(()) | Err(StatusError::Gone | StatusError::Ended | StatusError::OtherTypes) => return,
            Err(StatusError::Apply { source, .. }) if is_permanent(&source) => {
                debug!(namespace = execution.namespace(), name = execution.name, error = %source, "Status is refused");
                return;
            }
            Err(error) => {
                warn!(error = %chain(&error), "Status could not be written yet");
                backoff.pause().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use serde_json::{Value, json};

    use super::{
        super::tests::{calls, context, serving},
        *,
    };

    fn raw(revision: &str, status: &Value) -> RawObject<SkillExecution> {
        let object = json!({
            "metadata": { "namespace": "team", "name": "e", "uid": "u", "resourceVersion": revision, "generation": 1 },
            "spec": { "skill": "s", "timeout": "9999999999999999h" },
            "status": status,
        });
        serde_json::from_str(&object.to_string()).unwrap()
    }

    #[tokio::test]
    async fn each_revision_is_reported_once_and_the_execution_fails() {
        let (client, seen) = serving(|_| Some((200, b"{}".to_vec())));
        let (mut unparsable, write) = Unparsable::new(context(client));
        for revision in ["1", "1", "2"] {
            let raw = raw(revision, &Value::Null);
            let error = raw.parse().unwrap_err();
            assert_eq!(unparsable.report(&raw, &error), None);
        }
        drop(unparsable);
        write.await;
        let statuses = calls(&seen).into_iter().filter(|call| call.path.ends_with("/status"));
        let statuses: Vec<Value> = statuses.map(|call| call.body["status"].clone()).collect();
        assert_eq!(statuses.len(), 2, "{statuses:?}");
        assert_eq!(statuses[0]["phase"], "Failed");
        assert_eq!(statuses[0]["reason"], "ParseFailed");
        assert!(statuses[0]["message"].as_str().unwrap().contains("spec.timeout"), "{}", statuses[0]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_fails_is_asked_again() {
        let failures = AtomicUsize::new(2);
        let (client, seen) = serving(move |call| {
            let is_status = call.path.ends_with("/status");
            let fails =
                is_status && failures.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
            Some(if fails { (500, b"{}".to_vec()) } else { (200, b"{}".to_vec()) })
        });
        let (mut unparsable, write) = Unparsable::new(context(client));
        let raw = raw("1", &Value::Null);
        unparsable.report(&raw, &raw.parse().unwrap_err());
        drop(unparsable);
        write.await;
        assert_eq!(calls(&seen).iter().filter(|call| call.path.ends_with("/status")).count(), 3);
    }

    #[tokio::test]
    async fn a_status_that_the_api_server_never_takes_is_tried_once() {
        let answer = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
            "message": "failed to create typed live object (team/e): .spec.timeout: expected string" });
        let (client, seen) = serving(move |call| {
            let is_status = call.path.ends_with("/status");
            Some(if is_status { (500, answer.to_string().into_bytes()) } else { (200, b"{}".to_vec()) })
        });
        let (mut unparsable, write) = Unparsable::new(context(client));
        let raw = raw("1", &Value::Null);
        unparsable.report(&raw, &raw.parse().unwrap_err());
        drop(unparsable);
        write.await;
        assert_eq!(calls(&seen).iter().filter(|call| call.path.ends_with("/status")).count(), 1);
    }

    #[tokio::test]
    async fn one_that_has_ended_is_left_to_retention() {
        let (client, _) = serving(|_| Some((200, b"{}".to_vec())));
        let (mut unparsable, _) = Unparsable::new(context(client));
        let ended = raw(
            "1",
            &json!({ "phase": "Failed", "finishedAt": "1970-01-01T00:00:07.000000Z", "reason": "?" }),
        );
        let finished = unparsable.report(&ended, &ended.parse().unwrap_err());
        assert_eq!(
            finished.map(|finished| (finished.execution.uid, finished.at)),
            Some(("u".into(), Some(7)))
        );
    }

    #[tokio::test]
    async fn thousands_at_once_all_fail_with_messages_of_bounded_length() {
        const COUNT: usize = 3_000;
        let (client, seen) = serving(|_| Some((200, b"{}".to_vec())));
        let (mut unparsable, write) = Unparsable::new(context(client));
        let long = ParseError::Field { field: "spec.".to_owned() + &"x".repeat(5_000), message: "no".into() };
        for revision in 0..COUNT {
            unparsable.report(&raw(&revision.to_string(), &Value::Null), &long);
        }
        drop(unparsable);
        write.await;
        let statuses = calls(&seen).into_iter().filter(|call| call.path.ends_with("/status"));
        let messages: Vec<String> =
            statuses.map(|call| call.body["status"]["message"].as_str().unwrap().to_owned()).collect();
        assert_eq!(messages.len(), COUNT);
        assert!(messages.iter().all(|message| message.len() <= MAX_MESSAGE + 3), "{}", messages[0].len());
    }
}
