//! Admission of an execution: the decision if it runs, and with which version, content, input and limits.
//!
//! The order of the checks is part of the interface: the user sees the reason of the first check that fails. Admission does
//! not check rights; the caller passes the objects of the execution's own namespace.

mod input;
mod refusals;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use skillet_api::{Reason, Skill, SkillExecutionSpec, SkillPolicySpec, SkillVersion, skill::Mode};

pub use self::input::{MAX_INPUT_BYTES, ProgramInput, check_input, check_input_text};
use self::refusals::{no_match, only_yanked, refuse_content};
use crate::{
    content_cache::{CheckedContent, ContentCache},
    skill::{FieldError, RunPart, ValidContent, check_hosts, is_skill_name, yanked_versions},
    version::{Constraint, SkillSemver, current, resolve},
};

/// Everything that the decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionRequest<'a> {
    pub execution: &'a SkillExecutionSpec,
    /// The Skill of that name in the execution's namespace.
    pub skill: Option<&'a Skill>,
    /// The sealed versions in that namespace; those of other skills are ignored.
    pub versions: &'a [Arc<SkillVersion>],
    pub policy: &'a SkillPolicySpec,
}

/// An admitted run.
#[derive(Clone, Debug)]
pub struct Admitted {
    pub skill: String,
    pub version: SkillSemver,
    pub digest: String,
    pub content: Arc<ValidContent>,
    /// Arguments behind those of the program.
    pub args: Vec<String>,
    /// Text on standard input: the input as JSON, or the text of a script.
    pub stdin: Arc<str>,
    /// Variables beside those of the skill, with the values of a command.
    pub variables: BTreeMap<String, String>,
    /// The smaller of the skill's limit and the execution's.
    pub timeout: Duration,
    pub retries: u32,
}

/// The reason why an execution does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub reason: Reason,
    pub message: String,
    /// True if the Skill was changed and the operator has not yet observed the change. The same request may be admitted in a
    /// moment, so the execution should wait instead of failing.
    pub is_transient: bool,
}

impl Refusal {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), is_transient: false }
    }

    pub fn reason(&self) -> Reason {
        self.reason
    }
}

/// Refuses an execution whose `spec.skill` is no name of a Skill. An older CRD let such objects pass, and no request to the
/// API server may contain the name.
pub fn check_skill_name(execution: &SkillExecutionSpec) -> Result<(), Refusal> {
    let name = &execution.skill;
    if is_skill_name(name) {
        return Ok(());
    }
    let fix = match name.split_once('@') {
        Some((skill, version)) if is_skill_name(skill) => {
            format!("write spec.skill: {skill} and spec.version: {version:?}")
        }
        _ => {
            "it must be at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit".to_owned()
        }
    };
    Err(Refusal::new(Reason::SpecInvalid, format!("spec.skill: {name:?} is not the name of a Skill; {fix}")))
}

/// The version that an execution is to run.
#[derive(Clone, Debug)]
pub struct ChosenVersion {
    pub number: SkillSemver,
    pub object: Arc<SkillVersion>,
}

/// Admits an execution whose versions have their content, or returns the reason against it.
pub fn admit(request: &AdmissionRequest<'_>, contents: &ContentCache) -> Result<Admitted, Refusal> {
    let chosen = choose(request)?;
    let SkillExecutionSpec { script, command, mcp_server, input, .. } = request.execution;
    let part = RunPart::of(request.execution);
    let content = chosen.check(contents.get(&chosen.object, &part, request.policy), request.policy)?;
    let input = if let Some(script) = script {
        ProgramInput::of_script(script.clone())?
    } else if let Some(command) = command {
        ProgramInput::of_command(command.clone(), &content)?
    } else if mcp_server.is_some() {
        ProgramInput::default()
    } else {
        let input = input.clone().unwrap_or_else(|| json!({}));
        check_input(&content, &input)?;
        ProgramInput::of_text(&part, input.to_string().into(), &content)?
    };
    Ok(chosen.admit(request.execution, content, input))
}

/// Chooses the version of an execution, without its content.
pub fn choose(request: &AdmissionRequest<'_>) -> Result<ChosenVersion, Refusal> {
    check_skill_name(request.execution)?;
    if request.execution.timeout.is_some_and(|timeout| timeout.0.is_zero()) {
        let message = "spec.timeout: must be more than 0, such as 10s";
        return Err(Refusal::new(Reason::SpecInvalid, message));
    }
    check_one_part(request.execution)?;
    let skill = allowed_skill(request)?;
    let constraint = request.execution.version.as_deref().map(Constraint::parse).transpose();
    let constraint =
        constraint.map_err(|error| Refusal::new(error.reason(), format!("spec.version: {error}")))?;
    let sealed = sealed_versions(request);
    best_match(skill, constraint.as_ref(), &sealed).map(ChosenVersion::of)
}

/// Refuses a call of an MCP server that no skill may get now. A Skill that is not known yet is admitted with its server.
pub fn check_call(request: &AdmissionRequest<'_>) -> Result<(), Refusal> {
    check_one_part(request.execution)?;
    match allowed_skill(request) {
        Err(refusal) if refusal.reason != Reason::SkillNotFound => Err(refusal),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Refuses an execution that names more than one part of the skill to run.
fn check_one_part(execution: &SkillExecutionSpec) -> Result<(), Refusal> {
    let message = match execution {
        SkillExecutionSpec { mcp_call: Some(_), mcp_server: Some(_), .. } => {
            "spec.mcpCall: cannot stand beside spec.mcpServer; make an execution for each"
        }
        SkillExecutionSpec { mcp_call: Some(_), script: Some(_), .. }
        | SkillExecutionSpec { mcp_call: Some(_), command: Some(_), .. } => {
            "spec.mcpCall: cannot stand beside spec.script or spec.command; make an execution for each"
        }
        SkillExecutionSpec { mcp_server: Some(_), script: Some(_), .. }
        | SkillExecutionSpec { mcp_server: Some(_), command: Some(_), .. } => {
            "spec.mcpServer: cannot stand beside spec.script or spec.command; make an execution for each"
        }
        SkillExecutionSpec { mcp_server: Some(_), input: Some(_), .. } => {
            "spec.input: cannot stand beside spec.mcpServer; pass arguments with spec.mcpCall of another execution"
        }
        SkillExecutionSpec { script: Some(_), command: Some(_), .. } => {
            "spec.command: cannot stand beside spec.script; make an execution for each"
        }
        SkillExecutionSpec { script: Some(_), input: Some(_), .. } => {
            "spec.input: cannot stand beside spec.script; pass args and stdin of the script"
        }
        SkillExecutionSpec { command: Some(_), input: Some(_), .. } => {
            "spec.input: cannot stand beside spec.command; pass arguments and inputs of the command"
        }
        SkillExecutionSpec { .. } => return Ok(()),
    };
    Err(Refusal::new(Reason::SpecInvalid, message))
}

/// Chooses the version with which an earlier operator started an execution. A Skill that was switched off since does not
/// end the run.
pub fn choose_resumed(request: &AdmissionRequest<'_>, version: &str) -> Result<ChosenVersion, Refusal> {
    check_skill_name(request.execution)?;
    let sealed = sealed_versions(request);
    let started = sealed.iter().find(|(semver, _)| semver.to_string() == version).ok_or_else(|| {
        let message =
            format!("version {version} of Skill {} was deleted while it ran", request.execution.skill);
        Refusal::new(Reason::VersionNotFound, message)
    })?;
    Ok(ChosenVersion::of(started))
}

impl ChosenVersion {
    fn of((number, object): &Sealed<'_>) -> Self {
        Self { number: number.clone(), object: Arc::clone(object) }
    }

    /// Refuses content that is not valid under the policy, and hosts that the policy does not let its namespace reach.
    pub fn check(
        &self,
        content: CheckedContent,
        policy: &SkillPolicySpec,
    ) -> Result<Arc<ValidContent>, Refusal> {
        let refuse = |errors: &[FieldError]| refuse_content(&self.object.spec.skill, &self.number, errors);
        let content = content.map_err(|errors| refuse(&errors))?;
        let namespace = self.object.metadata.namespace.as_deref().unwrap_or_default();
        if let Some(network) = &content.network {
            check_hosts(network, namespace, policy).map_err(|error| refuse(&[error]))?;
        }
        Ok(content)
    }

    /// Admits an execution with the version's content and a checked input.
    pub fn admit(
        &self,
        execution: &SkillExecutionSpec,
        content: Arc<ValidContent>,
        input: ProgramInput,
    ) -> Admitted {
        let ProgramInput { args, stdin, variables, content: of_input } = input;
        let content = of_input.unwrap_or(content);
        let limit = content.limits.timeout;
        Admitted {
            skill: self.object.spec.skill.clone(),
            version: self.number.clone(),
            digest: self.object.spec.digest.clone(),
            args,
            stdin,
            variables,
            timeout: execution.timeout.map_or(limit, |own| own.0.min(limit)),
            retries: execution.retries.unwrap_or(content.limits.retries),
            content,
        }
    }
}

/// Returns the Skill if it and the SkillPolicy allow runs.
fn allowed_skill<'a>(request: &AdmissionRequest<'a>) -> Result<&'a Skill, Refusal> {
    let name = &request.execution.skill;
    if !request.policy.execution_enabled {
        let message = "SkillPolicy default has executionEnabled: false; no skill is run in this cluster";
        return Err(Refusal::new(Reason::ExecutionDisabled, message));
    }
    let Some(skill) = request.skill.filter(|skill| skill.metadata.deletion_timestamp.is_none()) else {
        let message = format!("this namespace has no Skill {name}");
        return Err(Refusal::new(Reason::SkillNotFound, message));
    };
    if !skill.spec.enabled {
        let message = format!("Skill {name} has spec.enabled: false; set it to true to run it");
        return Err(Refusal::new(Reason::SkillDisabled, message));
    }
    let namespace = skill.metadata.namespace.as_deref().unwrap_or_default();
    if request.execution.command.is_some() && !request.policy.dynamic_content.allows(namespace) {
        let message = format!(
            "SkillPolicy default does not let commands of skills in namespace {namespace} run; have it added to spec.dynamicContent.namespaces"
        );
        return Err(Refusal::new(Reason::DynamicContentDisabled, message));
    }
    match skill.spec.mode {
        Mode::On | Mode::Auto => Ok(skill),
        Mode::Off => {
            let message = format!("Skill {name} has spec.mode: off; set it to auto or on to run it");
            Err(Refusal::new(Reason::SkillOff, message))
        }
    }
}

type Sealed<'a> = (SkillSemver, &'a Arc<SkillVersion>);

/// Returns the sealed versions of the requested skill, highest first.
fn sealed_versions<'a>(request: &AdmissionRequest<'a>) -> Vec<Sealed<'a>> {
    let mut sealed: Vec<Sealed<'a>> = request
        .versions
        .iter()
        .filter(|version| version.spec.skill == request.execution.skill)
        .filter(|version| version.metadata.deletion_timestamp.is_none())
        .filter_map(|version| Some((version.spec.version.parse().ok()?, version)))
        .collect();
    sealed.sort_by(|a, b| b.0.cmp(&a.0));
    sealed
}

/// Chooses the newest sealed version that matches the constraint and is not yanked, or the current one if there is no
/// constraint.
fn best_match<'s, 'a>(
    skill: &Skill,
    constraint: Option<&Constraint>,
    sealed: &'s [Sealed<'a>],
) -> Result<&'s Sealed<'a>, Refusal> {
    let yanked = yanked_versions(&skill.spec);
    let (withdrawn, usable): (Vec<&Sealed<'_>>, Vec<&Sealed<'_>>) =
        sealed.iter().partition(|(semver, _)| yanked.contains(semver));
    let wanted: Option<SkillSemver> = skill.spec.version.parse().ok();
    let numbers = usable.iter().map(|(semver, _)| semver);
    let best = match constraint {
        Some(constraint) => resolve(constraint, numbers),
        None => current(wanted.as_ref(), numbers),
    };
    let is_transient = better_version_pending(skill, constraint, best, &yanked);
    match usable.iter().find(|(semver, _)| Some(semver) == best) {
        Some(found) if !is_transient => Ok(found),
        _ => {
            let any = Constraint::any();
            let constraint = constraint.unwrap_or(&any);
            let withdrawn = resolve(constraint, withdrawn.iter().map(|(semver, _)| semver));
            let refusal = match withdrawn {
                Some(version) if best.is_none() => only_yanked(skill, constraint, version, &usable),
                _ => no_match(skill, constraint, &usable),
            };
            Err(Refusal { is_transient, ..refusal })
        }
    }
}

/// True if the Skill's current version matches better than every sealed one, and the operator has not yet observed it.
///
/// A user who applies a new version and runs it at once must not get the version before.
fn better_version_pending(
    skill: &Skill,
    constraint: Option<&Constraint>,
    best: Option<&SkillSemver>,
    yanked: &BTreeSet<SkillSemver>,
) -> bool {
    let observed = skill.status.as_ref().and_then(|status| status.observed_generation);
    let is_decided = observed >= skill.metadata.generation;
    let present: Option<SkillSemver> = skill.spec.version.parse().ok();
    let is_better = |present: SkillSemver| {
        let is_better = match constraint {
            Some(constraint) => constraint.matches(&present) && Some(&present) > best,
            None => Some(&present) != best,
        };
        is_better && !yanked.contains(&present)
    };
    !is_decided && present.is_some_and(is_better)
}

#[cfg(test)]
mod tests;
