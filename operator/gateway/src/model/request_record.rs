//! The record of one model request: its line in the access log, its metrics, and its tokens of the rate limit.
//!
//! It is written when the last owner drops it, which is the end of the response. It holds no text of a prompt and no key.

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use skillet_api::gateway::RateLimits;
use skillet_kube::lock;
use skillet_llm::DialectName;
use tracing::{Span, info};

use super::{
    native_tools::{self, NativeOutcome},
    rate_limits::RateLimiter,
    usage_meter::Tokens,
};
use crate::{
    auth::Caller,
    error::ApiError,
    metrics::{Metrics, ModelUse},
};

/// Longest name of a model in the log, in characters. Clients name models freely.
const MAX_MODEL: usize = 128;
/// The reason of a request whose client went away before a response.
const CLIENT_GONE: &str = "ClientGone";

pub(crate) struct RequestRecord {
    caller: Caller,
    dialect: DialectName,
    model: String,
    began: Instant,
    /// The request's span, which has its id.
    span: Span,
    metrics: Arc<Metrics>,
    limiter: Arc<RateLimiter>,
    events: Mutex<Events>,
}

/// The course of the request so far.
#[derive(Default)]
struct Events {
    provider: String,
    /// Limits that its tokens count for.
    limits: Option<RateLimits>,
    status: Option<u16>,
    reason: Option<String>,
    rounds: u32,
    skills: usize,
    /// Native tools that the policy wants replaced, and what came of each.
    native_tools: String,
    tokens: Tokens,
}

impl RequestRecord {
    pub(super) fn new(
        metrics: Arc<Metrics>,
        limiter: Arc<RateLimiter>,
        caller: &Caller,
        dialect: DialectName,
        model: &str,
    ) -> Arc<Self> {
        Arc::new(Self {
            caller: caller.clone(),
            dialect,
            model: model.chars().take(MAX_MODEL).collect(),
            began: Instant::now(),
            span: Span::current(),
            metrics,
            limiter,
            events: Mutex::default(),
        })
    }

    /// The provider was chosen.
    pub(super) fn set_provider(&self, name: &str) {
        name.clone_into(&mut lock(&self.events).provider);
    }

    /// Takes the request from the limits of its namespace, or returns the time until the next one may come.
    pub(super) fn take(&self, limits: &RateLimits) -> Result<(), std::time::Duration> {
        lock(&self.events).limits = Some(limits.clone());
        self.limiter.take(&self.caller.namespace, limits, Instant::now())
    }

    /// A request to the provider has an answer or an error.
    pub(super) fn answer(&self, outcome: &'static str) {
        self.metrics.provider_answered(&lock(&self.events).provider, outcome);
    }

    /// A request was sent to the provider.
    pub(super) fn add_round(&self) {
        lock(&self.events).rounds += 1;
    }

    /// Skills have run.
    pub(super) fn add_skills(&self, count: usize) {
        lock(&self.events).skills += count;
    }

    /// The native tools were looked at.
    pub(super) fn set_native_tools(&self, outcomes: &[NativeOutcome]) {
        lock(&self.events).native_tools = native_tools::to_text(outcomes);
    }

    /// A response of the provider has ended.
    pub(super) fn add_tokens(&self, tokens: Tokens) {
        let mut events = lock(&self.events);
        events.tokens += tokens;
        if let Some(limits) = &events.limits {
            self.limiter.charge(&self.caller.namespace, limits, tokens.total(), Instant::now());
        }
    }

    /// Notes the head of the client's response.
    pub(super) fn respond<B>(&self, response: &Result<http::Response<B>, ApiError>) {
        let mut events = lock(&self.events);
        match response {
            Ok(response) => events.status = Some(response.status().as_u16()),
            Err(error) => {
                events.status = Some(error.status.as_u16());
                events.reason = Some(error.code.clone());
            }
        }
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let Self { caller, dialect, model, began, span, metrics, limiter: _, events } = self;
        let Events { provider, limits: _, status, reason, rounds, skills, native_tools, tokens } =
            std::mem::take(&mut *lock(events));
        let account = caller.user.rsplit(':').next().unwrap_or_default();
        let reason = reason.unwrap_or_else(|| status.map_or(CLIENT_GONE, |_| "").to_owned());
        let is_success = status.is_some_and(|status| (200..300).contains(&status));
        if !provider.is_empty() {
            metrics.used(&ModelUse {
                namespace: &caller.namespace,
                provider: &provider,
                model,
                is_success,
                tokens,
            });
        }
        span.in_scope(|| {
            info!(
                namespace = &*caller.namespace,
                account,
                dialect = dialect.as_str(),
                provider,
                model = model.as_str(),
                status,
                reason,
                rounds,
                skills,
                native_tools,
                input_tokens = tokens.input,
                output_tokens = tokens.output,
                duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                "Model request"
            );
        });
    }
}
