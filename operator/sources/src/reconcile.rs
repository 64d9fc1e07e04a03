//! The driver of SkillSource: looks at each repository when it is due, and makes the Skills those of its files.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    runtime::{
        Controller, WatchStreamExt as _,
        controller::Action,
        events::{Event, EventType, Recorder, Reporter},
        reflector::ObjectRef,
        watcher,
    },
};
use skillet_api::{SkillPolicy, SkillSource, names};
use skillet_core::{
    import::{TreeImage, read_image, refuse_repeated_names},
    text::truncate,
};
use skillet_kube::{apply_status_as, chain, is_gone, lock};
use thiserror::Error;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::{
    allowed_hosts::AllowedHosts,
    apply,
    context::{Context, Settings},
    due::{Due, Inputs, Looked, due},
    fetch::{Files, directory, fetch},
    gather,
    metrics::Metrics,
    plan::plan,
    status::{End, status},
};

/// Transfers at one time.
const SIDE_BY_SIDE: u16 = 4;
/// Pause after a look that the API server interrupted.
const API_RETRY: Duration = Duration::from_secs(10);
/// Pause until the operator has looked at Skills that were written, so that a version that cannot be sealed is raised.
const SEAL_PAUSE: Duration = Duration::from_secs(2);
/// Longest note of an event, in bytes.
const MAX_NOTE: usize = 1000;
/// Looks that are remembered before those of sources that are gone are forgotten.
const MAX_LOOKED: usize = 4096;

#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("could not apply the status")]
    Status(#[source] Box<kube::Error>),
}

/// Reconciles sources. Ends with the process.
pub async fn run(client: Client, settings: Settings, metrics: Metrics) {
    let recorder = Recorder::new(
        client.clone(),
        Reporter { controller: names::REPORTING_CONTROLLER.into(), instance: None },
    );
    let ctx = Arc::new(Context {
        client: client.clone(),
        settings,
        metrics,
        recorder,
        allowed_hosts: Mutex::default(),
        looked: Mutex::default(),
    });
    let policies: Api<SkillPolicy> = Api::all(client.clone());
    let seen = Arc::clone(&ctx);
    let policy_changes = watcher(policies, watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .inspect_err(|error| warn!(%error, "SkillPolicy cannot be watched"))
        .filter_map(move |policy| {
            let changed = policy.is_ok_and(|policy| learn_policy(&seen, policy));
            async move { changed.then_some(()) }
        });
    let sources: Api<SkillSource> = Api::all(client);
    Controller::new(sources, watcher::Config::default())
        .reconcile_all_on(policy_changes)
        .with_config(kube::runtime::controller::Config::default().concurrency(SIDE_BY_SIDE))
        .run(reconcile, error_policy, ctx)
        .for_each(|result| async {
            if let Err(error) = result {
                debug!(%error, "SkillSource was not reconciled");
            }
        })
        .await;
}

/// Remembers the allowed hosts; true if they are other ones.
fn learn_policy(ctx: &Context, policy: SkillPolicy) -> bool {
    if policy.name_any() != names::POLICY_NAME {
        return false;
    }
    let hosts = policy.spec.sources.allowed_hosts;
    let mut known = lock(&ctx.allowed_hosts);
    let is_new = **known != hosts;
    *known = Arc::new(hosts);
    is_new
}

async fn reconcile(source: Arc<SkillSource>, ctx: Arc<Context>) -> Result<Action, Error> {
    if source.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    if source.spec.suspend {
        report(&ctx, &source, &End::Suspended).await?;
        lock(&ctx.looked).remove(&ObjectRef::from_obj(&*source));
        return Ok(Action::await_change());
    }
    let hosts = Arc::clone(&lock(&ctx.allowed_hosts));
    let inputs = Inputs {
        uid: source.metadata.uid.clone(),
        generation: source.metadata.generation,
        request: source.annotations().get(names::ANNOTATION_SYNC_REQUEST).cloned(),
        allowed_hosts: hosts.to_vec(),
    };
    let place = ObjectRef::from_obj(&*source);
    let last = lock(&ctx.looked).get(&place).cloned();
    let known = match due(last.as_ref(), &inputs, source.spec.interval.0, Instant::now()) {
        Due::Later(pause) => return Ok(Action::requeue(pause)),
        Due::Now { known } => known,
    };
    let started = Instant::now();
    let (end, is_settled) = look(&ctx, &source, known, &AllowedHosts::new(&hosts)).await;
    ctx.metrics.look(end.reason(), started.elapsed());
    report(&ctx, &source, &end).await?;
    let failures = match &end {
        End::Failed(_) => last.as_ref().map_or(0, |last| last.failures) + 1,
        End::Suspended | End::Unchanged | End::Synced { .. } | End::Interrupted(_) => 0,
    };
    let revision = match &end {
        End::Synced { revision, .. } => Some(revision.clone()),
        End::Unchanged => last.and_then(|last| last.revision),
        End::Suspended | End::Failed(_) | End::Interrupted(_) => None,
    };
    let looked = Looked { at: Instant::now(), inputs, revision, failures };
    let pause = match end {
        End::Interrupted(_) => API_RETRY,
        // Half of the time at most goes into looks.
        _ if !is_settled => SEAL_PAUSE.max(started.elapsed()),
        _ => looked.pause(source.spec.interval.0),
    };
    // What is not remembered is looked at again.
    if is_settled && !matches!(end, End::Interrupted(_)) {
        remember(&ctx, place, looked);
    } else {
        lock(&ctx.looked).remove(&place);
    }
    Ok(Action::requeue(pause))
}

fn remember(ctx: &Context, place: ObjectRef<SkillSource>, looked: Looked) {
    let mut all = lock(&ctx.looked);
    if all.len() >= MAX_LOOKED {
        // A source that is there is looked at once more than it had to be.
        all.clear();
    }
    all.insert(place, looked);
}

/// Looks at the repository and applies its files. Returns false if the look has to be repeated soon.
async fn look(
    ctx: &Arc<Context>,
    source: &SkillSource,
    known: Option<String>,
    allowed: &AllowedHosts,
) -> (End, bool) {
    match try_look(ctx, source, known, allowed).await {
        Ok((end, is_settled)) => (end, is_settled),
        Err(gather::Error::Failure(failure)) => (End::Failed(failure), true),
        Err(error) => (End::Interrupted(chain(&error)), true),
    }
}

async fn try_look(
    ctx: &Arc<Context>,
    source: &SkillSource,
    known: Option<String>,
    allowed: &AllowedHosts,
) -> Result<(End, bool), gather::Error> {
    let Some(Files { revision, tree, image, refused }) = fetch(ctx, source, known, allowed).await? else {
        return Ok((End::Unchanged, true));
    };
    let added = tree.is_skill().then(|| root_name(source));
    let image = image.map(|reference| TreeImage {
        reference,
        directory: directory(&source.spec.path).to_owned(),
        added: added.map(ToOwned::to_owned),
    });
    let tree = match added {
        Some(added) => tree.within(added),
        None => tree,
    };
    let mut verdicts = read_image(&tree, &source.spec.prefix, image.as_ref());
    drop(tree);
    refuse_repeated_names(&mut verdicts);
    let present = gather::present(&ctx.client, source).await?;
    let plan = plan(source, &verdicts, &refused, &present);
    drop(verdicts);
    let applied = match apply::apply(&gather::in_namespace_of(&ctx.client, source), plan).await {
        Ok(applied) => applied,
        Err(error) => return Ok((End::Interrupted(chain(&error)), true)),
    };
    ctx.metrics.changed(applied.changed, applied.pruned, applied.refused.len());
    info!(
        namespace = source.namespace(),
        name = source.name_any(),
        revision,
        skills = applied.skills,
        changed = applied.changed,
        pruned = applied.pruned,
        refused = applied.refused.len(),
        "Skills are those of the source"
    );
    let is_settled = applied.changed == 0 && applied.in_conflict == 0 && applied.unsettled == 0;
    Ok((End::Synced { revision, skills: applied.skills, refused: applied.refused }, is_settled))
}

/// The name of a skill whose SKILL.md stands at the root: that of its directory, or of the repository.
fn root_name(source: &SkillSource) -> &str {
    let spec = &source.spec;
    let git = spec.git.as_ref().map(|git| git.url.as_str());
    let url = git.or(spec.oci.as_ref().map(|oci| oci.url.as_str())).unwrap_or_default();
    let last = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().len();
    let path = spec.path.trim_end_matches('/');
    let text = if path.is_empty() || path == "." { url.trim_end_matches('/') } else { path };
    text[text.len() - last(text)..].trim_end_matches(".git")
}

/// Writes the status, and an event if it says something else than before.
async fn report(ctx: &Context, source: &SkillSource, end: &End) -> Result<(), Error> {
    let new = status(source, end, Timestamp::now());
    let old = source.status.clone().unwrap_or_default();
    if new == old {
        return Ok(());
    }
    let reference = source.object_ref(&());
    let applied =
        apply_status_as::<SkillSource>(&ctx.client, names::SOURCES_FIELD_MANAGER, &reference, &new).await;
    match applied {
        Ok(()) => {}
        Err(kube::Error::Api(status)) if is_gone(&status) => return Ok(()),
        Err(error) => return Err(Error::Status(Box::new(error))),
    }
    let said = |status: &skillet_api::SkillSourceStatus| {
        status
            .conditions
            .iter()
            .map(|c| (c.type_.clone(), c.reason.clone(), c.message.clone()))
            .collect::<Vec<_>>()
    };
    if said(&new) == said(&old) {
        return Ok(());
    }
    let Some(ready) = new.conditions.first() else { return Ok(()) };
    let type_ = if ready.status == "True" { EventType::Normal } else { EventType::Warning };
    let note = truncate(&ready.message, MAX_NOTE).0.to_owned();
    if type_ == EventType::Warning {
        warn!(
            namespace = source.namespace(),
            name = source.name_any(),
            reason = ready.reason,
            note,
            "SkillSource has a problem"
        );
    }
    let event = Event {
        type_,
        reason: ready.reason.clone(),
        note: Some(note),
        action: "Sync".to_owned(),
        secondary: None,
    };
    if let Err(error) = ctx.recorder.publish(&event, &reference).await {
        debug!(%error, "Event could not be published");
    }
    Ok(())
}

// The signature is the Controller's.
#[allow(clippy::needless_pass_by_value)]
fn error_policy(_: Arc<SkillSource>, error: &Error, _: Arc<Context>) -> Action {
    warn!(error = chain(error), "SkillSource reconcile failed; retrying");
    Action::requeue(API_RETRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_at_the_root_has_the_name_of_its_directory_or_repository() {
        for (url, path, name) in [
            ("https://git.example.com/team/pdf.git", "", "pdf"),
            ("https://git.example.com/team/pdf/", ".", "pdf"),
            ("https://git.example.com/team/all.git", "skills/csv/", "csv"),
            ("https://git.example.com/team/all.git", "csv", "csv"),
            ("oci://registry.example.com/team/pdf", "", "pdf"),
        ] {
            let place = if url.starts_with("oci") { "oci" } else { "git" };
            let spec = serde_json::json!({ place: { "url": url }, "path": path });
            let source = SkillSource::new("s", serde_json::from_value(spec).unwrap());
            assert_eq!(root_name(&source), name, "{url} {path}");
        }
    }
}
