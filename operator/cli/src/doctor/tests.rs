//! A healthy cluster with one fault at a time, and the one check that changes.

use serde_json::json;
use skillet_api::SkillPolicy;

use super::{
    check::{Check, CheckStatus},
    checks::judge,
    findings::{ClusterNode, Findings, Lookup, OperatorDeployment, RIGHTS, SandboxNamespace, ServerVersion},
    nodes, report,
};
use crate::console::Style;

fn policy(spec: &serde_json::Value, nodes: &serde_json::Value) -> Lookup<Box<SkillPolicy>> {
    let policy = serde_json::from_value(json!({
        "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillPolicy",
        "metadata": { "name": "default" }, "spec": spec, "status": { "nodes": nodes },
    }));
    Lookup::Found(Box::new(policy.unwrap()))
}

fn node(name: &str, missing: &[&str]) -> serde_json::Value {
    json!({
        "name": name, "probedAt": "2026-01-01T00:00:00Z", "containerRuntime": "containerd://2.1.4",
        "missing": missing,
        "isolation": {
            "networkBlocked": true, "noexecScratch": !missing.contains(&"noexecScratch"), "directExecRefused": true,
            "processLimit": true, "ownProcessLimit": true, "noNewPrivileges": true,
            "userNamespace": true, "readOnlyRoot": true, "landlockAbi": 6, "kernel": "6.12.0",
        },
    })
}

fn healthy() -> Findings {
    Findings {
        namespace: "team-a".into(),
        server: Lookup::Found(ServerVersion { text: "v1.36.3".into(), minor: Some(36) }),
        served: Lookup::Found(
            ["skills", "skills/status", "skillversions", "skillexecutions", "skillpolicies", "apikeys"]
                .map(String::from)
                .to_vec(),
        ),
        served_versions: vec!["v1alpha1".into()],
        operators: Lookup::Found(vec![operator(true)]),
        policy: policy(&json!({}), &json!([node("n1", &[])])),
        nodes: Lookup::Found(vec![ClusterNode { name: "n1".into(), is_usable: true }]),
        sandboxes: sandboxes(Lookup::Found(Some("restricted".into()))),
        rights: Lookup::Found(RIGHTS.map(|right| (right, true)).to_vec()),
    }
}

fn operator(is_available: bool) -> OperatorDeployment {
    OperatorDeployment {
        namespace: "skillet-system".into(),
        name: "skillet".into(),
        image: "skillet.dev/operator:0.1.0".into(),
        is_available,
        message: if is_available { String::new() } else { "no pod is ready".into() },
        sandbox_namespace: None,
    }
}

fn sandboxes(enforced: Lookup<Option<String>>) -> SandboxNamespace {
    SandboxNamespace { name: "skillet-sandboxes".into(), enforced }
}

/// Asserts that only the named checks are not ok, with this status and these words in their message.
fn check(findings: &Findings, expected: &[(&str, CheckStatus, &str)]) {
    let checks = judge(findings);
    let wrong: Vec<&Check> = checks.iter().filter(|check| check.verdict != CheckStatus::Ok).collect();
    assert_eq!(wrong.len(), expected.len(), "{wrong:#?}");
    for (found, (name, verdict, words)) in wrong.into_iter().zip(expected) {
        assert_eq!((found.name, found.verdict), (*name, *verdict), "{found:?}");
        assert!(found.message.contains(words), "{found:?}");
        assert!(found.advice.as_ref().is_some_and(|advice| !advice.is_empty()), "{found:?}");
    }
}

#[test]
fn a_healthy_cluster_is_well() {
    check(&healthy(), &[]);
    let report = report::report(&healthy(), judge(&healthy()));
    assert_eq!(report.verdict, CheckStatus::Ok);
}

#[test]
fn definitions_that_are_missing_or_of_another_version_fail() {
    let none = Findings { served: Lookup::NotFound, served_versions: Vec::new(), ..healthy() };
    check(&none, &[("definitions", CheckStatus::Fail, "the cluster serves no skillet.dev")]);
    let newer = Findings { served: Lookup::NotFound, served_versions: vec!["v1".into()], ..healthy() };
    check(
        &newer,
        &[("definitions", CheckStatus::Fail, "serves skillet.dev v1, this plugin speaks v1alpha1")],
    );
    let half = Findings { served: Lookup::Found(vec!["skills".into()]), ..healthy() };
    check(
        &half,
        &[("definitions", CheckStatus::Fail, "lacks skillversions, skillexecutions, skillpolicies, apikeys")],
    );
}

#[test]
fn an_operator_must_be_there_and_available() {
    let none = Findings { operators: Lookup::Found(Vec::new()), ..healthy() };
    check(&none, &[("operator", CheckStatus::Fail, "no Deployment has the label")]);
    let down = Findings { operators: Lookup::Found(vec![operator(false)]), ..healthy() };
    check(
        &down,
        &[("operator", CheckStatus::Fail, "skillet-system/skillet is not available: no pod is ready")],
    );
    let hidden = Findings { operators: Lookup::Denied, ..healthy() };
    check(&hidden, &[("operator", CheckStatus::Warn, "you may not read Deployments")]);
}

#[test]
fn the_policy_must_let_skills_run_and_a_weak_level_is_warned_of() {
    let nodes = json!([node("n1", &[])]);
    let off = Findings { policy: policy(&json!({ "executionEnabled": false }), &nodes), ..healthy() };
    check(&off, &[("policy", CheckStatus::Fail, "every run is refused")]);
    let weak = Findings { policy: policy(&json!({ "isolation": "Compatible" }), &nodes), ..healthy() };
    check(&weak, &[("isolation", CheckStatus::Warn, "the level is Compatible")]);
    let absent = Findings { policy: Lookup::NotFound, ..healthy() };
    check(&absent, &[("policy", CheckStatus::Fail, "does not exist")]);
    let broken = Findings { policy: Lookup::Failed("unknown field".into()), ..healthy() };
    check(&broken, &[("policy", CheckStatus::Fail, "could not be read: unknown field")]);
}

#[test]
fn a_node_that_lacks_a_property_fails_with_advice() {
    let nodes = json!([node("n1", &[]), node("n2", &["noexecScratch"])]);
    let findings = Findings { policy: policy(&json!({}), &nodes), ..healthy() };
    check(&findings, &[("node", CheckStatus::Fail, "n2 does not prove noexecScratch")]);
    let checks = judge(&findings);
    assert!(checks.iter().any(|check| check.message == "1 of 2 proves what the policy requires"));
    assert!(
        checks
            .iter()
            .any(|check| check.advice.as_ref().is_some_and(|advice| advice.contains("user namespaces")))
    );
}

#[test]
fn an_unprobed_node_is_a_warning() {
    let mut silent = node("n2", &["could not be probed: timed out"]);
    silent.as_object_mut().unwrap().remove("isolation");
    let findings = Findings { policy: policy(&json!({}), &json!([node("n1", &[]), silent])), ..healthy() };
    check(&findings, &[("node", CheckStatus::Warn, "n2: could not be probed: timed out")]);
    let usable = |name: &str, is_usable| ClusterNode { name: name.into(), is_usable };
    let nodes = Lookup::Found(vec![usable("n1", true), usable("n2", true), usable("closed", false)]);
    check(&Findings { nodes, ..healthy() }, &[("node", CheckStatus::Warn, "n2 is not probed yet")]);
    let none = Findings { policy: policy(&json!({}), &json!([])), nodes: Lookup::Denied, ..healthy() };
    check(&none, &[("node", CheckStatus::Warn, "no node was probed yet")]);
}

#[test]
fn the_sandbox_namespace_must_enforce_restricted() {
    for (enforced, verdict, words) in [
        (Lookup::Found(None), CheckStatus::Fail, "enforces no Pod Security level"),
        (
            Lookup::Found(Some("baseline".to_owned())),
            CheckStatus::Fail,
            "enforces Pod Security baseline, not restricted",
        ),
        (Lookup::NotFound, CheckStatus::Fail, "does not exist"),
        (Lookup::Denied, CheckStatus::Warn, "you may not read namespace skillet-sandboxes"),
    ] {
        let findings = Findings { sandboxes: sandboxes(enforced), ..healthy() };
        check(&findings, &[("sandboxes", verdict, words)]);
    }
}

#[test]
fn an_old_server_is_warned_of() {
    let old = Lookup::Found(ServerVersion { text: "v1.34.1".into(), minor: Some(34) });
    check(
        &Findings { server: old, ..healthy() },
        &[("kubernetes", CheckStatus::Warn, "v1.34.1 has no image volumes")],
    );
}

#[test]
fn a_missing_right_fails_if_runs_need_it_and_warns_otherwise() {
    let without = |verb: &str| {
        let rights =
            RIGHTS.map(|right| (right, !(right.verb == verb && right.resource == "skillexecutions")));
        Findings { rights: Lookup::Found(rights.to_vec()), ..healthy() }
    };
    check(
        &without("create"),
        &[("rights", CheckStatus::Fail, "in namespace team-a you may not create skillexecutions")],
    );
    let rights = RIGHTS.map(|right| (right, right.verb != "execute")).to_vec();
    check(
        &Findings { rights: Lookup::Found(rights), ..healthy() },
        &[("rights", CheckStatus::Fail, "in namespace team-a you may not execute skills")],
    );
    check(&without("patch"), &[("rights", CheckStatus::Warn, "you may not patch skillexecutions")]);
}

#[test]
fn the_table_has_every_proof_of_every_node() {
    let findings =
        Findings { policy: policy(&json!({}), &json!([node("n1", &["noexecScratch"])])), ..healthy() };
    assert_eq!(
        nodes::table(nodes::probed_nodes(&findings)).unwrap(),
        "NODE   KERNEL   RUNTIME              LANDLOCK   NO-NETWORK   NOEXEC   NO-DIRECT-EXEC   PROC-LIMIT   OWN-LIMIT   NO-NEW-PRIVS   USERNS   RO-ROOT   MISSING\n\
         n1     6.12.0   containerd://2.1.4   6          yes          no       yes              yes          yes         yes            yes      yes       noexecScratch\n"
    );
    assert_eq!(nodes::table(&[]), None);
}

#[test]
fn the_text_has_a_line_for_each_check_its_advice_and_a_summary() {
    let findings =
        Findings { operators: Lookup::Denied, sandboxes: sandboxes(Lookup::Found(None)), ..healthy() };
    let report = report::report(&findings, judge(&findings));
    let text = report::text(&report, &findings, Style::PLAIN);
    assert!(text.starts_with("ok    kubernetes   v1.36.3; "), "{text}");
    assert!(text.contains("\nwarn  operator     you may not read Deployments of all namespaces\n                   -> ask someone"), "{text}");
    assert!(text.contains("\nNODE   KERNEL"), "{text}");
    assert!(text.ends_with("\nFailed checks: 1. Warnings: 1.\n"), "{text}");
}

#[test]
fn the_data_has_verdict_checks_and_nodes() {
    let report = report::report(&healthy(), judge(&healthy()));
    let data = serde_json::to_value(&report).unwrap();
    assert_eq!(data["verdict"], "ok");
    assert_eq!(data["checks"][0]["check"], "kubernetes");
    assert_eq!(data["nodes"][0]["isolation"]["landlockAbi"], 6);
}
