//! The run of an HTTP skill or a built-in: no sandbox, but requests that the broker of egress sends.
//!
//! gather (Secrets) -> render (`core::{http, builtin}`) -> send, again if it is safe -> read the response -> one status.
//!
//! Guarantee: a request that may change something is sent at most once. The status says Running before it is sent, so that
//! an operator that finds it takes the run for lost.

mod call;
mod end;
mod kept_outputs;
mod record;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::Value;
use skillet_api::{
    Reason, SkillExecution,
    network::{Connections, Host},
};
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

pub(crate) use self::kept_outputs::KeptOutputs;
use self::{
    call::Call,
    end::{Next, Tried},
    record::{OpenRequest, RequestRecord},
};
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

/// A program whose run is requests.
pub(super) enum RequestProgram {
    Http(Arc<HttpProgram>),
    Builtin(BuiltinProgram),
}

impl RequestProgram {
    /// Returns the request that the program makes of an input, if it is not safe to send it again.
    fn unsafe_request(&self, input: &str) -> Option<OpenRequest> {
        let (method, host_and_port) = match self {
            Self::Http(program) => {
                let Host { name, ports } = program.host();
                (program.method(), ports.first().map(|port| (name, *port)))
            }
            Self::Builtin(program) => {
                let request = program.render(&serde_json::from_str(input).ok()?, None).ok()?.request;
                (request.method, request.host_and_port())
            }
        };
        (!method.is_safe()).then_some(OpenRequest { method, host_and_port, sent_at: None })
    }
}

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
        started: Instant::now(),
        record: RequestRecord::default(),
        has_sent: false,
    };
    let ended = http.run_until(&point, order.clone()).await;
    let ended = ended.map(|conclusion| end::with_open_request(conclusion, http.record.open_method()));
    let connections = http.take_connections();
    let Some(conclusion) = ended else { return RunEnd::Finished };
    let conclusion = Conclusion { connections, ..http.complete(conclusion) };
    let generation = seen_generation(&execution, *order.borrow());
    finish(ctx, &ctx.pace.ends, &reference, generation, conclusion).await;
    RunEnd::Finished
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
    /// Runs to an end, its time limit or a cancellation. `None`: another operator has ended the execution.
    async fn run_until(&mut self, point: &ResumePoint, order: watch::Receiver<Order>) -> Option<Conclusion> {
        let limit = self.admitted.timeout;
        let timed_out = end::timed_out(&self.program, limit);
        let of_run = (self.reference, self.admitted);
        let status = RunningStatusWriter::new(self.ctx, of_run, self.attempt, Some(Timestamp::now()));
        let run = async |status: &RunningStatusWriter| self.run(point, status).await;
        run_until_end(status, order, limit + BROKER_SLACK, || timed_out, run).await
    }

    /// Returns `None` if the execution is gone or has ended meanwhile.
    async fn run(
        &mut self,
        point: &ResumePoint,
        status: &RunningStatusWriter,
    ) -> Result<Option<Conclusion>, Refusal> {
        if point.sandbox == SandboxState::Gone
            && let Some(sent) = self.program.unsafe_request(&self.admitted.stdin)
        {
            let lost = end::lost(sent.method);
            self.record.send(sent);
            return Ok(Some(lost));
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
        let request = EgressRequest {
            policy: policy.clone(),
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
    use skillet_api::{SkillPolicySpec, SkillSpec, http::HttpMethod};
    use skillet_core::skill::{Handler, validate_content};

    use super::*;

    fn http(method: &str) -> RequestProgram {
        let yaml =
            format!("{{version: 1.0.0, run: {{http: {{url: 'https://a.dev:8443/x', method: {method}}}}}}}");
        let spec: SkillSpec = serde_saphyr::from_str(&yaml).unwrap();
        match validate_content(&spec, &SkillPolicySpec::default()).unwrap().handler {
            Handler::Http(program) => RequestProgram::Http(program),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_lost_request_names_the_host_of_its_program() {
        let sent = |host: &str, port| {
            let host_and_port = Some((host.to_owned(), port));
            Some(OpenRequest { method: HttpMethod::Post, host_and_port, sent_at: None })
        };
        let input = r#"{"url": "https://b.dev/y", "method": "post"}"#;
        let builtin = RequestProgram::Builtin(BuiltinProgram::HttpRequest);
        assert_eq!(http("POST").unsafe_request("{}"), sent("a.dev", 8443));
        assert_eq!(builtin.unsafe_request(input), sent("b.dev", 443));
        assert_eq!(http("GET").unsafe_request("{}"), None, "it is sent again");
        assert_eq!(builtin.unsafe_request(r#"{"url": "https://b.dev/y"}"#), None);
        assert_eq!(builtin.unsafe_request("no input"), None);
    }
}
