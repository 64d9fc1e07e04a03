//! The run of an HTTP skill or a built-in: no sandbox, but requests that the broker of egress sends.
//!
//! gather (Secrets) -> render (`core::{http, builtin}`) -> send, again if it is safe -> read the response -> one status.
//!
//! Guarantee: a request that may change something is sent at most once. The status says Running before it is sent, so that
//! an operator that finds it takes the run for lost.

mod call;
mod end;
mod kept_outputs;
mod program;
mod record;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::Value;
use skillet_api::{Phase, Reason, SkillExecution, network::Connections};
use skillet_core::{
    admission::{Admitted, Refusal},
    builtin::BuiltinProgram,
    http::{HttpProgram, RenderedRequest},
};
use skillet_egress::{BrokerClient, EgressRequest, RunPolicy};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tracing::warn;

use self::{
    call::Call,
    end::{Next, Tried},
    record::{OpenRequest, RequestRecord},
};
pub(crate) use self::{kept_outputs::KeptOutputs, program::RequestProgram};
use super::{
    Assignment, RunEnd,
    adopt::{ResumePoint, SandboxState},
    build::egress,
    conclude::Conclusion,
    finish::finish,
    gather,
    order::{Order, seen_generation},
    reference::ExecutionRef,
    running_status::{RunningStatusWriter, write_running},
    without_sandbox::{complete, run_until_end, shown_if_slow},
};
use crate::context::Context;

/// Time for the broker to say that the time is over, with the connections that there were.
const BROKER_SLACK: Duration = Duration::from_millis(500);

/// Runs an admitted execution until its status is final.
pub(super) async fn run(ctx: &Arc<Context>, assignment: Assignment, program: RequestProgram) -> RunEnd {
    let Assignment { reference, execution, admitted, point, order, .. } = assignment;
    let mut http = HttpRun {
        ctx,
        reference: &reference,
        execution: &execution,
        admitted: &admitted,
        program,
        attempt: point.attempt + u32::from(point.sandbox == SandboxState::Gone),
        started: {
            let now = Instant::now();
            now.checked_sub(ran_before(&execution, Timestamp::now())).unwrap_or(now)
        },
        record: RequestRecord::default(),
        has_sent: false,
    };
    http.note_lost_request(&point);
    let ended = http.run_until(order.clone()).await;
    let ended = ended.map(|conclusion| end::with_open_request(conclusion, http.record.open_method()));
    let connections = http.take_connections();
    let Some(conclusion) = ended else { return RunEnd::Finished };
    let conclusion = Conclusion { connections, ..http.complete(conclusion) };
    let generation = seen_generation(&execution, *order.borrow());
    finish(ctx, &ctx.pace.ends, &reference, generation, conclusion).await;
    RunEnd::Finished
}

/// Returns the time since an earlier operator started the run.
fn ran_before(execution: &SkillExecution, now: Timestamp) -> Duration {
    let running = execution.status.as_ref().filter(|status| status.phase == Phase::Running);
    let started_at = running.and_then(|status| status.started_at.as_ref());
    started_at.map_or(Duration::ZERO, |at| now.duration_since(at.0).try_into().unwrap_or_default())
}

struct HttpRun<'a> {
    ctx: &'a Arc<Context>,
    reference: &'a Arc<ExecutionRef>,
    execution: &'a SkillExecution,
    admitted: &'a Admitted,
    program: RequestProgram,
    attempt: u32,
    started: Instant,
    record: RequestRecord,
    /// A request was handed to the broker.
    has_sent: bool,
}

/// The broker and what the run may reach through it.
struct Way {
    broker: BrokerClient,
    policy: RunPolicy,
}

impl HttpRun<'_> {
    /// Notes the request that another operator sent and that must not be sent again.
    fn note_lost_request(&mut self, point: &ResumePoint) {
        if point.sandbox == SandboxState::Gone
            && let Some(sent) = self.program.unsafe_request(&self.admitted.stdin)
        {
            self.record.send(sent);
        }
    }

    /// Runs to an end, its time limit or a cancellation. `None`: another operator has ended the execution.
    async fn run_until(&mut self, order: watch::Receiver<Order>) -> Option<Conclusion> {
        let (limit, ran_for) = (self.admitted.timeout, self.started.elapsed());
        let timed_out = end::timed_out(&self.program, limit);
        let of_run = (self.reference, self.admitted);
        let status = RunningStatusWriter::new(
            self.ctx,
            of_run,
            self.attempt,
            Timestamp::now().checked_sub(ran_for).ok(),
        );
        let run = async |status: &RunningStatusWriter| self.run(status).await;
        run_until_end(status, order, limit.saturating_sub(ran_for) + BROKER_SLACK, || timed_out, run).await
    }

    /// Returns `None` if the execution is gone or has ended meanwhile.
    async fn run(&mut self, status: &RunningStatusWriter) -> Result<Option<Conclusion>, Refusal> {
        if let Some(method) = self.record.open_method() {
            return Ok(Some(end::lost(method)));
        }
        let way = self.find_way().await?;
        let call = self.prepare(&way.policy).await?;
        let method = call.request().method;
        if let Some(output) = self.kept_output(&call) {
            return Ok(Some(end::succeeded(output, self.admitted, &call.masker)));
        }
        if method.is_safe() {
            return Ok(Some(shown_if_slow(status, self.send(call, &way)).await));
        }
        if !write_running(self.ctx, self.reference, self.admitted, self.attempt).await {
            return Ok(None);
        }
        Ok(Some(self.send(call, &way).await))
    }

    async fn find_way(&self) -> Result<Way, Refusal> {
        let access = egress::access(self.ctx, self.reference, self.admitted);
        let access = access.ok_or_else(|| Refusal::new(Reason::HostNotAllowed, "the skill names no host"))?;
        let (broker, policy) = access.way().await.map_err(|verdict| {
            let reason = Reason::of_verdict(verdict).unwrap_or(Reason::BrokerUnavailable);
            let message = match reason {
                Reason::HostNotAllowed => "SkillPolicy does not allow the hosts of the skill any more",
                _ => "this operator has no broker of egress, or cannot read which addresses are the cluster's; the chart installs a broker with broker.enabled: true",
            };
            Refusal::new(reason, message)
        })?;
        Ok(Way { broker, policy })
    }

    async fn prepare(&self, policy: &RunPolicy) -> Result<Call, Refusal> {
        let input: Value = serde_json::from_str(&self.admitted.stdin)
            .map_err(|error| Refusal::new(Reason::InputInvalid, format!("spec.input: {error}")))?;
        match &self.program {
            RequestProgram::Http(program) => self.prepare_skill(program, &input, policy).await,
            RequestProgram::Builtin(program) => self.prepare_builtin(program, &input).await,
        }
    }

    async fn prepare_skill(
        &self,
        program: &Arc<HttpProgram>,
        input: &Value,
        policy: &RunPolicy,
    ) -> Result<Call, Refusal> {
        let (host, skill) = (program.host(), self.admitted.skill.as_str());
        let (wanted, for_host) = (program.secrets(), [host.name.as_str()]);
        let namespace = self.reference.namespace();
        let granted = gather::secrets(self.ctx, namespace, &wanted, (skill, &for_host)).await?;
        let values = granted.iter().map(|(name, secret)| (name.clone(), secret.value.clone())).collect();
        let request = program
            .render(input, &values)
            .map_err(|error| Refusal::new(error.reason, format!("spec.input: {}", error.message)))?;
        let used = request.used_secrets.iter().filter_map(|name| granted.get(name));
        let granted: Vec<&[String]> = used.map(|secret| secret.hosts.as_slice()).collect();
        let redirect_hosts = end::redirect_hosts(&policy.hosts, &granted);
        Ok(Call::of_skill(program.clone(), request, redirect_hosts))
    }

    async fn prepare_builtin(&self, program: &BuiltinProgram, input: &Value) -> Result<Call, Refusal> {
        let key = match program.key_secret() {
            Some(secret) => Some(self.platform_key(&secret.name, &secret.key).await?),
            None => None,
        };
        let call = program.render(input, key.as_deref());
        let call = call.map_err(|error| Refusal::new(error.reason(), format!("spec.input: {error}")))?;
        let caller = self.execution.spec.caller.as_deref().unwrap_or(self.reference.namespace());
        Ok(Call::of_builtin(call, key.as_deref(), caller.to_owned()))
    }

    /// Reads a key of the operator's own namespace, which SkillPolicy names.
    async fn platform_key(&self, name: &str, key: &str) -> Result<String, Refusal> {
        let api: Api<Secret> = Api::namespaced(self.ctx.client.clone(), &self.ctx.namespace);
        let limit = self.admitted.timeout;
        let secret = gather::until_read("Secret", limit, || api.get_opt(name)).await?;
        let value = secret.and_then(|secret| secret.data?.remove(key));
        value.and_then(|value| String::from_utf8(value.0).ok()).ok_or_else(|| {
            let namespace = &self.ctx.namespace;
            let message = format!("namespace {namespace} has no Secret {name} with a text under {key}, which spec.webSearch.keySecret of SkillPolicy names");
            Refusal::new(Reason::SecretMissing, message)
        })
    }

    fn kept_output(&self, call: &Call) -> Option<Value> {
        let (name, _) = call.cache()?;
        call.cached_output(&self.ctx.kept_outputs.find(&self.reference.lane.caller_namespace, &name)?)
    }

    /// Sends a request, again while it may be, and those that follow from its response.
    async fn send(&mut self, mut call: Call, way: &Way) -> Conclusion {
        let mut done = 0;
        loop {
            let tried = self.try_once(&call, way).await;
            done += 1;
            if let Some(wait) = call.next_try(&tried, done, (self.started.elapsed(), self.admitted.timeout)) {
                sleep(wait).await;
                continue;
            }
            let cache = call.cache();
            match self.read(call, tried).await {
                Next::End(conclusion) => {
                    if let (Some((name, ttl)), Some(output)) = (cache, &conclusion.output) {
                        self.ctx.kept_outputs.keep(&self.reference.lane.caller_namespace, name, output, ttl);
                    }
                    return *conclusion;
                }
                Next::Call(next) => (call, done) = (*next, 0),
            }
        }
    }

    async fn try_once(&mut self, call: &Call, Way { broker, policy }: &Way) -> Tried {
        let (method, host_and_port) = (call.request().method, call.request().host_and_port());
        self.record.send(OpenRequest { method, host_and_port, sent_at: Some(Timestamp::now()) });
        let RenderedRequest { method, url, headers, body } = call.request().clone();
        let timeout = call.timeout(self.admitted.timeout.saturating_sub(self.started.elapsed()));
        let (response_bytes, cuts_body) = call.response_bytes();
        let (sent_bytes, received_bytes) = self.record.transferred();
        let request = EgressRequest {
            policy: RunPolicy { sent_bytes, received_bytes, ..policy.clone() },
            method: method.as_str().to_owned(),
            url,
            headers,
            body: body.map(String::into_bytes),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            response_bytes,
            cuts_body,
            redirects: call.redirects(),
            redirect_hosts: call.redirect_hosts.clone(),
        };
        self.has_sent = true;
        match broker.request(request).await {
            Ok(response) => {
                self.record.answer(&response.connections);
                Tried::Answered(response.result)
            }
            Err(error) => {
                self.record.fail(error.was_sent(), Timestamp::now());
                warn!(%error, "The broker of egress did not answer a request");
                Tried::NoBroker { message: error.to_string(), was_sent: error.was_sent() }
            }
        }
    }

    /// Reads the response. A large one is read on a thread of its own.
    async fn read(&self, call: Call, tried: Tried) -> Next {
        let (admitted, size) = (self.admitted.clone(), tried.body_bytes());
        let read = move || end::read(&call, tried, &admitted);
        if size < super::SMALL_OUTPUT && self.admitted.content.output_schema.is_none() {
            return read();
        }
        let turn = self.ctx.checks.turn_to_check(&self.reference.lane);
        let read = self.ctx.checks.run(&turn, end::parsed_size_of(size), read).await;
        read.unwrap_or_else(|| {
            let message = "the reading of the response was interrupted";
            Next::End(Box::new(Conclusion::failed(Reason::ApiError, message.into())))
        })
    }

    /// Ends the record, and counts its connections.
    fn take_connections(&mut self) -> Option<Connections> {
        let record = std::mem::take(&mut self.record);
        let (connections, verdicts) = record.finish(Timestamp::now())?;
        self.ctx.metrics.egress.count(&connections, &verdicts);
        Some(connections)
    }

    fn complete(&self, conclusion: Conclusion) -> Conclusion {
        complete(conclusion, self.admitted, self.attempt, self.started, self.has_sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_continues_has_the_time_that_is_left() {
        let after = |status: &str| {
            let yaml = format!("{{metadata: {{name: e}}, spec: {{skill: s}}, status: {{{status}}}}}");
            let execution: SkillExecution = serde_saphyr::from_str(&yaml).unwrap();
            ran_before(&execution, "2026-01-01T00:00:07Z".parse().unwrap())
        };
        assert_eq!(after("phase: Running, startedAt: '2026-01-01T00:00:04.000000Z'"), Duration::from_secs(3));
        assert_eq!(after("phase: Running, startedAt: '2026-01-01T00:00:09.000000Z'"), Duration::ZERO);
        assert_eq!(after("phase: Running"), Duration::ZERO);
        assert_eq!(after("phase: Pending, startedAt: '2026-01-01T00:00:04.000000Z'"), Duration::ZERO);
    }
}
