//! The decision about each skill of a request, for people.

use std::sync::Arc;

use serde_json::Value;
use skillet_api::{SkillPolicySpec, gateway::OfferMode};
use skillet_offer::{
    Explanation, Index, OfferDecision, QuestionTerm, RejectReason, Scoring, Scratch, Selection, explain,
    question_terms,
};

use super::{OfferRequest, search};
use crate::{
    catalog::Namespace,
    model::{instructions, search_tools},
};

/// The decision about each skill, and the terms that the last turn searches.
pub struct ExplainedOffer {
    pub mode: OfferMode,
    pub skills: Vec<Explanation>,
    /// The instructions of each skill, as JSON.
    pub instructions: Vec<Value>,
    /// The native tools that the policy wants replaced, as JSON.
    pub native: Vec<Value>,
    pub terms: Vec<QuestionTerm>,
}

/// Explains for each skill of these namespaces why it is or is not offered.
pub fn explain_offer(
    policy_spec: &SkillPolicySpec,
    namespaces: &[Arc<Namespace>],
    question: &OfferRequest<'_>,
) -> ExplainedOffer {
    let explain =
        |scoring: &Scoring, indexes: &[&Index], selection: &Selection<'_>, scratch: &mut Scratch| {
            ExplainedOffer {
                mode: policy_spec.gateway.offer.mode,
                skills: explain(scoring, indexes, selection, scratch),
                instructions: Vec::new(),
                native: Vec::new(),
                terms: question_terms(indexes, selection.query),
            }
        };
    let mut explained = if question.is_search(policy_spec) {
        let turns = question.dialect.dialect().user_turns(question.request);
        let text = turns.last().map(|texts| texts.join("\n")).unwrap_or_default();
        search_tools::search(&policy_spec.gateway.offer, namespaces, &question.skill_search(&text), explain)
    } else {
        search(policy_spec, namespaces, question, explain)
    };
    for explanation in &mut explained.skills {
        if question.stand_ins.iter().any(|of| Arc::ptr_eq(&of.skill, &explanation.skill)) {
            explanation.decision = OfferDecision::Offered { rank: 0 };
        }
    }
    if let Some(reason) = question.find_exclusion() {
        explained
            .skills
            .iter_mut()
            .for_each(|of| of.decision = OfferDecision::NotOffered(RejectReason::Excluded(reason)));
    }
    if question.find_exclusion().is_none() {
        let request = question.instructions(namespaces);
        explained.instructions = instructions::explain(policy_spec, namespaces, &request.as_request());
    }
    explained
}
