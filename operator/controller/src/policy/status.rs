//! The policy's status: the proof of each node as conditions, applied if something changed.

use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use skillet_api::{
    Reason, SkillPolicy, SkillPolicySpec, SkillPolicyStatus,
    policy::NodeStatus,
    reason::{ISOLATION_PROVEN, READY},
};
use skillet_core::policy_warnings;
use skillet_kube::{Conditions, apply_status, find_condition, is_gone};
use thiserror::Error as ThisError;

use super::KIND;
use crate::context::Context;

/// The conditions that the operator writes.
const OWN_CONDITIONS: [&str; 2] = [READY, ISOLATION_PROVEN];

/// The most nodes in the status. Further nodes are probed but not listed.
const MOST_NODES: usize = 100;

/// The most nodes that the condition names. Its message may have 32 KiB.
const MOST_NAMED: usize = 20;

#[derive(Debug, ThisError)]
pub enum Error {
    #[error("could not apply the status of SkillPolicy {name}")]
    Apply { name: String, source: Box<kube::Error> },
}

/// Writes the proofs of the nodes.
pub(crate) async fn report(ctx: &Context, policy: &SkillPolicy, nodes: Vec<NodeStatus>) -> Result<(), Error> {
    let unproven = nodes.iter().filter(|node| !node.missing.is_empty()).count();
    ctx.metrics.unproven_nodes.set(i64::try_from(unproven).unwrap_or(i64::MAX));
    let old = own_part(policy.status.clone().unwrap_or_default());
    let new = status(policy, &old, nodes, Timestamp::now());
    if new == old {
        return Ok(());
    }
    let reference = policy.object_ref(&());
    match apply_status::<SkillPolicy>(&ctx.client, &reference, &new).await {
        Ok(()) => {}
        // The policy was deleted meanwhile, so nobody needs its status.
        Err(kube::Error::Api(status)) if is_gone(&status) => return Ok(()),
        Err(source) => return Err(Error::Apply { name: policy.name_any(), source: Box::new(source) }),
    }
    let proven = |status: &SkillPolicyStatus| {
        find_condition(&status.conditions, ISOLATION_PROVEN).map(|c| (c.status.clone(), c.message.clone()))
    };
    if let Some((verdict, message)) = proven(&new)
        && verdict == "False"
        && proven(&old).as_ref() != Some(&(verdict, message.clone()))
    {
        ctx.reporter.problem(&reference, KIND, Reason::IsolationUnavailable, &message).await;
    }
    Ok(())
}

/// Returns the status without the conditions of others: the gateway has one of its own.
fn own_part(mut status: SkillPolicyStatus) -> SkillPolicyStatus {
    status.conditions.retain(|condition| OWN_CONDITIONS.contains(&&*condition.type_));
    status
}

fn status(
    policy: &SkillPolicy,
    old: &SkillPolicyStatus,
    nodes: Vec<NodeStatus>,
    now: Timestamp,
) -> SkillPolicyStatus {
    let (verdict, reason, message) = isolation_verdict(&nodes);
    let nodes = nodes.into_iter().take(MOST_NODES).collect();
    let generation = policy.metadata.generation;
    let conditions = Conditions { old: &old.conditions, generation, now };
    SkillPolicyStatus {
        observed_generation: generation,
        nodes,
        conditions: vec![
            conditions.build(READY, "True", Reason::Ready.as_str(), &ready_message(&policy.spec)),
            conditions.build(ISOLATION_PROVEN, verdict, reason.as_str(), &message),
        ],
    }
}

fn ready_message(policy: &SkillPolicySpec) -> String {
    let warnings = policy_warnings(policy);
    if warnings.is_empty() { "the policy is in force".to_owned() } else { warnings.join("; ") }
}

fn isolation_verdict(nodes: &[NodeStatus]) -> (&'static str, Reason, String) {
    let lacking: Vec<String> = nodes
        .iter()
        .filter(|node| !node.missing.is_empty())
        .map(|node| format!("{}: {}", node.name, node.missing.join(", ")))
        .collect();
    let named = lacking.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    if nodes.is_empty() {
        ("Unknown", Reason::IsolationUnavailable, "no node was probed yet".to_owned())
    } else if lacking.is_empty() {
        ("True", Reason::Ready, format!("all of {} probed nodes prove what the policy requires", nodes.len()))
    } else {
        let more = lacking.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!("; and {more} nodes more") } else { String::new() };
        ("False", Reason::IsolationUnavailable, named + &more)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
    use skillet_api::reason::EMBEDDINGS_READY;

    use super::*;

    fn node(name: &str, missing: &[&str]) -> NodeStatus {
        NodeStatus {
            name: name.into(),
            probed_at: Time("2026-01-01T00:00:00Z".parse().unwrap()),
            container_runtime: "containerd://2".into(),
            isolation: None,
            missing: missing.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn one_node_that_lacks_something_is_named() {
        let (verdict, reason, message) = isolation_verdict(&[node("a", &[]), node("b", &["userNamespace"])]);
        assert_eq!(
            (verdict, reason, message.as_str()),
            ("False", Reason::IsolationUnavailable, "b: userNamespace")
        );
    }

    #[test]
    fn of_many_nodes_some_are_named_and_the_status_has_a_hundred() {
        let many: Vec<NodeStatus> = (0..500).map(|n| node(&format!("n{n}"), &["seccomp"])).collect();
        let message = isolation_verdict(&many).2;
        assert!(message.ends_with("n19: seccomp; and 480 nodes more"), "{message}");
        let sound: Vec<NodeStatus> = (0..500).map(|n| node(&format!("n{n}"), &[])).collect();
        let policy = SkillPolicy::new("default", skillet_api::SkillPolicySpec::default());
        let status = status(&policy, &SkillPolicyStatus::default(), sound, Timestamp::UNIX_EPOCH);
        assert_eq!(status.nodes.len(), 100);
        assert_eq!(status.conditions[1].message, "all of 500 probed nodes prove what the policy requires");
    }

    #[test]
    fn all_nodes_proven_is_true_and_no_node_is_unknown() {
        assert_eq!(isolation_verdict(&[node("a", &[])]).0, "True");
        assert_eq!(isolation_verdict(&[]).0, "Unknown");
    }

    #[test]
    fn the_same_again_keeps_the_time_of_the_transition() {
        let policy = SkillPolicy::new("default", skillet_api::SkillPolicySpec::default());
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let first =
            status(&policy, &SkillPolicyStatus::default(), vec![node("a", &[])], at("2026-01-01T00:00:00Z"));
        let again = status(&policy, &first, vec![node("a", &[])], at("2026-01-02T00:00:00Z"));
        assert_eq!(first, again);
        let mut of_two = first.clone();
        let gateways = Condition { type_: EMBEDDINGS_READY.to_owned(), ..first.conditions[0].clone() };
        of_two.conditions.insert(0, gateways);
        assert_eq!(own_part(of_two), first, "a condition of the gateway is nothing to write");
    }
}
