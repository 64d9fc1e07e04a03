//! The driver of Skill: seals each version it sees and says in conditions what can run.
//!
//! gather -> validate (`skillet_core::skill`) -> build -> apply -> status, in this order and on every path.

pub mod apply;
pub mod build;
pub mod gather;
pub mod status;

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{Controller, controller::Action, reflector::ObjectRef, watcher},
};
use skillet_api::parse::{Guarded, ParseError};
use skillet_api::{Reason, Skill, SkillVersion, names};
use skillet_core::skill::{SkillProblem, validate_skill};
use thiserror::Error;
use tracing::{debug, warn};

use self::gather::Look;
use crate::{context::Context, report::chain};

const KIND: &str = "Skill";
const RETRY: Duration = Duration::from_secs(5);

#[derive(Debug, Error)]
pub enum Error {
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error(transparent)]
    Gather(#[from] gather::Error),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Validate(Vec<SkillProblem>),
    #[error(transparent)]
    Build(#[from] build::Conflict),
    #[error(transparent)]
    Apply(#[from] apply::Error),
    #[error(transparent)]
    Status(#[from] status::Error),
}

impl Error {
    /// One word for condition, event and metric.
    pub fn reason(&self) -> Reason {
        match self {
            Error::Parse(_) => Reason::ParseFailed,
            Error::Validate(problems) => {
                problems.first().map_or(Reason::SpecInvalid, |problem| problem.reason)
            }
            Error::Build(_) => Reason::VersionConflict,
            Error::Gather(_) | Error::Apply(_) | Error::Status(_) => Reason::ApiError,
        }
    }
}

/// Watches Skills and SkillVersions; ends with the process.
pub async fn controller(ctx: Arc<Context>, policy_changes: impl Stream<Item = ()> + Send + Sync + 'static) {
    let client = ctx.client.clone();
    let skills: Api<Guarded<Skill>> = Api::all(client.clone());
    let seen = Arc::clone(&ctx);
    Controller::new(skills, watcher::Config::default())
        .watches(versions(client), watcher::Config::default(), move |version: Guarded<SkillVersion>| {
            seen.versions_seen.note(&version);
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

fn versions(client: Client) -> Api<Guarded<SkillVersion>> {
    Api::all(client)
}

async fn reconcile(skill: Arc<Guarded<Skill>>, ctx: Arc<Context>) -> Result<Action, Error> {
    let skill = match &skill.0 {
        Ok(skill) => skill,
        Err(error) => {
            let reference = skill.object_ref(&());
            ctx.reporter.problem(&reference, KIND, Reason::ParseFailed, &error.to_string()).await;
            return Err(Error::Parse(error.clone()));
        }
    };
    if skill.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let result = converge(skill, &ctx).await;
    if let Err(Error::Apply(error)) = &result
        && error.is_in_ending_namespace()
    {
        debug!(name = skill.name_any(), "Namespace is being deleted; nothing more is sealed in it");
        return Ok(Action::await_change());
    }
    status::report(&ctx, skill, &result).await?;
    result?;
    Ok(Action::await_change())
}

async fn converge(skill: &Skill, ctx: &Context) -> Result<apply::Applied, Error> {
    let observed = gather::gather(ctx, skill, Look::AsSeen).await?;
    let policy = ctx.catalog.policy();
    let valid = validate_skill(&skill.name_any(), &skill.spec, &policy).map_err(Error::Validate)?;
    let mut desired = build::build(skill, &valid, &observed, &policy);
    // A version that was just deleted may still have been seen: a conflict would stay, and a deletion is for good.
    if desired.as_ref().map_or(true, |desired| !desired.surplus.is_empty()) {
        let observed = gather::gather(ctx, skill, Look::Live).await?;
        desired = build::build(skill, &valid, &observed, &policy);
    }
    Ok(apply::apply(ctx, desired?).await?)
}

// The signature is the Controller's.
#[allow(clippy::needless_pass_by_value)]
fn error_policy(_: Arc<Guarded<Skill>>, error: &Error, ctx: Arc<Context>) -> Action {
    match error {
        // The user's to mend: the watch tells when it was.
        Error::Parse(_) | Error::Validate(_) | Error::Build(_) => Action::await_change(),
        Error::Gather(_) | Error::Apply(_) | Error::Status(_) => {
            ctx.metrics.problem(KIND, Reason::ApiError);
            warn!(error = %chain(error), "Skill is tried again");
            Action::requeue(RETRY)
        }
    }
}
