//! Commands in the bodies of skills: runs those that may run, each in a sandbox, before a body is shown.
//!
//! A command is a SkillExecution of the caller. Its name follows from the caller, the command, its values and the time, so that
//! every replica, and every request of a conversation, shows the same output until the time of the cache is over. The
//! memory of this gateway only saves reads of executions that have ended.

mod body;
mod budget;
mod ended;
mod metrics;

use std::{array::from_fn, collections::BTreeMap, sync::Arc, time::Duration};

use futures::{FutureExt as _, StreamExt as _, stream};
use jiff::Timestamp;
use skillet_api::SkillPolicySpec;
use skillet_instructions::dynamic::{CommandEnd, OUTPUT_LIMIT};
use tokio::time::{Instant, timeout};
use tracing::warn;

use self::{
    body::CommandCall,
    budget::MOST,
    ended::{EndedCommands, MESSAGE_BYTES},
};
pub(crate) use self::{
    body::{BodyText, CommandEnds, explain},
    budget::CommandBudget,
    metrics::CommandMetrics,
};
use crate::{
    auth::Caller,
    catalog::SkillCatalog,
    executions::{ExecutionClient, ExecutionError, ExecutionRequest},
};

/// Commands of one request that run at one time.
const PARALLEL: usize = 8;
/// Executions of one command in a window: what the cluster could not run is tried again.
const ATTEMPTS: usize = 2;

/// The request that shows a body.
#[derive(Clone, Copy)]
pub(crate) struct CommandCaller<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) request_id: Option<&'a str>,
    /// The end of the request's own time.
    pub(crate) deadline: Option<Instant>,
    pub(crate) budget: &'a CommandBudget,
}

/// The use of the commands in the texts of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandUse {
    Run,
    /// Shows them as they are written: nobody asks a model.
    Show,
}

/// Runs the commands of bodies.
pub(crate) struct CommandRunner {
    catalog: Arc<SkillCatalog>,
    executions: Arc<ExecutionClient>,
    ended: EndedCommands,
    metrics: CommandMetrics,
}

impl CommandRunner {
    pub(crate) fn new(catalog: Arc<SkillCatalog>, executions: Arc<ExecutionClient>) -> Self {
        let (ended, metrics) = (EndedCommands::default(), CommandMetrics::default());
        Self { catalog, executions, ended, metrics }
    }

    pub(crate) fn metrics(&self) -> &CommandMetrics {
        &self.metrics
    }

    /// Runs the commands of a body. The caller's right to execute the skill was checked.
    pub(crate) async fn run(&self, caller: CommandCaller<'_>, body: &BodyText) -> CommandEnds {
        self.run_all(caller, std::slice::from_ref(body)).await.pop().flatten()
    }

    /// Returns the most bytes that the ends of these bodies' commands have.
    pub(crate) fn most_output(&self, bodies: &[BodyText]) -> usize {
        let policy = self.catalog.policy();
        let commands: usize = bodies.iter().map(|body| body.count_calls(&policy)).sum();
        commands.min(MOST) * (OUTPUT_LIMIT + MESSAGE_BYTES)
    }

    /// Runs the commands of all bodies of one request, and returns their ends, a body after the other.
    pub(crate) async fn run_all(&self, caller: CommandCaller<'_>, bodies: &[BodyText]) -> Vec<CommandEnds> {
        let policy = self.catalog.policy();
        let began = Instant::now();
        let timer = caller.budget.start();
        let latest = began + timer.left;
        let total = caller.deadline.unwrap_or(latest).min(latest).saturating_duration_since(began);
        let window = window(&policy, Timestamp::now());
        let mut ends: Vec<CommandEnds> = Vec::new();
        let mut running = Vec::new();
        for (place, body) in bodies.iter().enumerate() {
            let calls = body.calls(&policy);
            if calls.is_empty() && body.has_commands() {
                self.metrics.count("not_run");
            }
            ends.push((!calls.is_empty()).then(BTreeMap::new));
            for call in calls {
                if !caller.budget.take_place() {
                    let reason = format!("a request runs its first {MOST} commands");
                    if let Some(Some(ends)) = ends.last_mut() {
                        ends.insert(call.command.text, CommandEnd::Failed { reason });
                    }
                    continue;
                }
                let orders = from_fn(|attempt| order(&policy, caller, &call, (window, attempt)));
                let end = async move {
                    let end = self.end(&orders, window, (began, total)).await;
                    (place, call.command.text, end)
                };
                running.push(end.boxed());
            }
        }
        let mut running = stream::iter(running).buffer_unordered(PARALLEL);
        while let Some((place, command, end)) = running.next().await {
            if let Some(Some(ends)) = ends.get_mut(place) {
                ends.insert(command, end);
            }
        }
        ends
    }

    /// Returns the end of one command, of which there is an order for each attempt.
    async fn end(
        &self,
        orders: &[ExecutionRequest; ATTEMPTS],
        window: i64,
        clock: (Instant, Duration),
    ) -> CommandEnd {
        let [first, second] = orders;
        match self.attempt(first, window, clock).await {
            (end, true) => end,
            (_, false) => self.attempt(second, window, clock).await.0,
        }
    }

    /// Returns the end of one attempt, from memory if it is known, and false if the cluster could not run the command.
    async fn attempt(
        &self,
        order: &ExecutionRequest,
        window: i64,
        (began, total): (Instant, Duration),
    ) -> (CommandEnd, bool) {
        let key = format!("{} {}", order.caller.user, order.idempotency.as_deref().unwrap_or_default());
        if let Some(end) = self.ended.get(window, &key) {
            self.metrics.count("cached");
            return (end, true);
        }
        let limit = total.saturating_sub(began.elapsed());
        if limit.is_zero() {
            self.metrics.count("timed_out");
            let reason = "the time for the commands of this request was over".to_owned();
            return (CommandEnd::Failed { reason }, true);
        }
        // Dropped, it leaves the execution running: a later request finds its end.
        let ended = timeout(limit, self.executions.run(order, limit)).await;
        let mut was_run = true;
        let (end, is_final) = match ended {
            Ok(Ok(execution)) => {
                was_run = ended::was_run(&execution);
                (ended::end_of(&execution, order.timeout.unwrap_or_default()), was_run)
            }
            Err(_) | Ok(Err(ExecutionError::TooLate { .. })) => {
                (CommandEnd::TimedOut { limit: total }, false)
            }
            Ok(Err(error)) => {
                warn!(%error, namespace = %order.namespace, skill = %order.skill, "Command of a skill could not be run");
                (CommandEnd::Failed { reason: "the cluster could not run it now".to_owned() }, false)
            }
        };
        self.metrics.count(match &end {
            CommandEnd::Exited { code: 0, .. } => "succeeded",
            CommandEnd::Exited { .. } | CommandEnd::Failed { .. } => "failed",
            CommandEnd::TimedOut { .. } => "timed_out",
        });
        if is_final {
            self.ended.put(window, key, end.clone());
        }
        (end, was_run)
    }
}

/// Returns the number of the window in which a time lies. Outputs are the same in one window.
fn window(policy: &SkillPolicySpec, now: Timestamp) -> i64 {
    let length = i64::try_from(policy.dynamic_content.cache_ttl.0.as_millis()).unwrap_or(i64::MAX);
    now.as_millisecond() / length.max(1)
}

fn order(
    policy: &SkillPolicySpec,
    CommandCaller { caller, request_id, deadline: _, budget: _ }: CommandCaller<'_>,
    call: &CommandCall,
    (window, attempt): (i64, usize),
) -> ExecutionRequest {
    let CommandCall { namespace, skill, version, seal, timeout, command } = call;
    let own = timeout.unwrap_or(policy.defaults.timeout.0).min(policy.maximums.timeout.0);
    let seal = format!("{seal:032x}");
    let key = serde_json::json!([window, attempt, namespace, skill, version, seal, command]);
    ExecutionRequest {
        version: Some(version.to_string()),
        command: Some(command.clone()),
        timeout: Some(policy.dynamic_content.timeout.0.min(own)),
        request_id: request_id.map(ToOwned::to_owned),
        idempotency: Some(key.to_string()),
        ..ExecutionRequest::new(caller.clone(), namespace.clone(), skill.clone())
    }
}

#[cfg(test)]
mod tests;
