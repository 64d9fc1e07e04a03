//! The operator as a whole: starts its parts in order.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use jiff::Timestamp;
use kube::{
    Api, Client,
    runtime::{
        events::{Recorder, Reporter as Source},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use skillet_api::{Skill, SkillPolicy, SkillVersion, names};
use skillet_kube::{RawObject, mirror};
use thiserror::Error;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use tracing::info;

use crate::{
    catalog::{Catalog, CatalogMirror, Catalogued},
    context::Context,
    execution::{LeftoverRuns, engine::Engine},
    metrics::Metrics,
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
    Sandboxes { namespace: String, source: Box<kube::Error> },
    #[error(transparent)]
    Policy(#[from] policy::Error),
}

/// The state of `/readyz`: true once the operator has seen the whole cluster.
#[derive(Clone, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs every part until `shutdown` fires. The next operator settles the runs in flight.
pub async fn run(
    client: Client,
    settings: SandboxSettings,
    metrics: Metrics,
    readiness: Readiness,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    let jobs = Api::namespaced(client.clone(), &settings.namespace);
    let (remover, removing) = Remover::new(jobs);
    let source = Source { controller: names::REPORTING_CONTROLLER.into(), instance: None };
    let ctx = Arc::new(Context {
        reporter: Reporter::new(Recorder::new(client.clone(), source), metrics.clone()),
        catalog: Arc::new(Catalog::default()),
        newest_version: NewestRevision::default(),
        version_pins: Arc::default(),
        pods: PodWatch::default(),
        epoch: Timestamp::now().as_millisecond().unsigned_abs(),
        client,
        settings,
        remover,
        metrics,
    });
    let mut parts = JoinSet::new();
    parts.spawn(removing);
    policy::create_default(&ctx).await?;
    start_catalog(&ctx, &mut parts).await;
    let leftovers = LeftoverRuns::list(&ctx.sandbox_jobs(), &ctx.version_pins).await.map_err(|source| {
        Error::Sandboxes { namespace: ctx.settings.namespace.clone(), source: Box::new(source) }
    })?;
    info!(sandboxes = leftovers.sandboxes(), skills = ctx.catalog.skill_count(), "Operator started");
    let (finished, receiver) = mpsc::unbounded_channel();
    let executions = skillet_kube::watch(Api::all(ctx.client.clone()), watcher::Config::default());
    parts.spawn({
        let ctx = ctx.clone();
        async move { ctx.pods.watch(ctx.sandbox_pods()).await }
    });
    parts.spawn(skill::controller(ctx.clone(), ctx.catalog.policy_changes()));
    parts.spawn(policy::controller(ctx.clone()));
    parts.spawn(retention::executions(ctx.clone(), receiver));
    parts.spawn(retention::sandboxes(ctx.clone()));
    parts.spawn(Engine::new(ctx.clone(), leftovers, finished).work(executions));
    readiness.0.store(true, Ordering::Relaxed);
    shutdown.await;
    info!("Operator stops");
    parts.shutdown().await;
    Ok(())
}

/// Starts the catalog's watches and waits until each has listed everything once.
async fn start_catalog(ctx: &Arc<Context>, parts: &mut JoinSet<()>) {
    let (policy, policies) = watch::channel(false);
    let (skill, skills) = watch::channel(false);
    let (version, versions) = watch::channel(false);
    parts.spawn(mirror_kind::<SkillPolicy>(ctx.clone(), policy));
    parts.spawn(mirror_kind::<Skill>(ctx.clone(), skill));
    parts.spawn(mirror_kind::<SkillVersion>(ctx.clone(), version));
    for mut synced in [policies, skills, versions] {
        // An error means that the part has ended, which it does only at shutdown.
        synced.wait_for(|is_synced| *is_synced).await.ok();
    }
}

async fn mirror_kind<K>(ctx: Arc<Context>, is_synced: watch::Sender<bool>)
where
    K: Catalogued + Clone + DeserializeOwned + 'static,
{
    let events =
        skillet_kube::watch::<RawObject<K>>(Api::all(ctx.client.clone()), watcher::Config::default());
    mirror(events, &mut CatalogMirror::<K>::new(ctx.catalog.clone(), is_synced)).await;
}
