//! Metrics of the gateway. Labels come from closed sets.
//!
//! The use of models is by namespace and model: at most [`MAX_NAMES`] of each are labels, and all others are `other`.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    extract::{MatchedPath, Request, State},
    http::StatusCode,
    middleware::Next,
    response::Response,
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use skillet_kube::{ApiMetrics, lock};
use tokio::time::Instant;

use crate::{
    commands::CommandMetrics, embeddings::EmbeddingsMetrics, memory::MemoryPool, model::usage_meter::Tokens,
    process_metrics,
};

/// Most namespaces, and most models, that are labels.
const MAX_NAMES: usize = 100;
/// Prefix of every metric but those of the process.
const PREFIX: &str = "skillet_gateway";
/// The label of a name beyond that number, and of a model that no provider has answered for.
const OTHER: &str = "other";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    /// The route as it is written in the code, not the path that was asked for.
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    provider: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DisallowedLabels {
    decision: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UseLabels {
    namespace: String,
    provider: String,
    model: String,
    /// `success` and `error` of requests, `input` and `output` of tokens.
    kind: &'static str,
}

/// The use of a model by one request.
#[derive(Clone, Copy, Debug)]
pub struct ModelUse<'a> {
    pub namespace: &'a str,
    pub provider: &'a str,
    pub model: &'a str,
    pub is_success: bool,
    pub tokens: Tokens,
}

/// The first names of their kind.
#[derive(Debug, Default)]
struct Names(Mutex<HashSet<String>>);

impl Names {
    /// The label for a name.
    fn label(&self, name: &str) -> String {
        let mut names = lock(&self.0);
        if names.len() < MAX_NAMES && !names.contains(name) {
            names.insert(name.to_owned());
        }
        if names.contains(name) { name.to_owned() } else { OTHER.to_owned() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
    outcome: &'static str,
}

/// Handles to every metric.
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<RequestLabels, Counter>,
    time: Family<RouteLabels, Histogram, fn() -> Histogram>,
    provider_requests: Family<ProviderLabels, Counter>,
    refusals: Family<RefusalLabels, Counter>,
    uses: Family<UseLabels, Counter>,
    tokens: Family<UseLabels, Counter>,
    namespaces: Names,
    models: Names,
    calls: Family<CallLabels, Counter>,
    disallowed: Family<DisallowedLabels, Counter>,
    server_calls: Family<CallLabels, Counter>,
    call_time: Histogram,
    state_exchanges: Family<StateLabels, Counter>,
    embeddings: EmbeddingsMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(&ApiMetrics::default(), &MemoryPool::default(), &CommandMetrics::default())
    }
}

impl Metrics {
    /// Registers every metric, and those of the process, its memory pool, commands and its requests to the API server.
    pub(crate) fn new(api: &ApiMetrics, memory: &MemoryPool, commands: &CommandMetrics) -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.001, 2.0, 18));
        let (requests, refusals, calls) = (Family::default(), Family::default(), Family::default());
        let (uses, tokens, provider_requests) = (Family::default(), Family::default(), Family::default());
        let time = Family::new_with_constructor(seconds as fn() -> Histogram);
        let call_time = seconds();
        let mut all = Registry::default();
        process_metrics::register(&mut all, PREFIX);
        let registry = all.sub_registry_with_prefix(PREFIX);
        api.register(registry);
        memory.register(registry);
        commands.register(registry);
        registry.register(
            "provider_requests",
            "Requests to model providers, by outcome",
            provider_requests.clone(),
        );
        registry.register("requests", "Requests answered, by route and status", requests.clone());
        registry.register_with_unit("request", "Time until an answer begins", Unit::Seconds, time.clone());
        registry.register("model_refusals", "Model requests that the gateway refused", refusals.clone());
        registry.register("model_requests", "Requests to models, by caller and model", uses.clone());
        registry.register("model_tokens", "Tokens of models, by caller and model", tokens.clone());
        registry.register("skill_calls", "Skill calls of models, by how they ended", calls.clone());
        let (disallowed, server_calls) = (Family::default(), Family::default());
        registry.register(
            "mcp_server_calls",
            "Calls of MCP servers of skills, by outcome: succeeded, failed or list_failed",
            server_calls.clone(),
        );
        registry.register(
            "disallowed_calls",
            "Calls that instructions of skills in the conversation do not allow, by decision",
            disallowed.clone(),
        );
        registry.register_with_unit("skill_call", "Time of a skill call", Unit::Seconds, call_time.clone());
        let state_exchanges = Family::default();
        registry.register(
            "state_exchanges",
            "Reads and writes of the state in ConfigMaps, by state and outcome",
            state_exchanges.clone(),
        );
        let embeddings = EmbeddingsMetrics::default();
        embeddings.register(registry);
        let (namespaces, models) = (Names::default(), Names::default());
        Self {
            registry: Arc::new(all),
            requests,
            time,
            provider_requests,
            refusals,
            uses,
            tokens,
            namespaces,
            models,
            calls,
            disallowed,
            server_calls,
            call_time,
            state_exchanges,
            embeddings,
        }
    }

    /// All metrics, for `/metrics`.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.clone()
    }

    /// A model's call of a skill has ended.
    pub fn called(&self, is_error: bool, took: Duration) {
        let outcome = if is_error { "error" } else { "success" };
        self.calls.get_or_create(&CallLabels { outcome }).inc();
        self.call_time.observe(took.as_secs_f64());
    }

    /// Counts a call that instructions do not allow: it was refused, or only reported.
    pub fn disallowed(&self, decision: &'static str) {
        self.disallowed.get_or_create(&DisallowedLabels { decision }).inc();
    }

    /// Counts a call of an MCP server of a skill.
    pub fn server_called(&self, outcome: &'static str) {
        self.server_calls.get_or_create(&CallLabels { outcome }).inc();
    }

    /// Counts a request to a provider, of which SkillPolicy names each.
    pub fn provider_answered(&self, provider: &str, outcome: &'static str) {
        self.provider_requests
            .get_or_create(&ProviderLabels { provider: provider.to_owned(), outcome })
            .inc();
    }

    /// The gateway refused a request for a model.
    pub fn refused(&self, reason: &'static str) {
        self.refusals.get_or_create(&RefusalLabels { reason }).inc();
    }

    /// Counts a read or a write of a ConfigMap with the gateway's state.
    pub fn state_exchanged(&self, state: &'static str, is_success: bool) {
        let outcome = if is_success { "success" } else { "error" };
        self.state_exchanges.get_or_create(&StateLabels { state, outcome }).inc();
    }

    /// Returns the metrics of embeddings.
    pub fn embeddings(&self) -> &EmbeddingsMetrics {
        &self.embeddings
    }

    /// A request to a model has ended.
    pub fn used(&self, of: &ModelUse<'_>) {
        let ModelUse { namespace, provider, model, is_success, tokens } = *of;
        // Clients name models freely. One that a provider has answered for exists.
        let model = if is_success { self.models.label(model) } else { OTHER.to_owned() };
        let (namespace, provider) = (self.namespaces.label(namespace), provider.to_owned());
        let labels = |kind| UseLabels {
            namespace: namespace.clone(),
            provider: provider.clone(),
            model: model.clone(),
            kind,
        };
        self.uses.get_or_create(&labels(if is_success { "success" } else { "error" })).inc();
        self.tokens.get_or_create(&labels("input")).inc_by(tokens.input);
        self.tokens.get_or_create(&labels("output")).inc_by(tokens.output);
    }

    fn answered(&self, route: &str, status: StatusCode, took: Duration) {
        let labels = RequestLabels { route: route.to_owned(), status: status.as_u16() };
        self.requests.get_or_create(&labels).inc();
        let route = RouteLabels { route: route.to_owned() };
        self.time.get_or_create(&route).observe(took.as_secs_f64());
    }
}

/// Counts every request.
pub async fn count(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let response = next.run(request).await;
    // What has no route is one series, whatever was asked for.
    metrics.answered(route.as_deref().unwrap_or("none"), response.status(), started.elapsed());
    response
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn the_use_of_models_is_by_name_for_some_and_other_for_the_rest() {
        let metrics = Metrics::default();
        let tokens = Tokens { input: 5, output: 2 };
        let used = |namespace: &str, model: &str, is_success| {
            metrics.used(&ModelUse { namespace, provider: "openai", model, is_success, tokens });
        };
        used("team", "gpt-5", true);
        used("team", "invented", false);
        (0..2 * MAX_NAMES).for_each(|number| used(&format!("n{number}"), &format!("m{number}"), true));
        let mut text = String::new();
        encode(&mut text, &metrics.registry).unwrap();
        let of = |name: &str, labels: &str| format!("skillet_gateway_{name}_total{{{labels}}}");
        let team = "namespace=\"team\",provider=\"openai\",model=\"gpt-5\"";
        for line in [
            of("model_tokens", &format!("{team},kind=\"input\"")) + " 5",
            of("model_tokens", &format!("{team},kind=\"output\"")) + " 2",
            of("model_requests", &format!("{team},kind=\"success\"")) + " 1",
            of("model_requests", "namespace=\"team\",provider=\"openai\",model=\"other\",kind=\"error\"")
                + " 1",
            of("model_requests", "namespace=\"other\",provider=\"openai\",model=\"other\",kind=\"success\"")
                + " 101",
        ] {
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("invented"), "{text}");
    }

    #[test]
    fn requests_and_calls_are_counted_under_closed_sets() {
        let metrics = Metrics::default();
        metrics.answered("/v1/messages", StatusCode::OK, Duration::from_millis(3));
        metrics.answered("/v1/messages", StatusCode::OK, Duration::from_millis(3));
        metrics.answered("none", StatusCode::NOT_FOUND, Duration::ZERO);
        metrics.refused("ProviderForbidden");
        metrics.provider_answered("openai", "timeout");
        metrics.called(true, Duration::from_secs(1));
        metrics.disallowed("refused");
        metrics.server_called("list_failed");
        let mut text = String::new();
        encode(&mut text, &metrics.registry).unwrap();
        for line in [
            "skillet_gateway_requests_total{route=\"/v1/messages\",status=\"200\"} 2",
            "skillet_gateway_requests_total{route=\"none\",status=\"404\"} 1",
            "skillet_gateway_model_refusals_total{reason=\"ProviderForbidden\"} 1",
            "skillet_gateway_skill_calls_total{outcome=\"error\"} 1",
            "skillet_gateway_disallowed_calls_total{decision=\"refused\"} 1",
            "skillet_gateway_mcp_server_calls_total{outcome=\"list_failed\"} 1",
            "skillet_gateway_request_seconds_count{route=\"/v1/messages\"} 2",
            "skillet_gateway_provider_requests_total{provider=\"openai\",outcome=\"timeout\"} 1",
            "skillet_gateway_memory_reserved_bytes 0",
            "skillet_gateway_build_info{",
            "\nprocess_resident_memory_bytes ",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
