//! The driver of Skill: seals each version and reports in conditions what can run.
//!
//! gather -> body -> validate (`skillet_core::skill`) -> build -> record -> apply -> status, in this order and on every path.

pub(crate) mod apply;
pub(crate) mod body;
pub(crate) mod build;
pub(crate) mod gather;
pub(crate) mod record;
pub(crate) mod status;

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt};
use kube::{
    Api, Resource, ResourceExt,
    runtime::{Controller, controller::Action, reflector::ObjectRef, watcher},
};
use skillet_api::{Isolation, Reason, Skill, SkillVersion, names, policy::NodeStatus};
use skillet_core::{
    skill::{FieldError, ValidSkill, body_source, check_hosts, validate_skill},
    version::SkillSemver,
};
use skillet_kube::{ObjectHead, PAGE_SIZE, ParseError, lock};
use thiserror::Error;
use tracing::{debug, warn};

use self::gather::Consistency;
use crate::{context::Context, report::chain};

const KIND: &str = "Skill";
const RETRY: Duration = Duration::from_secs(5);
/// Pause between two looks for a Secret that a Skill names and that does not exist.
const SECRET_RETRY: Duration = Duration::from_secs(15);
/// Pause between two looks for a ConfigMap that a Skill names and that has no text for it.
const BODY_RETRY: Duration = Duration::from_secs(15);
/// Pause between two looks whether a ConfigMap still has the text that was sealed.
const BODY_CHECK: Duration = Duration::from_secs(300);
/// Pause between two looks at the nodes for a Skill that reaches hosts. They are probed beside the Skills.
const NODE_CHECK: Duration = Duration::from_secs(60);
/// Pause after a refusal by the record of sealed versions. An administrator may change the record, and nobody watches it.
const RECORD_RETRY: Duration = Duration::from_secs(600);

#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error(transparent)]
    Gather(#[from] gather::Error),
    /// `serving` are the sealed versions that run on, newest first.
    #[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Validate { problems: Vec<FieldError>, serving: Vec<SkillSemver> },
    /// The ConfigMap of `bodyFrom` has no text that can be sealed. `serving` as above.
    #[error("{problem}")]
    Body { problem: FieldError, serving: Vec<SkillSemver> },
    #[error(transparent)]
    Build(#[from] build::Conflict),
    #[error(transparent)]
    Record(#[from] record::RequestError),
    #[error(transparent)]
    Apply(#[from] apply::Error),
    #[error(transparent)]
    Status(#[from] status::Error),
}

impl Error {
    /// Returns one word for condition, event and metric.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Error::Parse(_) => Reason::ParseFailed,
            Error::Validate { problems, .. } => {
                problems.first().map_or(Reason::SpecInvalid, |problem| problem.reason)
            }
            Error::Body { problem, .. } => problem.reason,
            Error::Build(conflict) => conflict.reason(),
            Error::Gather(_) | Error::Record(_) | Error::Apply(_) | Error::Status(_) => Reason::ApiError,
        }
    }
}

impl From<record::Error> for Error {
    fn from(error: record::Error) -> Self {
        match error {
            record::Error::Conflict(conflict) => Error::Build(conflict),
            record::Error::Request(error) => Error::Record(error),
        }
    }
}

/// Reconciles Skills whenever they or their versions change. Ends with the process.
pub(crate) async fn controller(
    ctx: Arc<Context>,
    policy_changes: impl Stream<Item = ()> + Send + Sync + 'static,
) {
    let client = ctx.client.clone();
    // Their store keeps every object, so it may hold no content.
    let skills: Api<ObjectHead<Skill>> = Api::all(client.clone());
    let versions: Api<ObjectHead<SkillVersion>> = Api::all(client);
    let config = watcher::Config::default().page_size(PAGE_SIZE);
    let seen = Arc::clone(&ctx);
    Controller::new(skills, config.clone())
        .watches(versions, config, move |version: ObjectHead<SkillVersion>| {
            seen.newest_version.observe(&version);
            // By label, not by owner: the Skill may have been deleted and made again.
            let skill = version.meta().labels.as_ref()?.get(names::LABEL_SKILL)?.clone();
            Some(ObjectRef::new(&skill).within(&version.meta().namespace.clone()?))
        })
        .reconcile_all_on(policy_changes)
        .with_config(kube::runtime::controller::Config::default().concurrency(8))
        .run(reconcile, error_policy, ctx)
        .for_each(|result| async {
            if let Err(error) = result {
                debug!(%error, "Skill was not reconciled");
            }
        })
        .await;
}

async fn reconcile(head: Arc<ObjectHead<Skill>>, ctx: Arc<Context>) -> Result<Action, Error> {
    let Some(raw) = gather::skill(&ctx, &head).await? else { return Ok(Action::await_change()) };
    // Validated, the content takes a multiple of its parsed size.
    let _turn = ctx.checks.large_object(raw.parsed_size()).await;
    let skill = ctx.reporter.parse(KIND, &raw).await?;
    if skill.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let result = converge(&skill, &ctx).await;
    if let Err(Error::Apply(error)) = &result
        && error.is_in_ending_namespace()
    {
        debug!(name = skill.name_any(), "Namespace is being deleted; the version is not sealed");
        return Ok(Action::await_change());
    }
    status::report(&ctx, &skill, &result).await?;
    // Secrets and ConfigMaps are not watched: the operator sees only those that a Skill names.
    if let Err(Error::Validate { problems, .. }) = &result
        && problems.iter().any(|problem| problem.reason == Reason::IsolationUnavailable)
    {
        return Ok(Action::requeue(NODE_CHECK));
    }
    let is_missing = result?.missing_secrets.is_some_and(|missing| !missing.is_empty());
    Ok(match body_source(&skill.spec) {
        _ if is_missing => Action::requeue(SECRET_RETRY),
        _ if skill.spec.network.is_some() => Action::requeue(NODE_CHECK),
        Some(_) => Action::requeue(BODY_CHECK),
        None => Action::await_change(),
    })
}

async fn converge(skill: &Skill, ctx: &Context) -> Result<apply::Applied, Error> {
    let observed = gather::gather(ctx, skill, Consistency::AtLeastSeen).await?;
    let policy = ctx.catalog.policy();
    let with_body = body::read(ctx, skill, &observed).await?;
    let (skill, body_note) = match &with_body {
        Some(body::WithBody { skill, note }) => (skill, note.clone()),
        None => (skill, None),
    };
    let valid = validate_skill(&skill.name_any(), &skill.spec, &policy)
        .map_err(|problems| Error::Validate { problems, serving: build::serving(skill, &observed) })?;
    let namespace = skill.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(network) = valid.network(&skill.spec) {
        let checked = check_hosts(&network, namespace, &policy);
        if let Err(problem) = checked.and_then(|()| check_nodes(&valid, &lock(&ctx.probed))) {
            let serving = build::serving(skill, &observed);
            return Err(Error::Validate { problems: vec![problem], serving });
        }
    }
    let mut desired = build::build(skill, &valid, &observed, &policy);
    // The list may still show a version that was just deleted. A conflict would stay, and a deletion is final.
    if desired.as_ref().map_or(true, |desired| !desired.surplus.is_empty()) {
        let observed = gather::gather(ctx, skill, Consistency::Strong).await?;
        desired = build::build(skill, &valid, &observed, &policy);
    }
    let desired = desired?;
    if desired.needs_record() {
        record::add(ctx, skill, &desired).await?;
    }
    let applied = apply::apply(ctx, desired).await?;
    let wanted = valid.secret_env(&skill.spec);
    let missing_secrets = match skill.namespace() {
        Some(namespace) if !wanted.is_empty() => {
            Some(gather::missing_secrets(ctx, &namespace, &wanted).await)
        }
        Some(_) | None => None,
    };
    Ok(apply::Applied { missing_secrets, body_note, ..applied })
}

/// Refuses a skill whose program needs connections that no node can pass on. Nodes that were not asked count as able.
fn check_nodes(valid: &ValidSkill, nodes: &[NodeStatus]) -> Result<(), FieldError> {
    let runs_in_sandbox = valid.content.as_ref().is_none_or(|content| content.sandbox().is_some());
    let proofs: Vec<&Isolation> = nodes.iter().filter_map(|node| node.isolation.as_ref()).collect();
    let mut unable = proofs.iter().filter(|proof| proof.named_egress == Some(false)).peekable();
    if !runs_in_sandbox || unable.clone().count() < proofs.len() {
        return Ok(());
    }
    match unable.next() {
        None => Ok(()),
        Some(proof) => Err(FieldError::new(
            Reason::IsolationUnavailable,
            "spec.network",
            format!(
                "no node can pass on the connections of a program: kernel 5.19 is needed, and the nodes have {}; run.http needs no such node",
                proof.kernel
            ),
        )),
    }
}

// The signature is the Controller's.
#[allow(clippy::needless_pass_by_value)]
fn error_policy(_: Arc<ObjectHead<Skill>>, error: &Error, ctx: Arc<Context>) -> Action {
    match error {
        Error::Build(conflict) if conflict.is_by_record() => Action::requeue(RECORD_RETRY),
        Error::Body { .. } => Action::requeue(BODY_RETRY),
        // The user must change the object, which the watch will show.
        Error::Parse(_) | Error::Validate { .. } | Error::Build(_) => Action::await_change(),
        Error::Gather(_) | Error::Record(_) | Error::Apply(_) | Error::Status(_) => {
            ctx.metrics.problem(KIND, Reason::ApiError);
            warn!(error = %chain(error), "Skill reconcile failed; retrying");
            Action::requeue(RETRY)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillet_api::{SkillPolicySpec, SkillSpec};

    use super::*;

    fn check(run: &str, kernels: &[Option<bool>], expected: Option<Reason>) {
        let spec: SkillSpec = serde_saphyr::from_str(&format!("{{version: 1.0.0, {run}}}")).unwrap();
        let valid = validate_skill("s", &spec, &SkillPolicySpec::default()).unwrap();
        let nodes: Vec<NodeStatus> = kernels
            .iter()
            .map(|egress| {
                let isolation = json!({ "namedEgress": egress, "kernel": "5.10.0" });
                let node = json!({
                    "name": "n", "probedAt": "2026-01-01T00:00:00Z", "containerRuntime": "", "isolation": isolation,
                });
                serde_json::from_value(node).unwrap()
            })
            .collect();
        let checked = check_nodes(&valid, &nodes);
        if let Err(problem) = &checked {
            assert!(problem.to_string().contains("5.10.0"), "{problem}");
        }
        assert_eq!(checked.err().map(|problem| problem.reason()), expected, "{run} {kernels:?}");
    }

    #[test]
    fn a_program_with_hosts_needs_one_node_that_can_pass_on_connections() {
        let sandbox = "run: {sandbox: {runtime: shell, script: cat}}";
        check(sandbox, &[], None);
        check(sandbox, &[None, Some(false)], None);
        check(sandbox, &[Some(true), Some(false)], None);
        check(sandbox, &[Some(false), Some(false)], Some(Reason::IsolationUnavailable));
        check("run: {http: {url: 'https://a.dev/'}}", &[Some(false)], None);
    }
}
