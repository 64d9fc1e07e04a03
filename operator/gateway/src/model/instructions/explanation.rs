//! The explanation of instructions: for each skill, if a request has it in its listing or in whole, and why.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use skillet_api::SkillPolicySpec;

use super::{
    VisibleGuide,
    listing::{InstructionsRequest, READ, list},
    restrictions::{Restrictions, find_restrictions},
    triggered::{Decision, decisions},
    visible,
};
use crate::{
    catalog::Namespace,
    commands,
    model::{
        offered_tools::{InstructionsAction, OfferedTool},
        search_tools::free_name,
    },
};

/// Explains each skill with instructions in these namespaces.
pub(in crate::model) fn explain(
    policy: &SkillPolicySpec,
    namespaces: &[Arc<Namespace>],
    request: &InstructionsRequest<'_>,
) -> Vec<Value> {
    let guides: Vec<VisibleGuide<'_>> = visible(namespaces, request.filter).collect();
    let listed: Vec<VisibleGuide<'_>> =
        guides.iter().copied().filter(|guide| guide.instructions.is_listed()).collect();
    let dropped = list(&policy.gateway.offer, "skill", &listed).dropped;
    let read = OfferedTool::Instructions { instructions: InstructionsAction::Read };
    let targets = HashMap::from([(free_name(READ, request.client_tools), read)]);
    let Restrictions { present: _, servers: _, skills: restricting, disallowed } =
        find_restrictions(namespaces, request, &targets);
    let decided = decisions(namespaces, &guides, request).into_iter();
    decided
        .map(|(guide, decision)| {
            let listing = match guide.instructions.is_listed() {
                true if dropped.iter().any(|name| name == guide.name()) => "OverBudget",
                true => "Listed",
                false if guide.instructions.is_hidden => "ModelInvocationDisabled",
                false => "NotListed",
            };
            let mut explained = json!({
                "namespace": **guide.namespace,
                "name": guide.name(),
                "version": &*guide.version.spec.version,
                "listing": listing,
                "text": decision_json(&decision),
            });
            let invocation = guide.entry.skill.spec.invocation;
            if let Some(run) = commands::explain(policy, guide.namespace, guide.instructions, invocation) {
                explained["commands"] = run;
            }
            if guide.instructions.rules.is_some() {
                let is_active = restricting.iter().any(|skill| skill.is(&guide));
                explained["tools"] = json!({
                    "allowed": guide.instructions.allowed_tools,
                    "denied": guide.instructions.denied_tools,
                    "active": is_active,
                });
                if is_active && !disallowed.is_empty() {
                    explained["tools"]["disallowed"] = json!(disallowed);
                }
            }
            explained
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
        Decision::Path { location, path, glob } => {
            json!({ "added": true, "reason": "Path", "message": location.turn, "path": path, "glob": glob })
        }
        Decision::Present { turn } => json!({ "added": false, "reason": "Present", "turn": turn }),
        Decision::TooLong => json!({ "added": false, "reason": "TooLong" }),
        Decision::NotTriggered => json!({ "added": false, "reason": "NotTriggered" }),
    }
}
