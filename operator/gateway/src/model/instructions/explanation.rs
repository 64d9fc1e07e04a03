//! The explanation of instructions: for each skill, if a request has it in its listing or in whole, and why.

use std::sync::Arc;

use serde_json::{Value, json};
use skillet_api::gateway::OfferPolicy;

use super::{
    VisibleGuide,
    listing::{InstructionsRequest, list},
    triggered::{Decision, decisions},
    visible,
};
use crate::catalog::Namespace;

/// Explains each skill with instructions in these namespaces.
pub(in crate::model) fn explain(
    policy: &OfferPolicy,
    namespaces: &[Arc<Namespace>],
    request: &InstructionsRequest<'_>,
) -> Vec<Value> {
    let guides: Vec<VisibleGuide<'_>> = visible(namespaces, request.filter).collect();
    let listed: Vec<VisibleGuide<'_>> =
        guides.iter().copied().filter(|guide| guide.instructions.is_listed()).collect();
    let dropped = list(policy, "skill", &listed).dropped;
    let decided = decisions(namespaces, &guides, request).into_iter();
    decided
        .map(|(guide, decision)| {
            let listing = match guide.instructions.is_listed() {
                true if dropped.iter().any(|name| name == guide.name()) => "OverBudget",
                true => "Listed",
                false if guide.instructions.is_hidden => "ModelInvocationDisabled",
                false => "NotListed",
            };
            json!({
                "namespace": **guide.namespace,
                "name": guide.name(),
                "version": &*guide.version.spec.version,
                "listing": listing,
                "text": decision_json(&decision),
            })
        })
        .collect()
}

fn decision_json(decision: &Decision) -> Value {
    match decision {
        Decision::Always => json!({ "added": true, "reason": "Always" }),
        Decision::Keyword { turn, word } => {
            json!({ "added": true, "reason": "Keyword", "turn": turn, "word": word })
        }
        Decision::Slash { turn, name } => {
            json!({ "added": true, "reason": "Slash", "turn": turn, "name": name })
        }
        Decision::Present { turn } => json!({ "added": false, "reason": "Present", "turn": turn }),
        Decision::TooLong => json!({ "added": false, "reason": "TooLong" }),
        Decision::NotTriggered => json!({ "added": false, "reason": "NotTriggered" }),
    }
}
