//! Skills in the place of tools that a provider runs itself, where the policy wants that.
//!
//! The tools are taken out of the request before skills are selected for it. A tool for which no skill may be offered stays in
//! the request, with the reason.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::{Value, json};
use skillet_api::{SkillPolicySpec, builtin::Builtin};
use skillet_llm::{
    DialectName, ToolDefinition,
    native_tools::{NativeTool, NativeUse, TakenTools, limits_domains, stand_in},
};
use skillet_offer::{Candidate, Index, RejectReason, Selection, find_builtin};

use super::{
    name_header::set_header, offered_tools::OfferedTools, preferences::SkillPreferences, provider_choice,
    scoring::scoring,
};
use crate::catalog::Namespace;

/// The provider's own tools of the request in whose place the policy wants skills, each with the skill's tool or the reason
/// against it.
const NATIVE_HEADER: &str = "x-skillet-native-tools";
/// The caller has no skill of the built-in.
const NO_SKILL: &str = "NoSkill";
/// The tool may fetch pages of some domains alone.
const DOMAINS: &str = "Domains";

/// A native tool that a skill is to replace, and what came of it: the name of the skill's tool, or a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NativeOutcome {
    tool: NativeTool,
    result: Result<Arc<str>, &'static str>,
}

/// A skill in the place of a native tool.
#[derive(Clone, Debug)]
pub struct StandIn {
    of: NativeUse,
    pub skill: Arc<Candidate>,
}

/// The native tools of a request that skills replace.
#[derive(Default)]
pub(super) struct NativePlan {
    /// The request is without these tools.
    pub(super) taken: Option<TakenTools>,
    pub(super) stand_ins: Vec<StandIn>,
    /// The tools that stay, with their reasons.
    pub(super) kept: Vec<NativeOutcome>,
}

impl NativePlan {
    /// Returns the outcome of each tool as JSON, by the names of skills.
    pub(super) fn explain(&self) -> Vec<Value> {
        let stand_ins =
            self.stand_ins.iter().map(|of| NativeOutcome::replaced(of.tool(), of.skill.name.clone()));
        self.kept.iter().cloned().chain(stand_ins).map(|of| of.to_json()).collect()
    }
}

impl StandIn {
    /// Returns the skill's tool with the settings of the tool that it replaces.
    pub(super) fn definition(&self, tool: ToolDefinition) -> ToolDefinition {
        stand_in(&self.of, tool)
    }

    pub(super) fn tool(&self) -> NativeTool {
        self.of.tool
    }
}

/// A request whose native tools are to be replaced.
pub(super) struct NativeRequest<'a> {
    pub(super) dialect: DialectName,
    pub(super) model: &'a str,
    pub(super) preferences: &'a SkillPreferences,
    /// This gateway can ask a person.
    pub(super) can_ask: bool,
}

impl NativeRequest<'_> {
    /// Takes the native tools out of a request that skills of these namespaces replace. `find_exclusion` returns the reason why
    /// the request without them may not be offered anything; then they stay.
    pub(super) fn plan(
        &self,
        policy: &SkillPolicySpec,
        namespaces: &[Arc<Namespace>],
        request: &mut Value,
        find_exclusion: impl FnOnce(&Value) -> Option<&'static str>,
    ) -> NativePlan {
        let mut wanted = provider_choice::replaced_tools(&policy.gateway.providers, self.dialect, self.model);
        if wanted.is_empty() {
            return NativePlan::default();
        }
        let present = self.dialect.native_tools(request);
        wanted.retain(|tool| present.contains(tool));
        if wanted.is_empty() {
            return NativePlan::default();
        }
        let taken = self.dialect.take_native_tools(request, &wanted);
        let found: Vec<_> = taken
            .uses
            .iter()
            .map(|of| {
                // There they are a limit, and the skill has none.
                if of.tool == NativeTool::WebFetch && limits_domains(of) {
                    return (of.tool, Err(DOMAINS));
                }
                (of.tool, self.find_skill(policy, namespaces, request, of.tool))
            })
            .collect();
        self.dialect.put_back_native_tools(request, taken);
        let has_skill: Vec<NativeTool> =
            found.iter().filter(|(_, skill)| skill.is_ok()).map(|(tool, _)| *tool).collect();
        let mut plan = NativePlan::default();
        for (tool, skill) in &found {
            plan.kept.extend(skill.as_ref().err().map(|reason| kept(*tool, reason)));
        }
        if has_skill.is_empty() {
            return plan;
        }
        let taken = self.dialect.take_native_tools(request, &has_skill);
        if let Some(reason) = find_exclusion(request) {
            self.dialect.put_back_native_tools(request, taken);
            plan.kept.extend(has_skill.into_iter().map(|tool| kept(tool, reason)));
            return plan;
        }
        let skill_of = |tool| found.iter().find(|(of, _)| *of == tool)?.1.clone().ok();
        let stand_in = |of: &NativeUse| Some(StandIn { of: of.clone(), skill: skill_of(of.tool)? });
        plan.stand_ins = taken.uses.iter().filter_map(stand_in).collect();
        plan.taken = Some(taken);
        plan
    }

    fn find_skill(
        &self,
        policy: &SkillPolicySpec,
        namespaces: &[Arc<Namespace>],
        request: &Value,
        tool: NativeTool,
    ) -> Result<Arc<Candidate>, &'static str> {
        let indexes: Vec<&Index> = namespaces.iter().map(|namespace| namespace.index()).collect();
        let query = scoring(&policy.gateway.offer).query(&skillet_offer::RequestFacts::default());
        let selection = Selection {
            query: &query,
            client_tools: &self.dialect.dialect().client_tool_names(request),
            filter: &self.preferences.filter,
            token_budget: None,
            max_tools: None,
            can_confirm: self.can_ask,
        };
        find_builtin(&indexes, &selection, builtin(tool)).map_err(|reason| match reason {
            RejectReason::Unknown => NO_SKILL,
            other => other.as_str(),
        })
    }
}

/// The program of Skillet that does what a native tool does.
fn builtin(tool: NativeTool) -> Builtin {
    match tool {
        NativeTool::WebSearch => Builtin::WebSearch,
        NativeTool::WebFetch => Builtin::WebFetch,
    }
}

fn kept(tool: NativeTool, reason: &'static str) -> NativeOutcome {
    NativeOutcome { tool, result: Err(reason) }
}

impl NativeOutcome {
    pub(super) fn replaced(tool: NativeTool, by: Arc<str>) -> Self {
        Self { tool, result: Ok(by) }
    }

    /// Returns the outcome after the skills were taken out of the request again.
    pub(super) fn withdrawn(&self, reason: &'static str) -> Self {
        kept(self.tool, self.result.clone().err().unwrap_or(reason))
    }

    pub(super) fn to_json(&self) -> Value {
        match &self.result {
            Ok(name) => json!({ "tool": self.tool.as_str(), "replacedBy": **name }),
            Err(reason) => json!({ "tool": self.tool.as_str(), "kept": reason }),
        }
    }

    fn to_text(&self) -> String {
        match &self.result {
            Ok(name) => format!("{}={name}", self.tool.as_str()),
            Err(reason) => format!("{}: {reason}", self.tool.as_str()),
        }
    }
}

/// Returns the outcomes as one text.
pub(super) fn to_text(outcomes: &[NativeOutcome]) -> String {
    outcomes.iter().map(NativeOutcome::to_text).collect::<Vec<_>>().join(",")
}

/// Writes the outcomes into the headers of a response.
pub(super) fn add_header(outcomes: &[NativeOutcome], headers: &mut HeaderMap) {
    if !outcomes.is_empty() {
        set_header(headers, NATIVE_HEADER, std::iter::once(&*to_text(outcomes)));
    }
}

/// Puts the first tools of an offer in the place of the native tools that were taken out of the request.
pub(super) fn replace(
    dialect: DialectName,
    request: &mut Value,
    plan: &NativePlan,
    offered: &mut OfferedTools,
) -> Result<bool, skillet_llm::DialectError> {
    let Some(taken) = &plan.taken else { return Ok(false) };
    let skills: Vec<(NativeTool, ToolDefinition)> =
        plan.stand_ins.iter().map(StandIn::tool).zip(offered.tools.iter().cloned()).collect();
    let (replaced, hides_reasoning) = dialect.replace_native_tools(request, taken, &skills)?;
    offered.native.extend(replaced.into_iter().map(|of| NativeOutcome::replaced(of.tool, of.tool_name)));
    Ok(hides_reasoning)
}

#[cfg(test)]
mod tests;
