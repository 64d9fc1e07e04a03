//! The server: its routes, its watches, and how it stops.
//!
//! Probes and metrics have an address of their own, without TLS, and are answered until the process ends.

pub(crate) mod connections;
mod last_response;
mod places;
mod tasks;

use std::{future::Future, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use http::Uri;
use kube::Client;
use skillet_kube::ApiMetrics;
use skillet_llm::confirmation::ConfirmationKey;
use skillet_workspace::WorkspaceClient;
use thiserror::Error;
use tokio::{net::TcpListener, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::info;

pub use self::tasks::TaskEnded;
use self::tasks::TaskGroup;
use crate::{
    admin,
    embeddings::{EmbeddingsRefresh, EmbeddingsState},
    error::ApiError,
    mcp,
    memory::MemoryPool,
    metrics::{self, Metrics},
    model::{ModelState, error_form, inject, proxy, upstream::ProviderClient},
    request_id, rest,
    service::SkillService,
    state_maps::StateMaps,
    tls::{self, Tls, TlsError},
};

/// Memory of the container for each connection. Most take far less.
const CONNECTION_BYTES: usize = 128 * 1024;
/// After the order to stop, new requests are served for so long: who forwards them here learns of it a moment later.
const DRAIN_DELAY: Duration = Duration::from_secs(3);

#[derive(Debug, Error)]
pub enum Error {
    #[error("could not listen on {address}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("could not serve TLS")]
    Tls(#[from] TlsError),
    #[error("could not make the client for providers")]
    Upstream(#[from] reqwest::Error),
    #[error(transparent)]
    Task(#[from] TaskEnded),
}

/// The settings of the gateway.
#[derive(Clone)]
pub struct Settings {
    /// Namespace of the platform's own keys for providers.
    pub namespace: String,
    /// The address for agents.
    pub address: SocketAddr,
    /// The address of `/healthz`, `/readyz` and `/metrics`.
    pub probes: SocketAddr,
    /// Agents are served under TLS, where it is set.
    pub tls: Option<tls::Files>,
    /// Of all gateways of the installation. Without it no hybrid skill is offered to models.
    pub confirmation: Option<ConfirmationKey>,
    /// Folder of the embedding model. Without it, words alone rank skills.
    pub embeddings_folder: Option<PathBuf>,
    /// The store of the callers' files. Without it no caller has a workspace.
    pub workspaces: Option<WorkspaceClient>,
    /// Metrics of the requests of the client.
    pub api: ApiMetrics,
}

/// All routes for agents.
fn router(service: &SkillService, model: ModelState) -> Router {
    let metrics = model.metrics.clone();
    let model_routes = proxy::routes().merge(inject::routes()).with_state(model);
    model_routes
        .merge(rest::routes().with_state(service.clone()))
        .merge(mcp::routes(service.clone()))
        // Before the first lists are complete, defaults would decide where a request goes.
        .route_layer(middleware::from_fn_with_state(service.clone(), require_sync))
        .merge(admin::health(|| Ok(()), readiness(service)))
        .route_layer(middleware::from_fn_with_state(metrics, metrics::count))
        .fallback(async |uri: Uri| ApiError::no_path(&uri))
        .layer(middleware::from_fn(error_form::write))
        .layer(middleware::from_fn(request_id::trace))
        .layer(middleware::from_fn_with_state(service.stop.clone(), last_response::announce))
}

/// Ready only if every watch has seen the cluster as it is, and until the shutdown begins.
fn readiness(service: &SkillService) -> impl admin::Probe + use<> {
    let service = service.clone();
    move || {
        if service.stop.is_cancelled() {
            return Err("the gateway stops");
        }
        if service.is_synced() { Ok(()) } else { Err("the watches have not seen everything yet") }
    }
}

async fn require_sync(State(service): State<SkillService>, request: Request, next: Next) -> Response {
    if service.is_synced() {
        return next.run(request).await;
    }
    ApiError::unavailable("the gateway has just started; ask again in a moment").into_response()
}

/// Serves until `shutdown` fires, then until the conversations under way are at their ends.
pub async fn run(
    client: Client,
    settings: Settings,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let Settings {
        namespace,
        address,
        probes: probes_address,
        tls,
        confirmation,
        embeddings_folder,
        workspaces,
        api,
    } = settings;
    let embeddings = EmbeddingsState::load(embeddings_folder.as_deref());
    let memory = MemoryPool::of_container(embeddings.bytes());
    let mut service = SkillService::new(client.clone(), memory);
    service.workspaces = workspaces;
    let metrics = Arc::new(Metrics::new(&api, &service.memory, service.commands.metrics()));
    metrics.embeddings().set_failed(embeddings.is_failed());
    service.catalog.set_embeddings(embeddings);
    let providers = ProviderClient::new(client.clone(), &namespace)?;
    let model = ModelState::new(&service, metrics.clone(), providers, confirmation);
    let (listener, probed) = (listen(address).await?, listen(probes_address).await?);
    let is_tls = tls.is_some();
    let tls = tls.map(Tls::new).transpose()?;
    let mut tasks = TaskGroup::default();
    tasks.spawn("the watch of skills", service.catalog.clone().watch(client.clone()));
    tasks.spawn("the watch of API keys", service.auth.clone().watch_keys());
    tasks.spawn("the watch of executions", service.executions.clone().watch_all());
    let (learning, catalog) = (model.learning.clone(), service.catalog.clone());
    let maps = StateMaps::new(client.clone(), &namespace);
    tasks.spawn("the exchange of learned terms", learning.exchange(maps, catalog, metrics.clone()));
    let maps = StateMaps::new(client.clone(), &namespace);
    let refresh = EmbeddingsRefresh::new(
        service.catalog.clone(),
        (client.clone(), maps),
        model.providers.clone(),
        metrics.clone(),
    );
    tasks.spawn("the refresh of vectors", refresh.run());
    let cluster = admin::routes(|| Ok(()), readiness(&service), metrics.registry());
    tasks.spawn("the server of probes", admin::serve(probed, cluster));
    info!(%address, %probes_address, is_tls, memory = service.memory.size(), "Gateway started");
    let (drain, routes) = (drain(shutdown, service.stop.clone()), router(&service, model));
    let most = service.memory.size() / CONNECTION_BYTES;
    tokio::select! {
        () = connections::serve(listener, tls, routes, most, drain) => {}
        ended = tasks.first_exit() => return Err(ended.into()),
    }
    info!("Gateway stops");
    tasks.stop().await;
    Ok(())
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })
}

/// Streams that only wait for news end at once, and readiness with them; requests are taken a little longer.
async fn drain(shutdown: impl Future<Output = ()>, stop: CancellationToken) {
    shutdown.await;
    stop.cancel();
    sleep(DRAIN_DELAY).await;
}
