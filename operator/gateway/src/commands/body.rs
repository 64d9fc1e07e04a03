//! A body that is to be shown: if its commands run, which those are, and its text with their ends.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use skillet_api::{
    Reason, SkillPolicySpec,
    dynamic::{BodyCommand, DynamicContent},
    skill::Invocation,
};
use skillet_instructions::{
    block,
    dynamic::{CommandEnd, fill},
    inputs::{CallValues, MissingInput, shell_values, substitute},
};

use super::ended::size;
use crate::{
    catalog::{CachedInstructions, CachedVersion},
    compute::compute,
};

/// Most characters of the text behind a slash name, and of one value, that a SkillExecution takes.
const LONGEST_VALUES: (usize, usize) = (16_384, 4096);

/// The ends of a body's commands, by their texts; `None` if the body is shown as it is written.
pub(crate) type CommandEnds = Option<BTreeMap<String, CommandEnd>>;

/// A body with the values of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodyText {
    pub(crate) namespace: Arc<str>,
    pub(crate) skill: Arc<str>,
    pub(crate) version: Arc<CachedVersion>,
    pub(crate) invocation: Invocation,
    pub(crate) values: CallValues,
}

/// The reason why the commands of a body do not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotRun {
    NoCommands,
    /// The skill's `dynamic` is `Never`.
    OffInSkill,
    /// The policy does not name the skill's namespace.
    OffInPolicy,
    /// The policy lets nothing run.
    ExecutionDisabled,
    /// A person confirms each run of the skill, and nobody is asked before a text is shown.
    NotConfirmed,
}

/// A command that is to run.
pub(super) struct CommandCall {
    pub(super) namespace: Arc<str>,
    pub(super) skill: Arc<str>,
    pub(super) version: Arc<str>,
    pub(super) seal: u128,
    /// The skill's own time limit.
    pub(super) timeout: Option<Duration>,
    pub(super) command: BodyCommand,
}

impl NotRun {
    /// Returns a word and a sentence; `None` if there is nothing to say.
    fn describe(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::NoCommands => return None,
            Self::OffInSkill => {
                (Reason::DynamicContentDisabled.as_str(), "spec.instructions.dynamic of the Skill is Never")
            }
            Self::OffInPolicy => (
                Reason::DynamicContentDisabled.as_str(),
                "spec.dynamicContent.namespaces of the SkillPolicy does not have the namespace of the Skill",
            ),
            Self::ExecutionDisabled => {
                (Reason::ExecutionDisabled.as_str(), "spec.executionEnabled of the SkillPolicy is false")
            }
            Self::NotConfirmed => (
                "NotConfirmed",
                "spec.invocation of the Skill is hybrid: a person confirms what it runs, and nobody is asked before a text is shown",
            ),
        })
    }
}

/// Returns an error if the commands of these instructions do not run.
fn check(
    policy: &SkillPolicySpec,
    namespace: &str,
    instructions: &CachedInstructions,
    invocation: Invocation,
) -> Result<(), NotRun> {
    if instructions.commands.is_empty() {
        return Err(NotRun::NoCommands);
    }
    match instructions.dynamic {
        DynamicContent::Never => return Err(NotRun::OffInSkill),
        DynamicContent::Run | DynamicContent::RunWithSecrets => {}
    }
    if !policy.dynamic_content.allows(namespace) {
        return Err(NotRun::OffInPolicy);
    }
    if !policy.execution_enabled {
        return Err(NotRun::ExecutionDisabled);
    }
    match invocation {
        Invocation::Auto => Ok(()),
        Invocation::Hybrid | Invocation::Manual => Err(NotRun::NotConfirmed),
    }
}

/// Explains if the commands of a skill run, as JSON; `None` without commands.
pub(crate) fn explain(
    policy: &SkillPolicySpec,
    namespace: &str,
    instructions: &CachedInstructions,
    invocation: Invocation,
) -> Option<Value> {
    let Err(not_run) = check(policy, namespace, instructions, invocation) else {
        return Some(json!({ "run": true, "reason": "Run" }));
    };
    let (reason, message) = not_run.describe()?;
    Some(json!({ "run": false, "reason": reason, "message": message }))
}

impl BodyText {
    pub(crate) fn instructions(&self) -> Option<&CachedInstructions> {
        self.version.spec.instructions.as_deref()
    }

    /// Returns true if the body has commands, whether or not they run.
    pub(super) fn has_commands(&self) -> bool {
        self.instructions().is_some_and(|instructions| !instructions.commands.is_empty())
    }

    /// Returns the number of commands that are to run.
    pub(super) fn count_calls(&self, policy: &SkillPolicySpec) -> usize {
        self.instructions().filter(|own| self.may_run(own, policy)).map_or(0, |own| own.commands.len())
    }

    /// Returns true if the commands run. None runs if a required value is missing, for which the text asks.
    fn may_run(&self, instructions: &CachedInstructions, policy: &SkillPolicySpec) -> bool {
        let Self { namespace, skill: _, version: _, invocation, values } = self;
        let (most_text, most_value) = LONGEST_VALUES;
        let fits = |text: &str, most: usize| text.chars().count() <= most && !text.contains('\0');
        check(policy, namespace, instructions, *invocation).is_ok()
            && shell_values(&instructions.inputs, values).is_ok()
            && fits(&values.text, most_text)
            && self.declared_values(instructions).all(|(_, value)| fits(value, most_value))
    }

    fn declared_values<'a>(
        &'a self,
        instructions: &'a CachedInstructions,
    ) -> impl Iterator<Item = (&'a String, &'a String)> {
        let is_declared = |name: &String| instructions.inputs.iter().any(|input| input.name == *name);
        self.values.named.iter().filter(move |(name, _)| is_declared(name))
    }

    /// Returns the commands that are to run.
    pub(super) fn calls(&self, policy: &SkillPolicySpec) -> Vec<CommandCall> {
        let Self { namespace, skill, version, invocation: _, values } = self;
        let Some(instructions) = self.instructions().filter(|own| self.may_run(own, policy)) else {
            return Vec::new();
        };
        let declared = self.declared_values(instructions);
        let inputs: BTreeMap<String, String> =
            declared.map(|(name, value)| (name.clone(), value.clone())).collect();
        let call = |text: &String| CommandCall {
            namespace: namespace.clone(),
            skill: skill.clone(),
            version: version.spec.version.clone(),
            seal: version.spec.seal,
            timeout: instructions.timeout,
            command: BodyCommand {
                text: text.clone(),
                arguments: values.text.clone(),
                inputs: inputs.clone(),
            },
        };
        instructions.commands.iter().map(call).collect()
    }

    /// Returns the text with the values of the call, and with the ends of its commands.
    pub(crate) fn text(&self, ends: &CommandEnds) -> Result<String, MissingInput> {
        let Some(CachedInstructions { body, inputs, .. }) = self.instructions() else {
            return Ok(String::new());
        };
        match ends {
            Some(ends) => {
                let bytes = body.len() + ends.values().map(size).sum::<usize>();
                compute(bytes, || fill(body, inputs, &self.values, ends))
            }
            None => substitute(body, inputs, &self.values),
        }
    }

    /// Returns the block of the text. One sentence behind the text asks for missing values.
    pub(crate) fn block(&self, ends: &CommandEnds) -> String {
        let Some(CachedInstructions { body, files, .. }) = self.instructions() else { return String::new() };
        let mut text = self.text(ends).unwrap_or_else(|missing| format!("{body}\n\n{missing}"));
        if !files.is_empty() {
            text.push_str("\n\nFiles of this skill: ");
            text.push_str(&files.join(", "));
        }
        block::render(&self.skill, &self.version.spec.version, &text)
    }
}
