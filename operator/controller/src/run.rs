//! The operator as a whole: starts its parts in order.

use std::{pin::pin, sync::Arc};

use kube::{
    Api, Client,
    runtime::{events::Reporter as Source, watcher},
};
use serde::de::DeserializeOwned;
use skillet_api::{Skill, SkillPolicy, SkillVersion, names};
use skillet_kube::{Leadership, LeaseRef, RawObject, mirror};
use skillet_workspace::WorkspaceClient;
use thiserror::Error;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use tracing::info;

use crate::{
    catalog::{Catalog, CatalogMirror, Catalogued},
    context::Context,
    egress::Egress,
    execution::{KeptOutputs, LeftoverRuns, McpSessions, engine::Engine},
    health::Health,
    metrics::Metrics,
    pace::Pace,
    policy,
    report::Reporter,
    retention,
    revision::NewestRevision,
    sandbox::{PodWatch, Remover},
    settings::SandboxSettings,
    skill,
};

#[derive(Debug, Error)]
pub enum Error {
    #[error("could not list the sandboxes of namespace {namespace}")]
    Sandboxes { namespace: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error(transparent)]
    Policy(#[from] policy::Error),
    #[error("another operator holds the Lease: {holder}")]
    LeaseLost { holder: String },
    #[error("a part of the operator has ended")]
    PartEnded,
}

/// Waits for the Lease, and leads until `shutdown` fires. The next leader settles the runs in flight.
pub async fn run(
    client: Client,
    lease: LeaseRef,
    (settings, egress, workspaces): (SandboxSettings, Egress, Option<WorkspaceClient>),
    metrics: Metrics,
    health: Health,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    let mut parts = JoinSet::new();
    let catalog = Arc::new(Catalog::default());
    let mut shutdown = pin!(shutdown);
    let acquired = async {
        start_catalog(&client, &catalog, &mut parts).await;
        health.set_ready();
        Leadership::acquire(client.clone(), &lease).await
    };
    let leadership = tokio::select! {
        leadership = acquired => leadership,
        () = &mut shutdown => return Ok(()),
    };
    metrics.is_leader.set(1);
    let jobs = Api::namespaced(client.clone(), &settings.namespace);
    let (remover, removing) = Remover::new(jobs);
    let source = Source { controller: names::REPORTING_CONTROLLER.into(), instance: None };
    let ctx = Arc::new(Context {
        reporter: Reporter::new(client.clone(), source, metrics.clone()),
        catalog,
        newest_version: NewestRevision::default(),
        checks: Arc::default(),
        pace: Pace::default(),
        health,
        version_pins: Arc::default(),
        pods: PodWatch::default(),
        mcp_sessions: McpSessions::default(),
        egress,
        workspaces,
        kept_outputs: KeptOutputs::default(),
        probed: std::sync::Mutex::default(),
        leadership,
        client,
        settings,
        namespace: lease.namespace,
        remover,
        metrics,
    });
    parts.spawn(removing);
    let led = async {
        lead(&ctx, &mut parts).await?;
        // Each part works as long as the process: without one, the operator would be ready and do nothing.
        parts.join_next().await;
        Err(Error::PartEnded)
    };
    let result = tokio::select! {
        result = led => result,
        holder = ctx.leadership.lost() => Err(Error::LeaseLost { holder }),
        () = shutdown => Ok(()),
    };
    info!("Operator stops");
    parts.shutdown().await;
    ctx.leadership.release().await;
    result
}

/// Starts what only the leader does.
async fn lead(ctx: &Arc<Context>, parts: &mut JoinSet<()>) -> Result<(), Error> {
    policy::create_default(ctx).await?;
    let leftovers = LeftoverRuns::list(&ctx.sandbox_jobs(), &ctx.version_pins).await.map_err(|source| {
        Error::Sandboxes { namespace: ctx.settings.namespace.clone(), source: source.into() }
    })?;
    info!(sandboxes = leftovers.sandboxes(), skills = ctx.catalog.skill_count(), "Operator started");
    let (finished, receiver) = mpsc::unbounded_channel();
    let executions = skillet_kube::watch(Api::all(ctx.client.clone()), watcher::Config::default());
    parts.spawn({
        let ctx = ctx.clone();
        async move { ctx.pods.watch(ctx.sandbox_pods()).await }
    });
    parts.spawn(ctx.egress.clone().learn_ranges(ctx.client.clone()));
    parts.spawn(skill::controller(ctx.clone(), ctx.catalog.policy_changes()));
    parts.spawn(policy::controller(ctx.clone()));
    parts.spawn(retention::executions(ctx.clone(), receiver));
    parts.spawn(retention::sandboxes(ctx.clone()));
    parts.spawn(Engine::new(ctx.clone(), leftovers, finished).work(executions));
    Ok(())
}

/// Starts the catalog's watches and waits until each has listed everything once.
async fn start_catalog(client: &Client, catalog: &Arc<Catalog>, parts: &mut JoinSet<()>) {
    let (policy, policies) = watch::channel(false);
    let (skill, skills) = watch::channel(false);
    let (version, versions) = watch::channel(false);
    parts.spawn(mirror_kind::<SkillPolicy>(client.clone(), catalog.clone(), policy));
    parts.spawn(mirror_kind::<Skill>(client.clone(), catalog.clone(), skill));
    parts.spawn(mirror_kind::<SkillVersion>(client.clone(), catalog.clone(), version));
    for mut synced in [policies, skills, versions] {
        // An error means that the part has ended, which it does only at shutdown.
        synced.wait_for(|is_synced| *is_synced).await.ok();
    }
}

async fn mirror_kind<K>(client: Client, catalog: Arc<Catalog>, is_synced: watch::Sender<bool>)
where
    K: Catalogued + Clone + DeserializeOwned + 'static,
{
    let events = skillet_kube::watch::<RawObject<K>>(Api::all(client), watcher::Config::default());
    mirror(events, &mut CatalogMirror::<K>::new(catalog, is_synced)).await;
}
