//! The operator as a whole: the list of its parts, started in order.

use std::{
    collections::HashSet,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::StreamExt as _;
use jiff::Timestamp;
use kube::{
    Api, Client, Resource,
    runtime::{
        events::{Recorder, Reporter as Source},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use skillet_api::{Reason, Skill, SkillExecution, SkillPolicy, SkillVersion, names};
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

/// Whether the operator has seen the cluster as it is, for `/readyz`.
#[derive(Clone, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs every part until `shutdown` fires. Runs in flight are left to the next operator, which settles them.
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
    catalogue(&ctx, &mut parts).await;
    let left = LeftoverRuns::list(&ctx.sandbox_jobs(), &ctx.version_pins).await.map_err(|source| {
        Error::Sandboxes { namespace: ctx.settings.namespace.clone(), source: Box::new(source) }
    })?;
    info!(sandboxes = left.sandboxes(), skills = ctx.catalog.skill_count(), "Operator started");
    let (finished, heard) = mpsc::unbounded_channel();
    let (events, seen) = mpsc::unbounded_channel();
    parts.spawn({
        let ctx = ctx.clone();
        async move { ctx.pods.watch(ctx.sandbox_pods()).await }
    });
    parts.spawn(skill::controller(ctx.clone(), ctx.catalog.policy_changes()));
    parts.spawn(policy::controller(ctx.clone()));
    parts.spawn(retention::executions(ctx.clone(), heard));
    parts.spawn(retention::sandboxes(ctx.clone()));
    parts.spawn(Engine::new(ctx.clone(), left, finished).work(seen));
    parts.spawn(watch_executions(ctx.clone(), events));
    readiness.0.store(true, Ordering::Relaxed);
    shutdown.await;
    info!("Operator stops");
    parts.shutdown().await;
    Ok(())
}

/// Starts the catalogue's watches and waits until each has seen everything once.
async fn catalogue(ctx: &Arc<Context>, parts: &mut JoinSet<()>) {
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

/// Passes executions to the engine in the order in which they are seen; tells of those that do not parse, once.
async fn watch_executions(ctx: Arc<Context>, events: mpsc::UnboundedSender<watcher::Event<SkillExecution>>) {
    let api: Api<RawObject<SkillExecution>> = Api::all(ctx.client.clone());
    let mut seen = pin!(skillet_kube::watch(api, watcher::Config::default()));
    let mut told: HashSet<(String, String)> = HashSet::new();
    while let Some(event) = seen.next().await {
        let Some(event) = parsed(&ctx, event, &mut told).await else { continue };
        if events.send(event).is_err() {
            return;
        }
    }
}

async fn parsed(
    ctx: &Context,
    event: watcher::Event<RawObject<SkillExecution>>,
    told: &mut HashSet<(String, String)>,
) -> Option<watcher::Event<SkillExecution>> {
    Some(match event {
        watcher::Event::Init => watcher::Event::Init,
        watcher::Event::InitDone => watcher::Event::InitDone,
        watcher::Event::InitApply(guard) => watcher::Event::InitApply(sound(ctx, guard, told).await?),
        watcher::Event::Apply(guard) => watcher::Event::Apply(sound(ctx, guard, told).await?),
        watcher::Event::Delete(guard) => watcher::Event::Delete(guard.parse().ok()?),
    })
}

async fn sound(
    ctx: &Context,
    guard: RawObject<SkillExecution>,
    told: &mut HashSet<(String, String)>,
) -> Option<SkillExecution> {
    let reference = guard.object_ref(&());
    let (uid, revision) = (guard.meta().uid.clone(), guard.meta().resource_version.clone());
    match guard.parse() {
        Ok(execution) => Some(execution),
        Err(error) => {
            if told.insert((uid?, revision?)) {
                let reporter = &ctx.reporter;
                reporter.problem(&reference, "SkillExecution", Reason::ParseFailed, &error.to_string()).await;
            }
            None
        }
    }
}
