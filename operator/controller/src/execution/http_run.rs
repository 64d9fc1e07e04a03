//! The run of an HTTP skill: no sandbox, one request that the broker of egress sends.
//!
//! gather (Secrets) -> render (`core::http`) -> send, again if it is safe -> read the response (`core::http`) -> one status.
//!
//! Guarantee: a request that may change something is sent at most once. The status says Running before it is sent, so that
//! an operator that finds it takes the run for lost.

mod end;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value;
use skillet_api::{Reason, network::Connections};
use skillet_core::{
    admission::{Admitted, Refusal},
    http::{HttpProgram, RenderedRequest, SkillRequest, next_try},
};
use skillet_egress::{BrokerClient, EgressRequest, RunPolicy};
use skillet_protocol::{HostRule, Masker};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tracing::warn;

use self::end::{Tried, add_connections};
use super::{
    Assignment, RunEnd,
    adopt::{ResumePoint, SandboxState},
    attempt_outcome::SandboxRef,
    conclude::Conclusion,
    finish::finish,
    gather,
    order::{Order, wait_for_cancel, wait_for_stop},
    reference::ExecutionRef,
    running_status::RunningStatusWriter,
    status,
};
use crate::context::Context;

/// A run of a safe request that takes longer than this is shown as Running.
const REPORT_AFTER: Duration = Duration::from_millis(500);
/// Most bytes of a response. More do not fit into a status.
const MAX_RESPONSE: u64 = 1 << 20;

/// Runs an admitted execution until its status is final.
pub(super) async fn run(ctx: &Arc<Context>, assignment: Assignment, program: &HttpProgram) -> RunEnd {
    let Assignment { reference, execution, admitted, point, order, .. } = assignment;
    let mut http = HttpRun {
        ctx,
        reference: &reference,
        admitted: &admitted,
        program,
        attempt: point.attempt + u32::from(point.sandbox == SandboxState::Gone),
        started: Instant::now(),
        connections: Connections::default(),
        has_sent: false,
    };
    let ended = http.run_until(&point, order.clone()).await;
    let Some(conclusion) = ended else { return RunEnd::Finished };
    let conclusion = http.complete(conclusion);
    // Nothing of a spec changes but `cancel`, and that once.
    let is_changed = order.borrow().is_cancel() && !execution.spec.cancel;
    let generation = execution.metadata.generation.map(|generation| generation + i64::from(is_changed));
    finish(ctx, &ctx.pace.ends, &reference, generation, conclusion).await;
    RunEnd::Finished
}

struct HttpRun<'a> {
    ctx: &'a Arc<Context>,
    reference: &'a Arc<ExecutionRef>,
    admitted: &'a Admitted,
    program: &'a HttpProgram,
    attempt: u32,
    started: Instant,
    connections: Connections,
    /// A request was handed to the broker.
    has_sent: bool,
}

/// A request and all that it may reach.
struct Prepared {
    rendered: SkillRequest,
    broker: BrokerClient,
    policy: RunPolicy,
    redirect_hosts: Vec<HostRule>,
}

impl HttpRun<'_> {
    /// Runs to an end, its time limit or a cancellation. `None`: another operator has ended the execution.
    async fn run_until(&mut self, point: &ResumePoint, order: watch::Receiver<Order>) -> Option<Conclusion> {
        let (mut cancelled, stopped) = (order.clone(), order);
        let limit = self.admitted.timeout;
        let status = RunningStatusWriter::new(
            self.ctx,
            (self.reference, self.admitted),
            self.attempt,
            Some(Timestamp::now()),
        );
        let ended = tokio::select! {
            ended = self.run(point, &status) => Some(ended.unwrap_or_else(|refusal| Conclusion::refused(&refusal))),
            () = wait_for_cancel(&mut cancelled) => Some(Conclusion::cancelled()),
            () = wait_for_stop(stopped) => None,
            () = sleep(limit) => Some(end::timed_out(limit)),
        };
        status.finish().await;
        ended
    }

    async fn run(&mut self, point: &ResumePoint, status: &RunningStatusWriter) -> Result<Conclusion, Refusal> {
        if point.sandbox == SandboxState::Gone && !self.program.method().is_safe() {
            return Ok(end::lost(self.program.method()));
        }
        let prepared = self.prepare().await?;
        if self.program.method().is_safe() {
            let sent = self.send(&prepared);
            tokio::pin!(sent);
            return Ok(tokio::select! {
                ended = &mut sent => ended,
                () = sleep(REPORT_AFTER) => {
                    status.start(&SandboxRef::default());
                    sent.await
                }
            });
        }
        let mut running = status::running(
            &self.admitted.version.to_string(),
            &self.admitted.digest,
            self.attempt,
            &SandboxRef::default(),
            Timestamp::now(),
        );
        status::apply_until_done(&self.ctx.client, &self.ctx.pace.ends, self.reference, &mut running).await;
        Ok(self.send(&prepared).await)
    }

    async fn prepare(&self) -> Result<Prepared, Refusal> {
        let (host, skill) = (self.program.host(), self.admitted.skill.as_str());
        let wanted = self.program.secrets();
        let for_host: (&str, &[&str]) = (skill, &[&host.name]);
        let granted = gather::secrets(self.ctx, self.reference.namespace(), &wanted, for_host).await?;
        let values = granted.iter().map(|(name, secret)| (name.clone(), secret.value.clone())).collect();
        let input: Value = serde_json::from_str(&self.admitted.stdin)
            .map_err(|error| Refusal::new(Reason::InputInvalid, format!("spec.input: {error}")))?;
        let rendered = self
            .program
            .render(&input, &values)
            .map_err(|error| Refusal::new(error.reason, format!("spec.input: {}", error.message)))?;
        let hosts = self.admitted.content.network.as_ref().map_or(&[][..], |network| &network.hosts);
        let run = (self.reference.uid.as_str(), self.reference.lane.caller_namespace.as_str());
        let opened = self.ctx.egress.open(run, hosts, &self.ctx.catalog.policy());
        let (broker, policy) = opened.ok_or_else(|| {
            let message = "this operator has no broker of egress, or does not know the cluster's addresses yet; install the chart with broker.enabled";
            Refusal::new(Reason::BrokerUnavailable, message)
        })?;
        let used = rendered.used_secrets.iter().filter_map(|name| granted.get(name));
        let granted: Vec<&[String]> = used.map(|secret| secret.hosts.as_slice()).collect();
        let redirect_hosts = end::redirect_hosts(&policy.hosts, &granted);
        Ok(Prepared { rendered, broker, policy, redirect_hosts })
    }

    /// Sends the request, and again while `core` says so.
    async fn send(&mut self, prepared: &Prepared) -> Conclusion {
        let mut done = 0;
        loop {
            let tried = self.try_once(prepared).await;
            done += 1;
            let wait = tried.outcome().and_then(|outcome| {
                next_try(self.program.method(), outcome, done, self.started.elapsed(), self.admitted.timeout)
            });
            let Some(wait) = wait else { return self.conclude(tried, prepared).await };
            sleep(wait).await;
        }
    }

    async fn try_once(&mut self, prepared: &Prepared) -> Tried {
        let Prepared { rendered, broker, policy, redirect_hosts } = prepared;
        let RenderedRequest { method, url, headers, body } = rendered.request.clone();
        let left = self.admitted.timeout.saturating_sub(self.started.elapsed());
        let request = EgressRequest {
            policy: policy.clone(),
            method: method.as_str().to_owned(),
            url,
            headers,
            body: body.map(String::into_bytes),
            timeout_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            response_bytes: MAX_RESPONSE,
            redirects: self.program.redirects(),
            redirect_hosts: redirect_hosts.clone(),
        };
        self.has_sent = true;
        match broker.request(request).await {
            Ok(response) => {
                let (connections, verdicts) = end::connections(&response.connections);
                self.ctx.metrics.egress.count(&connections, &verdicts);
                add_connections(&mut self.connections, connections);
                Tried::Answered(response.result)
            }
            Err(error) => {
                warn!(%error, "The broker of egress did not send a request");
                Tried::NoBroker(error.to_string())
            }
        }
    }

    /// Reads the response. A large one is read on a thread of its own.
    async fn conclude(&self, tried: Tried, prepared: &Prepared) -> Conclusion {
        let (program, admitted) = (self.program.clone(), self.admitted.clone());
        let masker = Masker::new(prepared.rendered.secret_texts.iter().map(String::as_str));
        let size = tried.body_bytes();
        let read = move || end::conclude(&program, tried, &admitted, &masker);
        if size < super::SMALL_OUTPUT && self.admitted.content.output_schema.is_none() {
            return read();
        }
        let turn = self.ctx.checks.turn_to_check(&self.reference.lane);
        let read = self.ctx.checks.run(&turn, end::parsed_size_of(size), read).await;
        read.unwrap_or_else(|| {
            Conclusion::failed(Reason::ApiError, "the reading of the response was interrupted".into())
        })
    }

    fn complete(&self, conclusion: Conclusion) -> Conclusion {
        let duration = self.started.elapsed();
        let attempts = if self.has_sent { self.attempt } else { self.attempt - 1 };
        Conclusion {
            resolved_version: Some(self.admitted.version.to_string()),
            digest: Some(self.admitted.digest.clone()),
            attempts,
            started_at: self.has_sent.then(|| Timestamp::now() - duration),
            duration_ms: self.has_sent.then(|| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            connections: self.has_sent.then(|| self.connections.clone()),
            ..conclusion
        }
    }
}
