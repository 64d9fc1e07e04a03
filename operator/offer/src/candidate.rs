//! A skill that may be offered: the fields that are scored, and its tool definition.

use std::sync::Arc;

use skillet_api::{
    builtin::Builtin,
    skill::{Invocation, Mode},
};

use skillet_core::json_text::JsonText;
use skillet_llm::{ToolDefinition, tool_names::omniroute};

use super::{RejectReason, Vector};

/// A skill of one namespace at its newest sealed version. A skill without a sealed version is never offered, but still
/// hides skills of its name.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// Empty if no version is sealed.
    pub version: Arc<str>,
    /// True if a version is sealed, so that the skill can run.
    pub is_ready: bool,
    /// False for a version of instructions alone, which is no tool.
    pub has_program: bool,
    /// The program of Skillet itself that the skill is.
    pub builtin: Option<Builtin>,
    pub description: Arc<str>,
    pub tags: Arc<[String]>,
    /// Questions that the skill answers. Only [`super::MatchMode::Ranked`] reads them.
    pub examples: Arc<[String]>,
    pub mode: Mode,
    pub enabled: bool,
    pub invocation: Invocation,
    /// Installs or uses. Of two skills with the same score the skill with more installs comes first.
    pub install_count: u64,
    /// Orders skills that are always offered, and skills that are equal otherwise, such as by the time of creation. It must
    /// be the same in every process, or processes would drop different skills over the budget.
    pub registered: i64,
    pub tool: CandidateTool,
    /// The vector of [`super::skill_text`], if there is an embedding model.
    pub vector: Option<Vector>,
}

/// The tool definition of a skill. Few of thousands of skills are offered to one request, so the parameters stay text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateTool {
    pub name: Arc<str>,
    pub description: Arc<str>,
    pub parameters: JsonText,
}

impl CandidateTool {
    /// Returns the definition that a request offers.
    pub fn definition(&self) -> ToolDefinition {
        let Self { name, description, parameters } = self;
        ToolDefinition {
            name: name.clone(),
            description: description.clone(),
            parameters: Arc::new(parameters.value()),
        }
    }
}

impl From<ToolDefinition> for CandidateTool {
    fn from(tool: ToolDefinition) -> Self {
        let ToolDefinition { name, description, parameters } = tool;
        Self { name, description, parameters: JsonText::new(&parameters) }
    }
}

/// Condition under which a skill is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eligibility {
    Always,
    /// If the request's text matches.
    OnMatch,
    Never,
}

impl Candidate {
    pub fn eligibility(&self) -> Eligibility {
        match (self.blocked_by(), self.mode) {
            (Some(_), _) => Eligibility::Never,
            (None, Mode::On) => Eligibility::Always,
            (None, Mode::Auto | Mode::Off) => Eligibility::OnMatch,
        }
    }

    /// Returns the reason that excludes the skill from every request.
    pub(crate) fn blocked_by(&self) -> Option<RejectReason> {
        if !self.is_ready {
            return Some(RejectReason::NotReady);
        }
        if !self.has_program {
            return Some(RejectReason::NoProgram);
        }
        if !self.enabled {
            return Some(RejectReason::Disabled);
        }
        match (self.mode, self.invocation) {
            (Mode::Off, _) => Some(RejectReason::ModeOff),
            (Mode::On | Mode::Auto, Invocation::Manual) => Some(RejectReason::ManualOnly),
            (Mode::On | Mode::Auto, Invocation::Auto | Invocation::Hybrid) => None,
        }
    }

    /// Returns true if one of the client's tools has the skill's tool name, as it is or as OmniRoute writes it.
    pub(crate) fn is_tool_among(&self, client_tools: &[&str]) -> bool {
        client_tools.iter().any(|tool| {
            let alias = || omniroute::encode(&self.name, &self.version);
            *tool == &*self.tool.name || (omniroute::is_encoded(tool) && alias().as_deref() == Some(tool))
        })
    }

    /// Estimates the tokens of its definition, at four bytes a token.
    pub(crate) fn tokens(&self) -> u32 {
        /// Field names and brackets of a definition.
        const FRAME_BYTES: usize = 80;
        let CandidateTool { name, description, parameters } = &self.tool;
        let bytes = FRAME_BYTES + name.len() + description.len() + parameters.length();
        u32::try_from(bytes / 4).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::candidate;

    #[test]
    fn only_enabled_skills_that_a_model_may_call_are_offered() {
        use RejectReason::{Disabled, ManualOnly, ModeOff};
        for (mode, enabled, invocation, eligibility, blocked_by) in [
            (Mode::On, true, Invocation::Auto, Eligibility::Always, None),
            (Mode::On, true, Invocation::Hybrid, Eligibility::Always, None),
            (Mode::Auto, true, Invocation::Auto, Eligibility::OnMatch, None),
            (Mode::Off, true, Invocation::Auto, Eligibility::Never, Some(ModeOff)),
            (Mode::On, false, Invocation::Auto, Eligibility::Never, Some(Disabled)),
            (Mode::On, true, Invocation::Manual, Eligibility::Never, Some(ManualOnly)),
            (Mode::Auto, true, Invocation::Manual, Eligibility::Never, Some(ManualOnly)),
        ] {
            let candidate = Candidate { mode, enabled, invocation, ..candidate("a", "", &[]) };
            assert_eq!(
                (candidate.eligibility(), candidate.blocked_by()),
                (eligibility, blocked_by),
                "{mode:?} {invocation:?}"
            );
            let text_only = Candidate { has_program: false, ..candidate.clone() };
            assert_eq!(
                (text_only.eligibility(), text_only.blocked_by()),
                (Eligibility::Never, Some(RejectReason::NoProgram))
            );
            let unsealed = Candidate { is_ready: false, ..candidate };
            assert_eq!(
                (unsealed.eligibility(), unsealed.blocked_by()),
                (Eligibility::Never, Some(RejectReason::NotReady))
            );
        }
    }

    #[test]
    fn a_tool_is_offered_as_it_was_defined() {
        let parameters = serde_json::json!({ "type": "object", "properties": { "q": { "type": "string" } } });
        let tool =
            ToolDefinition { name: "a".into(), description: "b".into(), parameters: Arc::new(parameters) };
        assert_eq!(CandidateTool::from(tool.clone()).definition(), tool);
    }

    #[test]
    fn a_token_is_about_four_bytes_of_the_definition() {
        let small = candidate("a", "", &[]).tokens();
        let large = candidate("a", &"x".repeat(400), &[]).tokens();
        assert_eq!(large - small, 100);
    }
}
