//! Admission of one execution: the choice of a version from the catalog, then its content and the input.

use std::sync::Arc;

use kube::ResourceExt as _;
use skillet_api::{Reason, SkillExecution, SkillPolicySpec};
use skillet_core::{
    admission::{self, Admitted, ChosenVersion, ProgramInput, Refusal},
    queue::SandboxSize,
    skill::{RunPart, ValidContent},
};
use skillet_kube::parsed_size;

use super::{gather, reference::ExecutionRef};
use crate::{checks::Turn, context::Context};

/// Most bytes that a parsed input may take while it is checked.
const MAX_INPUT_BYTES: usize = 64 << 20;
/// Most bytes that a version may take once it is parsed. Active runs hold their versions.
const MAX_VERSION_BYTES: usize = 8 << 20;

const POLICY_UNKNOWN: &str = "SkillPolicy default does not exist or does not parse; `kubectl describe skillpolicy default` tells what to correct";

/// A version whose content and schema allow the run, and the policy under which they do.
#[derive(Clone)]
pub(super) struct Verdict {
    chosen: ChosenVersion,
    size: SandboxSize,
    policy: Arc<SkillPolicySpec>,
}

impl Verdict {
    /// Returns the version if the verdict is about this choice.
    pub(super) fn holds_for(&self, chosen: &ChosenVersion, policy: &Arc<SkillPolicySpec>) -> bool {
        self.chosen.object.uid() == chosen.object.uid() && Arc::ptr_eq(&self.policy, policy)
    }

    /// Returns true if the input was checked against the schema of this choice, whose content never changes.
    fn has_checked_input(&self, chosen: &ChosenVersion) -> bool {
        self.chosen.object.uid().is_some_and(|uid| chosen.object.uid() == Some(uid))
    }

    pub(super) fn chosen(&self) -> &ChosenVersion {
        &self.chosen
    }

    pub(super) fn size(&self) -> SandboxSize {
        self.size
    }
}

/// Chooses a version from the catalog: no I/O. No switch ends a run that has its `version` already.
pub(super) fn choose(
    ctx: &Context,
    namespace: &str,
    execution: &SkillExecution,
    version: Option<&str>,
) -> Result<ChosenVersion, Refusal> {
    if version.is_none() && !ctx.catalog.is_policy_known() {
        return Err(Refusal::new(Reason::ExecutionDisabled, POLICY_UNKNOWN));
    }
    let observed = gather::observe(ctx, namespace, &execution.spec.skill);
    let policy = ctx.catalog.policy();
    let request = admission::AdmissionRequest {
        execution: &execution.spec,
        skill: observed.skill.as_deref(),
        versions: &observed.versions,
        policy: &policy,
    };
    match version {
        Some(version) => admission::choose_resumed(&request, version),
        None => admission::choose(&request),
    }
}

/// Checks from the catalog that a call of an MCP server may be passed on.
pub(super) fn check_call(ctx: &Context, namespace: &str, execution: &SkillExecution) -> Result<(), Refusal> {
    let observed = gather::observe(ctx, namespace, &execution.spec.skill);
    admission::check_call(&admission::AdmissionRequest {
        execution: &execution.spec,
        skill: observed.skill.as_deref(),
        versions: &[],
        policy: &ctx.catalog.policy(),
    })
}

/// Checks the content of a version for a part that runs and the input of an execution, of which `known` is an earlier verdict.
pub(super) async fn check(
    ctx: &Context,
    reference: &ExecutionRef,
    chosen: ChosenVersion,
    (part, input): (&RunPart, Option<Arc<str>>),
    known: Option<&Verdict>,
    turn: &Turn,
) -> Result<Verdict, Refusal> {
    let policy = ctx.catalog.policy();
    let content = match cached(ctx, &chosen, part, &policy) {
        Some(content) => content?,
        None => read_content(ctx, (reference.namespace(), &chosen, part), &policy, turn).await?,
    };
    let size = content.sandbox().map_or_else(SandboxSize::default, |_| SandboxSize::from(&content.limits));
    let is_checked = known.is_some_and(|known| known.has_checked_input(&chosen));
    if content.input_schema.is_some() && !is_checked {
        let input = read_input(ctx, reference, input).await?;
        let parsed = parsed_size(input.as_bytes());
        if parsed > MAX_INPUT_BYTES {
            let message = format!(
                "spec.input: would take {parsed} bytes of memory to be checked; the limit is {MAX_INPUT_BYTES}"
            );
            return Err(Refusal::new(Reason::InputInvalid, message));
        }
        let check = move || match serde_json::from_str(&input) {
            Ok(input) => admission::check_input(&content, &input),
            Err(error) => Err(Refusal::new(Reason::InputInvalid, format!("spec.input: {error}"))),
        };
        ctx.checks.run(turn, parsed, check).await.unwrap_or_else(|| Err(interrupted()))?;
    }
    Ok(Verdict { chosen, size, policy })
}

/// Admits an execution whose input was checked. `input` is the text of its input, script or command, if that was kept.
pub(super) async fn admit(
    ctx: &Context,
    reference: &ExecutionRef,
    execution: &SkillExecution,
    chosen: &ChosenVersion,
    input: Option<Arc<str>>,
) -> Result<Admitted, Refusal> {
    let policy = ctx.catalog.policy();
    let part = RunPart::of(&execution.spec);
    let content = if let Some(content) = cached(ctx, chosen, &part, &policy) {
        content?
    } else {
        let turn = ctx.checks.turn(&reference.lane).await;
        read_content(ctx, (reference.namespace(), chosen, &part), &policy, &turn).await?
    };
    let text = read_input(ctx, reference, input).await?;
    let input = ProgramInput::of_text(&part, text, &content)?;
    Ok(chosen.admit(&execution.spec, content, input))
}

async fn read_input(
    ctx: &Context,
    reference: &ExecutionRef,
    kept: Option<Arc<str>>,
) -> Result<Arc<str>, Refusal> {
    match kept {
        Some(input) => Ok(input),
        None => gather::input(ctx, reference).await,
    }
}

/// The content of a version, if it was read before.
fn cached(
    ctx: &Context,
    chosen: &ChosenVersion,
    part: &RunPart,
    policy: &SkillPolicySpec,
) -> Option<Result<Arc<ValidContent>, Refusal>> {
    let cached = ctx.checks.contents.find(&chosen.object.uid()?, part, policy)?;
    Some(chosen.check(cached, policy))
}

/// Reads the content of a version from the API server, and validates it.
async fn read_content(
    ctx: &Context,
    (namespace, chosen, part): (&str, &ChosenVersion, &RunPart),
    policy: &Arc<SkillPolicySpec>,
    turn: &Turn,
) -> Result<Arc<ValidContent>, Refusal> {
    let raw = gather::version(ctx, namespace, chosen).await?;
    let size = raw.parsed_size();
    if size > MAX_VERSION_BYTES {
        let message = format!(
            "version {} of Skill {} would take {size} bytes of memory; the limit is {MAX_VERSION_BYTES}",
            chosen.number, chosen.object.spec.skill
        );
        return Err(Refusal::new(Reason::SkillNotReady, message));
    }
    let (checks, policy, chosen, part) = (ctx.checks.clone(), policy.clone(), chosen.clone(), part.clone());
    let check = move || match raw.parse() {
        Ok(version) => chosen.check(checks.contents.check(&version, &part, &policy, size), &policy),
        Err(error) => Err(Refusal::new(Reason::SkillNotReady, error.to_string())),
    };
    ctx.checks.run(turn, size, check).await.unwrap_or_else(|| Err(interrupted()))
}

fn interrupted() -> Refusal {
    Refusal::new(Reason::ApiError, "the check of the execution was interrupted")
}
