//! How far the engine is with each execution, and what it is told.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use skillet_api::{SkillExecution, parse::ParseError};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use tracing::debug;

use super::status;
use crate::{context::Context, in_use::Hold};

/// Uid of an execution.
pub(super) type Uid = String;

pub(super) enum Message {
    /// A live read of what an execution needs has been made.
    Refreshed(Uid, Refreshed),
    /// A run has ended and its status is written.
    Ended(Uid),
}

/// What a live read found.
pub(super) struct Refreshed {
    /// The skill is there and does not parse.
    pub(super) unreadable: Option<ParseError>,
    /// The versions were read too, not only the skill.
    pub(super) with_versions: bool,
}

pub(super) enum Stage {
    /// A live read is on its way: watches of different kinds run apart, and the catalogue may be behind.
    Refreshing,
    /// The Skill was changed and is not sealed yet.
    Settling { since: Instant },
    /// Waits for a place. The hold keeps its version from being collected.
    Queued { since: Instant, is_reported: bool, _hold: Hold },
    /// Has a task of its own until its status is written. `place` is the skill whose run it is; none for a refusal.
    Active { cancel: watch::Sender<bool>, place: Option<String> },
    /// Its status is written; the watch has not shown it yet.
    Done,
}

/// An input of more bytes than this is kept as text.
const LARGE_INPUT: usize = 4 * 1024;

pub(super) struct Entry {
    /// A status that is being written, to be waited for before the next one.
    pub(super) told: Option<JoinHandle<()>>,
    /// The watch has shown the end, or that the object is gone.
    pub(super) is_finished: bool,
    /// Without its input where that is large: see `with_input`.
    pub(super) execution: Arc<SkillExecution>,
    input: Option<Box<str>>,
    pub(super) stage: Stage,
}

/// What a task of an execution is given: the object, whether it is to be cancelled, and a status on its way.
pub(super) type Begun = (Arc<SkillExecution>, watch::Receiver<bool>, Option<JoinHandle<()>>);

/// Waits for a status that is being written. A panic in its task was logged by the runtime.
pub(super) async fn written(told: Option<JoinHandle<()>>) {
    if let Some(told) = told {
        told.await.ok();
    }
}

/// An execution that waits longer than this for a place is told so in its status.
const REPORT_QUEUED_AFTER: Duration = Duration::from_secs(3);

impl Entry {
    pub(super) fn new(execution: SkillExecution) -> Self {
        let (execution, input) = compact_input(execution);
        Self { told: None, is_finished: false, execution, input, stage: Stage::Refreshing }
    }

    /// Keeps a newer state of the execution.
    pub(super) fn renew(&mut self, execution: SkillExecution) {
        (self.execution, self.input) = compact_input(execution);
    }

    /// The execution with its input.
    pub(super) fn with_input(&self) -> Arc<SkillExecution> {
        let Some(text) = &self.input else { return self.execution.clone() };
        let mut execution = SkillExecution::clone(&self.execution);
        // It was written by `compact_input`, so it parses.
        execution.spec.input = serde_json::from_str(text).ok();
        Arc::new(execution)
    }

    /// Says once, in the status, that the execution waits for a place. Does nothing in any other stage.
    pub(super) fn report_queued(&mut self, ctx: &Arc<Context>) {
        let Stage::Queued { since, is_reported, _hold } = &mut self.stage else { return };
        if *is_reported || since.elapsed() < REPORT_QUEUED_AFTER {
            return;
        }
        *is_reported = true;
        if self.execution.status.as_ref().is_some_and(|status| status.reason.is_some()) {
            return;
        }
        let (ctx, execution) = (ctx.clone(), self.execution.clone());
        self.told = Some(tokio::spawn(async move {
            let status = status::queued("waits for a free place under the concurrency limits of SkillPolicy");
            if let Err(error) = status::apply(&ctx.client, &execution, &status).await {
                debug!(%error, "Queued status could not be written");
            }
        }));
    }
}

/// Keeps a large input as text: parsed, it may take sixteen times as much, and there is no limit to how many wait.
fn compact_input(mut execution: SkillExecution) -> (Arc<SkillExecution>, Option<Box<str>>) {
    let text = execution.spec.input.as_ref().map(Value::to_string);
    let large = text.filter(|text| text.len() > LARGE_INPUT);
    if large.is_some() {
        execution.spec.input = None;
    }
    (Arc::new(execution), large.map(Into::into))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillet_api::SkillExecutionSpec;

    use super::*;

    fn execution(input: &Value) -> SkillExecution {
        let input = Some(input.clone());
        SkillExecution::new(
            "a",
            SkillExecutionSpec { skill: "a".into(), input, ..SkillExecutionSpec::default() },
        )
    }

    #[test]
    fn a_large_input_is_put_away_and_comes_back_as_it_was() {
        let large = json!({ "list": vec![0; 10_000], "number": 1.5e300, "text": "\u{0}\u{2028}\"" });
        let mut entry = Entry::new(execution(&large));
        assert_eq!(entry.execution.spec.input, None);
        assert_eq!(entry.with_input().spec.input, Some(large));
        let newer = json!(vec!["b"; 10_000]);
        entry.renew(execution(&newer));
        assert_eq!(entry.execution.spec.input, None);
        assert_eq!(entry.with_input().spec.input, Some(newer));
    }

    #[test]
    fn a_small_input_stays_where_it_is() {
        let mut entry = Entry::new(execution(&json!(vec![0; 10_000])));
        entry.renew(execution(&json!({ "a": 1 })));
        assert_eq!(entry.execution.spec.input, Some(json!({ "a": 1 })));
        assert!(Arc::ptr_eq(&entry.with_input(), &entry.execution));
    }
}
