//! Asking for runs and waiting for their ends.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};
use skillet_api::{Phase, Reason, SkillExecution, SkillExecutionSpec, SkillExecutionStatus};
use tokio::time::timeout;

use crate::{eventually, journey::Journey, wait::PATIENCE};

/// Longest wait for an end. A cold run takes half a second alone, and seconds where many start at once.
const END_LIMIT: Duration = Duration::from_secs(90);

/// An execution that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub name: String,
    pub uid: String,
    pub status: SkillExecutionStatus,
}

impl Journey {
    /// Runs a skill to its end.
    pub async fn run(&self, skill: &str, input: Value) -> Result<Ended> {
        let execution = self.start(skill, input).await?;
        self.ended(&execution).await
    }

    /// Asks for a run.
    pub async fn start(&self, skill: &str, input: Value) -> Result<SkillExecution> {
        self.start_with(SkillExecutionSpec { input: Some(input), ..spec(skill) }).await
    }

    /// Asks for a run with every field that a user can set.
    pub async fn start_with(&self, spec: SkillExecutionSpec) -> Result<SkillExecution> {
        let skill = spec.skill.clone();
        let mut execution = SkillExecution::new("", spec);
        execution.metadata.name = None;
        execution.metadata.generate_name = Some(format!("{skill}-"));
        let created = self.api().create(&PostParams::default(), &execution).await;
        created.with_context(|| format!("could not create an execution of {skill}"))
    }

    /// Waits for the end of an execution.
    pub async fn ended(&self, execution: &SkillExecution) -> Result<Ended> {
        let is_over = |status: &SkillExecutionStatus| status.phase.is_terminal();
        let execution = self.until(execution, "ended", is_over).await?;
        Ok(Ended {
            name: execution.name_any(),
            uid: execution.uid().unwrap_or_default(),
            status: execution.status.unwrap_or_default(),
        })
    }

    /// Waits until an execution's phase is Running, half a second after its program started.
    pub async fn running(&self, execution: &SkillExecution) -> Result<SkillExecutionStatus> {
        let has_begun = |status: &SkillExecutionStatus| status.phase != Phase::Pending;
        let status = self.until(execution, "running", has_begun).await?.status.unwrap_or_default();
        if status.phase != Phase::Running {
            bail!("{} ended before it was seen running: {}", execution.name_any(), text(&status));
        }
        Ok(status)
    }

    async fn until(
        &self,
        execution: &SkillExecution,
        what: &str,
        is_so: impl Fn(&SkillExecutionStatus) -> bool,
    ) -> Result<SkillExecution> {
        let name = execution.name_any();
        let is_met = |seen: Option<&SkillExecution>| seen.and_then(|e| e.status.as_ref()).is_some_and(&is_so);
        let limit = END_LIMIT * PATIENCE;
        // An API server that was away has closed the connections that the client keeps.
        let state = format!("{name} is {what}");
        let watched =
            eventually(&state, END_LIMIT, async || Ok(await_condition(self.api(), &name, is_met).await?));
        let waited = timeout(limit, watched).await;
        waited.with_context(|| format!("{name} is not {what} within {limit:?}"))?
    }

    /// Cancels an execution, waits for its end, and tells how long that took.
    pub async fn cancel(&self, execution: &SkillExecution) -> Result<(Ended, Duration)> {
        let patch = Patch::Merge(json!({ "spec": { "cancel": true } }));
        let asked = Instant::now();
        self.api::<SkillExecution>()
            .patch(&execution.name_any(), &PatchParams::default(), &patch)
            .await
            .context("could not cancel")?;
        let ended = self.ended(execution).await?;
        Ok((ended, asked.elapsed()))
    }
}

/// An execution of `skill` with nothing else set.
pub fn spec(skill: &str) -> SkillExecutionSpec {
    SkillExecutionSpec { skill: skill.to_owned(), ..SkillExecutionSpec::default() }
}

/// A status as JSON, for messages.
pub fn text(status: &SkillExecutionStatus) -> String {
    serde_json::to_string_pretty(status).unwrap_or_default()
}

// Asserting is all that some callers want of it.
#[allow(clippy::return_self_not_must_use)]
impl Ended {
    /// Asserts how it ended.
    #[track_caller]
    pub fn is(self, phase: Phase, reason: Reason) -> Self {
        let got = (self.status.phase, self.status.reason);
        assert_eq!(got, (phase, Some(reason)), "{} ended otherwise: {}", self.name, text(&self.status));
        self
    }

    /// Asserts that it succeeded; its output.
    #[track_caller]
    pub fn output(self) -> Value {
        self.is(Phase::Succeeded, Reason::Succeeded).status.output.unwrap_or_default()
    }

    /// Asserts that the message for people has all these words.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        let message = self.status.message.as_deref().unwrap_or_default();
        for word in words {
            assert!(message.contains(word), "{} does not say {word:?}: {message:?}", self.name);
        }
        self
    }

    /// Time from start to end, as the status tells.
    pub fn took(&self) -> Option<Duration> {
        let (start, end) = (self.status.started_at.as_ref()?, self.status.finished_at.as_ref()?);
        Duration::try_from(end.0.duration_since(start.0)).ok()
    }

    /// Run time of the program, as the sandbox measured it.
    pub fn ran(&self) -> Duration {
        Duration::from_millis(self.status.duration_ms.unwrap_or_default())
    }
}
