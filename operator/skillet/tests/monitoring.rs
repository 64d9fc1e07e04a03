//! Metrics are named alike in the product, the reference, the alert rules and the dashboard.

// What is not a test here is still part of one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{collections::BTreeSet, fs, time::Duration};

use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::Value;
use skillet_api::{Phase, Reason};
use skillet_core::busiest::Load;
use skillet_gateway::{
    embeddings::Purpose,
    metrics::{Metrics as GatewayMetrics, ModelUse},
    model::usage_meter::Tokens,
    process_metrics,
};
use skillet_kube::ApiMetrics;

fn read(path: &str) -> String {
    fs::read_to_string(std::env::current_dir().unwrap().join("../..").join(path)).unwrap()
}

/// Everything that the processes serve. A family without a sample is not served, so that each gets one.
fn served() -> String {
    let mut registry = Registry::default();
    let metrics = skillet_controller::metrics::Metrics::register(&mut registry);
    metrics.execution_ended(Phase::Succeeded, Reason::Succeeded, Some(Duration::ZERO));
    metrics.retried(Reason::SandboxLost);
    metrics.start_failed("NoRoom");
    metrics.problem("Skill", Reason::ParseFailed);
    let load = Load { waiting: 1, running: 1 };
    metrics.show_namespaces(&[("team", load)]);
    metrics.show_skills(&[(("team", "count"), load)]);
    metrics.show_limits(64, 16);
    let sources = skillet_sources::Metrics::register(&mut registry);
    sources.look(Reason::Synced, Duration::ZERO);
    process_metrics::register(&mut registry, "skillet");
    let api = ApiMetrics::default();
    api.register(registry.sub_registry_with_prefix("skillet"));
    let gateway = GatewayMetrics::default();
    gateway.called(false, Duration::ZERO);
    gateway.refused("RateLimited");
    gateway.disallowed("refused");
    gateway.provider_answered("openai", "success");
    gateway.embeddings().requested(Purpose::Question, "success");
    gateway.embeddings().set_skills(1, 1);
    let tokens = Tokens::default();
    gateway.used(&ModelUse { namespace: "a", provider: "b", model: "c", is_success: true, tokens });
    let mut broker = Registry::default();
    skillet_egress::Metrics::register(&mut broker);
    skillet_workspace::Metrics::register(&mut broker);
    let mut text = String::new();
    for registry in [&registry, &gateway.registry(), &broker] {
        encode(&mut text, registry).unwrap();
    }
    text
}

/// Names as queries write them, without the suffixes of a histogram's series.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let ours = words.filter(|word| ["skillet_", "process_"].iter().any(|prefix| word.starts_with(prefix)));
    let bare = |word: &str| {
        let suffix = ["_bucket", "_count", "_sum"].into_iter().find_map(|suffix| word.strip_suffix(suffix));
        suffix.unwrap_or(word).to_owned()
    };
    ours.map(bare).collect()
}

/// Samples that exist only after a request, a watch, a connection or an error.
const LATER: [&str; 17] = [
    "skillet_api_errors_total",
    "skillet_api_watches_total",
    "skillet_broker_connections_total",
    "skillet_broker_refused_by_runners_total",
    "skillet_broker_requests_total",
    "skillet_broker_transferred_bytes_total",
    "skillet_egress_connections_total",
    "skillet_egress_transfer_bytes_total",
    "skillet_gateway_api_errors_total",
    "skillet_gateway_api_watches_total",
    "skillet_gateway_body_commands_total",
    "skillet_gateway_mcp_server_calls_total",
    "skillet_gateway_requests_total",
    "skillet_gateway_state_exchanges_total",
    "skillet_gateway_request_seconds",
    "skillet_workspaces_operations_total",
    "skillet_workspaces_transferred_bytes_total",
];

fn known() -> BTreeSet<String> {
    let samples: String =
        served().lines().filter(|line| !line.starts_with('#')).map(|line| line.to_owned() + "\n").collect();
    let labels_away: String =
        samples.lines().filter_map(|line| line.split(['{', ' ']).next()).collect::<Vec<_>>().join("\n");
    names(&labels_away).into_iter().chain(LATER.map(String::from)).collect()
}

fn unknown_in(queries: &str) -> Vec<String> {
    names(queries).difference(&known()).cloned().collect()
}

#[test]
fn alert_rules_and_dashboard_name_only_metrics_of_the_product() {
    let rules: Value = serde_saphyr::from_str(&read("charts/skillet/files/alerts.yaml")).unwrap();
    let rules =
        rules["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap());
    let expressions: Vec<&str> = rules.map(|rule| rule["expr"].as_str().unwrap()).collect();
    assert!(expressions.len() >= 10);
    assert_eq!(unknown_in(&expressions.join("\n")), Vec::<String>::new());
    let dashboard: Value = serde_json::from_str(&read("charts/skillet/files/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(queries.len() >= 20);
    assert_eq!(unknown_in(&queries.join("\n")), Vec::<String>::new());
}

#[test]
fn the_reference_has_every_metric_and_no_other() {
    let page = read("docs/reference/metrics.md");
    assert_eq!(
        unknown_in(&page.replace("`skillet_gateway_api_`", "").replace("`skillet_api_`", "")),
        Vec::<String>::new()
    );
    let described = names(&page);
    // The gateway's are described once, with the operator's.
    let is_missing = |name: &String| {
        !described.contains(name)
            && !described.contains(&name.replace("skillet_gateway_api_", "skillet_api_"))
    };
    let missing: Vec<String> = known().into_iter().filter(is_missing).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn every_alert_has_a_section_in_the_runbook_and_no_section_is_left_over() {
    let rules: Value = serde_saphyr::from_str(&read("charts/skillet/files/alerts.yaml")).unwrap();
    let rules =
        rules["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap());
    let alerts: BTreeSet<String> = rules
        .map(|rule| {
            let name = rule["alert"].as_str().unwrap().to_owned();
            let url = rule["annotations"]["runbook_url"].as_str().unwrap();
            assert!(url.ends_with(&format!("#{}", name.to_lowercase())), "{url}");
            name
        })
        .collect();
    let runbook = read("docs/reference/runbook.md");
    let sections: BTreeSet<String> =
        runbook.lines().filter_map(|line| line.strip_prefix("## ")).map(String::from).collect();
    assert_eq!(alerts, sections);
}
