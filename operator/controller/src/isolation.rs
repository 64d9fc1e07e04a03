//! The level of isolation that a policy requires, in the words of the runner's protocol, and the nodes that lack a part of it.

use skillet_api::{IsolationLevel, policy::NodeStatus};
use skillet_protocol::Level;

/// Most nodes that a sandbox avoids: each makes its manifest longer.
const MAX_AVOIDED: usize = 500;

pub(crate) fn level(level: IsolationLevel) -> Level {
    match level {
        IsolationLevel::Strict => Level::Strict,
        IsolationLevel::Compatible => Level::Compatible,
    }
}

/// Returns the nodes that cannot pass on the connections of a program. None if no other node was probed: the runner then says
/// why the program does not start, while a sandbox without a node would wait.
pub(crate) fn nodes_without_egress(probed: &[NodeStatus]) -> Vec<String> {
    let proofs = probed.iter().filter_map(|node| Some((node, node.isolation.as_ref()?)));
    let (unable, able): (Vec<_>, Vec<_>) = proofs.partition(|(_, proof)| proof.named_egress == Some(false));
    if able.is_empty() {
        return Vec::new();
    }
    unable.into_iter().take(MAX_AVOIDED).map(|(node, _)| node.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(proofs: &[&Value], expected: &[&str]) {
        let node = |(index, isolation): (usize, &&Value)| {
            let node = json!({
                "name": format!("node-{index}"), "probedAt": "2026-01-01T00:00:00Z", "containerRuntime": "",
                "isolation": isolation,
            });
            serde_json::from_value(node).unwrap()
        };
        let nodes: Vec<NodeStatus> = proofs.iter().enumerate().map(node).collect();
        assert_eq!(nodes_without_egress(&nodes), expected, "{proofs:?}");
    }

    #[test]
    fn a_sandbox_with_hosts_avoids_the_nodes_that_cannot_pass_on_connections() {
        let (able, unable) = (&json!({"namedEgress": true}), &json!({"namedEgress": false}));
        let (not_asked, not_probed) = (&json!({}), &Value::Null);
        check(&[], &[]);
        check(&[able, unable, able, unable], &["node-1", "node-3"]);
        check(&[unable, not_asked], &["node-0"]);
        check(&[able, not_asked, not_probed], &[]);
        check(&[unable, unable], &[]);
        check(&[unable, not_probed], &[]);
    }
}
