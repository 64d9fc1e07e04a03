//! The result of a selection: the offered skills, and the reasons of the others.

use std::sync::Arc;

use super::Candidate;

/// The result of a selection.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// In the order in which the tools are sent.
    pub offered: Vec<OfferedSkill>,
    /// Skills that only a clash or the budget keeps out of the offer.
    pub rejected: Vec<Rejected>,
}

/// A skill that is offered.
#[derive(Clone, Debug)]
pub struct OfferedSkill {
    pub skill: Arc<Candidate>,
    /// `None` if the skill is offered whatever its score.
    pub score: Option<i32>,
    /// Position by importance, from 0. If not all skills fit the budget, the last is dropped first.
    pub rank: usize,
    /// Estimated tokens of its definition.
    pub tokens: u32,
    /// Number of the user's turn that added it, from 1. 0 if it is offered for another reason, or turns do not count.
    pub turn: usize,
}

/// A skill that is not offered, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// `None` if no namespace has the name.
    pub namespace: Option<Arc<str>>,
    pub name: Arc<str>,
    pub reason: RejectReason,
}

/// The reason why a skill is not offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// The request wants no skills.
    SwitchedOff,
    /// The request, or its model, takes no further tools. The word says why.
    Excluded(&'static str),
    /// The request names other skills only.
    NotNamed,
    /// The request names it, and no namespace has it.
    Unknown,
    /// No version of it is sealed.
    NotReady,
    /// It has instructions and no program, so it is no tool.
    NoProgram,
    Disabled,
    ModeOff,
    /// Its invocation is `manual`.
    ManualOnly,
    /// Its invocation is `hybrid`, and the gateway cannot ask a person.
    NoConfirmationKey,
    /// A nearer namespace has a skill of this name.
    Hidden {
        by: Arc<str>,
    },
    /// The client, or a skill of higher rank, has a tool of this name.
    ToolNameTaken,
    BelowThreshold,
    /// The maximum is reached by skills of higher rank.
    OverMaximum,
    OverBudget,
    /// The provider takes no more tools in one request.
    TooManyTools,
}

impl RejectReason {
    /// Returns the word that the gateway's API shows.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::SwitchedOff => "SwitchedOff",
            Self::Excluded(word) => word,
            Self::NoConfirmationKey => "NoConfirmationKey",
            Self::NotNamed => "NotNamed",
            Self::Unknown => "Unknown",
            Self::NotReady => "SkillNotReady",
            Self::NoProgram => "NoProgram",
            Self::Disabled => "SkillDisabled",
            Self::ModeOff => "SkillOff",
            Self::ManualOnly => "ManualOnly",
            Self::Hidden { .. } => "Hidden",
            Self::ToolNameTaken => "ToolNameTaken",
            Self::BelowThreshold => "BelowThreshold",
            Self::OverMaximum => "OverMaximum",
            Self::OverBudget => "OverBudget",
            Self::TooManyTools => "TooManyTools",
        }
    }
}

impl Offer {
    /// Returns the offered skills by importance.
    pub fn ranked(&self) -> Vec<&OfferedSkill> {
        let mut ranked: Vec<&OfferedSkill> = self.offered.iter().collect();
        ranked.sort_by_key(|offered| offered.rank);
        ranked
    }
}
